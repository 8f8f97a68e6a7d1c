"""The capture of a site, as ``recrawl capture`` and the Python API make it.

Its forecast, the change rates it believes in, and the statement about it in words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from recrawl.app.display import command_in, period, some_named, valid_period
from recrawl.assess.blur_coherence import LIKELY, CaptureStatement, Names, outcome_counts, statement_json
from recrawl.capture.believed_rates import disappearance_hazard, steady_rates
from recrawl.capture.single_visit import organ_pipes
from recrawl.crawl.clock import RealClock
from recrawl.crawl.site_capture.capture_course import CaptureReport, report_json
from recrawl.crawl.site_capture.capture_opening import FEWEST_KNOWN, known_pages, known_requisites, knows_pages
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.site_capture.capture_terms import (
    DEFAULT_STRATEGY,
    OBSERVED_STRATEGY,
    PLANNED_STRATEGY,
    RateSource,
    Requisites,
    WeightSource,
)
from recrawl.crawl.site_capture.site_capture_driver import CaptureProgress, SiteCaptureDriver
from recrawl.crawl.visit.scope import SiteScope
from recrawl.errors import ConfigError, InputError, counted
from recrawl.estimate import site_signals
from recrawl.estimate.gap_columns import highest_identifiable_rate
from recrawl.estimate.posterior.gamma_posterior import UNKNOWN_RATE
from recrawl.model import BoolArray, CapturePlan, FloatArray, IntArray
from recrawl.predict import related_pages
from recrawl.store.base import Store
from recrawl.time import format_duration

if TYPE_CHECKING:
    from pathlib import Path

    from recrawl.app.rates.belief_table import BeliefTable, Expected
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.crawl.worker.crawl_assembly import WorkerSettings
    from recrawl.schedule.politeness.host_politeness import PolitenessRules
    from recrawl.store.base import PageTable
    from recrawl.store.store_values import SiteCapture
    from recrawl.time import Clock


Show = Callable[[CaptureProgress], None]
Stopping: TypeAlias = Callable[[Callable[[], None]], AbstractContextManager[object]]
"""Given the function that stops a capture, a block within which somebody may call it."""


async def carry_out(  # noqa: PLR0913 - what takes part, and who wants to know
    place: Workspace,
    store: Store,
    order: CaptureOrder,
    unfinished: SiteCapture | None,
    show: Show,
    *,
    stopping: Stopping = lambda _stop: nullcontext(),
    clock: Clock | None = None,
    settings: WorkerSettings | None = None,
) -> CaptureReport | None:
    """Start a capture, or continue an unfinished one; ``None`` if it was stopped.

    ``stopping`` is given a function that stops the capture: the running request may finish within a few
    seconds. A cancellation drops it at once. By default the clock is the real one and the settings are those of the
    workspace.
    """
    from recrawl.app.crawl_run import FINISH_WITHIN, worker_name
    from recrawl.app.workspace.workspace_wiring import crawl_settings_of
    from recrawl.crawl.worker.crawl_assembly import crawl_parts
    from recrawl.crawl.worker.event_loop import InterruptibleSleep
    from recrawl.schedule.politeness.host_politeness import Politeness

    clock, settings = clock or RealClock(), settings or crawl_settings_of(place.configuration.settings)
    rules, turns = pauses_of(order, settings.politeness), settings.turns
    if turns is not None and order.delay is not None:
        turns = replace(turns, delay=min(turns.delay, order.delay))
    settings = replace(
        settings, politeness=rules, turns=turns, archive=replace(settings.archive, is_part_of=order.site)
    )
    started = unfinished.started if unfinished else clock.now()
    async with crawl_parts(clock, store, place.folder, settings, worker_name()) as parts:
        driver = SiteCaptureDriver(
            clock=clock,
            store=store,
            fetcher=parts.fetcher,
            robots=parts.robots,
            ip_gate=parts.ip_gate,
            classifier=settings.classifier,
            pool=parts.pool,
            politeness=Politeness(rules),
            archive=parts.archive,
            rates=rates_of(place, store, order, started),
            weights=Priorities(store, started) if order.weights is WeightSource.PRIORITY else None,
            log=parts.events,
            on_visit=lambda visited: parts.attempts.write([visited]),
        )
        working: InterruptibleSleep[CaptureReport | None] = InterruptibleSleep()

        def stop() -> None:
            driver.stop()
            asyncio.get_running_loop().call_later(FINISH_WITHIN, working.end)

        async def work() -> CaptureReport | None:
            capture = unfinished or await driver.begin(order)
            return None if capture is None else await driver.run(capture, show)

        with stopping(stop):
            try:
                return await working.through(work())
            finally:
                driver.drop()


def rates_of(place: Workspace, store: Store, order: CaptureOrder, started: float) -> BelievedRates:
    """Change rates at the start of a capture, from earlier visits and the trained model."""
    from recrawl.app.predict.model_use import expected_changes, predicted_changes
    from recrawl.app.workspace.workspace_wiring import politeness_of

    predicted, compared = predicted_changes(place, store, started), expected_changes(place, store, started)
    horizon = None
    if order.revisits:
        usual = pauses_of(order, politeness_of(place.configuration.settings.politeness))
        pages = order.expected or len(known_pages(store, SiteScope(order.scope, (order.seed,))))
        horizon = usual.pause(0.0, None) * max(pages, 1)
    return BelievedRates(store, started, order.rates, predicted, compared, horizon)


def usual_strategy(store: Store, order: CaptureOrder) -> CaptureOrder:
    """The order with the strategy that fits what the workspace knows: an offline one if it knows the pages of the site.

    It does after a capture of the whole site, or if a crawl or an import has seen most of it.
    With a given observation interval it is the one that is best for that, and visits once.
    """
    if order.observe is not None:
        return replace(order, strategy=OBSERVED_STRATEGY)
    resources = order.requisites is not Requisites.NONE
    known = known_pages(store, SiteScope(order.scope, (order.seed,)), resources=resources)
    finished = (CaptureOrder.from_json(one.terms) for one in store.site_captures() if one.is_finished)
    whole = any((one.site, one.scope, one.max_pages) == (order.site, order.scope, None) for one in finished)
    knows = len(known) >= FEWEST_KNOWN and (whole or knows_pages(store, known))
    return replace(order, strategy=PLANNED_STRATEGY if knows else DEFAULT_STRATEGY)


def begun_or_usual(store: Store, unfinished: Sequence[SiteCapture], order: CaptureOrder) -> CaptureOrder:
    """As :func:`usual_strategy`; for an unfinished capture with either strategy the one that it was begun with."""
    begun = {CaptureOrder.from_json(known.terms) for known in unfinished if known.site == order.site}
    for name in (DEFAULT_STRATEGY, PLANNED_STRATEGY, OBSERVED_STRATEGY):
        if replace(order, strategy=name) in begun:
            return replace(order, strategy=name)
    return usual_strategy(store, order)


@dataclass(frozen=True, slots=True)
class Priorities:
    """Weights of pages by what sitemaps say (``priority``), in units of 0.5, which a page without it has."""

    store: Store
    until: float
    """What was said later does not count, seconds since the epoch."""

    def __call__(self, page: IntArray) -> FloatArray:
        """The weight of each page: 0.02 to 2. O(n log n)."""
        claims = self.store.claims(np.unique(page))
        said = np.flatnonzero((claims.priority >= 0.0) & (claims.time <= self.until))
        last = dict(zip(claims.page[said].tolist(), claims.priority[said].tolist(), strict=True))
        return (
            np.array([max(last.get(one, _USUAL_PRIORITY), _LEAST_PRIORITY) for one in page.tolist()]) / _USUAL_PRIORITY
        )


_USUAL_PRIORITY, _LEAST_PRIORITY = 0.5, 0.01
"""That of a page that nothing is said of (sitemaps.org), and the least that counts: every page is worth a little."""


def pauses_of(order: CaptureOrder, rules: PolitenessRules) -> PolitenessRules:
    """The pauses of a capture: ``--delay`` replaces ``politeness.min_delay``."""
    if order.delay is None:
        return rules
    return replace(rules, shortest=order.delay, longest=max(rules.longest, order.delay))


def site_url(site: str | None) -> str:
    """The URL of the first page of a site, as it was written.

    Raises:
        ConfigError: there is none.
    """
    from recrawl.formats.seeds import parse_seed

    if site is None:
        raise ConfigError("There is no site to capture.", "Give the URL of its first page, or --resume.")
    return parse_seed(site, "").url


def unfinished_capture(unfinished: Sequence[SiteCapture], order: CaptureOrder, folder: Path) -> SiteCapture | None:
    """The unfinished capture with this order.

    Raises:
        ConfigError: there is one of the site with another order.
    """
    of_site = [known for known in unfinished if known.site == order.site]
    for known in reversed(of_site):
        if CaptureOrder.from_json(known.terms) == order:
            return known
    if of_site:
        raise ConfigError(
            f"Capture {of_site[-1].id} of {order.site} is not finished and has other options.",
            f"Continue it: {command_in(folder, 'capture --resume')}   or start another one: --restart.",
        )
    return None


@dataclass(frozen=True, slots=True)
class CaptureForecast:
    """A forecast for a capture of all known pages, assuming immediate responses and no failures."""

    strategy: str
    pages: int
    hosts: int
    """They are captured side by side."""
    requests: int
    delay: float
    """Seconds between requests to the host of the start page."""
    seconds: float
    """From the first request to the last."""
    wait: float
    """Seconds until the first request, for a given observation interval."""
    coherent: float | None
    """Expected number of pages unchanged between visit and revisit; ``None`` without revisits."""
    blur: float
    """Expected changes per page between a requested time and the shown copy."""
    worst_blur: float | None
    """The same if as many pages as asked for are visited in the worst order; ``None`` if nobody asked."""


def forecast(
    place: Workspace, store: Store, order: CaptureOrder, now: float, *, misplaced: int | None = None
) -> CaptureForecast:
    """Forecast a capture from the pages and rates in the workspace; O(pages) plus the cost of the strategy.

    With ``misplaced`` also the worst case of a single-visit capture: N pages, the hottest, are visited first and
    last because they were found late (SHARC Theorem 4.5).

    Raises:
        InputError: no page of the site is known.
        ConfigError: the worst case was asked of a capture with revisits, several hosts, or fewer pages.
    """
    from recrawl.app.workspace.workspace_wiring import politeness_of
    from recrawl.assess.blur_coherence import average_blur, expected_coherence, worst_case_increase
    from recrawl.capture.pyramid import side_by_side
    from recrawl.capture.strategy import LinkGraph, walk
    from recrawl.crawl.site_capture.capture_course import lane_of

    scope = SiteScope(order.scope, (order.seed,))
    pages = known_pages(store, scope, resources=order.requisites is not Requisites.NONE)[: order.max_pages]
    if not len(pages):
        raise InputError(f"No page of {order.site} is known yet.", "Capture it once, or import captures of it.")
    pages = np.union1d(pages, known_requisites(store, order, scope))
    lanes = {name: number for number, name in enumerate(dict.fromkeys(map(lane_of, [order.site, *store.urls(pages)])))}
    lane = np.array([lanes[lane_of(url)] for url in store.urls(pages)], np.int64)
    usual = politeness_of(place.configuration.settings.politeness)
    hosts = store.hosts(np.unique(store.pages(pages).host))
    told = dict(zip(hosts.id.tolist(), hosts.delay.tolist(), strict=True))
    delay = np.full(len(lanes), pauses_of(order, usual).pause(0.0, None))
    for number, host in zip(lane.tolist(), store.pages(pages).host.tolist(), strict=True):
        if told[host] > usual.shortest:
            delay[number] = pauses_of(order, usual).pause(0.0, told[host])
    rate = rates_of(place, store, order, now)(pages)
    weight = Priorities(store, now)(pages) if order.weights is WeightSource.PRIORITY else None
    made: list[int] = []

    def plan(rates: FloatArray, pace: float, weights: FloatArray | None) -> CapturePlan:
        """One host: all its pages are known, and lead to no others."""
        no_links = LinkGraph(np.zeros(len(rates) + 1, np.int64), np.empty(0, np.int64))
        strategy = order.new_strategy(pace, started=now)
        path = walk(strategy, no_links, np.arange(len(rates)), rates, weights)
        again = path.revisited if order.revisits else path.revisited[:0]
        made.append(len(path.visited) + len(again))
        return type(path)(path.visited, again).plan()

    times = side_by_side(lane, delay, plan, rate, weight)
    again = times.revisit if order.revisits else None
    home, wait, seen = float(delay[0]), 0.0, (times.begin, times.end)
    if order.observe is not None:
        wait = max(sum(order.observe) / 2.0 - now + times.begin, 0.0)
        start = now + wait - times.begin  # of the common middle
        seen = order.observe[0] - start, order.observe[1] - start
    blur = average_blur(rate, times.visit, *seen, again) if len(pages) > 1 else 0.0
    worst = None
    if misplaced is not None:
        if order.revisits or len(lanes) > 1 or not 0 <= misplaced <= len(pages) or order.observe is not None:
            raise ConfigError(
                "--misplaced is about a capture of one host that visits each page once.",
                f"Add --no-revisit, leave out --observe, and give at most {len(pages)} pages.",
            )
        least = average_blur(
            np.sort(rate), organ_pipes(np.sort(rate)).visit_times(0.0, home), 0.0, home * (len(pages) - 1)
        )
        worst = least + worst_case_increase(rate, misplaced, home) / (home * max(len(pages) - 1, 1)) / len(pages)
    return CaptureForecast(
        order.strategy,
        len(pages),
        len(lanes),
        sum(made),
        home,
        times.end - times.begin,
        wait,
        expected_coherence(rate, times.revisit - times.visit) if order.revisits else None,
        blur,
        worst,
    )


_CLAIMS: dict[RateSource, site_signals.Reading] = {
    RateSource.KNOWN: "literal",
    RateSource.SITEMAP: "literal",
    RateSource.SITEMAP_CORRECTED: "corrected",
}
"""How each rate source reads sitemaps."""
_VISITS = (RateSource.KNOWN, RateSource.BELIEF)
_NOTHING = np.empty(0, np.int64), np.empty(0)


@dataclass(frozen=True)
class BelievedRates:
    """Rates by page id, per second: by default from visits, then from sitemaps, then from predictions.

    To all of them the hazard of disappearance is added. The belief about a page is that of ``recrawl rates``; as one
    number it is the mean, or with a ``horizon`` the rate that gives the probability of staying unchanged for so long.

    Only visits before the capture count, so that an interrupted capture gets the same rates as an uninterrupted one.
    """

    store: Store
    until: float
    """The start of the capture, seconds since the epoch."""
    source: RateSource = RateSource.KNOWN
    """The selected sources."""
    expected: Expected | None = None
    """Predicted rates of new pages from their URLs; the rates of neighbouring pages without a model."""
    compared: Expected | None = None
    """What it expects of pages beside each other, for what visits taught."""
    horizon: float | None = None
    """For revisits: seconds for which a page typically must stay unchanged. ``None`` for single visits."""

    def __call__(self, page: IntArray) -> FloatArray:
        """The rate of each page. The first call learns from all visits; then O(n log n)."""
        if self.source is RateSource.EQUAL:
            return np.full(len(page), UNKNOWN_RATE)
        rate = self._expected(page)
        if self.source in _CLAIMS:
            claimed = self._claimed(page, _CLAIMS[self.source])
            rate = np.where(np.isfinite(claimed), claimed, rate)
        known, learned = self._learned if self.source in _VISITS else _NOTHING
        if len(known):
            place = np.minimum(np.searchsorted(known, page), len(known) - 1)
            rate = np.where(known[place] == page, learned[place], rate)
        return rate + self.hazard(page)

    def predicted(self, page: IntArray) -> BoolArray:
        """The pages that the model predicts: never observed, and in no sitemap in use."""
        if self.expected is None or self.source is RateSource.EQUAL:
            return np.zeros(len(page), np.bool_)
        alone = np.ones(len(page), np.bool_)
        if self.source in _CLAIMS:
            alone &= ~np.isfinite(self._claimed(page, _CLAIMS[self.source]))
        if self.source in _VISITS:
            alone &= ~np.isin(page, self._learned[0])
        return alone

    @cached_property
    def _learned(self) -> tuple[IntArray, FloatArray]:
        """Pages that were seen, ascending, and what visits taught of each."""
        known = self.table
        if known is None:
            return np.empty(0, np.int64), np.empty(0)
        twice = np.flatnonzero(known.histories.counts() > 0)  # of the others nothing is known but what is expected
        belief = known.belief.take(twice)
        rate = belief.mean() if self.horizon is None else steady_rates(belief, self.horizon)
        # Where a page changed at every observation, only a lower bound is known, and the tail dominates the mean.
        most = highest_identifiable_rate(known.training.evidence.histories.take(twice))
        return known.histories.page[twice], np.minimum(rate, most)

    @cached_property
    def table(self) -> BeliefTable | None:
        """What all visits before the capture taught; ``None`` without any."""
        if not len(self.store.latest_visits(1)):
            return None
        from recrawl.app.rates.belief_table import (  # takes long to import, and a first capture has nothing to learn
            VisitSpan,
            learn,
        )

        return learn(self.store, VisitSpan(until=self.until), expected=self.compared)

    def hazard(self, page: IntArray) -> FloatArray:
        """Disappearances a second of each page, by its host: a page that exists has never disappeared before."""
        known = self.table
        host = self._host(page)
        if known is None:
            return disappearance_hazard(np.zeros(len(page)), np.zeros(len(page)))
        gone, histories = known.gone_since, known.histories
        until = np.where(np.isnan(gone), histories.last_visit, gone)
        watched = np.maximum(until - histories.first_visit, 0.0)
        ids, row = np.unique(np.concatenate([self._host(histories.page), host]), return_inverse=True)
        seen, asked = row[: len(histories)], row[len(histories) :]
        lost = np.bincount(seen, (~np.isnan(gone)).astype(np.float64), len(ids)).astype(np.float64)
        return disappearance_hazard(lost, np.bincount(seen, watched, len(ids)).astype(np.float64))[asked]

    @cached_property
    def _around(self) -> tuple[related_pages.NeighbourPrior, bool]:
        """The rate of a new page, and whether it comes from observations."""
        histories = self.store.histories(until=self.until)
        histories = histories.take(~np.isin(histories.page, self.store.resources()))
        found = related_pages.fit_neighbour_prior(histories, self._host(histories.page), self._section(histories.page))
        return found, bool(len(histories.gaps))

    def _expected(self, page: IntArray) -> FloatArray:
        if self.expected is not None:
            return self.expected(page)
        around, taught = self._around
        belief = around.of(self._host(page), self._section(page))
        # The middle, as of pages that were seen: where some changed at every observation the mean is all tail.
        return belief.quantile(0.5) if taught else belief.mean()

    def _host(self, page: IntArray) -> IntArray:
        pages = self.store.pages(np.unique(page))
        return pages.host[np.searchsorted(pages.id, page)]

    def _section(self, page: IntArray) -> IntArray:
        return np.array([related_pages.section_id(url) for url in self.store.urls(page)], np.int64)

    def _claimed(self, page: IntArray, reading: site_signals.Reading) -> FloatArray:
        """What the last ``changefreq`` said of each page means (SHARC Definition 6.1); NaN for nothing."""
        claims = self.store.claims(np.unique(page))
        said = np.flatnonzero(claims.changefreq > 0)
        last = dict(zip(claims.page[said].tolist(), claims.changefreq[said].tolist(), strict=True))
        said_of = np.array([last.get(one, site_signals.UNSAID) for one in page.tolist()], np.int64)
        return site_signals.rates(said_of, reading)


def statement_words(said: CaptureStatement, names: Names, most: int = 5) -> list[str]:
    """Lines that say how good a capture is, at most ``most`` pages named a line.

    ``names`` gives the URLs of page ids.
    """
    return stored_words(statement_json(said, names, most), most)


def stored_words(said: Mapping[str, Any], most: int = 5) -> list[str]:
    """The same from a statement as ``statement_json`` writes it, without further look-ups."""
    if not said["pages"]:
        return ["The capture has no pages."]
    start, end = _seconds(said["from"]), _seconds(said["until"])
    coherence, joint = said["coherence"], said["validTogether"]
    lines = [f"{counted(said['pages'], 'page')}, {period(start, end)} ({format_duration(end - start)})."]
    lines += _blur_words(said)
    lines += _coherence_words(coherence, joint)
    apart: Sequence[str] = () if joint is None else joint["apart"]
    for pages, count, what in (
        (said["changedPages"], coherence["changed"], "Changed"),
        (said["missingPages"], coherence["missing"], "Missing"),
        (apart, 0 if joint is None else coherence["coherent"] - joint["pages"], "Valid at other times"),
    ):
        if count:
            lines.append(f"{what}: {some_named(pages[:most], count)}.")
    hopeless = said["hopeless"]
    if hopeless["count"]:
        named = hopeless["by"] == "strategy"
        by = "abandoned by the strategy" if named else f"probability of staying unchanged below {LIKELY:.0%}"
        lines.append(f"Hopeless ({by}): {some_named(hopeless['pages'][:most], hopeless['count'])}.")
    return lines


def _blur_words(said: Mapping[str, Any]) -> list[str]:
    if not said["pagesWithRate"]:
        return ["Blur: not known, because no page has a known change rate."]
    predicted, achieved = said["blur"]["predicted"], said["blur"]["achieved"]
    line = f"Blur: {predicted['average']:.3g} expected changes per page between a requested time and the shown copy"
    if achieved is not None:
        line += f"; {achieved['average']:.3g} given the results of the revisits"
    if said["pagesWithRate"] < said["pages"]:
        line += f" (of {counted(said['pagesWithRate'], 'page')} whose rate is known)"
    return [f"{line}."]


def _coherence_words(said: Mapping[str, Any], joint: Mapping[str, Any] | None) -> list[str]:
    if not any(outcome_counts(said).values()):
        return ["Coherence: not known, because no page was observed twice."]
    itself = f" ({said['seenOnce']:,} of them observed once, which needs no revisit)" if said["seenOnce"] else ""
    line = (
        f"Coherence: {counted(said['coherent'], 'page')} unchanged from visit to revisit{itself}, "
        f"{said['changed']:,} changed, {said['missing']:,} missing, {said['unknown']:,} not observed again"
    )
    if said["expectedOf"]:
        line += f"; {said['expected']:.1f} of {said['expectedOf']:,} expected, {said['coherentOfThem']:,} found"
    return [f"{line}.", *_together_words(joint)]


def _together_words(joint: Mapping[str, Any] | None) -> list[str]:
    if joint is None:
        return []
    which = "All coherent pages" if joint["allCoherentPages"] else f"{joint['pages']:,} of the coherent pages"
    return [f"{which} were valid together {valid_period(_seconds(joint['from']), _seconds(joint['until']))}."]


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


_NAMED = 10
"""Pages named in each line."""


def report_lines(store: PageTable, report: CaptureReport) -> list[str]:
    """The statement about a finished capture in words, a line each."""
    return stored_lines(report.capture, report_json(report, store.urls))


def stored_lines(capture: SiteCapture, stored: Mapping[str, Any]) -> list[str]:
    """The same from the stored statement, without further look-ups."""
    order = CaptureOrder.from_json(capture.terms)
    found = counted(stored["pagesFound"], "page")
    if requisites := stored.get("pageRequisites", 0):
        hosts = stored["hosts"]
        found += f" ({requisites:,} of them embedded in others{f', on {hosts:,} hosts' if hosts > 1 else ''})"
    lines = [f"Capture {capture.id} of {capture.site} by {order.strategy}: {found} found."]
    lines += stored_words(stored["quality"], _NAMED)
    plan = stored["plan"]
    if plan is not None:
        lines.append(
            f"Plan of {counted(plan['pages'], 'page')}: expected coherence {plan['expectedCoherence']:.6g} by weight, "
            f"proven bound {plan['bound']:.6g}, gap {plan['gap']:.3%}."
        )
    for key, what in (
        ("failed", "Not captured, because every attempt failed"),
        ("refused", "Not captured, because robots.txt forbids it"),
        ("gone", "Not found"),
    ):
        if stored[key]["count"]:
            lines.append(f"{what}: {some_named(stored[key]['pages'][:_NAMED], stored[key]['count'])}.")
    return lines
