"""The door of the estimators: gaps must be lengths of time. Histories guarantee it; columns from elsewhere may not."""

from __future__ import annotations

import numpy as np

from recrawl.model import FloatArray, Histories, IntArray


def refuse_bad_gaps(histories: Histories) -> None:
    """Check that every gap is positive and finite. O(gaps), a small part of any fit.

    Raises:
        ValueError: a gap is not; the message names its page.
    """
    bad = _first_bad(histories.gaps)
    if bad is not None:
        row = int(np.searchsorted(histories.offsets, bad, side="right")) - 1
        raise ValueError(_complaint(f"page {int(histories.page[row])}", float(histories.gaps[bad])))


def refuse_bad_looks(rows: IntArray, gap: FloatArray) -> None:
    """The same for looks that are told one by one; the message names the row of the page.

    Raises:
        ValueError: a gap is not positive and finite.
    """
    bad = _first_bad(gap)
    if bad is not None:
        raise ValueError(_complaint(f"row {int(rows[bad])}", float(gap[bad])))


def _first_bad(gaps: FloatArray) -> int | None:
    if not len(gaps) or (float(gaps.min()) > 0.0 and float(gaps.max()) < np.inf):  # NaN fails both
        return None
    return int(np.argmin((gaps > 0.0) & (gaps < np.inf)))


def _complaint(where: str, gap: float) -> str:
    return f"{where} has a gap of {gap} seconds between two looks; gaps must be positive and finite"
