"""DN: what the past of the links, and of related pages, says about a page (paper 004, §5.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recrawl.predict.dynamic_page import KINDS
from recrawl.predict.feature_table import Column, Feature, Group
from recrawl.predict.lbla import look_back_look_around
from recrawl.predict.link_periods import PeriodCounts, mean_known
from recrawl.predict.related_pages import RelatedPages
from recrawl.predict.static_network import NETWORK, NetworkState


def network_columns(past: Sequence[NetworkState]) -> list[Column]:
    """Inlinks and ranks of 1, 2, … periods ago, in this order."""
    return [
        (Feature(f"{name}_{lag}", Group.DN), getattr(state, name))
        for lag, state in enumerate(past, start=1)
        for name in NETWORK
    ]


def related_columns(
    past: PeriodCounts, related: RelatedPages, history: int, literal: PeriodCounts | None = None
) -> list[Column]:
    """New links of related pages in the last periods, and their change rates over all periods of ``past``.

    ``literal`` has the period to be foretold too; see :func:`recrawl.predict.lbla.look_back_look_around`.
    """
    columns: list[Column] = []
    for kind, internal in KINDS.items():
        found = look_back_look_around(
            past.new_links(internal=internal),
            related,
            history=history,
            literal=None if literal is None else literal.new_links(internal=internal),
        )
        columns += [(Feature(f"near_new_{kind}_{lag + 1}", Group.DN), found.around[:, lag]) for lag in range(history)]
        if history:
            columns.append((Feature(f"near_new_{kind}_mean", Group.DN), found.around_mean))
        columns.append((Feature(f"near_{kind}_link_change_rate", Group.DN), found.around_change_rate))
    changes = related.mean_of(np.column_stack([mean_known(past.changed)]))[:, 0]
    columns.append((Feature("near_content_change_rate", Group.DN), changes))
    return columns
