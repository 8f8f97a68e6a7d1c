"""The list of pages in a WACZ file: an object of JSON a line; the first one describes the list (conventions Z1)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from recrawl.formats.captures import Report
from recrawl.formats.dates import w3c_time
from recrawl.formats.lines import read_blocks
from recrawl.time import to_iso


@dataclass(frozen=True, slots=True)
class WaczPage:
    """A line of ``pages.jsonl``: a page somebody may want to begin with."""

    url: str
    time: float
    """When it was captured, seconds since the epoch."""
    title: str = ""
    id: str = ""
    text: str = ""
    """What a reader sees on the page, for searching."""
    size: int | None = None
    """Bytes of the page with all its parts."""

    def fields(self) -> dict[str, Any]:
        """As the line says it; an id is made of time and URL if there is none.

        >>> WaczPage("http://example.org/", 0.0, title="Home").fields()["ts"]
        '1970-01-01T00:00:00Z'
        """
        when = to_iso(self.time)
        made = hashlib.sha256(f"{when} {self.url}".encode()).hexdigest()[:20]
        fields: dict[str, Any] = {"id": self.id or made, "url": self.url, "ts": when}
        more = {"title": self.title, "text": self.text, "size": self.size}
        return fields | {name: value for name, value in more.items() if value not in ("", None)}


def read_pages(stream: BinaryIO, source: str, report: Report) -> Iterator[WaczPage]:
    """The pages of one list; lines that make no sense are reported."""
    for block in read_blocks(stream, source, report):
        for number, line in enumerate(block.text.split(b"\n")):
            if not line.strip():
                continue
            page, header = _page(line)
            if page is not None:
                yield page
            elif not header:
                report.broken("this line is no page", source=source, position=block.place(number))


def _page(line: bytes) -> tuple[WaczPage | None, bool]:
    """The page of a line, and whether the line is the one that describes the list."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None, False
    if not isinstance(entry, dict):
        return None, False
    url, time = entry.get("url"), w3c_time(str(entry.get("ts", "")))
    if not isinstance(url, str) or time is None:
        return None, "format" in entry
    title, name, text = (str(entry.get(field) or "") for field in ("title", "id", "text"))
    size = entry.get("size")
    return WaczPage(url, time, title, name, text, size if isinstance(size, int) else None), False
