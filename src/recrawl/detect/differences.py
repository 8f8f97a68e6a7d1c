"""What differs between a version and the one known before, outside all noise, and how much."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from recrawl.detect.comparison import (
    NEAR,
    Compared,
    compared_links,
    compared_parts,
    differs,
    link_kind,
    nothing_differed,
)
from recrawl.detect.fingerprint import Fingerprint
from recrawl.detect.known import Known
from recrawl.detect.noise import is_noisy_key
from recrawl.detect.noise_keys import paths_in
from recrawl.detect.shingles import SAMPLE, similarity
from recrawl.detect.standards import Standards
from recrawl.detect.version import Version
from recrawl.model import UNMEASURED, Capture, ChangeKind

_OF_TEXT = ChangeKind.TEXT | ChangeKind.DATA
_OF_LINKS = ChangeKind.LINKS | ChangeKind.NEW_LINKS
_LEAST = 0.5 / SAMPLE
"""The magnitude of a change that is too small for the sample to show."""

_MANY_TIMES, _FEW = 2, 16
"""If the version before had so many times the passages that are now outside the mask, and a few more, then the mask
hides that most of its text went. That is no noise."""


@dataclass(frozen=True, slots=True)
class Differences:
    """The outcome of a comparison, before it is a verdict."""

    kinds: ChangeKind
    telling: ChangeKind
    """Kinds that make a change; the others are only remembered."""
    magnitude: float
    """How much differs outside the noise; -1 if that cannot be told."""
    quiet: frozenset[str]
    """Keys of links that stand only in parts that are not looked at."""
    compared: Compared | None
    comparable: bool = True
    """False if the versions were read under different rules."""


def differences(  # noqa: PLR0913, PLR0917 - all that is compared
    capture: Capture,
    version: Version,
    known: Known,
    standards: Standards,
    now: Fingerprint | None,
    links: frozenset[str],
) -> Differences:
    """Compare a version with the one known. O(length).

    ``now`` is its fingerprint; ``None`` if it has none, or if its text is that of the last visit. ``links`` are the
    keys of its links.
    """
    before = Fingerprint.unpack(known.fingerprint)
    rules = standards.rules.of(capture.url).number
    if version.content is not None and known.validators.text_digest and rules != (before.rules if before else 0):
        return Differences(ChangeKind.NONE, ChangeKind.NONE, UNMEASURED, frozenset(), None, comparable=False)
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
    compared = _compared(capture, version, known, before, now, standards.watched, links)
    return Differences(kinds, _telling(version, known, text, standards), magnitude, quiet, compared)


def _compared(  # noqa: PLR0913, PLR0917 - all that is compared
    capture: Capture,
    version: Version,
    known: Known,
    before: Fingerprint | None,
    now: Fingerprint | None,
    watched: frozenset[int],
    links: frozenset[str],
) -> Compared | None:
    """What the comparison teaches about noise; ``None`` if there was none, or it teaches nothing."""
    if before is None or version.content is None:
        return None
    gap = capture.time - before.time
    told = nothing_differed(before, watched, gap) if now is None else compared_parts(before, now, watched)
    if now is not None and abs(gap) < NEAR:
        told = replace(told, fresh=_fresh(version, before))
    if version.kind == ChangeKind.DATA:
        told = replace(told, passing=told.differed | told.same)
    if version.links is not None and known.links_read:
        told = told.plus(compared_links(known.links_last, links, watched, gap))
    return told if told.differed or told.same or told.doubtful else None


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
    version: Version, known: Known, before: Fingerprint | None, now: Fingerprint | None, standards: Standards
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


def _telling(version: Version, known: Known, text: float, standards: Standards) -> ChangeKind:
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
    """Keys of links only in parts that are not looked at, and whether the page has or had any such parts."""
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

    Of links that went it is not known where they stood; on pages with parts that are not looked at they do not count.
    Where a link goes from the rest of a page, its text does too.
    """
    gone = frozenset[str]() if has_quiet else others - links
    loud = (links - others - quiet) | (gone - _of_masked_kind(gone, mask))
    return not all(map(is_noisy_key, loud))
