"""How many archived pages provably existed as they are shown: copies by state beside copies by nearness.

First on archive files: every WARC, ARC and WACZ file below a folder, all in one store, since a part may lie in another
file than its page. Then on a made archive, where the truth is known: a site is crawled again and again, its parts
change by chance, and servers state a Last-Modified for some of them. Published figures, for orientation: at most
38.7 % of composite mementos temporally coherent and 17.9 % coherent and complete (Ainsworth et al. 2015), mean damage
.13 to .16 (Brunelle et al. 2014).

    uv run python benchmarks/composites.py [FOLDER…] [--pages 20000] [--dated 0.6] [--seed 1]
"""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from recrawl.app.assess.archive_reading import ReadOptions, read_archive
from recrawl.app.progress import SilentBars
from recrawl.assess.composite_coherence import (
    ChoiceRule,
    CoherenceState,
    Composites,
    CompositeSummary,
    ResourceCaptures,
    choose,
    summary_of,
)
from recrawl.formats.warc.archived_bytes import ArchivedBytes, imported_into
from recrawl.model import FloatArray, IntArray
from recrawl.time import DAY
from recrawl.transfer.composite_reader import CompositeReader, captured_pages

HERE = Path(__file__).resolve().parents[1]
SUFFIXES = (".warc", ".warc.gz", ".arc", ".arc.gz", ".wacz")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[HERE / "tests" / "data" / "formats"])
    parser.add_argument("--pages", type=int, default=20_000, help="captured pages of the made archive")
    parser.add_argument("--dated", type=float, default=0.6, help="share of its parts that state a Last-Modified")
    parser.add_argument("--crawl", type=float, default=5.0, help="days that a weekly crawl of it takes")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    for folder in asked.folders:
        files = sorted(one for one in folder.rglob("*") if one.is_file() and one.name.endswith(SUFFIXES))
        print(f"\n{folder}: {len(files)} archive files")
        table({rule: summary_of(found) for rule, found in of_files(files)})
    print(
        f"\nmade archive: {asked.pages:,} captured pages, weekly crawls of {asked.crawl:g} days, "
        f"Last-Modified stated by {asked.dated:.0%} of their parts"
    )
    made, truth = made_archive(asked.pages, asked.dated, asked.crawl * DAY, np.random.default_rng(asked.seed))
    table(made)
    for rule, share in truth.items():
        print(f"  truly as they were when the page was captured, {rule.value} rule: {share:.1%} of pages")


def table(found: dict[ChoiceRule, CompositeSummary]) -> None:
    """Both rules side by side."""
    first = next(iter(found.values()))
    print(f"  {first.pages:,} captured pages, {first.embedding:,} embed {sum(first.resources.values()):,} resources")
    print(f"  {'':34}" + "".join(f"{rule.value:>12}" for rule in found))
    rows = {
        "pages provably coherent": "coherent",
        "pages without a violative part": "not_violative",
        "pages provably never so": "violative",
        "pages coherent and complete": "coherent_complete",
        "the same at most": "not_violative_complete",
        "pages complete": "complete",
    }
    for name, counted in rows.items():
        cells = [said.share(getattr(said, counted)) for said in found.values()]
        print(f"  {name:34}" + "".join(f"{'not known' if one is None else f'{one:.1%}':>12}" for one in cells))
    for state in CoherenceState:
        print(
            f"  {state.name.lower().replace('_', ' '):34}"
            + "".join(f"{s.resources[state]:12,}" for s in found.values())
        )
    print(
        f"  {'mean damage':34}"
        + "".join(f"{'–' if s.damage is None else f'{s.damage:.3f}':>12}" for s in found.values())
    )


def of_files(files: list[Path]) -> Iterator[tuple[ChoiceRule, Composites]]:
    """Every captured page of all files, evaluated by each rule."""
    reading = ReadOptions.of("0s", {}, digests_only=True)
    with contextlib.redirect_stderr(io.StringIO()), read_archive(files, reading, SilentBars()) as archive:
        store = archive.store
        archived = ArchivedBytes(archive.warc, imported_into(store))
        chosen = captured_pages(store, np.arange(1, store.last_page() + 1), 1 << 30, archived.has)
        for rule in (ChoiceRule.NEAREST, ChoiceRule.COHERENT):
            reader = CompositeReader(store, archived.read, archived.has)
            parts = [reader.judge(chosen.roots[at : at + 500], rule) for at in range(0, len(chosen.roots), 500)]
            yield rule, Composites.joined(parts)


def made_archive(
    pages: int, dated: float, lasts: float, rng: np.random.Generator
) -> tuple[dict[ChoiceRule, CompositeSummary], dict[ChoiceRule, float]]:
    """Crawls of some days for a year, of pages with ten parts each that change about monthly; 5 % are missing."""
    crawls, parts = 52, 10
    roots = rng.integers(0, crawls, pages) * 7 * DAY + rng.random(pages) * lasts
    resources = max(parts, pages // 50)
    captures, changes = captures_of(resources, crawls, dated, lasts, rng)
    row = np.repeat(np.arange(pages), parts)
    resource = rng.integers(0, resources, pages * parts)
    at = np.repeat(roots, parts)
    said: dict[ChoiceRule, CompositeSummary] = {}
    truth: dict[ChoiceRule, float] = {}
    nothing = np.zeros(pages)
    for rule in (ChoiceRule.NEAREST, ChoiceRule.COHERENT):
        found = choose(captures, resource, at, rule)
        found_pages = Composites.of(
            np.arange(pages), roots, nothing.astype(np.int64), nothing > 0, row, found.state, np.full(len(row), 0.05)
        )
        said[rule] = summary_of(found_pages)
        there = found.place >= 0
        right = np.ones(len(row), np.bool_)
        right[there] = version_at(changes, resource[there], at[there]) == version_at(
            changes, resource[there], captures.time[found.place[there]]
        )
        whole = np.bincount(row[~right], minlength=pages) == 0
        truth[rule] = float(whole.mean())
    return said, truth


def captures_of(
    resources: int, crawls: int, dated: float, lasts: float, rng: np.random.Generator
) -> tuple[ResourceCaptures, FloatArray]:
    """One capture of each resource in each crawl; and when each changed, row by row, padded with infinity."""
    rate = rng.gamma(0.5, 2 / 30, resources) / DAY
    gaps = rng.exponential(1.0, (resources, 400)) / rate[:, None]
    changes = np.cumsum(gaps, 1) - 30 * DAY
    time = np.arange(crawls)[None, :] * 7 * DAY + rng.random((resources, crawls)) * lasts
    version = np.array([np.searchsorted(changes[one], time[one]) for one in range(resources)]) + 1
    padded = np.concatenate([np.full((resources, 1), -60 * DAY), changes], 1)
    modified = np.take_along_axis(padded, version - 1, 1)
    says = rng.random(resources) < dated
    kept = rng.random(resources) >= 0.05
    counts = np.where(kept, crawls, 0)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    stated = np.where(says[:, None], np.floor(modified), np.nan)[kept].ravel()
    ones = np.ones(len(stated), np.int64)
    numbers = version[kept].ravel().astype(np.int64)
    return ResourceCaptures(offsets, time[kept].ravel(), numbers, ones, ones > 0, stated), changes


def version_at(changes: FloatArray, resource: IntArray, time: FloatArray) -> IntArray:
    """How often each resource had changed by a time."""
    return np.asarray((changes[resource] <= time[:, None]).sum(1))


if __name__ == "__main__":
    main()
