"""Keys of noise: which part of a page differs, at which position, and in what way; and which parts a mask hides.

A key is one integer, so that it can be counted, stored and shared by workers. It has three fields:

    identity   32 bits: the path of the part, or its template, or a kind of link (``text_parts``, ``comparison``)
    position   the place among the parts with the same path, counted from the nearer end: 1 is the first, -1 the last;
               0 is the middle of a long list, and stands for "all of them" where position says nothing
    kind       what differs (:class:`Difference`)

Each of the three narrows what a mask can hide. If the number in the last line of a footer is noise, its words, the line
before, and a footer with other words are not.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

MIDDLE = 0
"""The position of parts that are far from both ends, and of keys that hold for all positions."""
_FARTHEST = 7
_POSITION_BITS, _KIND_BITS = 5, 3
_SHIFT = _POSITION_BITS + _KIND_BITS
_NOTHING = frozenset[int]()


class Difference(enum.IntEnum):
    """In what way a part differs between two versions of a page."""

    LINK = 1
    """Links of one kind have other addresses: a session id."""
    NUMBERS = 2
    """The same words with other numbers: a counter."""
    WORDS = 3
    """Another text in the same position: a proverb, an advertisement."""
    ITEMS = 4
    """Other members of a list, or the same ones in another order: a box of random articles."""
    PRESENCE = 5
    """It is in one version only: a notice that not every request shows."""


class NoiseKey(NamedTuple):
    """A key taken apart."""

    identity: int
    position: int
    kind: Difference

    @property
    def place(self) -> str:
        """The position in words.

        >>> NoiseKey(7, 1, Difference.WORDS).place, NoiseKey(7, -2, Difference.WORDS).place
        ('1st', '2nd from the end')
        """
        if self.position == MIDDLE:
            return "all" if self.kind not in _AT_POSITIONS else "in the middle"
        count = abs(self.position)
        ordinal = {1: "1st", 2: "2nd", 3: "3rd"}.get(count, f"{count}th")
        if self.position > 0:
            return ordinal
        return "last" if count == 1 else f"{ordinal} from the end"

    @property
    def without_text(self) -> str:
        """What stands for a part that carries no text, such as an image with a link: how it differs, and where.

        >>> NoiseKey(7, -1, Difference.NUMBERS).without_text, NoiseKey(7, MIDDLE, Difference.LINK).without_text
        ('(no text: numbers, last)', '(no text: link, all)')
        """
        return f"(no text: {self.kind.name.lower()}, {self.place})"


_AT_POSITIONS = (Difference.NUMBERS, Difference.WORDS)


def noise_key(identity: int, kind: Difference, position: int = MIDDLE) -> int:
    """The key of a part. At most 40 bits.

    >>> split_key(noise_key(7, Difference.NUMBERS, -1))
    NoiseKey(identity=7, position=-1, kind=<Difference.NUMBERS: 2>)
    """
    return identity << _SHIFT | (position + _FARTHEST + 1) << _KIND_BITS | kind


def split_key(key: int) -> NoiseKey:
    """The content of a key: path or template, position and kind of difference."""
    position = (key >> _KIND_BITS & (1 << _POSITION_BITS) - 1) - _FARTHEST - 1
    return NoiseKey(key >> _SHIFT, position, Difference(key & (1 << _KIND_BITS) - 1))


def position_of(index: int, count: int) -> int:
    """The position of the part with this index among ``count`` parts: from the nearer end, 0 if both are far.

    >>> [position_of(index, 4) for index in range(4)], position_of(9, 20)
    ([1, 2, -2, -1], 0)
    """
    from_end = count - 1 - index
    position = index + 1 if index <= from_end else -from_end - 1
    return position if abs(position) <= _FARTHEST else MIDDLE


class PositionedParts(Protocol):
    """The parts of a page, in the order of the page (``detect.text.text_parts``)."""

    @property
    def path(self) -> Sequence[int]:
        """Where each stands."""

    @property
    def template(self) -> Sequence[int]:
        """Its words without the numbers, 0 if it has none."""


class _KeyIndex(NamedTuple):
    """A set of keys, ready to be looked up by the parts of a page."""

    identities: frozenset[int]
    lists: frozenset[int]
    """Paths that are hidden at all positions."""
    coming: frozenset[int]
    """Paths that may be in one version only."""
    keys: frozenset[int]


@lru_cache(maxsize=4096)  # a mask serves all pages of its host
def _indexed(keys: frozenset[int]) -> _KeyIndex:
    split = [split_key(key) for key in keys]
    return _KeyIndex(
        frozenset(one.identity for one in split if one.kind != Difference.LINK),
        frozenset(one.identity for one in split if one.kind == Difference.ITEMS),
        frozenset(one.identity for one in split if one.kind == Difference.PRESENCE),
        keys,
    )


def paths_in(mask: frozenset[int]) -> frozenset[int]:
    """The paths (and templates) that keys of a mask are about."""
    return _indexed(mask).identities if mask else _NOTHING


def hiding_keys(
    parts: PositionedParts, mask: frozenset[int], folded: Container[int] = (), others: Container[int] | None = None
) -> list[int]:
    """For each part the key of the mask that hides it, 0 where none does. O(parts).

    ``folded`` are paths whose parts lie under one number: no single position of them can be hidden. ``others`` are the
    paths of the version compared with: what may come and go is hidden only where it is missing in one of the two.
    """
    if not mask or (index := _indexed(mask)).identities.isdisjoint({*parts.path, *parts.template}):
        return [0] * len(parts.path)
    return [next((key for key in keys if key in index.keys), 0) for keys in _keys_of_rows(parts, index, folded, others)]


def hidden_rows(
    parts: PositionedParts, mask: frozenset[int], folded: Container[int] = (), others: Container[int] | None = None
) -> list[bool]:
    """Which parts a mask hides; see :func:`hiding_keys`."""
    return list(map(bool, hiding_keys(parts, mask, folded, others)))


def keys_among(parts: PositionedParts, wanted: frozenset[int], folded: Container[int] = ()) -> frozenset[int]:
    """Which of the wanted keys are about parts of this page. O(parts)."""
    if not wanted or (index := _indexed(wanted)).identities.isdisjoint({*parts.path, *parts.template}):
        return _NOTHING
    return frozenset(key for keys in _keys_of_rows(parts, index, folded, None) for key in keys) & wanted


def _keys_of_rows(
    parts: PositionedParts, index: _KeyIndex, folded: Container[int], others: Container[int] | None
) -> Iterator[Sequence[int]]:
    """For each part the keys that can be about it, as far as their path or template is in the index."""
    sizes, seen = Counter(parts.path), dict[int, int]()
    for path, template in zip(parts.path, parts.template, strict=True):
        place = seen.get(path, 0)
        seen[path] = place + 1
        keys = list[int]()
        if path in index.lists:
            keys.append(noise_key(path, Difference.ITEMS))
        if path in index.coming and (others is None or path not in others):
            keys.append(noise_key(path, Difference.PRESENCE))
        if path not in folded and (path in index.identities or template in index.identities):
            position = position_of(place, sizes[path])
            keys.append(noise_key(path, Difference.WORDS, position))
            if template:
                keys.append(noise_key(template, Difference.NUMBERS, position))
        yield keys


def without_largest(
    parts: PositionedParts, lengths: Sequence[int], mask: frozenset[int], most: float
) -> frozenset[int]:
    """The mask without keys that hide too much: together the rest hides at most this share of the page's text.

    ``lengths`` are those of the parts, in any unit. The keys that hide most are left out first: noise is small, and a
    mask that hides most of a page hides its content. O(parts), for each key left out.

    >>> from recrawl.detect.text.text_parts import PageParts
    >>> page, box = PageParts([3, 5], [0, 0], [1, 2]), noise_key(5, Difference.ITEMS)
    >>> without_largest(page, [30, 10], frozenset({box}), 0.5) == {box}
    True
    >>> without_largest(page, [10, 30], frozenset({box}), 0.5)
    frozenset()
    """
    allowed = most * sum(lengths)
    while True:
        hidden = Counter[int]()
        for key, length in zip(hiding_keys(parts, mask), lengths, strict=True):
            if key:
                hidden[key] += length
        if hidden.total() <= allowed:
            return mask
        [(largest, _)] = hidden.most_common(1)
        mask -= {largest}
