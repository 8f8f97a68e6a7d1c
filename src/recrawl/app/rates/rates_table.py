"""The options and the table of ``recrawl rates``: the belief about each page, section or host, and its evidence.

Rates are shown in words: "about every 12 days, 9–17".

The rows behind the table of rates: pages, or sections and hosts as sums of their pages.

A host changes whenever one of its pages does, so its rate is the sum of theirs: n pages times their mean rate, in which
each page is weighted by its observed time. (A page observed for minutes can have any rate, and must not dominate the
others.) The distribution of such a sum is sampled: for each page a value from every part of its belief, in random
order, as if pages were independent. There is no closed formula. Beliefs can reach a thousand times as far up as down:
then the tail dominates the mean, and the sum of the medians is too low, the more pages the more. A group of one page
is that page. Observations of pages are not observations of the host: one that finds its page unchanged says nothing
about the others, so a host has no history for an estimator. Pages that are edited together make the interval of a
group narrower than it should be.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl import plugins
from recrawl.app.display import shown_time
from recrawl.app.rates.belief_table import (
    LEVEL,
    Expected,
    TrainingHistory,
    VisitSpan,
    host_id,
    learn,
    middle_of,
    section_labels,
    training_of,
)
from recrawl.errors import ConfigError
from recrawl.estimate.estimator import Estimator
from recrawl.estimate.estimators import ESTIMATORS, at_site_level
from recrawl.estimate.gap_columns import highest_identifiable_rate
from recrawl.estimate.mle import information, likelihood_ratio
from recrawl.estimate.point_evidence import PointBelief
from recrawl.model import Belief, BoolArray, ChangeKind, FloatArray, GammaBelief, Histories, IntArray
from recrawl.store.base import PageTable, Store
from recrawl.time import DAY, HOUR, MINUTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class ChangeAspect(enum.StrEnum):
    """In what respect a page changes."""

    ANY = "any"
    CONTENT = "content"
    TEXT = "text"
    LINKS = "links"
    NEW_LINKS = "new-links"
    NEW_PUBLICATIONS = "new-publications"
    EXISTENCE = "existence"
    TYPE = "type"
    DATA = "data"

    @classmethod
    def _missing_(cls, value: object) -> ChangeAspect | None:
        """The other spelling, as tables have it.

        >>> ChangeAspect("new_links")
        <ChangeAspect.NEW_LINKS: 'new-links'>
        """
        return next((kind for kind in cls if value == kind.value.replace("-", "_")), None)


class RatesGrouping(enum.StrEnum):
    """What a row of the table is."""

    PAGE = "page"
    SECTION = "section"
    HOST = "host"
    SITE = "site"
    """A host taken as one page: it changes when any of its pages does (HACS, website level)."""


class RatesOrder(enum.StrEnum):
    """What comes first."""

    RATE = "rate"
    RATE_ASCENDING = "-rate"
    CHANGED = "changed"
    UNCERTAINTY = "uncertainty"
    OBSERVATIONS = "observations"
    RECENT = "recent"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class RatesQuestion:
    """All of it, ready to be answered."""

    estimator: Estimator
    now: float
    """The time of reference: now, or an earlier time."""
    kind: ChangeAspect = ChangeAspect.ANY
    by: RatesGrouping = RatesGrouping.PAGE
    window: float | None = None
    """Only visits within this many seconds before ``now``."""
    sort: RatesOrder = RatesOrder.RATE
    host: str | None = None
    match: str | None = None
    """Part of a URL, or a pattern with ``*`` and ``?`` for a whole one."""
    min_observations: int = 1
    limit: int | None = None
    expected: Expected | None = None
    """What a model expects of pages, if there is one."""

    @property
    def span(self) -> VisitSpan:
        """The visits that count. Visits after ``now`` are ignored."""
        kind = None if self.kind is ChangeAspect.ANY else ChangeKind[self.kind.name]
        return VisitSpan(None if self.window is None else self.now - self.window, self.now, kind)


def estimator_named(name: str) -> Estimator:
    """The estimator of this name: built in, of an entry point, or at ``package.module:Name``.

    Raises:
        ConfigError: there is none, or it cannot be loaded.
    """
    found = plugins.find("estimator", name, ESTIMATORS)
    estimator: Estimator = plugins.made("estimator", name, Estimator, found)
    return estimator


def moment(text: str | None, now: float) -> float:
    """The time that ``--at`` names, or now."""
    from recrawl.formats.dates import w3c_time

    if text is None:
        return now
    when = w3c_time(text)
    if when is None:
        raise ConfigError(f"{text!r} is not a time.", "Write it as 2026-11-15 or 2026-11-15T09:30:00Z.")
    return when


_UNITS = ((365.25 * DAY, "years"), (DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes"), (1.0, "seconds"))
_COMPARABLE = (0.1, 1_000.0)
"""Numbers of one unit that are read easily side by side."""

_FOREVER = 1_000 * 365.25 * DAY
"""Longest shown interval in seconds: a belief with almost no evidence has no upper end."""


def in_words(every: float, shortest: float, longest: float) -> str:
    """How often something changes: the middle estimate of the time between changes and its interval, in seconds.

    >>> in_words(12 * DAY, 9 * DAY, 17 * DAY), in_words(2.5 * HOUR, 40 * MINUTE, 9 * HOUR)
    ('about every 12 days, 9–17', 'about every 2.5 hours, 0.67–9')
    >>> in_words(3 * DAY, 20 * MINUTE, 9 * 365.25 * DAY)
    'about every 3 days, 20 minutes – 9 years'
    >>> in_words(15 * HOUR, 4.0, 1e19), in_words(1e15, 2 * DAY, 1e19)
    ('about every 15 hours, 4 seconds or more', 'almost never; less often than every 2 days')
    >>> in_words(math.inf, 40 * DAY, math.inf), in_words(DAY, DAY, DAY)
    ('no change observed; less often than every 40 days', 'about every 24 hours')
    >>> in_words(math.nan, math.nan, math.nan)
    'not known'
    """
    if math.isnan(every):
        return "not known"
    if every >= _FOREVER:
        known = math.isfinite(shortest) and shortest > 0
        middle = "no change observed" if math.isinf(every) else "almost never"
        return middle + (f"; less often than every {_amount(shortest)}" if known else "")
    middle = f"about every {_amount(every)}"
    if shortest == every == longest:
        return middle
    unit = _unit(every)[0]
    least, most = _COMPARABLE
    if longest >= _FOREVER:
        return f"{middle}, {_amount(shortest)} or more"
    if least <= shortest / unit and longest / unit < most:
        return f"{middle}, {_number(shortest / unit)}–{_number(longest / unit)}"
    return f"{middle}, {_amount(shortest)} – {_amount(longest)}"


def told_of_page(rate: str, gone_since: float) -> str:
    """How often a page changes in words, or since when it is gone, in seconds since 1970: NaN if it is there.

    >>> told_of_page("about every 12 days", math.nan), told_of_page("about every 12 days", 86400.0)
    ('about every 12 days', 'gone since 1970-01-02')
    """
    return rate if math.isnan(gone_since) else f"gone since {shown_time(gone_since).partition(' ')[0]}"


def _amount(seconds: float) -> str:
    unit, name = _unit(seconds)
    shown = _number(seconds / unit)
    return f"{shown} {name.removesuffix('s') if shown == '1' else name}"


def _unit(seconds: float) -> tuple[float, str]:
    """The largest unit of which there are two."""
    return next((entry for entry in _UNITS if seconds >= 2 * entry[0]), _UNITS[-1])


def _number(value: float) -> str:
    """Two leading digits, never an exponent."""
    digits = max(0, 1 - math.floor(math.log10(value))) if value > 0 else 0
    shown = f"{float(f'{value:.2g}'):,.{digits}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


_FEWEST, _MOST, _MOST_DRAWN = 40, 200, 20_000_000
"""Values drawn of each page: at least, at most, and of all pages together as long as that leaves enough of each."""
_AT_ONCE = 20_000
"""Pages of which values are drawn at once: a few dozen megabytes."""


@dataclass(frozen=True, slots=True)
class RateRows:
    """Pages or groups of pages, and what is known of each. Columns of equal length; rates per second."""

    training: TrainingHistory
    """Of all pages, also where rows are groups."""
    belief: Belief
    """About the rows; where these are groups, about their pages."""
    rate: FloatArray
    """The middle of the belief; of a point estimator, its estimate."""
    observations: IntArray
    """Of all pages of a row, first observations included."""
    changes: IntArray
    observed: FloatArray
    """Seconds from the first observation to the last."""
    last_observed: FloatArray
    last_change: FloatArray
    exact: BoolArray
    """Whether all changes of a row were logged, not found by observations."""
    p_changed: FloatArray
    """That a page changed since it was last seen; for a group, the share of its pages of which that is expected."""
    host: IntArray
    pages: IntArray
    """Pages of a row."""
    names: list[str] | None
    """Of sections and hosts; those of pages stay in the store until they are needed."""
    ends: tuple[FloatArray, FloatArray] | None = None
    """Of the intervals of groups; those of pages are found when they are needed."""

    def __len__(self) -> int:
        return len(self.rate)

    def known(self) -> BoolArray:
        """Which rows have a page that was observed more than once: one capture says nothing about rates."""
        return self.observations > self.pages

    def gone_since(self) -> FloatArray:
        """When pages that are gone were first found so; NaN of those that are there, and of groups."""
        since = self.training.gone_since
        return np.full(len(self), np.nan) if self.names is not None or since is None else since

    def bounds(self, which: IntArray) -> tuple[FloatArray, FloatArray]:
        """Ends of the 90 % interval of these rows, per second.

        The middle of the belief. Of a page, a point estimator has none: its interval holds the rates that the
        likelihood does not rule out, and need not hold the estimate.
        """
        if self.ends is not None:
            low, high = self.ends
            return low[which], high[which]
        if isinstance(self.belief, PointBelief):
            order = np.argsort(which, kind="stable")
            back = np.empty_like(order)
            back[order] = np.arange(len(order))
            found = likelihood_ratio(self.training.evidence.histories.take(which[order]), LEVEL)
            return found.low[back], found.high[back]
        belief = self.belief.take(which)
        low, high = (belief.quantile(q) for q in ((1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0))
        return np.minimum(low, self.rate[which]), np.maximum(high, self.rate[which])


def rows_for(store: Store, question: RatesQuestion) -> RateRows:
    """Everything the question is about, before anything is filtered: neighbours teach also where they are not shown."""
    if question.by is RatesGrouping.SITE:
        return _sites(store, question)
    known = learn(store, question.span, question.estimator, question.expected)
    training = known.training
    one_each = np.ones(len(known.histories), np.int64)
    pages = _rows(training, known.belief, question.now, training.evidence.levels[0], one_each, None)
    if question.by is RatesGrouping.PAGE:
        return pages
    if question.by is RatesGrouping.SECTION:
        return grouped(pages, *section_labels(store.urls(known.histories.page)))
    ids, label = np.unique(pages.host, return_inverse=True)
    return grouped(pages, label.astype(np.int64), list(store.hosts(ids).name))


def _sites(store: Store, question: RatesQuestion) -> RateRows:
    """One row per host, treated as one page that is observed whenever one of its pages is, at most once a day."""
    pages = training_of(store, question.span)
    evidence = at_site_level(pages.evidence, round_length=DAY)
    host = evidence.histories.page
    ids, first = np.unique(pages.evidence.levels[0], return_index=True)
    size = np.bincount(np.searchsorted(ids, pages.evidence.levels[0]), minlength=len(ids))
    training = TrainingHistory(evidence.histories, pages.exact[first], evidence)
    return _rows(training, question.estimator(evidence), question.now, host, size, list(store.hosts(host).name))


def _rows(  # noqa: PLR0913, PLR0917 - what is known, when, and of whom
    training: TrainingHistory, belief: Belief, now: float, host: IntArray, size: IntArray, names: list[str] | None
) -> RateRows:
    """One row for each history of a lesson."""
    histories = training.histories
    return RateRows(
        training,
        belief,
        middle_of(belief, training.evidence.histories),
        histories.counts() + 1,
        histories.changes(),
        histories.observed(),
        histories.last_visit,
        histories.last_change,
        training.exact,
        belief.p_change(np.maximum(now - histories.last_visit, 0.0)),
        host,
        size,
        names,
    )


def wanted(
    store: PageTable,
    question: RatesQuestion,
    host: IntArray,
    observations: IntArray,
    names: Callable[[IntArray], list[str]],
) -> BoolArray:
    """The rows that the options select; names are read only for rows that pass all other conditions."""
    kept = observations >= question.min_observations
    named = host_id(store, question.host)
    if named is not None:
        kept &= host == named
    if question.match is not None:
        candidates = np.flatnonzero(kept)
        pattern = question.match if set(question.match) & set("*?[") else f"*{question.match}*"
        kept[candidates] = [fnmatchcase(name, pattern) for name in names(candidates)]
    return kept


def wanted_pages(store: PageTable, question: RatesQuestion, training: TrainingHistory) -> BoolArray:
    """The same of pages."""
    page, observations = training.histories.page, training.histories.counts() + 1
    return wanted(store, question, training.evidence.levels[0], observations, lambda rows: store.urls(page[rows]))


def grouped(pages: RateRows, label: IntArray, names: list[str]) -> RateRows:
    """One row a group; ``label[i]`` is the number of the group of page i, ``names`` those of the groups. O(pages)."""
    count = len(names)
    size = np.bincount(label, minlength=count)
    host = np.zeros(count, np.int64)
    host[label] = pages.host
    rate, ends = _sum_of(pages, label, count)
    last_observed = _latest(pages.last_observed, label, count)
    first_observed = -_latest(-pages.training.histories.first_visit, label, count)
    return RateRows(
        pages.training,
        pages.belief,
        rate,
        np.bincount(label, pages.observations, count).astype(np.int64),
        np.bincount(label, pages.changes, count).astype(np.int64),
        last_observed - first_observed,
        last_observed,
        _latest(pages.last_change, label, count),
        np.bincount(label, pages.exact, count) == size,
        np.bincount(label, pages.p_changed, count) / np.maximum(size, 1),
        host,
        size,
        names,
        ends,
    )


def _sum_of(pages: RateRows, label: IntArray, count: int) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    """The rate of each group, and the ends of its interval."""
    weight, scale = _weights(pages.training.histories.observed(), label, count)
    if isinstance(pages.belief, PointBelief):
        return _sum_of_points(pages, label, weight, scale)
    sums = scale * _drawn_sums(pages.belief, label, weight, count)
    low, rate, high = np.quantile(sums, [(1.0 - LEVEL) / 2.0, 0.5, (1.0 + LEVEL) / 2.0], axis=0)
    told = highest_identifiable_rate(pages.training.evidence.histories)
    bound = np.unique(label[pages.rate >= told])
    if len(bound):  # some pages changed at every observation: of these only this much counts for the middle
        rate[bound] = np.quantile(scale * _drawn_sums(pages.belief, label, weight, count, told), 0.5, axis=0)[bound]
        low = np.minimum(low, rate)
    [alone] = np.nonzero(np.bincount(label, minlength=count)[label] == 1)
    group = label[alone]
    rate[group] = pages.rate[alone]
    low[group], high[group] = pages.bounds(alone)
    return rate, (low, high)


def _drawn_sums(
    belief: Belief, label: IntArray, weight: FloatArray, count: int, most: FloatArray | None = None
) -> FloatArray:
    """Sampled weighted sums of each group, one row per draw. O(pages and groups), each a few dozen times.

    ``most`` limits the draw of each page.
    """
    draws = int(np.clip(_MOST_DRAWN / max(len(label), count, 1), _FEWEST, _MOST))
    rng, sums = np.random.default_rng(1), np.zeros((draws, count))
    for start in range(0, len(label), _AT_ONCE):
        rows = np.arange(start, min(start + _AT_ONCE, len(label)))
        some = belief.take(rows)
        values = np.stack([some.quantile((place + 0.5) / draws) for place in range(draws)])
        if most is not None:
            values = np.minimum(values, most[rows])
        for draw, drawn in enumerate(rng.permuted(values, axis=0)):
            sums[draw] += np.bincount(label[rows], weight[rows] * drawn, count)
    return sums


def _sum_of_points(
    pages: RateRows, label: IntArray, weight: FloatArray, scale: FloatArray
) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    """The same of estimates that do not know how sure they are: by the Gamma with mean and variance of the sum."""
    estimate, count = pages.rate, len(scale)
    variance = _sampling_variance(pages.training.evidence.histories, estimate)
    rate = scale * np.bincount(label, weight * estimate, count)
    total = np.square(scale) * np.bincount(label, np.square(weight) * variance, count)
    # Pages never seen to change could have changed once all the same; some estimators call their rate 0.
    quiet = np.bincount(label, estimate == 0, count) > 0
    total += np.where(quiet, np.square(scale), 0.0)
    wide = np.where(rate > 0, rate, scale)
    belief = GammaBelief(np.square(wide) / total, wide / total)
    low, high = (belief.quantile(q) for q in ((1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0))
    return rate, (np.minimum(low, rate), np.maximum(high, rate))


def _weights(observed: FloatArray, label: IntArray, count: int) -> tuple[FloatArray, FloatArray]:
    """What each page counts for, and the factor that makes the sum of weighted rates one of whole pages."""
    unseen = np.bincount(label, observed, count) <= 0
    weight = np.where(unseen[label], 1.0, observed)
    size = np.bincount(label, minlength=count)
    return weight, size / np.maximum(np.bincount(label, weight, count), np.finfo(np.float64).tiny)


def _sampling_variance(histories: Histories, rate: FloatArray) -> FloatArray:
    """Variance λ²/I of a point estimate; an estimate that rests on nothing is uncertain by as much as it says."""
    known = information(histories, rate)
    return np.asarray(np.square(rate) / np.where(known > 0, known, 1.0))


def _latest(time: FloatArray, label: IntArray, count: int) -> FloatArray:
    """The latest time of each group; NaN where there is none."""
    out = np.full(count, -np.inf)
    np.maximum.at(out, label, np.where(np.isnan(time), -np.inf, time))
    return np.where(np.isneginf(out), np.nan, out)


Columns = dict[str, list[Any]]
"""A table by column, all of one length."""


def answer(store: Store, question: RatesQuestion) -> tuple[Columns, int]:
    """The requested rows in order, and their number without a limit.

    Names are read only for shown rows, unless the options select by name.
    """
    rows = rows_for(store, question)
    shown = np.flatnonzero(wanted(store, question, rows.host, rows.observations, partial(_names, store, rows)))
    order = shown[_first(_key(store, rows, question.sort)[shown], question.limit)]
    rate = np.stack([rows.rate[order], *rows.bounds(order)])
    return _columns(store, rows, order, np.where(rows.known()[order], rate, np.nan), question), len(shown)


def draw(columns: Columns, by: RatesGrouping, path: Path) -> None:
    """Write the plot of a table as PNG, SVG or PDF, by the ending of ``path``."""
    from recrawl.app.result_tables import new_figure, save_figure

    figure = new_figure()
    plot(figure, columns, by)
    save_figure(figure, path)


def plot(figure: Figure, columns: Columns, by: RatesGrouping) -> list[Axes]:
    """Draw a table: how rates differ from row to row, and how sure that is."""
    from recrawl.app.plots import RateSample, RatesPlot, plot_rates

    with np.errstate(divide="ignore"):
        rates = np.stack([np.array(columns[name], np.float64) for name in ("changes_per_day", "low", "high")])
        every, longest, shortest = 1.0 / rates[:, ~np.isnan(rates[0])]
    title = f"How often {len(every):,} {by.value}s change"
    return plot_rates(figure, RatesPlot(RateSample(f"{by.value}s", every), every, shortest, longest, title))


def _names(store: PageTable, rows: RateRows, which: IntArray) -> list[str]:
    if rows.names is None:
        return store.urls(rows.training.histories.page[which])
    return [rows.names[row] for row in which.tolist()]


def _key(store: PageTable, rows: RateRows, sort: RatesOrder) -> FloatArray:
    """The sort key in the requested order; rows without data come last."""
    known = rows.known()
    keys: dict[RatesOrder, Callable[[], FloatArray]] = {
        RatesOrder.RATE: lambda: np.where(known, -rows.rate, np.inf),
        RatesOrder.RATE_ASCENDING: lambda: np.where(known, rows.rate, np.inf),
        RatesOrder.CHANGED: lambda: np.where(known & np.isnan(rows.gone_since()), -rows.p_changed, np.inf),
        RatesOrder.UNCERTAINTY: lambda: np.where(known, -_doubt(rows), np.inf),
        RatesOrder.OBSERVATIONS: lambda: -rows.observations.astype(np.float64),
        RatesOrder.RECENT: lambda: -np.nan_to_num(rows.last_change, nan=-np.inf),
        RatesOrder.NAME: lambda: _ranks(_names(store, rows, np.arange(len(rows)))),
    }
    return keys[sort]()


def _doubt(rows: RateRows) -> FloatArray:
    """The factor between the ends of the interval."""
    low, high = rows.bounds(np.arange(len(rows)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(high / low, nan=1.0)


def _ranks(names: list[str]) -> FloatArray:
    rank = np.empty(len(names))
    rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return rank


def _first(key: FloatArray, limit: int | None) -> IntArray:
    """Positions of the smallest keys, ascending; equal ones in their order. O(n + limit log limit) for few ties."""
    if limit is None or limit >= len(key):
        return np.argsort(key, kind="stable")
    among = np.flatnonzero(key <= np.partition(key, limit - 1)[limit - 1])
    return np.asarray(among[np.argsort(key[among], kind="stable")][:limit])


def _columns(store: PageTable, rows: RateRows, order: IntArray, rate: FloatArray, question: RatesQuestion) -> Columns:
    middle, low, high = rate
    with np.errstate(divide="ignore"):
        every, longest, shortest = (1.0 / middle, 1.0 / low, 1.0 / high)
    named: Columns = {question.by.value if question.by is not RatesGrouping.PAGE else "url": _names(store, rows, order)}
    if question.by is RatesGrouping.PAGE:
        named = {"page": rows.training.histories.page[order].tolist(), **named}
    else:
        named["pages"] = rows.pages[order].tolist()
    since = rows.gone_since()[order]
    there = rows.known()[order] & np.isnan(since)
    if question.by is RatesGrouping.PAGE:
        named["gone_since"] = since.tolist()
    return named | {
        "changes_per_day": (middle * DAY).tolist(),
        "low": (low * DAY).tolist(),
        "high": (high * DAY).tolist(),
        "changes_every": every.tolist(),
        "in_words": [
            told_of_page(in_words(*times), gone)
            for *times, gone in np.stack([every, shortest, longest, since]).T.tolist()
        ],
        "observations": rows.observations[order].tolist(),
        "changes": rows.changes[order].tolist(),
        "exact": rows.exact[order].tolist(),
        "observed": rows.observed[order].tolist(),
        "last_observed": rows.last_observed[order].tolist(),
        "last_change": rows.last_change[order].tolist(),
        "p_changed": np.where(there, rows.p_changed[order], np.nan).tolist(),
        "method": [question.estimator.name] * len(order),
        "kind": [question.kind.name.lower()] * len(order),
    }
