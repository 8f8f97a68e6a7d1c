"""The crawls of the demo: some virtual weeks as recrawl crawls, and the same with uniform revisits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from recrawl.app.workspace.workspace import Workspace, make_workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console
    from rich.progress import Progress

    from recrawl.app.predict.model_use import LiveModel
    from recrawl.crawl.worker.crawl_assembly import WorkerSettings
    from recrawl.schedule.policy import Policy
    from recrawl.simulate.virtual_web import VirtualWeb
    from recrawl.store.base import Store
    from recrawl_testweb.demo.demo_capture import DemoCapture
    from recrawl_testweb.demo.demo_output import DemoResult
    from recrawl_testweb.virtual_trial import TrialAftermath, TrialResult

CONTACT = "https://example.org/recrawl-demo"
A_MONDAY = 1_789_948_800.0
"""Demos start on a Monday, so that a web with the same seed has the same weeks."""
MEDIAN_CHANGES_PER_DAY, SPREAD = 0.05, 2.2
"""The median page changes every three weeks; one in six pages nine times as often, or as seldom."""
_PARTS = 20
"""Lines in which the course of a crawl is told where there is no terminal."""
LEARNED_ON = 7.0
"""Virtual days after which a model of what to expect of pages is trained."""


def crawl_twice(workspace: Workspace, console: Console, *, pages: int, days: float, seed: int) -> DemoResult:
    """Crawl a web as recrawl does and capture one of its sites; then crawl again with as many visits spread evenly."""
    from tempfile import TemporaryDirectory

    import numpy as np
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from recrawl.app.rates.belief_table import VisitSpan, learn
    from recrawl.crawl.clock import RealClock
    from recrawl.simulate.sites import synthetic_web
    from recrawl.time import DAY, WEEK
    from recrawl_testweb.demo.demo_capture import GOES_ON
    from recrawl_testweb.demo.demo_output import DemoResult

    start = A_MONDAY + WEEK * ((RealClock().now() - GOES_ON - days * DAY - A_MONDAY) // WEEK)
    web = synthetic_web(pages=pages, start=start, days=days, seed=seed, hot=MEDIAN_CHANGES_PER_DAY, sigma=SPREAD)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("day {task.completed:.0f} of {task.total:g}, {task.fields[requests]:,} requests"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bar, TemporaryDirectory() as scratch:
        crawls = _DemoCrawls(web, days, seed, bar)
        try:
            ours, policy, captured = crawls.one("recrawl", workspace, capturing=True)
        except BaseException:  # an interrupt too
            _finish_archive(workspace)
            raise
        as_many = {"schedule.policy": "uniform", "schedule.budget": len(ours.visits) / days, "fetch.contact": CONTACT}
        even, _, _ = crawls.one("uniform revisits", make_workspace(Path(scratch) / "even", as_many))
    if captured is None:
        raise AssertionError  # it was asked for
    with workspace.open_store() as store:
        known = learn(store, VisitSpan(until=ours.end))
        seen = np.isin(ours.page, known.histories.page[known.histories.counts() > 0])
        page = ours.page[seen]
        urls = store.urls(page)
    row = known.rows(page)
    low, high = known.interval()
    told = known.rate[row], low[row], high[row]
    return DemoResult(ours, even, page, urls, ours.rate[seen], known.belief.take(row), told, policy.price, captured)


def _finish_archive(workspace: Workspace) -> None:
    """Give archive files their final names: an interrupt may come while captures in them are not acknowledged."""
    from recrawl.crawl.worker.outages import acknowledged_by
    from recrawl.formats.warc.warc_check import repair

    with workspace.open_store() as store:
        repair(workspace.warc, acknowledged_by(store))


class _DemoCrawl(NamedTuple):
    """A crawl that is over."""

    result: TrialResult
    policy: Policy
    captured: DemoCapture | None


@dataclass(frozen=True, slots=True)
class _DemoCrawls:
    """Crawls of one web, each told of in a bar or in lines."""

    web: VirtualWeb
    days: float
    seed: int
    bar: Progress

    def one(self, what: str, place: Workspace, *, capturing: bool = False) -> _DemoCrawl:
        """Crawl into a workspace, by its settings; ``capturing`` a site in the end."""
        from recrawl.app.predict.model_use import LiveModel
        from recrawl.app.workspace.workspace_wiring import crawl_settings_of, host_limits_of, policy_of, politeness_of
        from recrawl_testweb.demo.demo_capture import SITE, capture_site
        from recrawl_testweb.fault_injection import FaultProfile
        from recrawl_testweb.virtual_trial import TrialSettings, run_trial

        bar, days, console = self.bar, self.days, self.bar.console
        task = bar.add_task(f"{'getting ready':<24}", total=days, requests=0)
        lines = None if console.is_terminal and not console.is_dumb_terminal else ProgressLines(what, days)
        said = place.configuration.settings
        settings = TrialSettings(
            _for_few_pages(crawl_settings_of(said)), fault_profile=FaultProfile.mild(), seed=self.seed
        )
        captured: DemoCapture | None = None
        with place.open_store() as store:
            limits = host_limits_of(store, lambda: politeness_of(said.politeness))
            model = LiveModel(None, store)
            policy = policy_of(said.schedule, store.urls, limits, model)
            learn_later = _after_a_week(place, store, model)

            def show(share: float, requests: int) -> None:
                bar.update(task, description=f"{what:<24}", completed=share * days, requests=requests)
                if lines is not None:
                    lines.tell(share, requests)
                learn_later(share * days)

            async def capture(after: TrialAftermath) -> None:
                nonlocal captured
                if not capturing:
                    return
                bar.update(task, description=f"{f'capturing {SITE}':<24}")
                if lines is not None:
                    typer.echo(f"Capturing the site {SITE} …", err=True)
                captured = await capture_site(place, store, after, self.seed)
                bar.update(task, description=f"{what:<24}")

            trial = run_trial(
                self.web,
                policy,
                store=store,
                folder=place.folder,
                settings=settings,
                progress=show,
                afterwards=capture,
            )
            return _DemoCrawl(asyncio.run(trial), policy, captured)


class ProgressLines:
    """How far a crawl is, for logs and pipes, where a bar would only show up when it is full: a line now and then."""

    def __init__(self, what: str, days: float) -> None:
        self._what, self._days = what, days
        self._told = 0
        typer.echo(f"{what}: getting ready (the first start takes longest)", err=True)

    def tell(self, share: float, requests: int) -> None:
        """Print a line if another twentieth is done."""
        part = int(share * _PARTS)
        if part > self._told:
            self._told = part
            typer.echo(f"{self._what}: day {share * self._days:.0f} of {self._days:g}, {requests:,} requests", err=True)


def _after_a_week(place: Workspace, store: Store, model: LiveModel) -> Callable[[float], None]:
    """Something to be told the day, which trains a model on the eighth: from then on it says what to expect of pages.

    Only where scikit-learn is installed, where the policy is ours, and where a week of visits is enough to learn from.
    """
    from recrawl.app.predict.model_training import material, trained
    from recrawl.app.predict.stored_models import USUAL, save_model
    from recrawl.errors import InputError

    wanted = find_spec("sklearn") is not None and place.configuration.settings.schedule.policy.startswith("valued")

    def told(day: float) -> None:
        nonlocal wanted
        if not wanted or day < LEARNED_ON:
            return
        wanted = False
        try:
            kept = trained(USUAL, material(place, store, None), 1, judged=False)
        except InputError:
            return
        save_model(place.folder, kept)
        model.take_over(kept)

    return told


def _for_few_pages(settings: WorkerSettings) -> WorkerSettings:
    """The settings for a crawl that ends before kernels would be compiled, which takes half a minute.

    Nothing is evaluated in another way by that.
    """
    standards = replace(settings.classifier.standards, use_kernels=False)
    return replace(settings, classifier=replace(settings.classifier, standards=standards))
