"""Evidence on noise as columns: what the store keeps and what detection learns from."""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.model.arrays import IntArray

WHOLE_HOST = 0
"""Stands for the page where evidence is about all pages of a host."""
NEAR_WINDOW, FAR_WINDOW = 24, 64
"""Confirmations and other comparisons beyond which counts are halved: what was long ago fades."""


@dataclass(frozen=True, slots=True)
class NoiseCounts:
    """How often parts of pages were compared and differed: what noise is learned from.

    One row for each host, page and part; page 0 has the evidence of all pages of the host. Sets of pages and of times
    have 62 bits, one for each member, though members may share one.
    """

    host: IntArray
    page: IntArray
    """The page, or :data:`WHOLE_HOST`."""
    part: IntArray
    """Path or template, position and kind of difference (see ``detect.noise_keys``)."""
    near: IntArray
    """Confirmations: how often the part was compared between two answers moments apart."""
    near_differed: IntArray
    far: IntArray
    """How often it was compared otherwise."""
    far_differed: IntArray
    near_pages: IntArray
    """Pages on which it differed moments apart."""
    agreed_pages: IntArray
    """Pages on which it was the same moments apart."""
    far_pages: IntArray
    """Pages on which it differed otherwise."""
    times: IntArray
    """Minutes in which it differed moments apart."""

    def __len__(self) -> int:
        return len(self.host)
