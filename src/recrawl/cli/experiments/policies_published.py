"""Figures that are printed for the same replay of the same collections (algorithms §7), at .03 visits a page a day."""

from __future__ import annotations

from typing import NamedTuple

BUDGET = 0.03
"""Visits a page a day for which figures are printed."""


class Printed(NamedTuple):
    """Freshness of one collection."""

    uniform: float
    best_named: float
    reference: float
    """R, the best that was known."""


FRESHNESS: dict[str, Printed] = {
    "mdn": Printed(0.8822, 0.8797, 0.9043),
    "18f": Printed(0.9928, 0.9947, 0.9954),
    "digitalgov": Printed(0.9777, 0.9793, 0.9850),
    "freebooks": Printed(0.9201, 0.9276, 0.9302),
    "llvm": Printed(0.9723, 0.9840, 0.9861),
    "nodejs": Printed(0.9780, 0.9789, 0.9833),
    "jekylldocs": Printed(0.9772, 0.9833, 0.9839),
    "wcag": Printed(0.9820, 0.9841, 0.9885),
    "phpnet": Printed(0.9866, 0.9918, 0.9936),
    "til": Printed(0.9932, 0.9970, 0.9971),
    "twir": Printed(0.9943, 0.9980, 0.9987),
    "uvarc": Printed(0.9617, 0.9706, 0.9745),
    "ropensci": Printed(0.9933, 0.9946, 0.9958),
    "carpentries": Printed(0.9984, 0.9994, 0.9997),
    "awesome": Printed(0.5024, 0.5120, 0.5094),
    "data-sources": Printed(0.8985, 0.9064, 0.9205),
}
"""By collection."""
