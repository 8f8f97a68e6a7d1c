"""Evidence on noise as columns: what the store keeps and what detection learns from."""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.model.arrays import IntArray


@dataclass(frozen=True, slots=True)
class NoiseCounts:
    """How often parts of pages were compared and differed, by host and part: what noise is learned from."""

    host: IntArray
    part: IntArray
    """Number of the part, by its place on the page (see ``detect``)."""
    near: IntArray
    """How often it was compared between two looks moments apart."""
    near_differed: IntArray
    far: IntArray
    """How often it was compared otherwise."""
    far_differed: IntArray
    pages: IntArray
    """On which pages: a set of bits, one for each page, though pages may share one."""

    def __len__(self) -> int:
        return len(self.host)
