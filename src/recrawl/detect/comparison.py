"""Compare two versions part by part: what differs outside the noise and how much, and the evidence on noise."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

from recrawl.detect.change_criteria import ChangeCriteria
from recrawl.detect.fingerprint import Fingerprint, PageState
from recrawl.detect.noise.noise_keys import (
    Difference,
    hidden_rows,
    keys_among,
    noise_key,
    paths_in,
    position_of,
    without_largest,
)
from recrawl.detect.noise.text_noise import is_noisy_key
from recrawl.detect.text.shingles import SAMPLE, similarity
from recrawl.detect.text.text_parts import PageParts, is_of_links
from recrawl.detect.version import Version
from recrawl.model import UNMEASURED, Capture, ChangeKind

NEAR = 120.0
"""Seconds between two versions up to which a difference is noise: nobody edits that fast."""
_DIGITS = re.compile(r"\d+")
_OFTEN_HEX = re.compile(r"(?=[a-z]*\d)[0-9a-z]{8,}")


@dataclass(frozen=True, slots=True)
class PartComparison:
    """Which parts were seen in both versions of a page, and which of them differed: what noise is learned from.

    Parts are identified by their keys (``noise_keys``): those that differed, and those with evidence on the host.
    """

    differed: frozenset[int]
    same: frozenset[int]
    gap: float
    """Seconds between the two versions."""
    passing: frozenset[int] = frozenset()
    """Parts for which only versions moments apart are evidence: links, and values in data."""
    doubtful: frozenset[int] = frozenset()
    """Lists of links that differ, but in less than half: worth a confirmation."""
    fresh: float = 0.0
    """Of versions moments apart, the share of the later one's text that the earlier one has not."""
    heavy: frozenset[int] = frozenset()
    """Of versions moments apart, the parts that differ and carry too much of the text to be noise."""
    in_question: frozenset[int] = frozenset()
    """Of versions moments apart, the parts that the earlier one has other than the version before it."""

    def plus(self, other: PartComparison) -> PartComparison:
        """Both, of the same two versions."""
        differed = self.differed | other.differed
        same = (self.same | other.same) - differed
        doubtful = (self.doubtful | other.doubtful) - differed
        return PartComparison(
            differed,
            same,
            self.gap,
            self.passing | other.passing,
            doubtful,
            max(self.fresh, other.fresh),
            self.heavy | other.heavy,
            self.in_question | other.in_question,
        )


def differs(before: Fingerprint, after: Fingerprint, mask: frozenset[int]) -> bool:
    """Whether the texts differ in parts outside the mask, or in their order. O(parts)."""
    if not mask:
        return before.parts.content != after.parts.content
    one, other = (
        _outside(parts, mask, before.folded | after.folded, frozenset(others.path))
        for parts, others in ((before.parts, after.parts), (after.parts, before.parts))
    )
    return one != other


def _outside(parts: PageParts, mask: frozenset[int], folded: frozenset[int], others: frozenset[int]) -> list[int]:
    hidden = hidden_rows(parts, mask, folded, others)
    return [content for content, is_hidden in zip(parts.content, hidden, strict=True) if not is_hidden]


class _PartRow(NamedTuple):
    """A part that only one of two versions has."""

    path: int
    template: int
    position: int


def compared_parts(before: Fingerprint, after: Fingerprint, watched: frozenset[int]) -> PartComparison:
    """The evidence of two versions on their parts. O(parts).

    A part that only one version has, at the same path, is identified by position and kind of difference:

    - the same words with other numbers: its template differs, at its position in the later version;
    - another text in the same position: the words at the path and position differ. A list that gains an item on top
      and loses one at its end has no such position: it is the same list;
    - a list of links: its items differ if at least half of them are others or, moments apart, any: a box may show three
      of four articles. Far apart, fewer leave the list in doubt. Lists of other parts that grow or shrink differ if at
      least half are others, and all lists whose parts come in another order;
    - a path that one version has no part of: its presence differs.

    Folded paths are no evidence.
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
    return PartComparison(frozenset(differing), same, gap, doubtful=frozenset(doubtful))


def _without_common_ends(before: PageParts, after: PageParts) -> tuple[PageParts, PageParts, int]:
    """Two versions without the parts that both start with, and how many those are, and without those both end with.

    Mostly little is left.
    """
    old, new = (list(zip(one.path, one.content, strict=True)) for one in (before, after))
    first, shortest = 0, min(len(old), len(new))
    while first < shortest and old[first] == new[first]:
        first += 1
    last = 0
    while last < shortest - first and old[-1 - last] == new[-1 - last]:
        last += 1
    one, other = (PageParts(*(column[first : len(parts.path) - last] for column in parts)) for parts in (before, after))
    return one, other, first


def _only_in_one(
    old: PageParts, new: PageParts, skipped: Counter[int], sizes: Sequence[Counter[int]]
) -> tuple[dict[int, list[_PartRow]], dict[int, list[_PartRow]]]:
    """Of each version the parts that the other has not, or has not as often, by path.

    ``skipped`` is the number of parts of each path before these, ``sizes`` the number in the whole versions.
    """
    both = Counter(zip(old.path, old.content, strict=True)) & Counter(zip(new.path, new.content, strict=True))
    found = tuple(dict[int, list[_PartRow]]() for _ in range(2))
    for parts, size, rows in zip((old, new), sizes, found, strict=True):
        common, places = dict(both), dict[int, int]()
        for path, template, content in zip(*parts, strict=True):
            place = places.get(path, 0)
            places[path] = place + 1
            if common.get((path, content)):
                common[path, content] -= 1
            else:
                position = position_of(skipped[path] + place, size[path])
                rows.setdefault(path, []).append(_PartRow(path, template, position))
    return found[0], found[1]


def _renumbered(went: list[_PartRow], came: list[_PartRow]) -> tuple[set[int], list[_PartRow], list[_PartRow]]:
    """Keys of the templates in both lists, and the rows without them: the same words came with other numbers."""
    both = Counter(row.template for row in went if row.template) & Counter(row.template for row in came if row.template)
    if not both:
        return set(), went, came
    keys, rest = set[int](), list[list[_PartRow]]()
    for rows in (went, came):
        common = dict(both)
        kept = list[_PartRow]()
        for row in rows:
            if common.get(row.template):
                common[row.template] -= 1
                if rows is came:
                    keys.add(noise_key(row.template, Difference.NUMBERS, row.position))
            else:
                kept.append(row)
        rest.append(kept)
    return keys, rest[0], rest[1]


def _shuffled(before: PageParts, after: PageParts) -> set[int]:
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


def nothing_differed(version: Fingerprint, watched: frozenset[int], gap: float) -> PartComparison:
    """What a version that came again teaches: its watched parts stayed."""
    return PartComparison(frozenset(), keys_among(version.parts, watched, version.folded | {0}), gap)


def compared_links(before: Iterable[str], after: Iterable[str], watched: frozenset[int], gap: float) -> PartComparison:
    """What two sets of link keys teach: a kind of link differs if some of it went and others came. O(links)."""
    old, new = frozenset(before), frozenset(after)
    went, came = ({link_kind(key) for key in some if not is_noisy_key(key)} for some in (old - new, new - old))
    differing = went & came
    stayed = {link_kind(key) for key in old & new} & watched if watched else set()
    told = frozenset(differing | stayed)
    return PartComparison(frozenset(differing), frozenset(stayed - differing), gap, told)


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


_OF_TEXT = ChangeKind.TEXT | ChangeKind.DATA
_OF_LINKS = ChangeKind.LINKS | ChangeKind.NEW_LINKS
_LEAST = 0.5 / SAMPLE
"""The magnitude of a change that is too small for the sample to show."""

_MANY_TIMES, _FEW = 2, 16
"""If the version before had this many times the passages that are now outside the mask, and a few more, then the mask
hides that most of its text went. That is no noise."""


@dataclass(frozen=True, slots=True)
class VersionDifferences:
    """The outcome of a comparison, before it is a verdict."""

    kinds: ChangeKind
    telling: ChangeKind
    """Kinds that make a change; the others are only remembered."""
    magnitude: float
    """How much differs outside the noise; -1 if that cannot be computed."""
    quiet: frozenset[str]
    """Keys of links that stand only in parts that are not observed."""
    compared: PartComparison | None
    comparable: bool = True
    """False if the versions were read under different rules."""


def differences(  # noqa: PLR0913, PLR0917 - all that is compared
    capture: Capture,
    version: Version,
    known: PageState,
    standards: ChangeCriteria,
    now: Fingerprint | None,
    links: frozenset[str],
) -> VersionDifferences:
    """Compare a version with the one known. O(length).

    ``now`` is its fingerprint; ``None`` if it has none, or if its text is that of the last visit. ``links`` are the
    keys of its links.
    """
    before = Fingerprint.unpack(known.fingerprint)
    rules = standards.rules.of(capture.url).number
    if version.content is not None and known.validators.text_digest and rules != (before.rules if before else 0):
        return VersionDifferences(ChangeKind.NONE, ChangeKind.NONE, UNMEASURED, frozenset(), None, comparable=False)
    quiet, has_quiet = _quiet_links(version, before, standards.mask)
    kinds, text = _kinds_of_content(version, known, before, now, standards)
    quiet |= _of_masked_kind(links - known.links_last, standards.mask)
    comparable = version.links is not None and known.links_read
    if comparable and _links_differ(links, known.links_last, quiet, standards.mask, has_quiet=has_quiet):
        kinds |= ChangeKind.LINKS
    magnitude = text
    if kinds & ChangeKind.TYPE:
        magnitude = 1.0
    elif kinds & ChangeKind.LINKS and text == 0:
        magnitude = len(links ^ known.links_last) / len(links | known.links_last)
    compared = _compared(capture, version, known, before, now, standards, links)
    return VersionDifferences(kinds, _telling(version, known, text, standards), magnitude, quiet, compared)


def _compared(  # noqa: PLR0913, PLR0917 - all that is compared
    capture: Capture,
    version: Version,
    known: PageState,
    before: Fingerprint | None,
    now: Fingerprint | None,
    standards: ChangeCriteria,
    links: frozenset[str],
) -> PartComparison | None:
    """What the comparison teaches about noise; ``None`` if there was none, or it teaches nothing."""
    if before is None or version.content is None:
        return None
    gap, watched = capture.time - before.time, standards.watched
    told = nothing_differed(before, watched, gap) if now is None else compared_parts(before, now, watched)
    if now is not None and abs(gap) < NEAR:
        told = replace(told, fresh=_fresh(version, before), heavy=_heavy(version, told.differed, standards.most_masked))
    if version.kind == ChangeKind.DATA:
        told = replace(told, passing=told.differed | told.same)
    if version.links is not None and known.links_read:
        told = told.plus(compared_links(known.links_last, links, watched, gap))
    return told if told.differed or told.same or told.doubtful else None


def _heavy(version: Version, differed: frozenset[int], most: float) -> frozenset[int]:
    """Which of the parts that differ carry more of a version's text than may be masked. O(length)."""
    if version.content is None or not differed:
        return frozenset()
    content = version.content()
    return differed - without_largest(content.parts(), list(map(len, content.said)), differed, most)


def _fresh(version: Version, before: Fingerprint) -> float:
    """The share of a version's text in parts that the one before has not, or has not as often. O(length)."""
    if version.content is None or before.folded:
        return 0.0
    content = version.content()
    lengths = list(map(len, content.said))
    had, fresh = Counter(before.parts.content), 0
    for number, length in zip(content.parts().content, lengths, strict=True):
        if had[number]:
            had[number] -= 1
        else:
            fresh += length
    return fresh / max(1, sum(lengths))


def _kinds_of_content(
    version: Version, known: PageState, before: Fingerprint | None, now: Fingerprint | None, standards: ChangeCriteria
) -> tuple[ChangeKind, float]:
    """In what bytes, text and type differ, and how much of the text does."""
    kinds, old, much = ChangeKind.NONE, known.validators, UNMEASURED
    if version.digest != old.digest:
        kinds |= ChangeKind.CONTENT
    if version.mime and known.mime and version.mime != known.mime:
        kinds |= ChangeKind.TYPE
    if not (version.text_digest and old.text_digest):
        return kinds, much
    if version.text_digest == old.text_digest:
        return kinds, 0.0
    if before is None or now is None:
        return kinds | version.kind, much
    shrank = standards.most_masked < 1.0 and len(before.sample) > _MANY_TIMES * len(now.sample) + _FEW
    if not differs(before, now, standards.mask) and not (standards.mask and shrank):
        return kinds, 0.0
    return kinds | version.kind, max(_LEAST, 1.0 - similarity(before.sample, now.sample, SAMPLE))


def _telling(version: Version, known: PageState, text: float, standards: ChangeCriteria) -> ChangeKind:
    """Which kinds make a change: with a text to compare, not the bytes; with a threshold, only what exceeds it."""
    everything = ~ChangeKind.NONE
    if not (version.text_digest and known.validators.text_digest):
        return everything
    telling = everything & ~ChangeKind.CONTENT
    if standards.min_change > 0 and text >= 0:
        telling &= ~_OF_LINKS
        if text <= standards.min_change:
            telling &= ~_OF_TEXT
    return telling


def _quiet_links(version: Version, before: Fingerprint | None, mask: frozenset[int]) -> tuple[frozenset[str], bool]:
    """Keys of links only in parts that are not observed, and whether the page has or had any such parts."""
    page = version.document
    if page is None:
        return frozenset(), False
    paths = paths_in(mask)
    hidden = paths and {*page.runs.path, *(before.parts.path if before else ())} & paths
    if not (hidden or page.partial):
        return frozenset(), False
    return page.link_keys - page.links_outside(paths), True


def _of_masked_kind(links: frozenset[str], mask: frozenset[int]) -> frozenset[str]:
    """Keys of links that are noise by their kind."""
    return frozenset(key for key in links if link_kind(key) in mask) if mask else frozenset()


def _links_differ(
    links: frozenset[str], others: frozenset[str], quiet: frozenset[str], mask: frozenset[int], *, has_quiet: bool
) -> bool:
    """Whether a link that is no noise is in one version only.

    Of links that went it is not known where they stood; on pages with parts that are not observed they do not count.
    Where a link goes from the rest of a page, its text does too.
    """
    gone = frozenset[str]() if has_quiet else others - links
    loud = (links - others - quiet) | (gone - _of_masked_kind(gone, mask))
    return not all(map(is_noisy_key, loud))
