"""Runs from Python: simulate policies, crawl a workspace, capture a site. Each call returns when the run has ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from recrawl.api.loaded_archive import Moment, moment_of, one_of
from recrawl.api.tables import Table, table_of
from recrawl.app.provenance import Provenance, changed_settings
from recrawl.errors import ConfigError, counted

if TYPE_CHECKING:
    from recrawl.app.crawl_run import RunOutcome
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.crawl.site_capture.capture_course import CaptureReport
    from recrawl.crawl.site_capture.capture_order import CaptureOrder
    from recrawl.schedule.policy import Policy

T = TypeVar("T")
_Stopping: TypeAlias = Callable[[Callable[[], None]], AbstractContextManager[object]]
"""Given the function that stops a run, a block within which it may be called."""
_WAKE_EVERY = 0.2
"""Seconds between two checks for an interrupt, while a run is waited for."""


def run_simulation(  # noqa: PLR0913 - what is simulated, by keyword
    policies: str | Policy | Sequence[str | Policy] = ("uniform", "valued-archive"),
    data: str | Path | None = None,
    *,
    budget: float | str | None = None,
    pages: int = 300,
    days: float = 180.0,
    tick: str = "1d",
    seed: int = 1,
) -> Table:
    """Simulate policies on a synthetic web, or on ``data``: recorded changes (``events.parquet``, ``pages.parquet``).

    A policy is a name, as for ``recrawl compare``, or a new object with the protocol
    :class:`recrawl.schedule.policy.Policy`. All get the same ``budget`` of visits a day, a tenth of the pages by
    default. ``pages`` is the size of the web, or the most pages of the data that take part; ``days`` its length;
    ``tick`` the time from one decision to the next. The result has one row a policy: ``recall`` is the share of changes
    that were caught, ``freshness`` that of copies that were current, ``age`` and ``delay`` are in days.

    >>> found = run_simulation(["uniform", "valued-archive"], pages=30, days=40)
    >>> found["policy"], all(0 < share < 1 for share in found["freshness"])
    (['uniform', 'valued-archive'], True)

    Raises:
        ConfigError: a policy is not known, or the budget is 0.
        InputError: there is no data set.
    """
    from recrawl import __version__
    from recrawl.app.compare.benchmark_runs import SimulationQuestion, simulate_policies, tick_of
    from recrawl.app.display import visits_of

    entered = [policies] if isinstance(policies, str) or not isinstance(policies, Sequence) else list(policies)
    question = SimulationQuestion(
        entered,
        None if data is None else Path(data),
        None if budget is None else visits_of("budget", str(budget)),
        pages,
        days,
        tick_of(tick),
        seed,
    )
    names = [one if isinstance(one, str) else type(one).__name__ for one in entered]
    arguments = {"policies": names, "budget": budget, "pages": pages, "days": days, "tick": tick}
    given = {name: value for name, value in arguments.items() if value is not None}
    sources = () if data is None else (str(data),)
    about = Provenance("run_simulation", __version__, sources, seed=seed, arguments=given)
    return table_of(simulate_policies(question), about)


@dataclass(frozen=True, slots=True, repr=False)
class CrawlResult:
    """The end of a crawl."""

    visits: int
    changed: int
    """Visits that found a change."""
    failed: int
    """Visits without an answer."""
    ended_by: str
    """Why it ended, as ``recrawl run`` says it."""
    due: int | None
    """Pages that are due now; ``None`` if that is not known."""
    quarantined: int
    """Pages in quarantine."""
    provenance: Provenance

    def __repr__(self) -> str:
        visits = f"{counted(self.visits, 'visit')}, {self.changed:,} changed, {self.failed:,} failed"
        return f"<CrawlResult: {visits}; ended because {self.ended_by}; {self.provenance.sentence()}>"


def run_crawl(  # noqa: PLR0913 - one argument an option of the command
    workspace: str | Path,
    *,
    duration: str | float | None = None,
    until: Moment | None = None,
    once: bool = False,
    budget: float | str | None = None,
    policy: str | None = None,
    settings: Mapping[str, object] | None = None,
) -> CrawlResult:
    """Crawl a workspace as ``recrawl run`` does, until the first end: ``duration``, ``until``, or with ``once`` idle.

    ``duration`` is text such as ``8h``, or seconds. ``budget`` is in visits a day, or like ``500/h``. ``settings``
    replace those of the workspace, by key. An interrupt (Ctrl-C, or a notebook's stop button) finishes the requests
    under way, and raises ``KeyboardInterrupt``; a second one drops them.

    Raises:
        ConfigError: no end is given, or a setting is wrong.
        InputError: there are no pages to visit.
        StoreError: the store is damaged, or was still away at the end.
    """
    from recrawl.app.crawl_run import CrawlRun, RunTerm, check_term
    from recrawl.app.display import seconds_of
    from recrawl.app.workspace.workspace import open_workspace
    from recrawl.crawl.clock import RealClock

    if duration is None and until is None and not once:
        raise ConfigError("This crawl would never end.", "Give duration, until or once=True.")
    chosen = {"schedule.budget": budget, "schedule.policy": policy}
    flags = {**(settings or {}), **{key: str(value) for key, value in chosen.items() if value is not None}}
    place, clock = open_workspace(Path(workspace), flags), RealClock()
    seconds = (
        seconds_of("duration", duration)
        if isinstance(duration, str)
        else float("inf" if duration is None else duration)
    )
    term = check_term(RunTerm(seconds, float("inf") if until is None else moment_of(until)), clock.now())

    async def main(stopping: _Stopping) -> RunOutcome:
        crawl = CrawlRun(place, clock, term, once=once)
        with stopping(crawl.stop):
            return await crawl.run()

    outcome = _to_the_end(main)
    if outcome.fault is not None:
        raise outcome.fault
    counts, why = outcome.counts, outcome.ended_by
    arguments = {"duration": duration, "until": until, "once": once or None}
    about = _provenance("run_crawl", str(workspace), clock.now(), arguments, changed_settings(place.configuration))
    ended = why.value if why is not None else "of an error"
    return CrawlResult(counts.visits, counts.changed, counts.failed, ended, outcome.due, outcome.quarantined, about)


@dataclass(frozen=True, slots=True, repr=False)
class CaptureResult:
    """A finished capture of a site, and the statement about its quality."""

    number: int
    """Number of the capture in its workspace, for ``recrawl capture show``."""
    words: Sequence[str]
    """The statement, line by line, as ``recrawl capture`` prints it."""
    facts: Mapping[str, Any]
    """The statement as ``recrawl capture --json`` prints it."""
    provenance: Provenance

    def __repr__(self) -> str:
        return f"<CaptureResult {self.number}: {self.provenance.sentence()}>\n{self}"

    def __str__(self) -> str:
        return "\n".join(self.words)


def run_capture(  # noqa: PLR0913 - one argument an option of the command
    workspace: str | Path,
    site: str,
    *,
    strategy: str | None = None,
    revisit: bool | None = None,
    delay: str | None = None,
    expected_pages: int | None = None,
    threshold: float | None = None,
    rates: str = "known",
    scope: str = "prefix",
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    hops: int | None = None,
    extra_hops: int = 0,
    from_sitemap: bool = False,
    max_pages: int | None = None,
    requisites: str = "any",
    weights: str = "importance",
    observe: tuple[Moment, Moment] | None = None,
    restart: bool = False,
    settings: Mapping[str, object] | None = None,
) -> CaptureResult:
    """Capture a whole site as ``recrawl capture`` does, and state its quality.

    The arguments mean the same as the options of the command; ``settings`` replace those of the workspace, by key. An
    unfinished capture with the same arguments goes on, unless ``restart``. An interrupt (Ctrl-C, or a notebook's stop
    button) lets the request under way end, and raises ``KeyboardInterrupt``: the same call goes on from there.

    Raises:
        ConfigError: an argument has no meaning, or an unfinished capture of the site has other arguments.
        InputError: the strategy needs pages that nobody knows.
        StoreError: the store is damaged.
    """
    from recrawl.app.display import pause_of
    from recrawl.app.site_capture import begun_or_usual, site_url
    from recrawl.app.workspace.workspace import open_workspace
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.site_capture.capture_order import CaptureOrder
    from recrawl.crawl.site_capture.capture_terms import (
        DEFAULT_STRATEGY,
        DEFAULT_THRESHOLD,
        RateSource,
        Requisites,
        WeightSource,
    )
    from recrawl.crawl.visit.scope import ScopeKind, ScopeRules

    place = open_workspace(Path(workspace), settings or {})
    rules = ScopeRules(
        kind=one_of(ScopeKind, scope, "scope"),
        include=tuple(include),
        exclude=tuple(exclude),
        hops=hops,
        extra_hops=extra_hops,
        max_depth=place.configuration.settings.crawl.max_depth,
    )
    order = CaptureOrder(
        site=site_url(site),
        strategy=strategy or DEFAULT_STRATEGY,
        revisit=revisit,
        delay=None if delay is None else pause_of("delay", delay),
        expected=expected_pages,
        threshold=DEFAULT_THRESHOLD if threshold is None else threshold,
        rates=one_of(RateSource, rates, "rates"),
        from_sitemap=from_sitemap,
        max_pages=max_pages,
        scope=rules,
        requisites=one_of(Requisites, requisites, "requisites"),
        weights=one_of(WeightSource, weights, "weights"),
        observe=None if observe is None else (moment_of(observe[0]), moment_of(observe[1])),
    )
    if strategy is None:
        with place.open_store() as store:
            begun = [] if restart else [known for known in store.site_captures() if not known.is_finished]
            order = begun_or_usual(store, begun, order)
    report, words = _to_the_end(lambda stopping: _capture(place, order, stopping, restart=restart))
    about = _provenance(
        "run_capture",
        str(workspace),
        RealClock().now(),
        json.loads(order.as_json()),
        changed_settings(place.configuration),
    )
    return CaptureResult(report.capture.id, words, json.loads(report.capture.statement), about)


async def _capture(
    place: Workspace, order: CaptureOrder, stopping: _Stopping, *, restart: bool
) -> tuple[CaptureReport, list[str]]:
    """The report of a capture and its lines."""
    from recrawl.app.site_capture import carry_out, report_lines, unfinished_capture

    with place.open_store() as store:
        unfinished = [known for known in store.site_captures() if not known.is_finished]
        known = None if restart else unfinished_capture(unfinished, order, place.folder)
        report = await carry_out(place, store, order, known, lambda _progress: None, stopping=stopping)
        if report is None:
            raise asyncio.CancelledError  # it was stopped: the interrupt is raised where the caller waits
        return report, list(report_lines(store, report))


def _to_the_end(main: Callable[[_Stopping], Coroutine[Any, Any, T]]) -> T:
    """What ``main`` returns. It runs in a thread of its own: the caller may have an event loop, as notebooks do.

    The first ``KeyboardInterrupt`` stops it, a second one cancels it; both are raised when it has ended.
    """
    from recrawl.crawl.worker import event_loop

    stops: list[Callable[[], object]] = []
    cancels: list[Callable[[], object]] = []

    @contextmanager
    def stopping(stop: Callable[[], None]) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        stops.append(lambda: loop.call_soon_threadsafe(stop))
        try:
            yield
        finally:
            stops.clear()

    async def whole() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        cancels.append(lambda: loop.call_soon_threadsafe(task.cancel) if task is not None else None)
        return await main(stopping)

    running = event_loop.submit(lambda: event_loop.run(whole()))
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            # A signal may reach another thread; then this one sees it only when it runs again.
            while not wait([running], timeout=_WAKE_EVERY).done:
                pass
            result = running.result()
        except KeyboardInterrupt as pressed:
            ways = cancels if interrupt is not None or not stops else stops
            interrupt = pressed
            for way in list(ways):
                way()
        except asyncio.CancelledError:
            raise interrupt or KeyboardInterrupt from None
        else:
            if interrupt is not None:
                raise interrupt
            return result


def _provenance(
    question: str, workspace: str, now: float, arguments: Mapping[str, Any], settings: Mapping[str, Any]
) -> Provenance:
    from recrawl import __version__

    given = {name: value for name, value in arguments.items() if value is not None}
    return Provenance(question, __version__, (workspace,), now, None, given, settings)
