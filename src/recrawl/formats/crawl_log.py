"""Heritrix's crawl.log: one line per fetch attempt, failed ones included (conventions L1-L4)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from recrawl.errors import InputError, require
from recrawl.formats.cdx.cdx_lines import to_captures
from recrawl.formats.cdx.line_blocks import LineBlock, read_blocks, whole_lines
from recrawl.formats.columnar.capture_batches import NO_SIZE, ReadReport, RecordKind

_FIELDS = 12
_LOGGED = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,3}))?\d*Z")
_FETCHED = re.compile(r"(\d{14}|\d{17})(?:[+;](\d+))?")
_SHORTENED = re.compile(r"(\d+)\+([A-Z]*)")
_LARGEST_STATUS = 999


@dataclass(frozen=True, slots=True)
class LogLine:
    """One attempt to fetch a URL."""

    timestamp: str
    """When the fetch began, else when it was logged: 14 or 17 digits."""
    status: int
    """HTTP, or one of Heritrix's own: 1 is a DNS answer, what is not above 0 has no answer (conventions L3)."""
    size: int
    """Bytes of content, or ``NO_SIZE``."""
    url: str
    hops: str
    """The way from the seed, a letter a hop (conventions L2); of a long way only the end."""
    hop_count: int
    via: str
    mime: str
    worker: str
    duration: float
    """Seconds; NaN if the line does not say."""
    digest: str
    source: str
    """The seed from which this was found."""
    annotations: tuple[str, ...]
    extra: dict[str, Any]

    @property
    def kind(self) -> RecordKind:
        """What the archive holds of it (conventions L4)."""
        if not 0 < self.status <= _LARGEST_STATUS:
            return RecordKind.FAILED
        for note in self.annotations:
            if note in ("duplicate:server-not-modified", "warcRevisit:notModified"):
                return RecordKind.REVISIT_NOT_MODIFIED
            if note.startswith("duplicate:") or note in ("warcRevisit:digest", "warcRevisit:uriAgnosticDigest"):
                return RecordKind.REVISIT_IDENTICAL
        return RecordKind.RESPONSE

    @property
    def no_page(self) -> str:
        """What it was fetched for if not as a page, in words; empty for a page (conventions L2)."""
        if self.hops.endswith("P"):
            return "prerequisites (robots.txt, DNS)"
        # Heritrix reaches pages that a sitemap lists by an M too, but tells which sitemap; ours were named by nobody.
        if "isSitemap" in self.annotations or (self.hops == "M" and not self.via):
            return "sitemaps and feeds"
        return ""


def parse_line(text: str) -> LogLine:
    """Read one line.

    Raises:
        InputError: it is not a line of a crawl.log.

    >>> line = parse_line(
    ...     "2024-05-01T10:00:00.500Z   200       1234 http://a.org/ LE http://a.org/x text/html "
    ...     "#001 20240501100000123+250 sha1:ABC http://a.org/ duplicate:digest,2t"
    ... )
    >>> line.status, line.size, line.duration, line.kind.name, line.hop_count
    (200, 1234, 0.25, 'REVISIT_IDENTICAL', 2)
    """
    fields = ["" if field == "-" else field for field in text.split(None, _FIELDS)]
    if len(fields) < _FIELDS - 1:  # oldest lines end before the annotations
        raise InputError(f"the line has {len(fields)} fields, not {_FIELDS}")
    fields += [""] * (_FIELDS + 1 - len(fields))
    logged, status, size, url, path, via, mime, worker, fetched, digest, source, notes, extra = fields
    began, duration = _began(fetched)
    hops, hop_count = _hops(path)
    return LogLine(
        timestamp=began or _logged(logged),
        status=_whole("status", status),
        size=_whole("size", size) if size else NO_SIZE,
        url=url,
        hops=hops,
        hop_count=hop_count,
        via=via,
        mime=mime,
        worker=worker,
        duration=duration,
        digest=digest,
        source=source,
        annotations=tuple(note for note in notes.split(",") if note),
        extra=_extra(extra),
    )


def read_crawl_log(stream: BinaryIO, source: str, report: ReadReport) -> Iterator[Any]:
    """Attempts as record batches of :mod:`~recrawl.formats.columnar.capture_batches`; failed ones are ``FAILED``.

    The time is that at which the fetch began. A media type is that of the answer, of revisits too. What was not fetched
    as a page, such as the rules of a host and sitemaps, is passed over.
    """
    for block in read_blocks(stream, source, report):
        yield from whole_lines(block, partial(_captures, report=report), report)


def _captures(block: LineBlock, report: ReadReport) -> Any:  # noqa: ANN401 - a pyarrow.RecordBatch
    pa = require("pyarrow", "columns")
    found: list[LogLine] = []
    lines: list[int] = []
    for number, text in enumerate(block.text.decode().split("\n")[:-1]):
        if not text.strip():
            continue
        try:
            line = parse_line(text)
        except InputError as error:
            report.broken(error.what, source=block.source, position=block.place(number))
            continue
        if line.no_page:
            report.skip(line.no_page)
            continue
        found.append(line)
        lines.append(number)
    texts = {
        "timestamp": [line.timestamp for line in found],
        "url": [line.url or "-:" for line in found],
        "mime": [line.mime for line in found],
        "digest": [line.digest for line in found],
        "status": [str(line.status) for line in found],
        "size": [str(line.size) if line.size >= 0 else "" for line in found],
    }
    columns = {name: pa.array(values, pa.string()) for name, values in texts.items()}
    kinds = np.array([line.kind for line in found], np.uint8)
    return to_captures(columns, np.array(lines, np.int64), block, report, kinds=kinds)


def _began(text: str) -> tuple[str, float]:
    """When the fetch began, and seconds it took. The manual writes ``;`` between them, the code ``+``."""
    if not text:
        return "", float("nan")
    found = _FETCHED.fullmatch(text)
    if found is None or not text.isascii():
        raise InputError(f"{text[:40]!r} is not a time and a duration")
    return found[1], int(found[2][:15]) / 1000 if found[2] else float("nan")


def _logged(text: str) -> str:
    found = _LOGGED.fullmatch(text)
    if found is None or not text.isascii():
        raise InputError(f"{text[:40]!r} is not a time")
    return "".join(found.groups(default="")[:6]) + (found[7].ljust(3, "0") if found[7] else "")


def _hops(text: str) -> tuple[str, int]:
    """Letters and number of hops; long ways are written ``12+LLR...`` (conventions L2)."""
    shortened = _SHORTENED.fullmatch(text)
    if shortened is None:
        return text, len(text)
    return shortened[2], int(shortened[1][:9]) + len(shortened[2])


def _whole(name: str, text: str) -> int:
    if not text.removeprefix("-").isdigit() or not text.isascii() or len(text) > 18:  # noqa: PLR2004 - fits 64 bits
        raise InputError(f"the {name} {text[:40]!r} is not a number")
    return int(text)


def _extra(text: str) -> dict[str, Any]:
    if not text.startswith("{"):
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the JSON at the end cannot be read ({error})") from error
    return found if isinstance(found, dict) else {}
