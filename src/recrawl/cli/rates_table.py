"""The table of ``recrawl rates``, by columns: what is believed of each page, section or host, and why."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.cli.rates_question import By, Question, Sort
from recrawl.cli.rates_rows import Rows, rows_for, wanted
from recrawl.cli.rates_words import in_words
from recrawl.model import FloatArray, IntArray
from recrawl.store.base import Store
from recrawl.time import DAY

Columns = dict[str, list[Any]]
"""A table by column, all of one length."""


def answer(store: Store, question: Question) -> tuple[Columns, int]:
    """The rows that were asked for, in order, and how many there would be without a limit.

    Names are read only for the rows that are shown, unless the question is about names.
    """
    rows = rows_for(store, question)
    shown = np.flatnonzero(wanted(store, question, rows.host, rows.looks, partial(_names, store, rows)))
    order = shown[_first(_key(store, rows, question.sort)[shown], question.limit)]
    rate = np.stack([rows.rate[order], *rows.bounds(order)])
    return _columns(store, rows, order, np.where(rows.known()[order], rate, np.nan), question), len(shown)


def draw(columns: Columns, by: By, path: Path) -> None:
    """A picture of a table: how rates differ from row to row, and how sure that is."""
    from recrawl.show.rates import RateSample, RatesPicture, draw_rates

    with np.errstate(divide="ignore"):
        rates = np.stack([np.array(columns[name], np.float64) for name in ("changes_per_day", "low", "high")])
        every, longest, shortest = 1.0 / rates[:, ~np.isnan(rates[0])]
    title = f"How often {len(every):,} {by.value}s change"
    draw_rates(RatesPicture(RateSample(f"{by.value}s", every), every, shortest, longest, title), path)


def _names(store: Store, rows: Rows, which: IntArray) -> list[str]:
    if rows.names is None:
        return store.urls(rows.lesson.histories.page[which])
    return [rows.names[row] for row in which.tolist()]


def _key(store: Store, rows: Rows, sort: Sort) -> FloatArray:
    """What rises in the order asked for; rows of which nothing is known come last."""
    known = rows.known()
    keys: dict[Sort, Callable[[], FloatArray]] = {
        Sort.OFTEN: lambda: np.where(known, -rows.rate, np.inf),
        Sort.SELDOM: lambda: np.where(known, rows.rate, np.inf),
        Sort.CHANGED: lambda: np.where(known, -rows.p_changed, np.inf),
        Sort.UNSURE: lambda: np.where(known, -_doubt(rows), np.inf),
        Sort.LOOKS: lambda: -rows.looks.astype(np.float64),
        Sort.RECENT: lambda: -np.nan_to_num(rows.last_change, nan=-np.inf),
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
    middle, low, high = rate
    with np.errstate(divide="ignore"):
        every, longest, shortest = (1.0 / middle, 1.0 / low, 1.0 / high)
    named: Columns = {question.by.value if question.by is not By.PAGE else "url": _names(store, rows, order)}
    if question.by is By.PAGE:
        named = {"page": rows.lesson.histories.page[order].tolist(), **named}
    else:
        named["pages"] = rows.pages[order].tolist()
    return named | {
        "changes_per_day": (middle * DAY).tolist(),
        "low": (low * DAY).tolist(),
        "high": (high * DAY).tolist(),
        "changes_every": every.tolist(),
        "in_words": [in_words(*times) for times in np.stack([every, shortest, longest]).T.tolist()],
        "looks": rows.looks[order].tolist(),
        "changes": rows.changes[order].tolist(),
        "exact": rows.exact[order].tolist(),
        "observed": rows.observed[order].tolist(),
        "last_look": rows.last_look[order].tolist(),
        "last_change": rows.last_change[order].tolist(),
        "p_changed": np.where(rows.known()[order], rows.p_changed[order], np.nan).tolist(),
        "method": [question.estimator.name] * len(order),
        "kind": [question.kind.name.lower()] * len(order),
    }
