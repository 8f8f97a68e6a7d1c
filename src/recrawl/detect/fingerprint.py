"""A fingerprint: what is kept of a version so that the next one can be compared with it part by part.

It holds a sample of shingles (or of rows, for data), which tells *how much* changed, and the numbers of the parts,
which tell *where*. Typically 1 to 2 KiB, never more than 4. The bytes are the same on every machine, so that a store
can be moved, and begin with the version of the format, so that it can be changed.
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import field
from zlib import crc32

import numpy as np

from recrawl.detect.parts import Columns, Parts
from recrawl.detect.shingle_terms import Shingles
from recrawl.model import AnyArray
from recrawl.model.values import plain_value

MOST_PARTS = 192
"""So many are kept of a page: the number of a path among them fits a byte."""

_FORMAT = 1
_HEAD = struct.Struct("<BdIHBBBB")
NO_PARTS = Parts((), (), ())


def packed(parts: Parts) -> Columns:
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
    return Columns(len(parts.path), len(paths), len(templated), b"".join(columns))


@plain_value
class Fingerprint:
    """One version of a page, as far as the next one needs it."""

    time: float
    """When it was captured, seconds since the epoch."""
    rules: int
    """Number of the user's rules under which it was read."""
    sample: Shingles
    """Smallest numbers of its shingles, ascending."""
    parts: Parts = NO_PARTS
    """In the order of the page; of a page with very many, the most common kinds are folded into one part each."""
    folded: frozenset[int] = frozenset()
    """Paths whose parts were folded into one, where no template and no share of differing parts is known."""

    columns: Columns | None = field(default=None, compare=False, repr=False)
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
            Parts(path_of, template.tolist(), content),
            frozenset(path[column("u1", folded)].tolist()),
        )


def folded(parts: Parts) -> tuple[Parts, frozenset[int]]:
    """The parts, at most :data:`MOST_PARTS` of them, and the paths that had to be folded for it.

    Folded are the most common paths first, a long list or table: noise is a rare part, often at the very end, and must
    stay visible. What is folded lies under one number, which changes with any of it. Where all paths are rare, the
    rest of the page lies under path 0. O(n).
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
    return Parts(*map(list, columns)), frozenset(place)
