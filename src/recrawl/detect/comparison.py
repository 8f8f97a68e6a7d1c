"""Two versions part by part: whether anything differs outside the noise, and what that teaches about noise."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

from recrawl.detect.fingerprint import Fingerprint
from recrawl.detect.noise import is_noisy_key
from recrawl.detect.noise_keys import Difference, hidden_rows, keys_among, noise_key, position_of
from recrawl.detect.parts import Parts, is_of_links

NEAR = 120.0
"""Seconds between two versions up to which a difference is nobody's work."""
_DIGITS = re.compile(r"\d+")
_OFTEN_HEX = re.compile(r"(?=[a-z]*\d)[0-9a-z]{8,}")


@dataclass(frozen=True, slots=True)
class Compared:
    """Which parts were seen in both versions of a page, and which of them differed: what noise is learned from.

    Parts are told by their keys (``noise_keys``): those that differed, and those that are watched on the host.
    """

    differed: frozenset[int]
    same: frozenset[int]
    gap: float
    """Seconds between the two versions."""
    passing: frozenset[int] = frozenset()
    """Those for which only versions moments apart tell anything: links, and values in data."""
    doubtful: frozenset[int] = frozenset()
    """Lists of links that differ, but in less than half: worth a confirmation."""
    fresh: float = 0.0
    """Of versions moments apart, the share of the later one's text that the earlier one has not."""

    def plus(self, other: Compared) -> Compared:
        """Both, of the same two versions."""
        differed = self.differed | other.differed
        same = (self.same | other.same) - differed
        doubtful = (self.doubtful | other.doubtful) - differed
        return Compared(differed, same, self.gap, self.passing | other.passing, doubtful, max(self.fresh, other.fresh))


def differs(before: Fingerprint, after: Fingerprint, mask: frozenset[int]) -> bool:
    """Whether the texts differ in parts outside the mask, or in their order. O(parts)."""
    if not mask:
        return before.parts.content != after.parts.content
    one, other = (
        _outside(parts, mask, before.folded | after.folded, frozenset(others.path))
        for parts, others in ((before.parts, after.parts), (after.parts, before.parts))
    )
    return one != other


def _outside(parts: Parts, mask: frozenset[int], folded: frozenset[int], others: frozenset[int]) -> list[int]:
    hidden = hidden_rows(parts, mask, folded, others)
    return [content for content, is_hidden in zip(parts.content, hidden, strict=True) if not is_hidden]


class _Row(NamedTuple):
    """A part that only one of two versions has."""

    path: int
    template: int
    position: int


def compared_parts(before: Fingerprint, after: Fingerprint, watched: frozenset[int]) -> Compared:
    """What two versions teach about their parts. O(parts).

    A part that one version has and the other has not, at the same path, is told by position and kind of difference:

    - the same words with other numbers: its template differs, at its position in the later version;
    - another text in the same position: the words at the path and position differ. A list that gains an item on top
      and loses one at its end has no such position: it is the same list;
    - a list of links: its items differ if at least half of them are others or, moments apart, any: a box may show three
      of four articles. Far apart, fewer leave the list in doubt. Lists of other parts that grow or shrink differ if at
      least half are others, and all lists whose parts come in another order;
    - a path that one version has no part of: its presence differs.

    Folded paths tell nothing.
    """
    gap = after.time - before.time
    near, sizes = abs(gap) < NEAR, [Counter(one.parts.path) for one in (before, after)]
    old, new, first = _without_common_ends(before.parts, after.parts)
    left = _only_in_one(old, new, Counter(before.parts.path[:first]), sizes)
    silent = before.folded | after.folded | {0}
    differing, doubtful, unsure = set[int](), set[int](), set[int]()
    for path in (left[0].keys() | left[1].keys()) - silent:
        went, came = left[0].get(path, []), left[1].get(path, [])
        unsure.add(noise_key(path, Difference.ITEMS))
        unsure.update(noise_key(path, Difference.WORDS, row.position) for row in (*went, *came))
        is_moved = [(row.template, row.position) for row in went] != [(row.template, row.position) for row in came]
        renumbered, *others = _renumbered(went, came)
        differing |= renumbered
        if not (is_of_links(path) and is_moved):  # "Part 1" for "Part 4": in a list of links that is another item
            went, came = others
        count, size = max(len(went), len(came)), max(sizes[0][path], sizes[1][path])
        if not count:
            continue
        if not (sizes[0][path] and sizes[1][path]):
            differing.add(noise_key(path, Difference.PRESENCE))
        elif is_of_links(path):
            told = differing if near or 2 * count >= size else doubtful
            told.add(noise_key(path, Difference.ITEMS))
        else:
            positions = {row.position for row in went} & {row.position for row in came}
            differing.update(noise_key(path, Difference.WORDS, position) for position in positions)
            if sizes[0][path] != sizes[1][path] and 2 * count >= size:
                differing.add(noise_key(path, Difference.ITEMS))
    differing.update(noise_key(path, Difference.ITEMS) for path in _shuffled(old, new) - silent)
    same = frozenset[int]()
    if watched:
        seen = [keys_among(one.parts, watched, silent) for one in (before, after)]
        same = (seen[0] & seen[1]) - differing - doubtful - unsure
    return Compared(frozenset(differing), same, gap, doubtful=frozenset(doubtful))


def _without_common_ends(before: Parts, after: Parts) -> tuple[Parts, Parts, int]:
    """Two versions without the parts that both begin with, and how many those are, and without those both end with.

    Mostly little is left.
    """
    old, new = (list(zip(one.path, one.content, strict=True)) for one in (before, after))
    first, shortest = 0, min(len(old), len(new))
    while first < shortest and old[first] == new[first]:
        first += 1
    last = 0
    while last < shortest - first and old[-1 - last] == new[-1 - last]:
        last += 1
    one, other = (Parts(*(column[first : len(parts.path) - last] for column in parts)) for parts in (before, after))
    return one, other, first


def _only_in_one(
    old: Parts, new: Parts, skipped: Counter[int], sizes: Sequence[Counter[int]]
) -> tuple[dict[int, list[_Row]], dict[int, list[_Row]]]:
    """Of each version the parts that the other has not, or has not as often, by path.

    ``skipped`` tells how many parts of each path stand before these, ``sizes`` how many the whole versions have.
    """
    both = Counter(zip(old.path, old.content, strict=True)) & Counter(zip(new.path, new.content, strict=True))
    found = tuple(dict[int, list[_Row]]() for _ in range(2))
    for parts, size, rows in zip((old, new), sizes, found, strict=True):
        common, places = dict(both), dict[int, int]()
        for path, template, content in zip(*parts, strict=True):
            place = places.get(path, 0)
            places[path] = place + 1
            if common.get((path, content)):
                common[path, content] -= 1
            else:
                position = position_of(skipped[path] + place, size[path])
                rows.setdefault(path, []).append(_Row(path, template, position))
    return found[0], found[1]


def _renumbered(went: list[_Row], came: list[_Row]) -> tuple[set[int], list[_Row], list[_Row]]:
    """Keys of the templates in both lists, and the rows without them: the same words came with other numbers."""
    both = Counter(row.template for row in went if row.template) & Counter(row.template for row in came if row.template)
    if not both:
        return set(), went, came
    keys, rest = set[int](), list[list[_Row]]()
    for rows in (went, came):
        common = dict(both)
        kept = list[_Row]()
        for row in rows:
            if common.get(row.template):
                common[row.template] -= 1
                if rows is came:
                    keys.add(noise_key(row.template, Difference.NUMBERS, row.position))
            else:
                kept.append(row)
        rest.append(kept)
    return keys, rest[0], rest[1]


def _shuffled(before: Parts, after: Parts) -> set[int]:
    """Paths with the same parts in another order."""
    orders: list[dict[int, list[int]]] = []
    for parts in (before, after):
        at: dict[int, list[int]] = {}
        for path, content in zip(parts.path, parts.content, strict=True):
            at.setdefault(path, []).append(content)
        orders.append(at)
    old, new = orders
    return {
        path for path in old.keys() & new.keys() if old[path] != new[path] and sorted(old[path]) == sorted(new[path])
    }


def nothing_differed(version: Fingerprint, watched: frozenset[int], gap: float) -> Compared:
    """What a version that came again teaches: its watched parts stayed."""
    return Compared(frozenset(), keys_among(version.parts, watched, version.folded | {0}), gap)


def compared_links(before: Iterable[str], after: Iterable[str], watched: frozenset[int], gap: float) -> Compared:
    """What two sets of link keys teach: a kind of link differs if some of it went and others came. O(links)."""
    old, new = frozenset(before), frozenset(after)
    went, came = ({link_kind(key) for key in some if not is_noisy_key(key)} for some in (old - new, new - old))
    differing = went & came
    stayed = {link_kind(key) for key in old & new} & watched if watched else set()
    told = frozenset(differing | stayed)
    return Compared(frozenset(differing), frozenset(stayed - differing), gap, told)


@lru_cache(maxsize=1 << 16)  # links repeat from page to page and from version to version
def link_kind(key: str) -> int:
    """The key of all links that differ only in digits, in tokens and in the values of their arguments.

    >>> one, same, other = map(link_kind, ("org,x)/a/17?sid=x", "org,x)/a/4?sid=y", "org,x)/b/4?sid=y"))
    >>> one == same, one == other
    (True, False)
    """
    place, _, query = key.partition("?")
    names = "&".join(argument.partition("=")[0] for argument in query.split("&"))
    kind = crc32(f"?{_DIGITS.sub('#', _OFTEN_HEX.sub('#', place))}?{names}".encode("utf-8", "surrogatepass"))
    return noise_key(kind, Difference.LINK)
