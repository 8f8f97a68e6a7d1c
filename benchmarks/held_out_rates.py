"""Do the rates that recrawl shows hold in the time that follows? Recorded histories, the last year held out.

    uv run python benchmarks/held_out_rates.py                       the data sets of the tests
    uv run python benchmarks/held_out_rates.py DATA/terms DATA/data-sources

Each data set is imported and asked as of two times, after three and four fifths of its record. Four rates of each page
are compared with its logged changes in the year after: that of ``recrawl rates``, that of the policy (``recrawl rates
--policy``), all changes over all observed time (X/T), and those of the last year over that year. *Error* is the mean of
|ln((n + ½)/(λh + ½))| over pages for n changes in h seconds. *Covered* is the share of pages whose n lies within the
90 % prediction interval of the belief about λ, or of the Poisson distribution where there is a number only.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recrawl.app.plan import look_ahead
from recrawl.app.rates.belief_table import VisitSpan, learn
from recrawl.app.workspace.settings import Settings
from recrawl.crawl.clock import RealClock
from recrawl.model import Belief, BoolArray, FloatArray, IntArray, Verdict, Visits
from recrawl.store.base import Store
from recrawl.store.open import open_store
from recrawl.time import DAY
from recrawl.transfer.archive_import import Importer
from recrawl.transfer.import_sources import ImportSources

TESTS = Path(__file__).resolve().parents[1] / "tests" / "data"
SHARES = (0.6, 0.8)
"""Of the record, after which a year is held out."""
YEAR = 365 * DAY
LEAST = 30 * DAY
"""Seconds of the held-out year that a page must be observed for."""
PARTS = (np.arange(41) + 0.5) / 41.0
"""Quantiles that stand for a belief."""
INTERVAL = (0.05, 0.95)
RATES, POLICY, ALL_TIME, LAST_YEAR = "rates", "policy", "X/T", "last year"


@dataclass(frozen=True)
class HeldOut:
    """How rates as of one time agree with the year after."""

    share: float
    pages: int
    changes: int
    """Logged in the held-out year."""
    error: dict[str, float]
    covered: dict[str, float]
    apart: float
    """Share of pages of which the intervals of rates and of the policy have nothing in common."""


def imported(source: Path, folder: Path) -> Store:
    """A store that holds the data set."""
    store = open_store(folder / "recrawl.db", create=True)
    importer = Importer(store, RealClock())
    for _ in ImportSources(store, importer, RealClock(), folder / "warc").bring(source):
        pass
    importer.judge()
    return store


def held_out(store: Store) -> Iterator[HeldOut]:
    """The comparisons, by time."""
    seen = store.observations()
    first, last = float(seen.time.min()), float(seen.time.max())
    for share in SHARES:
        yield _as_of(store, seen, share, first + share * (last - first))


def _as_of(store: Store, seen: Visits, share: float, now: float) -> HeldOut:
    known = learn(store, VisitSpan(until=now))
    histories = known.histories
    outlook = look_ahead(store, Settings(), now)
    ends = np.full(len(histories), -np.inf)
    np.maximum.at(ends, *_of(histories.page, seen, seen.time > now))
    for_seconds = np.minimum(ends, now + YEAR) - now
    usable = (for_seconds > LEAST) & ~np.isnan(known.rate) & np.isnan(known.gone_since)
    usable &= np.isin(histories.page, outlook.pages.id)
    rows, seconds = np.flatnonzero(usable), for_seconds[usable]
    found = _changes(histories.page, seen, now, now + YEAR)[rows]
    past = np.minimum(np.maximum(now - histories.first_visit, DAY), YEAR)
    lately = _changes(histories.page, seen, now - YEAR, now) / past
    beliefs: dict[str, Belief] = {
        RATES: known.belief.take(rows),
        POLICY: outlook.belief.take(np.searchsorted(outlook.pages.id, histories.page[rows])),
    }
    numbers = {
        RATES: known.rate[rows],
        POLICY: beliefs[POLICY].quantile(0.5),
        ALL_TIME: (histories.changes() / np.maximum(histories.observed(), 1.0))[rows],
        LAST_YEAR: lately[rows],
    }
    spread = {name: np.stack([belief.quantile(q) for q in PARTS]) for name, belief in beliefs.items()}
    spread |= {name: numbers[name][None, :] for name in (ALL_TIME, LAST_YEAR)}
    low, high = (np.stack([beliefs[name].quantile(q) for name in (RATES, POLICY)]) for q in INTERVAL)
    return HeldOut(
        share,
        len(rows),
        int(found.sum()),
        {name: _error(found, rate * seconds) for name, rate in numbers.items()},
        {name: _covered(found, rates * seconds) for name, rates in spread.items()},
        float(np.mean(low.max(axis=0) > high.min(axis=0))),
    )


def _of(page: IntArray, seen: Visits, which: BoolArray) -> tuple[IntArray, FloatArray]:
    """Row and time of these visits, as far as they are to one of the pages."""
    some = seen.take(which & np.isin(seen.page, page))
    return np.searchsorted(page, some.page), some.time


def _changes(page: IntArray, seen: Visits, after: float, until: float) -> FloatArray:
    """Changes of each page in a period."""
    which = (seen.time > after) & (seen.time <= until) & (seen.verdict == Verdict.CHANGED)
    return np.bincount(_of(page, seen, which)[0], minlength=len(page)).astype(np.float64)


def _error(found: FloatArray, expected: FloatArray) -> float:
    return float(np.abs(np.log((found + 0.5) / (expected + 0.5))).mean())


def _covered(found: FloatArray, expected: FloatArray) -> float:
    """The share of counts within the interval of their predictive distributions. ``expected`` has shape (parts, n)."""
    from scipy.stats import poisson

    up_to = poisson.cdf(found, expected).mean(axis=0)
    below = np.where(found > 0, poisson.cdf(found - 1.0, expected).mean(axis=0), 0.0)
    return float(((up_to >= INTERVAL[0]) & (below <= INTERVAL[1])).mean())


def main() -> None:
    """Print a line for each data set and time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    named = [TESTS / name for name in ("recorded", "sites", "published")]
    parser.add_argument("data", type=Path, nargs="*", default=named, help="folders of data sets")
    names = (RATES, POLICY, ALL_TIME, LAST_YEAR)
    heads = "".join(f"{name:>17}" for name in names)
    print(f"{'data':<14}{'after':>6}{'pages':>7}{'changes':>9}{heads}{'apart':>8}")
    for source in parser.parse_args().data:
        with tempfile.TemporaryDirectory() as folder, imported(source, Path(folder)) as store:
            for one in held_out(store):
                cells = "".join(f"{one.error[name]:>9.2f}{one.covered[name]:>8.1%}" for name in names)
                row = f"{source.name:<14}{one.share:>6.0%}{one.pages:>7,}{one.changes:>9,}{cells}{one.apart:>8.1%}"
                print(row, flush=True)


if __name__ == "__main__":
    main()
