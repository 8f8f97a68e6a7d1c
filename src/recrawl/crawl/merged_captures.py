"""Captures that count as part of another one: downloads of a page so close together that they are one visit.

An import keeps one of several downloads within ``Cleaning.merge_within`` seconds (SHARC 7.2). The others stay in the
index and can be replayed, but are no visits. Who counts captures and visits must be told of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from recrawl.crawl.importing_chunks import chunks_of
from recrawl.crawl.importing_listed import listed_captures, rows_met
from recrawl.model import IntArray
from recrawl.model.words import counted
from recrawl.store.base import Store
from recrawl.time import format_duration

_CAPTURES_AT_ONCE, _PAGES_AT_ONCE = 100_000, 20_000
_NAMED, _LISTED = 3, 10
"""Pages that a sentence names, and that JSON lists."""


@dataclass(frozen=True, slots=True)
class MergedCaptures:
    """How many captures were merged into others, and of which pages."""

    captures: int = 0
    """Captures that are no visits of their own."""
    pages: int = 0
    """Pages that have any."""
    most: list[tuple[str, int]] = field(default_factory=list)
    """URLs of the pages with most of them, and how many they have; ten at most."""

    def words(self, within: float | None) -> str:
        """A sentence, empty if nothing was merged; ``within`` is in seconds, ``None`` if not known.

        >>> MergedCaptures(3, 2, [("http://a.org/", 2), ("http://a.org/b", 1)]).words(60.0).partition("visit:")[2]
        ' http://a.org/ (2), http://a.org/b (1). Read with --merge-within 0s, all count.'
        """
        if not self.captures:
            return ""
        time = "in quick succession" if within is None else f"within {format_duration(within)}"
        named = ", ".join(f"{url} ({count:,})" for url, count in self.most[:_NAMED])
        more = f" and {self.pages - _NAMED:,} more" if self.pages > _NAMED else ""
        again = f"{'Imported' if within is None else 'Read'} with --merge-within 0s, all count."
        return (
            f"Merged: {counted(self.captures, 'capture')} of {counted(self.pages, 'page')}, since downloads of a page "
            f"{time} count as one visit: {named}{more}. {again}"
        )

    def as_json(self) -> dict[str, object]:
        """The same for programs."""
        pages = [{"url": url, "captures": count} for url, count in self.most]
        return {"captures": self.captures, "pages": self.pages, "most": pages}


def merged_captures(store: Store, pages: IntArray) -> MergedCaptures:
    """The captures of these pages that are no visits. O(captures) of the pages that have several; little memory.

    Nothing is merged but what was imported, so where nothing was, nothing is read.
    """
    if not store.import_sources():
        return MergedCaptures()
    several = pages[store.capture_counts(pages) > 1] if len(pages) else pages
    number = with_any = 0
    most: list[tuple[int, int]] = []
    for some in chunks_of(store, several, _CAPTURES_AT_ONCE, _PAGES_AT_ONCE):
        listed = listed_captures(store, some, _CAPTURES_AT_ONCE)
        merged = (rows_met(listed.page, listed.time, store.looks(some)) < 0) & ~listed.ours
        page, count = np.unique(listed.page[merged], return_counts=True)
        number, with_any = number + int(merged.sum()), with_any + len(page)
        found = [*most, *zip(page.tolist(), count.tolist(), strict=True)]
        most = sorted(found, key=lambda one: (-one[1], one[0]))[:_LISTED]
    urls = store.urls(np.array([page for page, _ in most], np.int64))
    return MergedCaptures(number, with_any, [(url, count) for url, (_, count) in zip(urls, most, strict=True)])
