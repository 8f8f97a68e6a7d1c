"""Build histories from ten million unordered visits: time and memory beside a plain sort of the same rows.

uv run python benchmarks/model.py --visits 10000000
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from recrawl.model import Histories, Verdict, Visits

T = TypeVar("T")


def main() -> None:
    """Print seconds, rates and peak memory for unordered and for ordered visits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visits", type=int, default=10_000_000)
    parser.add_argument("--pages", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    rng = np.random.default_rng(options.seed)
    visits = Visits.of(
        rng.integers(0, options.pages, options.visits),
        1.7e9 + rng.random(options.visits) * 3.0e7,
        verdict=rng.choice([Verdict.UNKNOWN, Verdict.UNCHANGED, Verdict.CHANGED], options.visits, p=[0.1, 0.6, 0.3]),
    )
    raw = sum(column.nbytes for column in visits.columns().values())
    print(f"{options.visits:,} visits of {options.pages:,} pages, {raw / 1e6:,.0f} MB of columns")
    before = _peak()

    baseline, _ = _timed(lambda: np.lexsort((visits.time, visits.page)))
    build, histories = _timed(lambda: Histories.from_visits(visits))
    peak = _peak() - before
    ordered = visits.sorted()
    again, _ = _timed(lambda: Histories.from_visits(ordered))
    print(f"lexical sort alone (baseline)   {baseline:6.2f} s")
    print(
        f"from unordered visits           {build:6.2f} s   {options.visits / build / 1e6:5.1f} M visits/s   "
        f"{build / baseline:.2f} x the baseline"
    )
    print(
        f"from ordered visits             {again:6.2f} s   {options.visits / again / 1e6:5.1f} M visits/s   "
        f"{again / baseline:.2f} x the baseline"
    )
    print(f"extra memory at the peak        {peak / 1e6:6.0f} MB  {peak / raw:.2f} x the columns")
    for name, operation in (
        ("cut to the middle half of time", lambda: histories.window(1.7e9 + 0.75e7, 1.7e9 + 2.25e7)),
        ("group to 5,000 sections", lambda: histories.group(histories.page % 5_000)),
        ("take every other page", lambda: histories.take(slice(None, None, 2))),
    ):
        seconds, _ = _timed(operation)
        print(f"{name:<31} {seconds:6.2f} s   {seconds / baseline:.2f} x the baseline")


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def _peak() -> float:
    """Peak resident memory of this process so far, bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


if __name__ == "__main__":
    main()
