"""Policies compared on several workloads, recorded or synthetic, in as many processes as there are processors.

Simulations run on pages whose whole history is known: a synthetic web, or data sets of recorded changes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as fields_of
from multiprocessing import parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from recrawl import plugins
from recrawl.app.display import seconds_of
from recrawl.app.progress import bar
from recrawl.app.workspace.workspace_wiring import policy_named
from recrawl.errors import ConfigError, InputError
from recrawl.formats.atomic_files import complete_file
from recrawl.predict.related_pages import UrlClusters
from recrawl.schedule.policy import Policy
from recrawl.simulate.benchmark_field import BenchmarkField, field_of_all
from recrawl.simulate.policy_benchmark import NAMES, SAME_AT_A_BUDGET, BenchmarkRules, BenchmarkTally, compete, entry
from recrawl.simulate.sampling import PageTruth
from recrawl.simulate.sites import synthetic_web
from recrawl.time import DAY, HOUR

Result = TypeVar("Result")


def processors() -> int:
    """How many processes can work at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_tasks(tasks: Sequence[Callable[[], Result]], *, what: str, jobs: int | None) -> list[Result]:
    """What comes of the tasks, in their order, under a bar that names ``what`` they are."""
    with bar(what, len(tasks)) as advance:
        return list(results(tasks, jobs or processors(), advance))


def results(tasks: Sequence[Callable[[], Result]], jobs: int, on_done: Callable[[], None]) -> Iterator[Result]:
    """What comes of the tasks, in their order; it does not depend on the number of jobs.

    Tasks are sent to other processes: values with ``__call__``, or ``functools.partial`` of functions of modules.
    ``on_done`` is called once a task is done, whichever it is: the first may be the one that takes longest.
    """
    if jobs == 1 or len(tasks) <= 1:
        for task in tasks:
            result = task()
            on_done()
            yield result
        return
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing import active_children, get_context

    def tell(future: Future[Result]) -> None:
        if not future.cancelled():
            on_done()

    others = set(active_children())
    # A fresh process: a copy of this one, with the thread that draws the bar, could hang.
    spawn = get_context("spawn")
    # The end of the block waits for the processes. Else this one could exit before them: they would stay for ever, and
    # the semaphores of the pool would be reported as leaked.
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=spawn, initializer=_end_with_parent) as pool:
        waiting = [pool.submit(task) for task in tasks]
        for future in waiting:
            future.add_done_callback(tell)
        try:
            yield from (future.result() for future in waiting)
        except BaseException:  # an interrupt too: nobody wants the rest any more
            for future in waiting:
                future.cancel()
            for child in set(active_children()) - others:
                child.terminate()
            raise


def _end_with_parent() -> None:
    """End this process when its parent does, also if that was killed: it would wait for tasks for ever."""
    parent = parent_process()
    assert parent is not None  # noqa: S101 - it was started by one

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="recrawl-parent-watch").start()


@dataclass(frozen=True, slots=True)
class BenchmarkRun:
    """One policy on one field at one budget."""

    field: str
    policy: str
    budget: float
    """Visits for each page that is there, a day."""


Make: TypeAlias = Callable[[str, BenchmarkField], Policy]
"""A policy from its name, for a field. Sent to other processes: a function of a module, or a ``partial`` of one."""


def known_policies(names: Sequence[str]) -> list[str]:
    """The names as given, each once: of built-in policies, of entry points, or ``package.module:Name``.

    Raises:
        ConfigError: there is no policy of such a name, or it cannot be loaded.
    """
    for name in names:
        plugins.find("policy", name, dict.fromkeys(NAMES))
    return list(dict.fromkeys(names))


def any_entry(name: str, field: BenchmarkField, *, shortest: float = HOUR, longest: float = 180 * DAY) -> Policy:
    """A new policy of this name for a field: a built-in one (:func:`entry`), or a plug-in with its defaults."""
    return entry(name, field, shortest=shortest, longest=longest) if name in NAMES else policy_named(name)


def tick_of(text: str) -> float:
    """Seconds from one tick to the next, as an option says it.

    Raises:
        ConfigError: it is no duration, or no time at all.
    """
    tick = seconds_of("--tick", text)
    if not tick > 0:
        raise ConfigError(
            f"The planning interval {text} is not positive.", "Give --tick a duration above 0, for example 6h."
        )
    return tick


def run_all(  # noqa: PLR0913 - what is run, and how
    fields: Mapping[str, Sequence[BenchmarkField]],
    runs: Sequence[BenchmarkRun],
    make: Make,
    rules: BenchmarkRules,
    *,
    seed: int,
    jobs: int | None = None,
    what: str = "contests",
    kept: TallyCache | None = None,
    kept_only: bool = False,
) -> dict[BenchmarkRun, BenchmarkTally]:
    """Run every policy once on each field of its name, and pool the results.

    The fields of one name hold the same pages; there are several if change times are drawn. Results do not depend on
    the number of jobs. Stored results are not computed again. Policies that are known to make the same visits
    (``contest_entries.SAME_AT_A_BUDGET``, and all policies if the budget leaves no choice) share one run. With
    ``kept_only`` no run is made, and runs without stored results are left out.
    """
    stands_for = _representatives(runs, rules)
    held = list(dict.fromkeys(stands_for.values()))
    known = {run: tally for run in held if kept is not None and (tally := kept.load(run)) is not None}
    tasks = [
        (run, place + 1, _Task(field, make, run.policy, replace(rules, budget=run.budget), (seed, place)))
        for run in held
        if run not in known and not kept_only
        for place, field in enumerate(fields[run.field])
    ]
    found: dict[BenchmarkRun, BenchmarkTally] = {}
    with bar(what, len(tasks)) as advance:
        tallies = results([task for *_, task in tasks], jobs or processors(), advance)
        for (run, done, _), tally in zip(tasks, tallies, strict=True):
            found[run] = tally if run not in found else found[run].plus(tally)
            if kept is not None and done == len(fields[run.field]):
                kept.save(run, found[run])
    found |= known
    return {run: found[stands_for[run]] for run in runs if stands_for[run] in found}


def _representatives(runs: Sequence[BenchmarkRun], rules: BenchmarkRules) -> dict[BenchmarkRun, BenchmarkRun]:
    """For each run the one that is held for it: itself, unless its visits are those of another, one by one."""
    first: dict[tuple[str, str, float], BenchmarkRun] = {}
    found = {}
    for run in runs:
        same = run.policy if rules.whenever_due else SAME_AT_A_BUDGET.get(run.policy, run.policy)
        same = "" if replace(rules, budget=run.budget).leave_no_choice else same
        found[run] = first.setdefault((run.field, same, run.budget), run)
    return found


@dataclass(frozen=True, slots=True)
class TallyCache:
    """A folder of tallies, so that a long series of runs can be interrupted and taken up again.

    Nothing here notices that policies or data have changed since: a new series needs a new folder.
    """

    folder: Path
    series: str
    """What all runs of the series have in common, as a part of file names: seed, repeats, pages, ticks."""

    def load(self, run: BenchmarkRun) -> BenchmarkTally | None:
        """What came of a run before, if it was held."""
        file = self._file(run)
        if not file.is_file():
            return None
        with np.load(file) as columns:
            return BenchmarkTally(**{name: columns[name] for name in columns.files})

    def save(self, run: BenchmarkRun, tally: BenchmarkTally) -> None:
        """Keep what came of a run; the file appears whole or not at all."""
        file = self._file(run)
        file.parent.mkdir(parents=True, exist_ok=True)
        with complete_file(file) as stream:
            np.savez_compressed(stream, **{column.name: getattr(tally, column.name) for column in fields_of(tally)})

    def _file(self, run: BenchmarkRun) -> Path:
        name = f"{run.field.replace('/', '_')}--{run.policy}--{run.budget:g}--{self.series}.npz"
        return self.folder / name


@dataclass(frozen=True, slots=True)
class _Task:
    field: BenchmarkField
    make: Make
    policy: str
    rules: BenchmarkRules
    seed: tuple[int, int]

    def __call__(self) -> BenchmarkTally:
        return compete(
            self.field, self.make(self.policy, self.field), self.rules, np.random.default_rng(self.seed)
        ).tally


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
