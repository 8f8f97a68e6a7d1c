"""Does operational time predict better? Log loss of "changed at this observation" on real histories, factor by factor.

    uv run python benchmarks/operational.py DATA                       every collection, two schedules
    uv run python benchmarks/operational.py DATA --only llvm,til       some of them
    uv run python benchmarks/operational.py DATA --schedule adaptive

Changes that were no bulk edits, chains closer than an hour merged, are sampled into visits. The first 60 % of the
observations are learned from (and factors are chosen within them); each later observation is predicted from
observations before it alone. Printed is the loss without factors, in millinats an observation, and what each factor,
all of them, and the chosen ones take off it, with standard errors by whole clusters.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from recrawl.estimate.operational.factor_state import (
    SPLIT,
    PageGroups,
    TimeFactor,
    choose,
    held_out_loss,
    mean_and_error,
)
from recrawl.estimate.operational.operational_factors import LONGEST, ClosedGaps, known_births
from recrawl.formats.columnar.dataset import ChangeLog, LoggedChange, read_dataset
from recrawl.model import FloatArray, Histories
from recrawl.predict.related_pages import UrlClusters
from recrawl.simulate.sampling import AdaptiveVisits, IrregularVisits, PageTruth, RegularVisits, VisitSchedule, sample
from recrawl.simulate.virtual_web import EventTimes
from recrawl.time import DAY, HOUR

SCHEDULES: dict[str, VisitSchedule] = {
    "weekly": RegularVisits(7 * DAY),
    "irregular": IrregularVisits(10 * DAY, 1.0),
    "adaptive": AdaptiveVisits(),
    "six-hourly": RegularVisits(6 * HOUR),
}
MOST_PAGES = 3_000


def main() -> None:
    """Print one line for each collection and schedule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder that holds documents and data-sources")
    parser.add_argument("--only", default="", help="collections, with commas between")
    parser.add_argument("--schedule", default="weekly,irregular", help=", ".join(SCHEDULES))
    parser.add_argument("--pages", type=int, default=MOST_PAGES, help="pages of a collection, at most")
    parser.add_argument("--batch", type=float, default=1.0, help="days after which looks are known to other pages")
    parser.add_argument("--jump", type=float, default=400.0, help="days after which a page has taken another rate")
    options = parser.parse_args()
    heads = [*(factor.value for factor in TimeFactor), "all", "chosen"]
    print(
        f"{'collection':<13}{'schedule':<11}{'observations':>8}{'changed':>8}{'none':>8}"
        + "".join(f"{h:>14}" for h in heads)
    )
    only = set(filter(None, options.only.split(",")))
    for name, truth, urls in collections(options.data):
        if not only or name in only:
            for schedule in options.schedule.split(","):
                _line(name, schedule, truth, urls, options)


def collections(data: Path) -> Iterator[tuple[str, PageTruth, tuple[str, ...]]]:
    """Each site of the documents, and all data sources as one collection."""
    for log in read_dataset(data / "documents"):
        truth, rows = truth_of(log)
        yield log.site, truth, tuple(log.urls[row] for row in rows)
    logs = [(truth_of(log), log) for log in read_dataset(data / "data-sources")]
    whole = PageTruth(
        np.concatenate([truth.born for (truth, _), _ in logs]),
        np.concatenate([truth.died for (truth, _), _ in logs]),
        EventTimes.concatenate([truth.changes for (truth, _), _ in logs]),
        min(truth.start for (truth, _), _ in logs),
        max(truth.end for (truth, _), _ in logs),
    )
    yield "data-sources", whole, tuple(log.urls[row] for (_, rows), log in logs for row in rows)


def truth_of(log: ChangeLog) -> tuple[PageTruth, list[int]]:
    """The pages of a site in order of discovery: changes without bulk edits, chains within an hour merged."""
    pages, start, end = len(log.urls), float(log.time.min()), float(log.time.max())
    born, died = np.full(pages, np.inf), np.full(pages, np.inf)
    np.minimum.at(born, log.page, log.time)
    last = np.full(pages, -1)
    last[log.page] = np.arange(len(log))
    gone = (last >= 0) & (log.kind[last] == LoggedChange.DEL)
    died[gone] = log.time[last[gone]]
    edits = (log.kind == LoggedChange.MOD) & ~log.bulk
    changes = EventTimes.of(log.page[edits], log.time[edits], pages)
    rows = np.argsort(born, kind="stable")
    rows = rows[np.isfinite(born[rows])]
    return PageTruth(born, died, changes, start, end).take(rows).merged(HOUR), rows.tolist()


def _line(name: str, schedule: str, truth: PageTruth, urls: tuple[str, ...], options: argparse.Namespace) -> None:
    began = time.process_time()
    clusters = UrlClusters()
    cluster = clusters.add(urls)
    keep = np.flatnonzero(_some_clusters(cluster, options.pages))
    truth, cluster = truth.take(keep), cluster[keep]
    ids, cluster = np.unique(cluster, return_inverse=True)
    places = PageGroups(cluster.astype(np.int64), clusters.host[ids], known_births(truth.born, truth.start))
    visits = sample(truth, SCHEDULES[schedule], np.random.default_rng(1))
    histories = Histories.from_visits(visits).align(np.arange(len(truth)))
    observations = ClosedGaps.of(histories)
    split = float(np.sort(observations.end)[int(SPLIT * (len(observations) - 1))])
    later = observations.take(observations.end > split)
    units = places.cluster[later.row] if len(np.unique(places.cluster)) > 9 else later.row
    past = histories.window(-np.inf, split)
    chosen = choose(past, places).factors
    able = tuple(f for f in TimeFactor if f != TimeFactor.WEEK or np.median(past.gaps) <= LONGEST)
    sets = [(factor,) if factor in able else () for factor in TimeFactor] + [
        able,
        tuple(f for f in able if f in chosen),
    ]
    known: dict[tuple[TimeFactor, ...], FloatArray] = {}
    for one in [(), *sets]:
        if one not in known:
            known[one] = held_out_loss(
                histories, places, one, split, batch=options.batch * DAY, jump=options.jump * DAY
            )
    gains = [mean_and_error(known[()] - known[one], units) for one in sets]
    cells = "".join(f"{f'{1e3 * gain:.2f}±{1e3 * error:.2f}':>14}" for gain, error in gains)
    share = later.changed.mean()
    print(
        f"{name:<13}{schedule:<11}{len(later):>8}{share:>8.3f}{1e3 * known[()].mean():>8.2f}{cells}"
        f"  {'+'.join(chosen) or 'none'}  ({time.process_time() - began:.0f} s)",
        flush=True,
    )


def _some_clusters(cluster: np.ndarray, most: int) -> np.ndarray:
    """Whole clusters, evenly spread, with about ``most`` pages."""
    share = min(most / len(cluster), 1.0)
    number = np.arange(int(cluster.max()) + 1)
    keep = np.floor((number + 1) * share) > np.floor(number * share)
    return np.asarray(keep[cluster])


if __name__ == "__main__":
    main()
