"""Visible texts of pages in time: what semantic vectors are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recrawl.model import FloatArray, IntArray
from recrawl.model.arrays import ends_of_runs, order_by


@dataclass(frozen=True, slots=True)
class PageTexts:
    """Texts with the time they were read, by page and time."""

    page: IntArray
    """Page ids, ascending."""
    time: FloatArray
    """Seconds since the epoch, ascending within a page."""
    text: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.page)

    @classmethod
    def of(cls, page: npt.ArrayLike, time: npt.ArrayLike, text: Sequence[str]) -> PageTexts:
        """Texts in any order."""
        ids, times = np.asarray(page, np.int64), np.asarray(time, np.float64)
        order = order_by(ids, times)
        if order is None:
            return cls(ids, times, tuple(text))
        return cls(ids[order], times[order], tuple(text[place] for place in order))

    def before(self, time: float) -> PageTexts:
        """Only the texts read before this time."""
        known = self.time < time
        return PageTexts(self.page[known], self.time[known], tuple(self.text[place] for place in np.flatnonzero(known)))

    def last_of(self, page: IntArray) -> list[str]:
        """The last text of each of these page ids; empty where there is none.

        >>> PageTexts.of([4, 4, 6], [1.0, 2.0, 1.0], ["old", "new", "other"]).last_of(np.array([4, 5]))
        ['new', '']
        """
        last = np.flatnonzero(ends_of_runs(self.page))
        known = {int(self.page[place]): self.text[place] for place in last}
        return [known.get(one, "") for one in page.tolist()]
