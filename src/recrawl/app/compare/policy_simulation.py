"""Policies simulated on pages whose whole history is known: a synthetic web, or data sets of recorded changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.app.compare.benchmark_runs import any_entry, known_policies
from recrawl.errors import ConfigError, InputError
from recrawl.predict.related_pages import UrlClusters
from recrawl.schedule.policy import Policy
from recrawl.simulate.benchmark_field import BenchmarkField, field_of_all
from recrawl.simulate.policy_benchmark import BenchmarkRules, compete
from recrawl.simulate.sampling import PageTruth
from recrawl.simulate.sites import synthetic_web
from recrawl.time import DAY

if TYPE_CHECKING:
    from recrawl.simulate.sampling import Collection


def find_datasets(folder: Path) -> list[Path]:
    """The data sets in a folder: itself, or those directly below it, by name.

    Raises:
        InputError: there is none.
    """
    from recrawl.formats.columnar.dataset import is_dataset

    places = [folder, *(sorted(folder.iterdir()) if folder.is_dir() else [])]
    found = [place for place in places if place.is_dir() and is_dataset(place)]
    if not found:
        remedy = (
            "Name a folder with events.parquet and pages.parquet (or sources.parquet), or one that holds such folders."
        )
        raise InputError("there is no data set here", remedy, source=str(folder))
    return found[:1] if found[0] == folder else found


def collections(folder: Path) -> list[Collection]:
    """The collections of one data set: its sites, in the order of the tables; those without events are left out."""
    from recrawl.formats.columnar.dataset import LoggedChange, read_dataset
    from recrawl.simulate.sampling import Events, collect

    return [
        collect(
            log.site,
            log.urls,
            Events(log.page, log.time, log.kind == LoggedChange.ADD, log.kind == LoggedChange.DEL, log.bulk, log.links),
        )
        for log in read_dataset(folder)
        if len(log)
    ]


_SHARE = 0.1
"""Part of the pages that is visited a day, if no budget is given."""
_FEWEST_CLUSTERS = 10
"""Clusters from which on they are what is resampled; with fewer it is pages."""


@dataclass(frozen=True, slots=True)
class SimulationQuestion:
    """What is simulated."""

    policies: Sequence[str | Policy]
    """Names, or new policies to which no page was added yet."""
    data: Path | None = None
    """A data set of recorded changes, or a folder of some; a synthetic web without."""
    budget: float | None = None
    """Visits a day; a tenth of the pages without."""
    pages: int = 300
    """Pages of the synthetic web, or that take part at most."""
    days: float = 180.0
    """Length of the synthetic history."""
    tick: float = DAY
    """Seconds from one decision to the next."""
    seed: int = 1


def simulate_policies(question: SimulationQuestion) -> list[dict[str, Any]]:
    """Let each policy visit the same pages with the same budget; one row a policy, as ``recrawl compare`` has it.

    Raises:
        ConfigError: a policy is not known, or no visit or no page is allowed.
        InputError: there is no data set.
    """
    if question.budget == 0:
        raise ConfigError("With 0 visits a day no policy catches anything.", "Give budget a number above 0.")
    if question.pages < 1 or not question.days > 0:
        raise ConfigError("There is nothing to simulate.", "Give pages and days numbers above 0.")
    known_policies([one for one in question.policies if isinstance(one, str)])
    field = _field(question)
    truth = field.truth
    there = float((np.minimum(truth.died, truth.end) - truth.born).sum() / (truth.end - truth.start))
    daily = _SHARE if question.budget is None else question.budget / there
    rules = BenchmarkRules(daily, tick=question.tick)
    groups = field.cluster if len(np.unique(field.cluster)) >= _FEWEST_CLUSTERS else np.arange(len(field))
    rows = []
    for policy in question.policies:
        entered = any_entry(policy, field) if isinstance(policy, str) else policy
        tally = compete(field, entered, rules, np.random.default_rng((question.seed, 0))).tally
        caught = tally.interval("recall", groups, np.random.default_rng(question.seed))
        name = policy if isinstance(policy, str) else type(policy).__name__
        interval = {"recall_low": caught.low, "recall_high": caught.high}
        rows.append({"policy": name, "visits_a_day": daily * there, **tally.summary(), **interval})
    return rows


def _field(question: SimulationQuestion) -> BenchmarkField:
    if question.data is not None:
        found = [one for folder in find_datasets(question.data) for one in collections(folder)]
        return field_of_all(question.data.name, found, most_pages=question.pages)
    web = synthetic_web(pages=question.pages, start=0.0, days=question.days, seed=question.seed)
    clusters = UrlClusters()
    cluster = clusters.add([web.url(page) for page in range(len(web))])
    return BenchmarkField.of("synthetic", PageTruth.of_web(web), host=web.host, cluster=cluster)
