"""DN: what the past of the links, and of related pages, says about a page (paper 004, §5.2).

DP: what the past of a page says about it (paper 004, §5.2).

Lag i is the state i periods ago, and the i-th last period. Beside the paper's features there is what does not fit into
a few periods: how long the page is known, when it last changed, and how often over its whole life.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recrawl.model import AnyArray, FloatArray, IntArray
from recrawl.predict.features.feature_table import Column, Feature, FeatureGroup
from recrawl.predict.features.page_versions import STATE, PageVersions, picked
from recrawl.predict.features.static_features import NETWORK, NetworkState
from recrawl.predict.related.look_back_look_around import (
    PeriodCounts,
    change_rate,
    lags,
    look_back_look_around,
    mean_known,
)
from recrawl.predict.related.related_pages import RelatedPages
from recrawl.time import DAY

KINDS = {"internal": True, "external": False}
"""The two kinds of links, which paper 004 predicts apart."""
REMEMBERED = tuple(name for name in STATE if name != "has_last_modified")
"""States whose past is a feature."""


def state_columns(versions: PageVersions, page: IntArray, as_of: float, period: float, history: int) -> list[Column]:
    """The states of 1, 2, …, ``history`` periods ago. O(history · (rows + pages · states))."""
    columns: list[Column] = []
    for lag in range(1, history + 1):
        row = versions.valid_at(page, as_of - lag * period)
        columns += [
            (Feature(f"{name}_{lag}", FeatureGroup.DP), picked(getattr(versions, name), row)) for name in REMEMBERED
        ]
    return columns


def count_columns(past: PeriodCounts, history: int) -> list[Column]:
    """New links and changes of the last periods, the latest first, with means and rates over them."""
    columns: list[Column] = []
    for kind, internal in KINDS.items():
        back = lags(past.new_links(internal=internal), history)
        columns += [(Feature(f"new_{kind}_{lag + 1}", FeatureGroup.DP), back[:, lag]) for lag in range(history)]
        columns.append((Feature(f"new_{kind}_mean", FeatureGroup.DP), mean_known(back)))
        columns.append((Feature(f"{kind}_link_change_rate", FeatureGroup.DP), change_rate(back)))
    columns.append((Feature("content_change_rate", FeatureGroup.DP), mean_known(lags(past.changed, history))))
    return columns


def life_columns(versions: PageVersions, page: IntArray, as_of: float) -> list[Column]:
    """Days known, days since and events a day of changes and of new links, over all the past. O(rows)."""
    starts = versions.offsets(page)
    some = starts[1:] > starts[:-1]
    first = picked(versions.time, np.where(some, starts[:-1], -1))
    last = picked(versions.time, np.where(some, starts[1:] - 1, -1))
    row = np.searchsorted(page, versions.page)
    later = np.ones(len(versions), np.bool_)
    later[starts[:-1][some]] = False
    watched = (np.full(len(page), as_of) if versions.complete else last) - first
    columns: list[Column] = [(Feature("days_known", FeatureGroup.DP), (as_of - first) / DAY)]
    events = {
        "change": versions.changed,
        "new_internal": versions.new_internal > 0,
        "new_external": versions.new_external > 0,
    }
    for name, happened in events.items():
        at = later & happened
        columns.append((Feature(f"days_since_{name}", FeatureGroup.DP), (as_of - _last(versions, row, at, page)) / DAY))
        count = np.bincount(row[at], minlength=len(page)).astype(np.float64)
        columns.append((Feature(f"{name}_per_day", FeatureGroup.DP), _per_day(count, watched)))
    return columns


def _last(versions: PageVersions, row: AnyArray, at: AnyArray, page: IntArray) -> FloatArray:
    """The time of the last row of each page among those ``at``; NaN if none."""
    time = np.full(len(page), np.nan)
    time[row[at]] = versions.time[at]  # of equal indices the last assignment stands
    return time


def _per_day(count: FloatArray, watched: FloatArray) -> FloatArray:
    rate = np.full(len(count), np.nan)
    return np.asarray(np.divide(count * DAY, watched, out=rate, where=watched > 0))


def network_columns(past: Sequence[NetworkState]) -> list[Column]:
    """Inlinks and ranks of 1, 2, … periods ago, in this order."""
    return [
        (Feature(f"{name}_{lag}", FeatureGroup.DN), getattr(state, name))
        for lag, state in enumerate(past, start=1)
        for name in NETWORK
    ]


def related_columns(
    past: PeriodCounts, related: RelatedPages, history: int, literal: PeriodCounts | None = None
) -> list[Column]:
    """New links of related pages in the last periods, and their change rates over all periods of ``past``.

    ``literal`` has the period to be predicted too; see
    :func:`recrawl.predict.related.look_back_look_around.look_back_look_around`.
    """
    columns: list[Column] = []
    for kind, internal in KINDS.items():
        found = look_back_look_around(
            past.new_links(internal=internal),
            related,
            history=history,
            literal=None if literal is None else literal.new_links(internal=internal),
        )
        columns += [
            (Feature(f"near_new_{kind}_{lag + 1}", FeatureGroup.DN), found.around[:, lag]) for lag in range(history)
        ]
        if history:
            columns.append((Feature(f"near_new_{kind}_mean", FeatureGroup.DN), found.around_mean))
        columns.append((Feature(f"near_{kind}_link_change_rate", FeatureGroup.DN), found.around_change_rate))
    changes = related.mean_of(np.column_stack([mean_known(past.changed)]))[:, 0]
    columns.append((Feature("near_content_change_rate", FeatureGroup.DN), changes))
    return columns
