"""What this worker knows of pages it visited lately, so that it need not be read back from the store.

A memory is only good for the version it is of: the store says what a page last told of its version, and what is
remembered of another one is passed over. So several workers may visit the same page in turn.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from recrawl.detect import Known
from recrawl.model import Validators

MOST = 1_000_000
"""Links remembered, about 150 MB where pages share none."""
_BYTES = 100
"""Of a fingerprint: as much memory as a link takes."""


class KnownMemory:
    """Knowledge by page, the longest unused forgotten first. Every call is O(1) amortised."""

    def __init__(self, most: int = MOST) -> None:
        """``most`` is counted in links."""
        self._most = most
        self._pages: OrderedDict[int, Known] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        """Pages remembered."""
        return len(self._pages)

    def recall(self, page: int, validators: Validators) -> Known | None:
        """What is known of the page if that was its last version; ``None`` if it is not remembered."""
        known = self._pages.get(page)
        if known is None or known.validators != validators:
            return None
        self._pages.move_to_end(page)
        return known

    def forget(self, page: int) -> None:
        """Whatever was known of the page, the store knows better."""
        before = self._pages.pop(page, None)
        if before is not None:
            self._size -= _size(before)

    def remember(self, page: int, known: Known) -> None:
        """Keep what is known of a page, in place of what was known before."""
        self.forget(page)
        if known.links_last is not known.links_ever and len(known.links_last) == len(known.links_ever):
            known = replace(known, links_last=known.links_ever)
        self._pages[page] = known
        self._size += _size(known)
        while self._size > self._most and self._pages:
            _, oldest = self._pages.popitem(last=False)
            self._size -= _size(oldest)


def _size(known: Known) -> int:
    """Links, and what else takes as much memory; a set that stands for both kinds of links counts once."""
    links = len(known.links_ever) + (0 if known.links_last is known.links_ever else len(known.links_last))
    return 4 + links + len(known.fingerprint) // _BYTES
