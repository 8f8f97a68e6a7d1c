"""A fingerprint: the stored summary of a version, so that the next one can be compared with it part by part.

It has a sample of shingles (or of rows, for data), which gives *how much* changed, and the hashes of the parts, which
give *where*. Typically 1 to 2 KiB, never more than 4. The bytes are the same on every platform, so a store can be
moved, and start with the version of the format.

The module also has the digests of a version and the state of a page before its next visit.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from dataclasses import field
from zlib import crc32

import numpy as np

from recrawl.detect.text.shingles import Shingles
from recrawl.detect.text.text_parts import PageParts, PartColumns
from recrawl.model import AnyArray, Validators
from recrawl.model.arrays import plain_value


def digest(body: bytes) -> bytes:
    """SHA-1 of a decoded body, 20 bytes. It names versions; it does not defend against forgers."""
    return hashlib.sha1(body, usedforsecurity=False).digest()


def text_digest(text: str) -> bytes:
    """SHA-1 of a text or of data in canonical form, after noise was removed."""
    return digest(text.encode("utf-8", "surrogatepass"))


MOST_PARTS = 192
"""This many are kept of a page: the number of a path among them fits a byte."""

_FORMAT = 1
_HEAD = struct.Struct("<BdIHBBBB")
NO_PARTS = PageParts((), (), ())


def packed(parts: PageParts) -> PartColumns:
    """The bytes to store of at most :data:`MOST_PARTS` parts. O(n)."""
    paths = dict.fromkeys(parts.path)
    number = dict(zip(paths, range(len(paths)), strict=True))
    templated = [row for row, template in enumerate(parts.template) if template]
    columns = [
        struct.pack(f"<{len(paths)}I", *paths),
        bytes(map(number.__getitem__, parts.path)),
        struct.pack(f"<{len(parts.content)}I", *parts.content),
        bytes(templated),
        struct.pack(f"<{len(templated)}I", *filter(None, parts.template)),
    ]
    return PartColumns(len(parts.path), len(paths), len(templated), b"".join(columns))


@plain_value
class Fingerprint:
    """One version of a page, as far as the next one needs it."""

    time: float
    """When it was captured, seconds since the epoch."""
    rules: int
    """Number of the user's rules under which it was read."""
    sample: Shingles
    """Smallest numbers of its shingles, ascending."""
    parts: PageParts = NO_PARTS
    """In the order of the page; of a page with very many, the most common kinds are folded into one part each."""
    folded: frozenset[int] = frozenset()
    """Paths whose parts were folded into one, where no template and no share of differing parts is known."""

    columns: PartColumns | None = field(default=None, compare=False, repr=False)
    """The parts as they are packed, where these are not needed themselves."""

    def pack(self) -> bytes:
        """The bytes to store."""
        columns = self.columns or packed(self.parts)
        sizes = len(self.sample), columns.parts, columns.paths, columns.templates, len(self.folded)
        head = _HEAD.pack(_FORMAT, self.time, self.rules, *sizes)
        order = list(dict.fromkeys(self.parts.path)) if self.folded else []
        numbers = bytes(sorted(map(order.index, self.folded)))
        return b"".join([head, self.sample.astype("<u4").tobytes(), columns.data, numbers])

    @classmethod
    def unpack(cls, data: bytes) -> Fingerprint | None:
        """What was packed; ``None`` if there is nothing, or a format that this program does not know.

        >>> print(Fingerprint.unpack(b""))
        None
        """
        if len(data) < _HEAD.size or data[0] != _FORMAT:
            return None
        _, time, rules, sampled, parts, paths, templated, folded = _HEAD.unpack_from(data)
        place = _HEAD.size

        def column(kind: str, count: int) -> AnyArray:
            nonlocal place
            values = np.frombuffer(data, kind, count, place)
            place += values.nbytes
            return values

        sample = column("<u4", sampled).astype(np.uint32)
        path = column("<u4", paths)
        path_of = path[column("u1", parts)].tolist()
        content = column("<u4", parts).tolist()
        rows = column("u1", templated)
        template = np.zeros(parts, np.int64)
        template[rows] = column("<u4", templated)
        return cls(
            time,
            rules,
            sample,
            PageParts(path_of, template.tolist(), content),
            frozenset(path[column("u1", folded)].tolist()),
        )


def folded(parts: PageParts) -> tuple[PageParts, frozenset[int]]:
    """The parts, at most :data:`MOST_PARTS` of them, and the paths that had to be folded for it.

    Folded are the most common paths first, a long list or table: noise is a rare part, often at the very end, and must
    stay visible. All folded parts share one number, which changes with any of them. Where all paths are rare, the rest
    of the page has path 0. O(n).
    """
    if len(parts.path) <= MOST_PARTS:
        return parts, frozenset()
    often = Counter(parts.path).most_common()
    size, gone = len(parts.path), set[int]()
    for path, count in often:
        if size <= MOST_PARTS or count == 1:
            break
        gone.add(path)
        size -= count - 1
    rest = {path for path, _ in often[MOST_PARTS - 1 :]} if size > MOST_PARTS else set[int]()
    whole: dict[int, int] = {}
    rows: list[tuple[int, int, int]] = []
    place: dict[int, int] = {}
    for path, template, content in zip(*parts, strict=True):
        to = 0 if path in rest else path
        if to not in gone and path not in rest:
            rows.append((path, template, content))
            continue
        whole[to] = crc32(content.to_bytes(4, "little"), whole.get(to, 0))
        if to not in place:
            place[to] = len(rows)
            rows.append((to, 0, 0))
    for path, row in place.items():
        rows[row] = path, 0, whole[path]
    columns = zip(*rows, strict=True)
    return PageParts(*map(list, columns)), frozenset(place)


@plain_value
class PageState:
    """What we knew of a page before the capture."""

    validators: Validators = field(default_factory=Validators)
    gone: bool = False
    """The last answer was 404 or 410."""
    mime: str = ""
    links_last: frozenset[str] = frozenset()
    """SURT keys of the outlinks of the last version."""
    links_ever: frozenset[str] = frozenset()
    """SURT keys of all outlinks the page ever had."""
    fingerprint: bytes = b""
    """Of the last version that was a change, as packed; empty if none was kept."""
    links_read: bool = True
    """Whether the links of a version were ever read. If not, as where only digests are known, the two sets of links
    above say nothing, and no link can be called new."""
