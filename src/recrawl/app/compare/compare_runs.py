"""The past of a workspace, run again by several policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from recrawl.app.compare.benchmark_runs import BenchmarkRun, any_entry, known_policies, run_all
from recrawl.assess.prediction_scores import MeanInterval, ratio_with_interval
from recrawl.errors import ConfigError, InputError, counted, four_digits
from recrawl.model import BoolArray, ChangeKind, Histories, Outcome
from recrawl.schedule.policies.policy_registry import ORACLES
from recrawl.simulate.benchmark_field import BenchmarkField, field_from_histories, known_times, visits_per_page
from recrawl.simulate.policy_benchmark import BASELINE, OURS, OURS_FOR_CHANGES, BenchmarkRules, BenchmarkTally, labelled
from recrawl.time import DAY, format_duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from recrawl.app.rates.belief_table import TrainingHistory
    from recrawl.app.result_tables import PlotLine, PlotPanel
    from recrawl.app.workspace.settings import PolitenessSettings, ScheduleSettings, Settings
    from recrawl.model import FloatArray, IntArray
    from recrawl.store.base import HistoryStore, Store

USUAL = (BASELINE, "nutch", "stormcrawler", "hacs", "state-1", "aduana", OURS, OURS_FOR_CHANGES)
"""The default policies: the baseline, the best of other crawlers and of the papers, and ours."""
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Budgets of a plot, as multiples of the requested one."""
OURS_FOR_LINKS = "valued-links"
"""Ours for those who want new links."""
_TICKS = 200
"""The number of ticks of a short history, so that there are decisions to make."""
SECOND = 1.0
_FEWEST_CLUSTERS = 10
"""Clusters from which on they are what is resampled; with fewer it is pages."""


@dataclass(frozen=True, slots=True)
class ComparisonQuestion:
    """The options of the question."""

    policies: Sequence[str] | None
    budget: float | None
    """Visits a day."""
    tick: float | None
    """Seconds."""
    repeats: int
    seed: int
    most_pages: int
    jobs: int | None
    several_budgets: bool


def compare_policies(
    store: Store, settings: Settings, trial: ComparisonQuestion, on_read: Callable[[], None] = lambda: None
) -> PolicyComparison:
    """Run the past of a store again with the policy in use and others; ``on_read`` is called once it is read.

    Where the one in use is after new links, only changes that brought some count, for all of them.

    Raises:
        InputError: no page was seen twice.
        ConfigError: a policy is not known, or no visits are allowed.
    """
    from recrawl.app.rates.belief_table import VisitSpan, training_of

    if trial.budget == 0:
        raise ConfigError("With 0 visits a day no policy finds a change.", "Give --budget a number above 0.")
    in_use = policy_in_use(settings.schedule)
    names = known_policies([in_use, *(trial.policies or USUAL)])
    links = in_use == OURS_FOR_LINKS
    past = _past_of(store, training_of(store, VisitSpan(kind=ChangeKind.NEW_LINKS if links else None)))
    fields = _fields(past, trial)
    rules = _rules(fields[0], settings.politeness, trial.tick)
    there = _pages_at_once(fields[0])
    daily = _budget(past, settings.schedule) if trial.budget is None else trial.budget / there
    budgets = [daily * factor for factor in (FACTORS if trial.several_budgets else (1.0,))]
    make = partial(any_entry, shortest=settings.schedule.min_interval, longest=settings.schedule.max_interval)
    runs = [BenchmarkRun(_PAST, name, budget) for name in names for budget in budgets]
    on_read()
    tallies = run_all({_PAST: fields}, runs, make, rules, seed=trial.seed, jobs=trial.jobs, what="policies")
    known = int(known_times(past.watched).sum())
    times = KnownTimes(known, int(past.watched.changed.sum()))
    return PolicyComparison(
        in_use, names, fields[0], rules.tick, daily, there, trial.repeats, trial.seed, tallies, times, links
    )


_PAST = "past"


def policy_in_use(settings: ScheduleSettings) -> str:
    """The name under which the policy of the settings competes."""
    return f"{settings.policy}-{settings.objective}" if settings.policy == "valued" else settings.policy


@dataclass(frozen=True, slots=True)
class _Past:
    """The observations of every requested page, row by row: for the replay, and for the number of visits."""

    histories: Histories
    watched: Histories
    """The same, with logged changes observed at their exact times."""
    exact: BoolArray
    """Whether its changes were logged."""
    logged: BoolArray
    """The same, or without visits on a host with logged changes: the log has none of this page."""
    gone_since: FloatArray
    """When it was found gone and never found again, seconds since the epoch; else NaN."""
    stays: BoolArray
    """Whether the page still existed at our own last visit, although there was no later one.

    That we did not return was a choice, and so it would be for others. What an archive holds of a page may have other
    reasons.
    """
    host: IntArray
    cluster: IntArray
    importance: FloatArray


def _past_of(store: HistoryStore, training: TrainingHistory) -> _Past:
    from recrawl.app.rates.belief_table import gone_since_of

    importance = store.pages(training.histories.page).importance
    wanted = importance > 0
    histories, levels = training.histories.take(wanted), training.evidence.levels
    visits = store.visits(pages=histories.page)
    last = visits.take(np.flatnonzero(np.diff(visits.page, append=-1)))
    ours = last.page[(last.cost > 0) & (last.outcome != Outcome.GONE)]  # only visits of our own have a cost
    exact, host = training.exact[wanted], levels[0][wanted]
    visited = np.isin(histories.page, visits.page[(visits.status > 0) | (visits.cost > 0)])
    return _Past(
        histories=histories,
        watched=training.evidence.histories.take(wanted),
        exact=exact,
        logged=exact | (~visited & np.isin(host, host[exact])),
        gone_since=gone_since_of(visits, histories.page),
        stays=np.isin(histories.page, ours),
        host=host,
        cluster=levels[-1][wanted],
        importance=importance[wanted],
    )


def _fields(past: _Past, trial: ComparisonQuestion) -> list[BenchmarkField]:
    """The past of the store, once for each draw of when pages changed."""
    rng = np.random.default_rng(trial.seed)
    try:
        fields = [
            field_from_histories(
                _PAST,
                past.watched,
                rng,
                exact=past.exact,
                gone_since=past.gone_since,
                stays=past.stays,
                host=past.host,
                cluster=past.cluster,
                importance=past.importance,
            )
            for _ in range(trial.repeats)
        ]
    except ValueError:
        raise InputError(
            "No page of this workspace was observed twice, so there is no history to replay.",
            "Import captures with recrawl import, or crawl for a while first.",
        ) from None
    return [field.at_most(trial.most_pages) for field in fields]


def _rules(field: BenchmarkField, politeness: PolitenessSettings, tick: float | None) -> BenchmarkRules:
    """Ticks of a day, shorter ones for a short past; no more visits to a host than its pauses allow."""
    span = field.truth.end - field.truth.start
    length = max(min(DAY, span / _TICKS), SECOND) if tick is None else tick
    most = int(length // politeness.min_delay) if politeness.min_delay > 0 else None
    crowded = most is not None and int(np.bincount(np.unique(field.host, return_inverse=True)[1]).max()) > most
    return BenchmarkRules(0.0, tick=length, found_after=0.0, per_host=max(most or 1, 1) if crowded else None)


def _budget(past: _Past, settings: ScheduleSettings) -> float:
    """Visits a page a day that were really made; those of the settings where only logs of changes are known."""
    made = visits_per_page(past.histories, exact=past.logged, stays=past.stays) * DAY
    return made if made > 0 else settings.budget / max(len(past.histories), 1)


def _pages_at_once(field: BenchmarkField) -> float:
    """How many pages were watched at a time, on average."""
    truth = field.truth
    return float((np.minimum(truth.died, truth.end) - truth.born).sum() / (truth.end - truth.start))


@dataclass(frozen=True, slots=True)
class KnownTimes:
    """Of how many of the changes it is known when they happened."""

    known: int
    changes: int

    def note(self, repeats: int) -> str:
        """The same in a sentence."""
        times = "once" if repeats == 1 else f"{repeats} times"
        if self.changes and self.known == self.changes:
            return "All change times are known from logs of changes."
        drawn = f"Change times between two visits are not known: drawn at random {times}."
        return f"{self.known:,} of {self.changes:,} change times are known from logs. {drawn}" if self.known else drawn


@dataclass(frozen=True, slots=True)
class PolicyComparison:
    """What each policy would have made of the past."""

    in_use: str
    names: list[str]
    field: BenchmarkField
    tick: float
    budget: float
    """Visits a page a day."""
    there: float
    """Pages watched at a time, on average."""
    repeats: int
    seed: int
    tallies: dict[BenchmarkRun, BenchmarkTally]
    times: KnownTimes
    links: bool = False
    """Whether only changes count that brought new links."""

    @property
    def what(self) -> str:
        """The kind of changes that are counted."""
        return "changes with new links" if self.links else "changes"

    def tally(self, name: str) -> BenchmarkTally:
        """The result of one policy at the requested budget."""
        return self.tallies[BenchmarkRun(_PAST, name, self.budget)]

    def ranked(self) -> list[str]:
        """The policies, most changes found first."""
        return sorted(self.names, key=lambda name: -_number(self.tally(name).ratio("recall")))

    def usable(self) -> list[str]:
        """The same without those that know the future: what can be recommended."""
        return [name for name in self.ranked() if name not in ORACLES]

    def against(self, name: str) -> MeanInterval:
        """Changes found relative to the policy in use."""
        caught, _ = self.tally(name).parts("recall")
        mine, _ = self.tally(self.in_use).parts("recall")
        return ratio_with_interval(caught, mine, self._groups, np.random.default_rng(self.seed))

    @property
    def _groups(self) -> IntArray:
        cluster = self.field.cluster
        return cluster if len(np.unique(cluster)) >= _FEWEST_CLUSTERS else np.arange(len(cluster))

    def _interval(self, name: str, metric: str, budget: float) -> MeanInterval:
        tally = self.tallies[BenchmarkRun(_PAST, name, budget)]
        return tally.interval(metric, self._groups, np.random.default_rng(self.seed))

    # -- for people ------------------------------------------------------------------------------

    def headline(self) -> str:
        """What to do about it, in a sentence."""
        visits = f"With the same budget ({four_digits(self.budget * self.there)} visits a day)"
        if not self.tally(self.in_use).changes.sum():
            nothing = "get new links" if self.links else "change"
            return f"You use {self.in_use}. No page was observed to {nothing} in the scored part of the history."
        best = self.usable()[0]
        if best == self.in_use or not self.tally(best).ratio("recall") > self.tally(self.in_use).ratio("recall"):
            return f"You use {self.in_use}. {visits}, {self._none_of_the_others()}."
        more = self.against(best)
        if not np.isfinite(more.mean):
            return f"You use {self.in_use}. {visits}, it would have found no {self.what}, and {best} some."
        if more.low <= 1:
            return (
                f"You use {self.in_use}. {visits}, no other policy is known to find more {self.what}: {best} would "
                f"have found {more.mean - 1:+.0%}, which may be chance (95%: {more.low - 1:+.0%} to "
                f"{more.high - 1:+.0%}).{self._most_current()}"
            )
        text = f"You use {self.in_use}. {visits}, {best} would have found {more.mean - 1:.0%} more {self.what}"
        return f"{text} (95%: {more.low - 1:.0%} to {more.high - 1:.0%}).{self._most_current()}"

    def _none_of_the_others(self) -> str:
        others = len(self.usable()) - 1
        if others == 0:
            return "no other usable policy was compared"
        if others == 1:
            return f"the other would not have found more {self.what}"
        return f"none of the {others} others would have found more {self.what}"

    def _most_current(self) -> str:
        """A word on freshness, where the policy in use is best at that."""
        current = {name: self.tally(name).ratio("freshness") for name in self.usable()}
        mine = current.pop(self.in_use)
        if self.links or not current or mine <= max(current.values()):
            return ""
        return f" Yours keeps more copies current than any other ({mine:.1%})."

    def rows(self) -> list[list[str]]:
        """One row per policy, most changes found first."""
        shown = []
        for name in self.ranked():
            tally, caught = self.tally(name), self._interval(name, "recall", self.budget)
            against = self.against(name).mean - 1
            shown.append(
                [
                    self._label(name),
                    _share(caught.mean, ".1%"),
                    f"{_share(caught.low, '.1%')}–{_share(caught.high, '.1%')}",
                    "" if name == self.in_use else _share(against, "+.0%"),
                    _share(tally.ratio("freshness"), ".1%"),
                    _duration(tally.ratio("age")),
                    _duration(tally.ratio("delay")),
                    _share(tally.ratio("wasted"), ".0%"),
                ]
            )
        return shown

    def note(self) -> str:
        """What the numbers rest on."""
        changes = int(self.tally(self.in_use).changes.sum()) // self.repeats
        return (
            f"{counted(len(self.field), 'page')}, {counted(changes, 'known change')}"
            f"{' with new links' if self.links else ''} after the first quarter of the time, "
            f"decisions every {format_duration(self.tick)}.\n{self.times.note(self.repeats)}"
            f"{'' if self.times.known == self.times.changes else ' Changes that no visit found are not counted.'}"
        )

    # -- for programs ----------------------------------------------------------------------------

    def facts(self) -> dict[str, object]:
        """All results at the requested budget, for JSON."""
        return {
            "headline": self.headline(),
            "note": self.note(),
            "in_use": self.in_use,
            "best": self.usable()[0],
            "visits_a_day": self.budget * self.there,
            "visits_a_page_a_day": self.budget,
            "pages": len(self.field),
            "changes": int(self.tally(self.in_use).changes.sum()) // self.repeats,
            "draws": self.repeats,
            "known_times": self.times.known,
            "tick": self.tick,
            "policies": [self._row(BenchmarkRun(_PAST, name, self.budget)) for name in self.ranked()],
        }

    def columns(self) -> dict[str, list[object]]:
        """Everything at every budget, one row a policy and budget."""
        rows = [self._row(run) for run in self.tallies]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def _row(self, run: BenchmarkRun) -> dict[str, object]:
        tally, caught = self.tallies[run], self._interval(run.policy, "recall", run.budget)
        return {
            "policy": run.policy,
            "in_use": run.policy == self.in_use,
            "knows_the_future": run.policy in ORACLES,
            "visits_a_day": run.budget * self.there,
            **tally.summary(),
            "recall_low": caught.low,
            "recall_high": caught.high,
        }

    def _label(self, name: str) -> str:
        return f"{name} (yours)" if name == self.in_use else labelled(name)

    def plot(self, figure: Figure) -> list[Axes]:
        """Draw changes found and current copies against the budget; two axes."""
        from recrawl.app.result_tables import plot_panels

        title = "Policies on the same history"
        return plot_panels(figure, self.panels(), x_label="visits a day", y_label="share", title=title)

    def panels(self) -> list[PlotPanel]:
        """Changes found and current copies against the budget."""
        from recrawl.app.result_tables import PlotPanel

        titles = {"recall": "changes found", "freshness": "current copies"}
        return [PlotPanel(title, [self._line(name, metric) for name in self.names]) for metric, title in titles.items()]

    def _line(self, name: str, metric: str) -> PlotLine:
        from recrawl.app.result_tables import PlotLine

        budgets = sorted(run.budget for run in self.tallies if run.policy == name)
        ends = [self._interval(name, metric, budget) for budget in budgets]
        means, lows, highs = zip(*ends, strict=True)
        return PlotLine(
            self._label(name), [budget * self.there for budget in budgets], means, lows, highs, ours=name == self.in_use
        )


def _number(value: float) -> float:
    return value if np.isfinite(value) else -1.0


def _share(value: float, how: str) -> str:
    return format(value, how) if np.isfinite(value) else "–"


def _duration(days: float) -> str:
    return format_duration(days * DAY) if np.isfinite(days) else "–"
