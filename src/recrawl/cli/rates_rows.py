"""The rows behind the table of rates: pages, or sections and hosts as sums of their pages.

A host changes whenever one of its pages does, so its rate is the sum of theirs. What is believed of a sum of many
independent rates is close to a Gamma of the same mean and variance. (Looks at the pages are no looks at the host: one
that finds its page unchanged says nothing of the other pages, so a host has no history that an estimator could be
given.) Pages that are edited together make the interval of a group narrower than it should be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.cli.knowledge import Lesson, estimate_from, lesson_of, section_labels
from recrawl.cli.rates_question import By, Question
from recrawl.estimate.confidence import information, likelihood_ratio
from recrawl.estimate.point import PointBelief
from recrawl.model import Belief, BoolArray, FloatArray, GammaBelief, Histories, IntArray
from recrawl.store.base import Store

LEVEL = 0.9
"""Of the intervals."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Pages or groups of pages, and what is known of each. Columns of equal length; rates per second."""

    lesson: Lesson
    """Of all pages, also where rows are groups."""
    belief: Belief
    """About the rows."""
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

    def __len__(self) -> int:
        return len(self.rate)

    def bounds(self, which: IntArray) -> tuple[FloatArray, FloatArray]:
        """Ends of the 90 % interval of these rows, per second.

        The middle of the belief. Of a page, a point estimator has none: its interval holds the rates that the
        likelihood does not rule out, and need not hold the estimate.
        """
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
    lesson = lesson_of(store, question.span)
    histories = lesson.histories
    belief = estimate_from(lesson, question.estimator).belief
    pages = Rows(
        lesson,
        belief,
        belief.quantile(0.5),
        histories.counts() + 1,
        histories.changes(),
        histories.observed(),
        histories.last_visit,
        histories.last_change,
        lesson.exact,
        belief.p_change(np.maximum(question.now - histories.last_visit, 0.0)),
        lesson.evidence.levels[0],
        np.ones(len(histories), np.int64),
        None,
    )
    if question.by is By.PAGE:
        return pages
    if question.by is By.SECTION:
        return grouped(pages, *section_labels(store.urls(histories.page)))
    ids, label = np.unique(pages.host, return_inverse=True)
    return grouped(pages, label.astype(np.int64), list(store.hosts(ids).name))


def grouped(pages: Rows, label: IntArray, names: list[str]) -> Rows:
    """One row a group; ``label[i]`` is the number of the group of page i, ``names`` those of the groups. O(pages)."""
    count = len(names)
    size = np.bincount(label, minlength=count)
    host = np.zeros(count, np.int64)
    host[label] = pages.host
    belief = _sum_of(pages, label, count)
    summed = np.asarray(np.bincount(label, pages.rate, count), np.float64)
    rate = summed if isinstance(pages.belief, PointBelief) else belief.quantile(0.5)
    last_look = _latest(pages.last_look, label, count)
    first_look = -_latest(-pages.lesson.histories.first_visit, label, count)
    return Rows(
        pages.lesson,
        belief,
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
    )


def _sum_of(pages: Rows, label: IntArray, count: int) -> GammaBelief:
    """The Gamma with mean and variance of the sum of the rates of each group."""
    if isinstance(pages.belief, PointBelief):
        return _sum_of_points(pages.lesson.evidence.histories, pages.belief.rate, label, count)
    mean = pages.belief.mean()
    variance = np.maximum(pages.belief.expect(np.square) - np.square(mean), 1e-12 * np.square(mean))
    middle, total = np.bincount(label, mean, count), np.bincount(label, variance, count)
    return GammaBelief(np.square(middle) / total, middle / total)


def _sum_of_points(histories: Histories, rate: FloatArray, label: IntArray, count: int) -> GammaBelief:
    """The same for estimates that know no doubt: their variance is that of the sample, λ²/I.

    The pages of a group that were never seen to change, in T seconds together, could change about once in that time:
    they add 1/T² to the variance. An estimate that rests on nothing is uncertain by as much as it says.
    """
    known, moves = information(histories, rate), rate > 0
    spread = np.square(rate) / np.where(known > 0, known, 1.0)
    quiet = np.bincount(label, np.where(moves, 0.0, histories.observed()), count)
    doubt = 1.0 / np.where(quiet > 0, quiet, np.inf)
    total = np.bincount(label, np.where(moves, spread, 0.0), count) + np.square(doubt)
    mean = np.bincount(label, rate, count)
    middle = np.where(mean > 0, mean, doubt)
    return GammaBelief(np.square(middle) / total, middle / total)


def _latest(time: FloatArray, label: IntArray, count: int) -> FloatArray:
    """The latest time of each group; NaN where there is none."""
    out = np.full(count, -np.inf)
    np.maximum.at(out, label, np.where(np.isnan(time), -np.inf, time))
    return np.where(np.isneginf(out), np.nan, out)
