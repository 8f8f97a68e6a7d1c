"""The table of ``recrawl rates``, by columns: what is believed of each page, section or host, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from recrawl.cli.knowledge import Lesson, host_id, lesson_of, section_labels
from recrawl.cli.rates_question import By, Question, Sort
from recrawl.cli.rates_words import in_words
from recrawl.estimate.confidence import likelihood_ratio
from recrawl.estimate.estimator import Evidence, estimate
from recrawl.estimate.point import PointBelief
from recrawl.model import Belief, BoolArray, FloatArray, Histories, IntArray
from recrawl.store.base import Store
from recrawl.time import DAY

Columns = dict[str, list[Any]]
"""A table by column, all of one length."""
LEVEL = 0.9
"""Of the intervals."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Pages or groups of pages, and what is believed of each. Columns of equal length."""

    histories: Histories
    """As seen."""
    exact: BoolArray
    """Whether all changes of a row were logged, not found by looks."""
    evidence: Evidence
    """What the estimator was given."""
    belief: Belief
    method: str
    p_changed: FloatArray
    """That a page changed since it was last seen; for a group, the share of its pages of which that is expected."""
    host: IntArray
    pages: IntArray
    """Pages of a row."""
    names: list[str] | None
    """Of sections and hosts; those of pages stay in the store until they are needed."""

    def __len__(self) -> int:
        return len(self.histories)

    def looks(self) -> IntArray:
        """How often each row was looked at, the first look included."""
        return self.histories.counts() + 1

    def bounds(self, which: IntArray) -> tuple[FloatArray, FloatArray]:
        """Ends of the 90 % interval of these rows, per second.

        The middle of the belief. A point estimator has none: its interval holds the rates that the likelihood does not
        rule out, and need not hold the estimate.
        """
        if isinstance(self.belief, PointBelief):
            order = np.argsort(which, kind="stable")
            back = np.empty_like(order)
            back[order] = np.arange(len(order))
            found = likelihood_ratio(self.evidence.histories.take(which[order]), LEVEL)
            return found.low[back], found.high[back]
        belief = self.belief.take(which)
        return belief.quantile((1.0 - LEVEL) / 2.0), belief.quantile((1.0 + LEVEL) / 2.0)


def rows_for(store: Store, question: Question) -> Rows:
    """Everything the question is about, before anything is filtered: neighbours teach also where they are not shown."""
    lesson = lesson_of(store, question.span)
    evidence, histories = lesson.evidence, lesson.histories
    belief = estimate(question.estimator, evidence).belief
    p_changed = belief.p_change(np.maximum(question.now - histories.last_visit, 0.0))
    host, method = evidence.levels[0], question.estimator.name
    if question.by is By.PAGE:
        pages = np.ones(len(host), np.int64)
        return Rows(histories, lesson.exact, evidence, belief, method, p_changed, host, pages, None)
    label, names = _groups(store, question.by, lesson)
    pages = np.bincount(label, minlength=len(names))
    host_of = np.zeros(len(names), np.int64)
    host_of[label] = host
    levels = () if question.by is By.HOST else (host_of,)
    grouped = Evidence(evidence.histories.group(label), levels, evidence.kind)
    share = np.bincount(label, p_changed, len(names)) / np.maximum(pages, 1)
    return Rows(
        histories.group(label),
        np.bincount(label, lesson.exact, len(names)) == pages,
        grouped,
        estimate(question.estimator, grouped).belief,
        method,
        share,
        host_of,
        pages,
        names,
    )


def _groups(store: Store, by: By, lesson: Lesson) -> tuple[IntArray, list[str]]:
    """The number of each page's group, and the names of the groups in the order of their numbers."""
    if by is By.SECTION:
        return section_labels(store.urls(lesson.histories.page))
    ids, label = np.unique(lesson.evidence.levels[0], return_inverse=True)
    return label.astype(np.int64), list(store.hosts(ids).name)


def answer(store: Store, question: Question) -> tuple[Columns, int]:
    """The rows that were asked for, in order, and how many there would be without a limit.

    Names are read only for the rows that are shown, unless the question is about names.
    """
    rows = rows_for(store, question)
    middle = rows.belief.quantile(0.5)
    shown = np.flatnonzero(_wanted(store, rows, question))
    order = shown[_first(_key(store, rows, middle, question.sort)[shown], question.limit)]
    return _columns(store, rows, order, np.stack([middle[order], *rows.bounds(order)]), question), len(shown)


def _wanted(store: Store, rows: Rows, question: Question) -> BoolArray:
    wanted = rows.looks() >= question.min_looks
    host = host_id(store, question.host)
    if host is not None:
        wanted &= rows.host == host
    if question.match is not None:
        candidates = np.flatnonzero(wanted)
        pattern = question.match if set(question.match) & set("*?[") else f"*{question.match}*"
        wanted[candidates] = [fnmatchcase(name, pattern) for name in _names(store, rows, candidates)]
    return wanted


def _names(store: Store, rows: Rows, which: IntArray) -> list[str]:
    if rows.names is None:
        return store.urls(rows.histories.page[which])
    return [rows.names[row] for row in which.tolist()]


def _key(store: Store, rows: Rows, middle: FloatArray, sort: Sort) -> FloatArray:
    """What rises in the order asked for."""
    keys: dict[Sort, Callable[[], FloatArray]] = {
        Sort.OFTEN: lambda: -middle,
        Sort.SELDOM: lambda: middle,
        Sort.CHANGED: lambda: -rows.p_changed,
        Sort.UNSURE: lambda: -_doubt(rows),
        Sort.LOOKS: lambda: -rows.looks().astype(np.float64),
        Sort.RECENT: lambda: -np.nan_to_num(rows.histories.last_change, nan=-np.inf),
        Sort.NAME: lambda: _ranks(_names(store, rows, np.arange(len(rows)))),
    }
    return keys[sort]()


def _doubt(rows: Rows) -> FloatArray:
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


def _columns(store: Store, rows: Rows, order: IntArray, rate: FloatArray, question: Question) -> Columns:
    histories, (middle, low, high) = rows.histories, rate
    with np.errstate(divide="ignore"):
        every, longest, shortest = (1.0 / middle, 1.0 / low, 1.0 / high)
    named: Columns = {question.by.value if question.by is not By.PAGE else "url": _names(store, rows, order)}
    if question.by is By.PAGE:
        named = {"page": histories.page[order].tolist(), **named}
    else:
        named["pages"] = rows.pages[order].tolist()
    return named | {
        "changes_per_day": (middle * DAY).tolist(),
        "low": (low * DAY).tolist(),
        "high": (high * DAY).tolist(),
        "changes_every": every.tolist(),
        "in_words": [in_words(*times) for times in np.stack([every, shortest, longest]).T.tolist()],
        "looks": rows.looks()[order].tolist(),
        "changes": histories.changes()[order].tolist(),
        "exact": rows.exact[order].tolist(),
        "observed": histories.observed()[order].tolist(),
        "last_look": histories.last_visit[order].tolist(),
        "last_change": histories.last_change[order].tolist(),
        "p_changed": rows.p_changed[order].tolist(),
        "method": [rows.method] * len(order),
        "kind": [question.kind.value] * len(order),
    }
