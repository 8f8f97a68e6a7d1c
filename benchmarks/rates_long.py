"""``recrawl rates`` on a long and thin archive: few visits, many hosts, many years.

    uv run --group bench python benchmarks/rates_long.py
    uv run --group bench python benchmarks/rates_long.py --data ../shared/data/data-sources

1,077 pages of 400 hosts with 44,000 captures in 14 years are written as CDX and imported. Then ``recrawl rates`` runs
with the default estimator and, as the baseline, with ``posterior``, each in a process of its own; twice each, the
better one counts. Seconds are of the processor. The cost of the default has to grow with visits, not with days ×
clusters. With ``--data`` a recorded history is imported in place of the made one; nothing is noted of it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from figures import note, options_of

from recrawl.store.open import open_store

YEAR = 365.25 * 86_400.0
END = 1.75e9


def main() -> None:
    """Make the archive, ask for its rates both ways, print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1_077)
    parser.add_argument("--hosts", type=int, default=400)
    parser.add_argument("--visits", type=int, default=43_887)
    parser.add_argument("--years", type=float, default=14.0)
    parser.add_argument("--data", type=Path, help="a folder with a recorded history, in place of the made one")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = options_of(parser)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        source = options.data or place / "made.cdx"
        if options.data is None:
            source.write_text("\n".join(_lines(options)) + "\n", encoding="ascii")
        workspace = place / "archive"
        _recrawl("init", str(workspace))
        _recrawl("import", "-w", str(workspace), str(source))
        ask = ("rates", "-w", str(workspace), "--json")
        _recrawl(*ask)  # compiled kernels are kept on disk from here on
        seconds = {
            name: min(_recrawl(*ask, "--estimator", name) for _ in range(options.repeat))
            for name in ("operational", "posterior")
        }
        sizes = _sizes(workspace, options)
    ours, plain = seconds["operational"], seconds["posterior"]
    print(f"{sizes}: default {ours:.2f} s, posterior {plain:.2f} s of the processor, ratio {ours / plain:.2f}")
    if options.data is None:
        note("rates, long and thin", ours, "s", sizes, baseline=plain, beside="estimator posterior")


def _sizes(workspace: Path, options: argparse.Namespace) -> str:
    """Pages, visits, hosts and years: those that were asked for, or those of a recorded history."""
    if options.data is None:
        return f"{options.pages:,} pages, {options.visits:,} visits, {options.hosts} hosts, {options.years:g} years"
    with open_store(workspace / "recrawl.db") as store:
        visits, pages = store.observations(), store.pages()
    years = np.ptp(visits.time) / YEAR
    name = options.data.name
    return (
        f"{name}: {len(pages):,} pages, {len(visits):,} visits, {len(np.unique(pages.host))} hosts, {years:.1f} years"
    )


def _lines(options: argparse.Namespace) -> list[str]:
    """Captures by page and time; pages change by rates of their own, and a fourth of the hosts by bulk edits, too."""
    rng = np.random.default_rng(options.seed)
    host = np.sort(rng.integers(0, options.hosts, options.pages))
    span = options.years * YEAR
    edits = {one: np.sort(rng.random(20)) * span for one in range(0, options.hosts, 4)}
    lines = ["CDX N b a m s k r M S V g"]
    count = np.maximum(rng.poisson(options.visits / options.pages, options.pages), 2)
    rate = np.exp(rng.normal(np.log(1.0 / (60 * 86_400.0)), 1.5, options.pages))
    for page in range(options.pages):
        name, path = int(host[page]), f"/section{page % 3}/page{page}.html"
        times = np.sort(rng.uniform(0.5 * rng.random() * span, span, count[page]))
        changes = np.sort(rng.uniform(0.0, span, rng.poisson(rate[page] * span)))
        version = np.searchsorted(changes, times) + np.searchsorted(edits.get(name, np.empty(0)), times)
        for time, number in zip(times.tolist(), version.tolist(), strict=True):
            stamp = datetime.fromtimestamp(END - span + time, UTC).strftime("%Y%m%d%H%M%S")
            key, url = f"org,host{name})", f"http://host{name}.org{path}"
            lines.append(f"{key}{path} {stamp} {url} text/html 200 P{page}V{number} - - 1000 0 made.warc.gz")
    return lines


def _recrawl(*words: str) -> float:
    """Run a command of recrawl; seconds of the processor it took."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "recrawl", *words], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return (after.children_user - before.children_user) + (after.children_system - before.children_system)


if __name__ == "__main__":
    main()
