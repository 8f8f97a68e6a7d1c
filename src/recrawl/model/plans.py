"""A capture plan: in which slot each page of a site is visited, and, if it is, revisited."""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.model.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class CapturePlan:
    """Slots of a whole-site capture; slot s happens at ``start + s * delay`` (SHARC ch. 4 and 5)."""

    visit: IntArray
    """Slot of the visit of each page."""
    revisit: IntArray | None = None
    """Slot of the revisit of each page; equal to ``visit`` where a page is visited once."""

    def visit_times(self, start: float, delay: float) -> FloatArray:
        """When each page is visited, in seconds, for a politeness delay in seconds."""
        return start + delay * self.visit.astype(float)

    def revisit_times(self, start: float, delay: float) -> FloatArray:
        """When each page is seen for the last time; the visit itself in a single-visit plan."""
        last = self.visit if self.revisit is None else self.revisit
        return start + delay * last.astype(float)
