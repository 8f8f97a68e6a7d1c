"""All looks told so far, for policies that estimate rates anew at every fit."""

from __future__ import annotations

import numpy as np

from recrawl.model import BoolArray, FloatArray, Histories, IntArray
from recrawl.model.arrays import offsets_of
from recrawl.schedule.columns import Columns
from recrawl.schedule.ledger import Ledger


class GapLog:
    """The gaps that visits closed, in the order they were told. 17 bytes a look, room to grow aside."""

    def __init__(self) -> None:
        self._gaps = Columns({"row": np.int64, "seconds": np.float64, "changed": np.bool_})

    def append(self, row: IntArray, seconds: FloatArray, changed: BoolArray) -> None:
        """Note looks that closed a gap, of each row in the order of time."""
        self._gaps.append(row=row, seconds=seconds, changed=changed)

    def histories(self, ledger: Ledger) -> tuple[IntArray, Histories]:
        """The row of each page by ascending id, and the histories in that order. O(looks log looks)."""
        by_id = np.argsort(ledger.pages.id)
        n = len(by_id)
        rank = np.empty(n, dtype=np.int64)
        rank[by_id] = np.arange(n)
        row = rank[self._gaps["row"]]
        order = np.argsort(row, kind="stable")
        row, seconds, changed = row[order], self._gaps["seconds"][order], self._gaps["changed"][order]
        last = ledger.last_look[by_id]
        first = last - np.bincount(row, seconds, n)
        last_change = np.full(n, np.nan)
        found = Histories(ledger.pages.id[by_id], offsets_of(row, n), seconds, changed, first, last, last_change)
        last_change[row[changed]] = found.look_times()[changed]
        return by_id, found
