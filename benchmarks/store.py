"""Leasing, appending and loading histories, in SQLite and in PostgreSQL.

uv run python benchmarks/store.py                                the figures of the documentation; needs 15 GB of disk
uv run python benchmarks/store.py --pages 20000 200000 --visits 5     a quick look

Leasing is compared between stores of different size (all on the same hosts), appending with one visit a call, and
loading histories with fetching the same rows one by one. Everything happens in a temporary folder.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
from figures import note, options_of
from store_population import DUE_SPAN, populate_postgres, populate_sqlite, postgres_server, temporary_folder

from recrawl.model import Histories, IntArray, Verdict, Visits
from recrawl.store import Store, open_store
from recrawl.store.engine.sql import SqlStore
from recrawl.store.history import LOOK, LOOK_NAMES

T = TypeVar("T")

BATCH = 10_000
"""Visits appended at once."""
LEASE = 1_000
ROUNDS = 40
BASELINE_SEGMENTS = 15
"""About a million visits are fetched one by one; the whole would take too long."""


def main() -> None:
    """Print the figures of both engines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument(
        "--pages", type=int, nargs="+", default=[1_000_000, 10_000_000], help="sizes; the first also gets the visits"
    )
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--visits", type=int, default=20, help="visits a page, 0 to leave them out")
    parser.add_argument("--seed", type=int, default=0)
    options = options_of(parser)
    for engine in ("sqlite", "postgres") if options.engine == "both" else (options.engine,):
        rng = np.random.default_rng(options.seed)
        with temporary_folder() as folder, populations(engine, folder, options.pages, options.hosts) as stores:
            measure_leasing(stores)
            if options.visits:
                pages = options.pages[0]
                measure_appending(stores[pages], rng, pages, options.visits)
                measure_histories(stores[pages], pages)


@contextmanager
def populations(engine: str, folder: Path, sizes: list[int], hosts: int) -> Iterator[dict[int, Store]]:
    """An open store of each size."""
    with ExitStack() as stack:
        address = stack.enter_context(postgres_server(folder)) if engine == "postgres" else ""
        stores = {}
        for pages in sizes:
            start = time.perf_counter()
            if engine == "postgres":
                location = populate_postgres(address, f"pages_{pages}", pages, hosts)
            else:
                location = populate_sqlite(folder / f"{pages}.db", pages, hosts)
            seconds = time.perf_counter() - start
            print(f"{engine:8}  {pages:>11,} pages on {hosts:,} hosts made in {seconds:.0f} s")
            stores[pages] = stack.enter_context(open_store(location))
        yield stores


def measure_leasing(stores: dict[int, Store]) -> None:
    """Lease and record in turn on every size, so that all see the same load of the machine."""
    leasing: dict[int, list[float]] = {pages: [] for pages in stores}
    recording: dict[int, list[float]] = {pages: [] for pages in stores}
    now = float(DUE_SPAN)
    for _ in range(ROUNDS):
        now += 100.0
        for pages, store in stores.items():
            start = time.perf_counter()
            leased = store.lease("benchmark", now, LEASE, ttl=60.0)
            leasing[pages].append(time.perf_counter() - start)
            visits = Visits.of(leased.page, np.full(len(leased), now))
            rest = np.full(len(leased), now + 10.0)
            start = time.perf_counter()
            store.record(visits, due=rest, worker="benchmark", host_ready=rest)
            recording[pages].append(time.perf_counter() - start)
    smallest = min(stores)
    for name, measured in (("lease", leasing), ("record and reschedule", recording)):
        for pages, times in measured.items():
            ratio = np.median(times) / np.median(measured[smallest])
            print(
                f"          {name} {LEASE:,} of {pages:,} pages: median {np.median(times) * 1e3:.1f} ms, "
                f"least {min(times) * 1e3:.1f} ms, {ratio:.2f} x the cost at {smallest:,}"
            )
        ours, first = (float(np.median(measured[pages]) * 1e3) for pages in (max(stores), smallest))
        sizes = f"{LEASE:,} of {max(stores):,} pages"
        note(name, ours, "ms", sizes, baseline=first, beside=f"the same of {smallest:,} pages")


def measure_appending(store: Store, rng: np.random.Generator, pages: int, rounds: int) -> None:
    """Visit every page in each round, in another order each time."""
    before = time.perf_counter()
    for page in range(1, 201):
        store.record(visit_batch(rng, np.array([page]), 0.5))
    alone, total = time.perf_counter() - before, 0.0
    for number in range(rounds):
        order = rng.permutation(pages) + 1
        for start in range(0, pages, BATCH):
            visits = visit_batch(rng, order[start : start + BATCH], 1e9 + 86_400.0 * number + 86_400.0 * start / pages)
            before = time.perf_counter()
            store.record(visits)
            total += time.perf_counter() - before
    rate, baseline = pages * rounds / total, 200 / alone
    print(
        f"          append {pages * rounds:,} visits in batches of {BATCH:,}: {rate:,.0f} visits/s, "
        f"{rate / baseline:.0f} x one at a time ({baseline:,.0f}/s)"
    )
    sizes = f"{pages * rounds:,} visits, {BATCH:,} at once"
    note("append", rate, "visits/s", sizes, baseline=baseline, beside="one at a time")


def visit_batch(rng: np.random.Generator, page: IntArray, start: float) -> Visits:
    """Visits of these pages, one after the other."""
    count = len(page)
    return Visits.of(
        page,
        start + np.sort(rng.random(count)) * 800.0,
        verdict=rng.choice([Verdict.UNKNOWN, Verdict.UNCHANGED, Verdict.CHANGED], count, p=[0.05, 0.65, 0.3]),
        kinds=3,
        status=200,
        size=rng.integers(1_000, 100_000, count),
        cost=rng.random(count),
    )


def measure_histories(store: Store, pages: int) -> None:
    """All histories, three times; and a part of the rows fetched one by one."""
    runs = []
    for _ in range(3):
        seconds, histories = timed(store.histories)
        runs.append(seconds)
    visits = store.counts(0.0).visits
    slow, fetched = timed(lambda: row_by_row(cast("SqlStore", store)))
    rate, baseline = visits / float(np.median(runs)), fetched / slow
    print(
        f"          load histories of {len(histories):,} pages, {visits:,} visits: {rate / 1e6:.1f} M visits/s, "
        f"{rate / baseline:.1f} x row by row ({baseline / 1e6:.2f} M/s)"
    )
    sizes = f"{len(histories):,} pages, {visits:,} visits"
    note("histories", rate, "visits/s", sizes, baseline=baseline, beside="row by row")
    chosen = np.linspace(1, pages, 10).astype(np.int64)
    seconds, few = timed(lambda: store.histories(pages=chosen))
    print(f"          load histories of {len(few)} pages: {seconds * 1e3:.1f} ms")


def row_by_row(store: SqlStore) -> int:
    """The baseline: histories from rows that become Python objects. Returns how many rows."""
    rows = store._database.read(  # noqa: SLF001 - past the store's own way of reading
        lambda session: [
            row
            for segment in range(1, BASELINE_SEGMENTS + 1)
            for row in session.rows(session.statements.observations_of_segment, segment)
        ]
    )
    columns = {
        name: np.array(column, LOOK[name]) for name, column in zip(LOOK_NAMES, zip(*rows, strict=True), strict=True)
    }
    Histories.from_visits(Visits.of(**columns))
    return len(rows)


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds it took, and the result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


if __name__ == "__main__":
    main()
