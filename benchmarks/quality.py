"""What experiments say of the aims: figures read off the tables that they left in the docs.

Nothing is run here: experiments take hours, and ``recrawl experiment`` writes their tables. What is read is named by
the hash of its bytes, and by those of the data it came from (``hashes.py``).
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean, median

from figures import Figure

from recrawl.simulate.policy_benchmark import BASELINE, NAMED, OURS, OURS_FOR_CHANGES
from recrawl_lab.experiments.policies_table import BUDGET, FRESHNESS

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "experiments"
Row = dict[str, str]
TIE = 0.002
"""Differences of freshness below this are ties (algorithms §7)."""
MANY, SLACK = 100, 0.001
"""A collection of this many pages must not be worse off than with even visits by more than this."""
ONE_FEATURE = ("NNL-Av", "NNL-Pr", "CCR")
LBLA = "NNL-SC-LBLA"


@dataclass(frozen=True, slots=True)
class Experiment:
    """A table in the docs, and how it came about."""

    name: str
    """Of the page in ``explanation/experiments``."""
    file: str
    command: str
    """What stands behind ``recrawl experiment``; one that ends in … stands in full on the page."""
    data: tuple[str, ...]
    """Folders or files of the data it was made from; none where pages were made up."""


_REAL = ("documents", "data-sources", "scholarly")
_CRAWLS = "formats/warc/ukwa__webarchive-discovery"
EXPERIMENTS = (
    Experiment("rates", "rates-scores.csv", "rates --data DATA --pages 400", _REAL),
    Experiment("policies", "policies.csv", "policies --data DATA …", ("documents", "data-sources")),
    Experiment("crawl-time", "crawl-time.csv", "crawl-time --crawls 100 --seed 20 …", (_CRAWLS,)),
    Experiment("classes", "classes.csv", "classes --data DATA --repeats 3", _REAL),
    Experiment("hacs", "hacs.csv", "hacs --data DATA/scholarly --repeats 3", ("scholarly",)),
    Experiment("datamonitor", "datamonitor.csv", "datamonitor --data DATA", _REAL),
    Experiment("sharc-blur", "sharc-blur.csv", "sharc-blur --pages 1000000 --repeats 5", ()),
    Experiment("sharc-coherence", "sharc-coherence.csv", "sharc-coherence --repeats 3", ()),
    Experiment("sharc-threshold", "sharc-threshold.csv", "sharc-threshold --repeats 5", ()),
    Experiment("sharc-real", "sharc-real.csv", "sharc-real --data DATA", ("documents",)),
    Experiment(
        "sharc-prediction", "sharc-prediction.csv", "sharc-prediction --data DATA …", ("documents", "scholarly")
    ),
    Experiment("lbla", "lbla-alone.csv", "lbla --data DATA/documents --alone …", ("documents",)),
    Experiment("lbla", "lbla.csv", "lbla --data DATA/documents …", ("documents",)),
)


@cache
def rows_of(file: str) -> tuple[Row, ...]:
    """The rows of a table."""
    with (FOLDER / file).open(encoding="utf-8", newline="") as lines:
        return tuple(csv.DictReader(lines))


def quality_figures(experiment: str) -> list[Figure]:
    """What an experiment says of its aims."""
    return _READERS[experiment]()


def _rates() -> list[Figure]:
    rows = [row for row in rows_of("rates-scores.csv") if row["schedule"] == "all"]
    places = {(row["data"], row["gaps"]) for row in rows}
    counts = dict.fromkeys(("operational", "posterior"), 0)
    for row in rows:
        if row["method"] in counts:
            counts[row["method"]] += float(row["behind_best_low"]) <= 0.0
    ours, other = counts["operational"], counts["posterior"]
    sizes = f"{len(places)} places, {len({row['method'] for row in rows})} estimators"
    return [Figure("default wins or ties", ours, "places", sizes, other, "the same in wall time")]


@dataclass(frozen=True, slots=True)
class Contest:
    """The runs of the grand table at one budget."""

    freshness: dict[tuple[str, str], float]
    """By collection and policy."""
    recall: dict[tuple[str, str], float]
    pages: dict[str, int]

    @property
    def policies(self) -> list[str]:
        """Who took part."""
        return list(dict.fromkeys(policy for _, policy in self.freshness))

    def staleness(self, policy: str, than: list[str]) -> float:
        """Median over collections of the staleness, in units of the least of some others'."""
        return median(
            (1.0 - self.freshness[place, policy]) / (1.0 - max(self.freshness[place, other] for other in than))
            for place in self.pages
        )


@cache
def contest(budget: float = BUDGET) -> Contest:
    """The grand table at a budget, visits per page a day."""
    rows = [row for row in rows_of("policies.csv") if float(row["budget"]) == budget]
    fresh, recall = (
        {(row["collection"], row["policy"]): float(row[metric]) for row in rows} for metric in ("freshness", "recall")
    )
    return Contest(fresh, recall, {row["collection"]: int(row["pages"]) for row in rows})


def _policies() -> list[Figure]:
    table = contest()
    named = [name for name in table.policies if name in NAMED]
    sizes = f"{len(table.pages)} collections, {sum(table.pages.values()):,} pages, {BUDGET:g} visits a page a day"
    fresh, best_named = table.freshness, table.staleness(OURS, named)
    worse = [
        place
        for place, pages in table.pages.items()
        if pages >= MANY and fresh[place, OURS] < fresh[place, BASELINE] - SLACK
    ]
    behind = [place for place, printed in FRESHNESS.items() if fresh[place, OURS] <= printed.reference - TIE]
    others = [*named, BASELINE]
    lost = [
        place
        for place in table.pages
        if table.recall[place, OURS_FOR_CHANGES] < max(table.recall[place, other] for other in others)
    ]
    beside_even = table.staleness(OURS, [BASELINE])
    return [
        Figure("staleness beside even visits", beside_even, "× the staleness", sizes, 1.0, "even visits"),
        Figure("staleness beside the best named", best_named, "× the staleness", sizes, 1.0, "best named policy"),
        Figure("worse off", len(worse), "collections", sizes, None, "even visits"),
        Figure("behind the reference", len(behind), "collections", sizes, None, "reference R, printed"),
        Figure("recall lost", len(lost), "collections", sizes, None, "named policies and even visits"),
    ]


def _crawl_time() -> list[Figure]:
    rows = rows_of("crawl-time.csv")
    error = {
        name: median(abs(float(row[name]) / float(row["actual"]) - 1.0) for row in rows)
        for name in ("printed", "corrected", "recrawl")
    }
    sizes, ours = f"{len(rows)} crawls, {len({row['kind'] for row in rows})} kinds", error["recrawl"]
    return [
        Figure("beside the printed", ours, "of the time", sizes, error["printed"], "heuristic as printed"),
        Figure("beside the corrected", ours, "of the time", sizes, error["corrected"], "heuristic corrected"),
        Figure("covered", mean(row["covered"] == "True" for row in rows), "of the crawls", sizes, 0.9, "as they say"),
    ]


def _sharc_real() -> list[Figure]:
    sites: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows_of("sharc-real.csv"):
        if row["source"] == "oracle" and float(row["expected_incoherence"]) > 0.0:
            sites[row["site"]][row["strategy"]] = float(row["expected_incoherence"])
    held = [
        found
        for found in sites.values()
        if found["sharc-optimal"]
        <= found["sharc-selective"]
        <= min(lost for name, lost in found.items() if not name.startswith("sharc"))
    ]
    beside = "all sites"
    return [Figure("order", len(held), "sites", "true rates, captures slowed down", len(sites), beside)]


def lbla_areas() -> dict[tuple[str, str], dict[str, float]]:
    """Mean area of Precision@k% for the number of new links, by split and kind of links, then by method."""
    found: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows_of("lbla-alone.csv"):
        if row["table"] == "rankings" and row["measure"] == "area NNL":
            found[row["split"], row["links"]][row["method"]].append(float(row["here"]))
    return {place: {name: mean(areas) for name, areas in methods.items()} for place, methods in found.items()}


def _lbla() -> list[Figure]:
    areas = lbla_areas()
    leads = [methods[LBLA] - methods[other] for methods in areas.values() for other in ONE_FEATURE]
    runs = sum(row["method"] == LBLA and row["measure"] == "area NNL" for row in rows_of("lbla-alone.csv"))
    sizes = f"{runs} runs, least of {len(leads)} comparisons"
    return [Figure("least lead", min(leads), "of the area", sizes, None, "best single feature")]


_READERS: dict[str, Callable[[], list[Figure]]] = {
    "rates": _rates,
    "policies": _policies,
    "crawl-time": _crawl_time,
    "sharc-real": _sharc_real,
    "lbla": _lbla,
}
"""By experiment; the others have no aim of one number."""
