"""Beliefs about millions of pages.

Visits per second, values a second, and from Parquet to beliefs for ten million pages.

    uv run python benchmarks/estimate.py                     speed of updates and of the value of a visit
    uv run python benchmarks/estimate.py --parquet 200000    from a Parquet file of 200,000 pages to beliefs
    uv run python benchmarks/estimate.py --parquet 10000000  in full: needs 3 GB of disk

Baselines of the same run: scipy's brentq, page by page, for the visits it takes into account; the same sum in plain
numpy for values; reading the file and nothing else. Seconds are of the processor, so that other work on the machine
does not count; those from Parquet to beliefs are of the clock on the wall. Beside it, benchmarks/estimate_mle.py
measures maximum likelihood.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from figures import note, options_of
from scipy import optimize

from recrawl.errors import require
from recrawl.estimate.estimator import RateEvidence
from recrawl.estimate.posterior import gamma_posterior, grid_posterior
from recrawl.estimate.posterior.grid_posterior import fit_priors
from recrawl.estimate.posterior.posterior_estimators import Posterior
from recrawl.formats.columnar.arrow_tables import visits_from_table, visits_to_table
from recrawl.model import FloatArray, GammaBelief, GridBelief, Histories, Verdict, Visits
from recrawl.model.arrays import offsets_of
from recrawl.model.compiled import can_compile
from recrawl.schedule.objectives import FreshnessObjective
from recrawl.time import DAY

START = 1.7e9
HOST_PAGES, CLUSTER_PAGES = 1_000, 100


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=300_000, help="pages for updates and values")
    parser.add_argument("--looks", type=int, default=10, help="looks at each after the first")
    parser.add_argument("--baseline-pages", type=int, default=2_000, help="pages that brentq solves")
    parser.add_argument("--parquet", type=int, default=0, metavar="PAGES", help="from Parquet to beliefs instead")
    parser.add_argument("--folder", type=Path, help="where the Parquet file goes; a temporary folder if not said")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = options_of(parser)
    print("compiled code" if can_compile() else "numpy alone: numba is not installed")
    if options.read:
        _from_parquet(options.read)
    elif options.parquet:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            file = Path(folder) / "visits.parquet"
            _write(file, options)
            # in a process of its own, so that its peak of memory is that of the work
            kept = ["--json", str(options.json)] if options.json else []
            subprocess.run([sys.executable, __file__, "--read", str(file), *kept], check=True)
    else:
        _updates(options)
        _values(options)


# -- visits per second --------------------------------------------------------------------------


def _updates(options: argparse.Namespace) -> None:
    histories = _population(options.pages, options.observations, np.random.default_rng(options.seed))
    pages, visits = len(histories), len(histories.gaps)
    host = histories.page // HOST_PAGES
    found, seconds = _timed(lambda: fit_priors(histories, (host,)), 1)
    print(f"{pages:,} pages x {options.observations} looks, {len(found.groups[0]):,} hosts; priors in {seconds:.2f} s")
    of = found.rows((host,), pages)
    baseline = _brentq_visits(histories, options.baseline_pages)
    print(f"{'brentq, page by page (baseline)':<40} {baseline / 1e6:8.3f} M visits/s")

    flat = GammaBelief(np.full(pages, 0.5), np.full(pages, 15 * DAY))
    order = np.random.default_rng(1).permutation(pages)
    rounds = [
        (order, histories.gaps[histories.offsets[order] + k], histories.changed[histories.offsets[order] + k])
        for k in range(options.observations)
    ]

    on_grid, two_numbers = found.belief.take(of), GammaBelief(flat.a.copy(), flat.b.copy())

    def stream_grid(jump: float | None) -> None:
        for observations in rounds:
            grid_posterior.update(on_grid, *observations, found.belief, of=of, jump=jump)

    def stream_gamma() -> None:
        for observations in rounds:
            gamma_posterior.update(two_numbers, *observations)

    work: dict[str, Callable[[], object]] = {
        "grid, all looks at once": lambda: grid_posterior.fit(histories, found.belief, of=of),
        "grid, all looks at once, no filter": lambda: grid_posterior.fit(histories, found.belief, of=of, jump=None),
        "grid, one look after the other": lambda: stream_grid(grid_posterior.JUMP),
        "grid, one after the other, no filter": lambda: stream_grid(None),
        "Gamma, all looks at once": lambda: gamma_posterior.fit(histories, flat),
        "Gamma, one look after the other": stream_gamma,
    }
    for name, run in work.items():
        _, seconds = _timed(run, options.repeat)
        print(f"{name:<40} {visits / seconds / 1e6:8.2f} M visits/s   {visits / seconds / baseline:8.0f} x baseline")
        sizes = f"{pages:,} pages × {options.observations} looks"
        note(name, visits / seconds, "visits/s", sizes, baseline=baseline, beside="brentq, page by page")


def _brentq_visits(histories: Histories, pages: int) -> float:
    """Visits a second that the maximum likelihood takes into account, one page after the other."""
    changes = histories.changes()
    rows = np.flatnonzero((changes > 0) & (changes < histories.counts()))[:pages]
    cut = [slice(histories.offsets[row], histories.offsets[row + 1]) for row in rows]
    pieces = [(histories.gaps[part], histories.changed[part]) for part in cut]
    _, seconds = _timed(lambda: [_brentq(*piece) for piece in pieces], 1)
    return sum(len(gaps) for gaps, _ in pieces) / seconds


def _brentq(gaps: FloatArray, changed: Any) -> float:  # noqa: ANN401 - a mask
    tau, quiet = gaps[changed], float(gaps[~changed].sum())
    total = float(tau.sum())
    low = len(tau) / total * np.log1p(total / quiet)
    high = min(len(tau) / quiet, np.log1p(total / quiet) / tau.min())

    def slope(rate: float) -> float:
        with np.errstate(over="ignore"):
            return float((tau / np.expm1(rate * tau)).sum()) - quiet

    return float(optimize.brentq(slope, low * (1 - 1e-12), high * (1 + 1e-12), xtol=1e-300, rtol=1e-14))


# -- values a second --------------------------------------------------------------------------


def _values(options: argparse.Namespace) -> None:
    """The value index: what a visit to each page is worth now."""
    pages = 1_000_000
    rng = np.random.default_rng(options.seed)
    histories = _population(20_000, options.observations, rng)
    known = Posterior()(RateEvidence(histories))
    belief = known.take(rng.integers(0, len(known), pages))
    elapsed = rng.exponential(20 * DAY, pages)
    FreshnessObjective().value(belief.take(slice(9)), elapsed[:9])
    _, baseline = _timed(lambda: _plain_value(belief, elapsed), 1)
    _, seconds = _timed(lambda: FreshnessObjective().value(belief, elapsed), options.repeat)
    print(f"value of a visit to {pages:,} pages, {len(belief.rates)} rates")
    print(f"{'plain numpy (baseline)':<40} {pages / baseline / 1e6:8.2f} M pages/s")
    print(f"{'freshness':<40} {pages / seconds / 1e6:8.2f} M pages/s    {baseline / seconds:8.1f} x baseline")
    sizes = f"{pages:,} pages, {len(belief.rates)} rates"
    note("value", pages / seconds, "pages/s", sizes, baseline=pages / baseline, beside="plain numpy")


def _plain_value(belief: GridBelief, elapsed: FloatArray) -> FloatArray:
    out = np.empty(len(belief))
    for start in range(0, len(out), 16_384):
        block = slice(start, start + 16_384)
        x = elapsed[block, None] * belief.rates
        out[block] = (belief.weights[block] * (1.0 - (1.0 + x) * np.exp(-x)) / belief.rates).sum(axis=1)
    return out


# -- from Parquet to beliefs ------------------------------------------------------------------


def _write(file: Path, options: argparse.Namespace) -> None:
    """Visits of many pages, sorted by page, in groups of rows that cut pages in two."""
    pa, pq = require("pyarrow", "columns"), require("pyarrow.parquet", "columns")
    rng = np.random.default_rng(options.seed)
    start, writer, rest = time.perf_counter(), None, None
    for first in range(0, options.parquet, 250_000):
        visits = _visits(_population(min(250_000, options.parquet - first), options.observations - 1, rng, first))
        table = visits_to_table(visits)
        writer = writer or pq.ParquetWriter(file, table.schema, compression="zstd", compression_level=1)
        table = table if rest is None else pa.concat_tables([rest, table])
        whole = len(table) // 1_000_003 * 1_000_003
        writer.write_table(table.slice(0, whole), row_group_size=1_000_003)
        rest = table.slice(whole)
    if writer is not None:
        writer.write_table(rest)
        writer.close()
    size = file.stat().st_size / 1e9
    took = time.perf_counter() - start
    print(
        f"{options.parquet:,} pages x {options.observations} visits, {size:.2f} GB of Parquet, made in {took:.0f} s",
        flush=True,
    )


def _from_parquet(path: Path) -> None:
    pq = require("pyarrow.parquet", "columns")
    file = pq.ParquetFile(path)
    _, baseline = _timed(
        lambda: [len(file.read_row_group(group)) for group in range(file.num_row_groups)], 1, time.perf_counter
    )
    held = _peak()
    print(f"{'reading alone (baseline)':<40} {baseline:8.1f} s")
    histories, reading = _timed(lambda: _histories(file), 1, time.perf_counter)
    print(f"{'reading into histories':<40} {reading:8.1f} s   peak {_peak():5.2f} GB", flush=True)
    levels = (histories.page // HOST_PAGES, histories.page // CLUSTER_PAGES)
    priors, learning = _timed(lambda: fit_priors(histories, levels), 1, time.perf_counter)
    groups = " and ".join(f"{len(ids):,}" for ids in priors.groups)
    print(f"{'priors of ' + groups + ' groups':<40} {learning:8.1f} s   peak {_peak():5.2f} GB", flush=True)
    known, fitting = _timed(lambda: Posterior().learn(RateEvidence(histories, levels), priors), 1, time.perf_counter)
    print(f"{'beliefs, ' + str(len(priors.belief.rates)) + ' rates':<40} {fitting:8.1f} s   peak {_peak():5.2f} GB")
    total = reading + learning + fitting
    print(f"{f'{len(known.belief):,} pages, all together':<40} {total:8.1f} s   {total / baseline:.1f} x baseline")
    sizes = f"{len(known.belief):,} pages, {file.metadata.num_rows:,} visits"
    note("parquet", total, "s", sizes, baseline=baseline, beside="reading the file alone")
    note("parquet, memory", _peak(), "GB", sizes, baseline=held, beside="reading the file alone")


def _histories(file: Any) -> Histories:  # noqa: ANN401 - a pyarrow.parquet.ParquetFile
    """One group of rows after the other; a page that goes on in the next group waits for it."""
    parts, waiting = [], Visits.concatenate([])
    for group in range(file.num_row_groups):
        visits = Visits.concatenate([waiting, visits_from_table(file.read_row_group(group))])
        goes_on = group + 1 < file.num_row_groups and len(visits) > 0
        end = int(np.searchsorted(visits.page, visits.page[-1])) if goes_on else len(visits)
        parts.append(Histories.from_visits(visits.take(slice(0, end))))
        waiting = visits.take(slice(end, None))
    return Histories.concatenate(parts)


# -- what all use -----------------------------------------------------------------------------


def _population(pages: int, observations: int, rng: np.random.Generator, first: int = 0) -> Histories:
    """Log-normal rates, half their log-variance between hosts; gaps around ten days."""
    page = np.arange(first, first + pages)
    of_host = np.random.default_rng(7).normal(0.0, 1.4, (first + pages) // HOST_PAGES + 1)
    rate = np.exp(of_host[page // HOST_PAGES] + rng.normal(0.0, 1.4, pages)) / (30 * DAY)
    row = np.repeat(np.arange(pages), observations)
    gaps = rng.lognormal(np.log(10 * DAY), 1.0, len(row))
    changed = rng.random(len(row)) < -np.expm1(-rate[row] * gaps)
    nothing = np.full(pages, np.nan)
    return Histories(page, offsets_of(row, pages), gaps, changed, nothing, nothing, nothing)


def _visits(histories: Histories) -> Visits:
    """The observations of histories of equal length, and the first one of each page."""
    pages = len(histories)
    gaps = histories.gaps.reshape(pages, -1)
    time_of = START + np.cumsum(np.concatenate([np.zeros((pages, 1)), gaps], axis=1), axis=1)
    said = np.where(histories.changed, Verdict.CHANGED, Verdict.UNCHANGED).reshape(gaps.shape)
    verdict = np.concatenate([np.full((pages, 1), Verdict.UNKNOWN), said], axis=1)
    return Visits.of(np.repeat(histories.page, time_of.shape[1]), time_of.ravel(), verdict=verdict.ravel())


def _timed(work: Callable[[], Any], repeat: int, clock: Callable[[], float] = time.process_time) -> tuple[Any, float]:
    """What the work gave, and the seconds of its fastest run."""
    best, result = np.inf, None
    for _ in range(repeat):
        result = None  # not two results in memory at once
        start = clock()
        result = work()
        best = min(best, clock() - start)
    return result, best


def _peak() -> float:
    """Peak resident memory of this process so far, gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    main()
