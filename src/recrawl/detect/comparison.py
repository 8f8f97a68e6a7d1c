"""Two versions part by part: whether anything differs outside the noise, and what that teaches about noise."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

from recrawl.detect.fingerprint import Fingerprint
from recrawl.detect.noise import is_noisy_key
from recrawl.detect.parts import Parts, hidden_rows, is_of_links

NEAR = 120.0
"""Seconds between two versions up to which a difference is nobody's work."""
_DIGITS = re.compile(r"\d+")
_OFTEN_HEX = re.compile(r"(?=[a-z]*\d)[0-9a-z]{8,}")


@dataclass(frozen=True, slots=True)
class Compared:
    """Which parts were seen in both versions of a page, and which of them differed: what noise is learned from.

    Kept are the parts that differed and those that are watched on the host, by path, template or kind of link.
    """

    differed: frozenset[int]
    same: frozenset[int]
    gap: float
    """Seconds between the two versions."""
    passing: frozenset[int] = frozenset()
    """Those for which only versions moments apart tell anything: links, and values in data."""
    doubtful: frozenset[int] = frozenset()
    """Lists of links that differ, but in less than half: worth a second look."""

    def plus(self, other: Compared) -> Compared:
        """Both, of the same two versions."""
        differed = self.differed | other.differed
        same = (self.same | other.same) - differed
        doubtful = (self.doubtful | other.doubtful) - differed
        return Compared(differed, same, self.gap, self.passing | other.passing, doubtful)


def differs(before: Parts, after: Parts, mask: frozenset[int]) -> bool:
    """Whether the texts differ in parts outside the mask, or in their order. O(parts)."""
    return _outside(before, mask) != _outside(after, mask)


def _outside(parts: Parts, mask: frozenset[int]) -> Sequence[int]:
    if not mask:
        return parts.content
    hidden = hidden_rows(parts, mask)
    return [content for content, is_hidden in zip(parts.content, hidden, strict=True) if not is_hidden]


def compared_parts(before: Fingerprint, after: Fingerprint, watched: frozenset[int]) -> Compared:
    """What two versions teach about their parts. O(parts).

    A template differs if at least half of its parts have other numbers. A path differs if at least half of its parts
    are others, where parts that differ in numbers only do not count: a list that gains an item is the same list, a box
    of random articles is not. It also differs if the same parts come in another order, and, moments apart, if it is a
    list of links and any of them is another: a box may show three of four articles. In prose one part of many says
    nothing of the others: were they masked for a random proverb among them, changes would be missed. A path that is in
    one version only differs too. Folded paths tell nothing.
    """
    others = _without_common_ends(before.parts, after.parts)
    old, new = (Counter(zip(one.path, one.content, strict=True)) for one in others)
    common = {key: min(old[key], new[key]) for key, _ in old.items() ^ new.items()}
    left = [_unmatched(one, common) for one in others]
    renumbered = _templates(left[0]) & _templates(left[1])
    filled = [Counter(one.parts.template) for one in (before, after)] if renumbered else []
    differing = {
        template
        for (_, template), count in renumbered.items()
        if 2 * count >= max(filled[0][template], filled[1][template])
    }
    paths = [Counter(path for path, _ in one.elements()) for one in left]
    moved = Counter(path for path, template in renumbered.elements() if template in differing)
    sizes = [Counter(one.parts.path) for one in (before, after)]
    silent = before.folded | after.folded | {0}
    doubtful = set[int]()
    for path in (paths[0].keys() | paths[1].keys()) - silent:
        count = max(paths[0][path], paths[1][path]) - moved[path]
        if 2 * count >= max(sizes[0][path], sizes[1][path]) and count > 0:
            differing.add(path)
        elif count > 0 and is_of_links(path):
            doubtful.add(path)
    differing |= _shuffled(*others) - silent
    gap = after.time - before.time
    if abs(gap) < NEAR:
        differing, doubtful = differing | doubtful, set()
    same = frozenset[int]()
    if watched:
        seen = {*before.parts.path, *after.parts.path} | ({*before.parts.template} & {*after.parts.template})
        same = (watched & seen) - differing - doubtful - silent
    return Compared(frozenset(differing), same, gap, doubtful=frozenset(doubtful))


def _without_common_ends(before: Parts, after: Parts) -> tuple[Parts, Parts]:
    """Two versions without the parts that both begin with and both end with: mostly little is left."""
    old, new = (list(zip(one.path, one.content, strict=True)) for one in (before, after))
    first, shortest = 0, min(len(old), len(new))
    while first < shortest and old[first] == new[first]:
        first += 1
    last = 0
    while last < shortest - first and old[-1 - last] == new[-1 - last]:
        last += 1
    one, other = (Parts(*(column[first : len(parts.path) - last] for column in parts)) for parts in (before, after))
    return one, other


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


def _unmatched(parts: Parts, common: dict[tuple[int, int], int]) -> Counter[tuple[int, int]]:
    """Path and template of the parts that the other version does not have, with how often.

    ``common`` tells how often both have those which they do not have equally often: of a page with one change, few.
    """
    left: Counter[tuple[int, int]] = Counter()
    had = dict(common)
    for row, key in enumerate(zip(parts.path, parts.content, strict=True)):
        if key in had:
            if had[key]:
                had[key] -= 1
            else:
                left[key[0], parts.template[row]] += 1
    return left


def _templates(left: Counter[tuple[int, int]]) -> Counter[tuple[int, int]]:
    return Counter({key: count for key, count in left.items() if key[1]})


def nothing_differed(version: Fingerprint, watched: frozenset[int], gap: float) -> Compared:
    """What a version that came again teaches: its watched parts stayed."""
    return Compared(frozenset(), watched & ({*version.parts.path} | {*version.parts.template}), gap)


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
    """The number of all links that differ only in digits, in tokens and in the values of their arguments.

    >>> one, same, other = map(link_kind, ("org,x)/a/17?sid=x", "org,x)/a/4?sid=y", "org,x)/b/4?sid=y"))
    >>> one == same, one == other
    (True, False)
    """
    place, _, query = key.partition("?")
    names = "&".join(argument.partition("=")[0] for argument in query.split("&"))
    return crc32(f"?{_DIGITS.sub('#', _OFTEN_HEX.sub('#', place))}?{names}".encode("utf-8", "surrogatepass")) or 1
