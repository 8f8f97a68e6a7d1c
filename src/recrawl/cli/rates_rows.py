"""The rows behind the table of rates: pages, or sections and hosts as sums of their pages.

A host changes whenever one of its pages does, so its rate is the sum of theirs: n pages times their mean rate, in which
each page counts as long as it was observed. (A page seen for minutes can have any rate, and must not outshout the
others.) What is believed of such a sum is drawn: of each page a value from every part of its belief, in random order,
as if pages knew nothing of each other. Formulas will not do. Beliefs may reach a thousand times as far up as down: then
a mean is all tail, and the sum of the middles is too low, the more so the more pages there are. A group of one page is
that page. Looks at pages are no looks at the host: one that finds its page unchanged says nothing of the others, so a
host has no history that an estimator could be given. Pages that are edited together make the interval of a group
narrower than it should be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from recrawl.cli.knowledge import LEVEL, Lesson, host_id, learn, lesson_of, middle_of, section_labels
from recrawl.cli.rates_question import By, Question
from recrawl.estimate.confidence import information, likelihood_ratio
from recrawl.estimate.gaps import highest_rate_told
from recrawl.estimate.point import PointBelief
from recrawl.estimate.point_estimators import at_site_level
from recrawl.model import Belief, BoolArray, FloatArray, GammaBelief, Histories, IntArray
from recrawl.store.base import Store
from recrawl.time import DAY

_FEWEST, _MOST, _MOST_DRAWN = 40, 200, 20_000_000
"""Values drawn of each page: at least, at most, and of all pages together as long as that leaves enough of each."""
_AT_ONCE = 20_000
"""Pages of which values are drawn at once: a few dozen megabytes."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Pages or groups of pages, and what is known of each. Columns of equal length; rates per second."""

    lesson: Lesson
    """Of all pages, also where rows are groups."""
    belief: Belief
    """About the rows; where these are groups, about their pages."""
    rate: FloatArray
    """The middle of the belief; of a point estimator, its estimate."""
    looks: IntArray
    """At all pages of a row, first looks included."""
    changes: IntArray
    observed: FloatArray
    """Seconds from the first look to the last."""
    last_look: FloatArray
    last_change: FloatArray
    exact: BoolArray
    """Whether all changes of a row were logged, not found by looks."""
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
        return self.looks > self.pages

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
            found = likelihood_ratio(self.lesson.evidence.histories.take(which[order]), LEVEL)
            return found.low[back], found.high[back]
        belief = self.belief.take(which)
        low, high = (belief.quantile(q) for q in ((1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0))
        return np.minimum(low, self.rate[which]), np.maximum(high, self.rate[which])


def rows_for(store: Store, question: Question) -> Rows:
    """Everything the question is about, before anything is filtered: neighbours teach also where they are not shown."""
    if question.by is By.SITE:
        return _sites(store, question)
    known = learn(store, question.span, question.estimator, question.expected)
    lesson = known.lesson
    one_each = np.ones(len(known.histories), np.int64)
    pages = _rows(lesson, known.belief, question.now, lesson.evidence.levels[0], one_each, None)
    if question.by is By.PAGE:
        return pages
    if question.by is By.SECTION:
        return grouped(pages, *section_labels(store.urls(known.histories.page)))
    ids, label = np.unique(pages.host, return_inverse=True)
    return grouped(pages, label.astype(np.int64), list(store.hosts(ids).name))


def _sites(store: Store, question: Question) -> Rows:
    """One row a host, taken as one page that is looked at whenever one of its pages is, in rounds of a day."""
    pages = lesson_of(store, question.span)
    evidence = at_site_level(pages.evidence, round_length=DAY)
    host = evidence.histories.page
    ids, first = np.unique(pages.evidence.levels[0], return_index=True)
    size = np.bincount(np.searchsorted(ids, pages.evidence.levels[0]), minlength=len(ids))
    lesson = Lesson(evidence.histories, pages.exact[first], evidence)
    return _rows(lesson, question.estimator(evidence), question.now, host, size, list(store.hosts(host).name))


def _rows(  # noqa: PLR0913, PLR0917 - what is known, when, and of whom
    lesson: Lesson, belief: Belief, now: float, host: IntArray, size: IntArray, names: list[str] | None
) -> Rows:
    """One row for each history of a lesson."""
    histories = lesson.histories
    return Rows(
        lesson,
        belief,
        middle_of(belief, lesson.evidence.histories),
        histories.counts() + 1,
        histories.changes(),
        histories.observed(),
        histories.last_visit,
        histories.last_change,
        lesson.exact,
        belief.p_change(np.maximum(now - histories.last_visit, 0.0)),
        host,
        size,
        names,
    )


def wanted(
    store: Store, question: Question, host: IntArray, looks: IntArray, names: Callable[[IntArray], list[str]]
) -> BoolArray:
    """Which rows the question is about; names are asked only of rows that pass all else."""
    kept = looks >= question.min_looks
    named = host_id(store, question.host)
    if named is not None:
        kept &= host == named
    if question.match is not None:
        candidates = np.flatnonzero(kept)
        pattern = question.match if set(question.match) & set("*?[") else f"*{question.match}*"
        kept[candidates] = [fnmatchcase(name, pattern) for name in names(candidates)]
    return kept


def wanted_pages(store: Store, question: Question, lesson: Lesson) -> BoolArray:
    """The same of pages."""
    page, looks = lesson.histories.page, lesson.histories.counts() + 1
    return wanted(store, question, lesson.evidence.levels[0], looks, lambda rows: store.urls(page[rows]))


def grouped(pages: Rows, label: IntArray, names: list[str]) -> Rows:
    """One row a group; ``label[i]`` is the number of the group of page i, ``names`` those of the groups. O(pages)."""
    count = len(names)
    size = np.bincount(label, minlength=count)
    host = np.zeros(count, np.int64)
    host[label] = pages.host
    rate, ends = _sum_of(pages, label, count)
    last_look = _latest(pages.last_look, label, count)
    first_look = -_latest(-pages.lesson.histories.first_visit, label, count)
    return Rows(
        pages.lesson,
        pages.belief,
        rate,
        np.bincount(label, pages.looks, count).astype(np.int64),
        np.bincount(label, pages.changes, count).astype(np.int64),
        last_look - first_look,
        last_look,
        _latest(pages.last_change, label, count),
        np.bincount(label, pages.exact, count) == size,
        np.bincount(label, pages.p_changed, count) / np.maximum(size, 1),
        host,
        size,
        names,
        ends,
    )


def _sum_of(pages: Rows, label: IntArray, count: int) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    """The rate of each group, and the ends of its interval."""
    weight, scale = _weights(pages.lesson.histories.observed(), label, count)
    if isinstance(pages.belief, PointBelief):
        return _sum_of_points(pages, label, weight, scale)
    sums = scale * _drawn_sums(pages.belief, label, weight, count)
    low, rate, high = np.quantile(sums, [(1.0 - LEVEL) / 2.0, 0.5, (1.0 + LEVEL) / 2.0], axis=0)
    told = highest_rate_told(pages.lesson.evidence.histories)
    bound = np.unique(label[pages.rate >= told])
    if len(bound):  # some pages changed at every observation: of these only so much counts for the middle
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
    """Weighted sums of each group, drawn so many times: a row a draw. O(pages and groups), each a few dozen times.

    ``most`` is what a draw of each page counts for at most.
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
    pages: Rows, label: IntArray, weight: FloatArray, scale: FloatArray
) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    """The same of estimates that do not know how sure they are: by the Gamma with mean and variance of the sum."""
    estimate, count = pages.rate, len(scale)
    variance = _sampling_variance(pages.lesson.evidence.histories, estimate)
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
