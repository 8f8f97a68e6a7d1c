"""The Detector seam, and the confirmation of a change by a second fetch.

*Confirmation* separates noise from change. A page was found changed and is fetched again moments later. A difference
between these two responses is noise. So a change counts only if it is common to both:

 * both responses have a part that the version before did not have; or
 * more parts of the version before are in neither response than each response has parts of its own (noise replaces
   noise); or
 * both have the parts of the version before in the same new order, and at least four of them moved (shuffled parts come
   in the same order once in 24 times, two links in every second confirmation); or
 * a part differs between the responses that is known to be content, or that has most of the page's text.

This needs no earlier evidence, and corrects the verdict of the first visit that meets new noise.

*Detectors* receive a capture and the state of its page, and return a :class:`ChangeResult`. Two detectors are built in.
``parts`` compares texts, links and data under learned noise (:mod:`.change_verdict`) and confirms changes by a second
fetch. ``bytes`` compares nothing but bytes, for collections in which every difference counts.

Every implementation passes :class:`recrawl.testing.DetectorConformance`. Packages register detectors as entry points of
the group ``recrawl.detectors``: a callable without arguments that returns a detector. The setting ``detect.detector``
chooses one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from operator import ne
from types import MappingProxyType
from typing import Protocol, TypeVar, runtime_checkable

from recrawl.detect.change_criteria import ChangeCriteria
from recrawl.detect.change_verdict import ChangeResult, classify_change, known_after, unchanged
from recrawl.detect.fingerprint import Fingerprint, PageState
from recrawl.detect.noise.noise_keys import Difference, hidden_rows, hiding_keys, split_key
from recrawl.detect.text.text_parts import PageParts
from recrawl.detect.version import Effort
from recrawl.model import Capture, ChangeKind, Outcome, Verdict

_MOVED = 4
"""Parts in another order that are hardly in the same order twice by chance."""
_Kept = TypeVar("_Kept", int, str)


def classify_confirmed(
    first: Capture, second: Capture, known: PageState | None, standards: ChangeCriteria, effort: Effort = Effort.ALL
) -> tuple[ChangeResult, ChangeResult]:
    """The verdicts of two captures of a page moments apart, the first one in the light of the second.

    What the second teaches about noise is in its ``compared``. Where the confirmation failed, the first stands as it
    is.

    Raises:
        CostlyError: more than a cheap effort is needed, and no more is allowed.
    """
    once = classify_change(first, known, standards, effort)
    if once.verdict != Verdict.CHANGED or not once.kinds:
        return once, _in_question(_audited(first, second, standards, effort), once)
    again = _in_question(_classified_again(once, second, known, standards, effort), once)
    if again.outcome > Outcome.GONE or known is None:
        return once, again
    seen = again.compared.differed if again.compared else frozenset[int]()
    if once.compared and once.compared.differed & seen & standards.content:
        return once, again
    masked = replace(standards, mask=standards.mask | standards.probable | (seen - standards.content))
    cleaned = classify_change(first, known, masked, effort)
    if cleaned.verdict == Verdict.CHANGED and _only_noise(once, again, known, masked):
        noise = replace(unchanged(cleaned), kinds=ChangeKind.CONTENT & cleaned.kinds, fingerprint=b"")
        cleaned = replace(noise, links_read=cleaned.links_read)
    return replace(cleaned, compared=once.compared), replace(
        _classified_again(cleaned, second, known, masked, effort), compared=again.compared
    )


def _classified_again(
    once: ChangeResult, second: Capture, known: PageState | None, standards: ChangeCriteria, effort: Effort
) -> ChangeResult:
    """The confirmation, compared with the first."""
    asked = once.compared.differed | once.compared.doubtful if once.compared else frozenset[int]()
    return classify_change(
        second, known_after(once, known), replace(standards, watched=standards.watched | asked), effort
    )


def _in_question(again: ChangeResult, once: ChangeResult) -> ChangeResult:
    """The verdict of the confirmation, with the differences of the first fetch from the version before.

    What carries most of the text is content however often it differs, and counts as if it had agreed.
    """
    if again.compared is None or once.compared is None:
        return again
    told = again.compared
    compared = replace(
        told,
        differed=told.differed - told.heavy,
        same=told.same | told.heavy,
        in_question=once.compared.differed | once.compared.doubtful,
    )
    return replace(again, compared=compared)


def _audited(first: Capture, second: Capture, standards: ChangeCriteria, effort: Effort) -> ChangeResult:
    """The confirmation, compared with the first one and not with what was known: where that stayed, it is older."""
    return classify_change(
        second, known_after(classify_change(first, None, standards, effort), None), standards, effort
    )


def _only_noise(once: ChangeResult, again: ChangeResult, known: PageState, standards: ChangeCriteria) -> bool:
    """Whether the observations have nothing in common that is new, and nothing is missing but what noise replaced.

    Where most of the text differs between the observations, that is content which changes fast.
    """
    if once.kinds & (ChangeKind.EXISTENCE | ChangeKind.TYPE):
        return False
    if again.compared and again.compared.fresh > standards.most_masked:
        return False
    before, now, then = map(Fingerprint.unpack, (known.fingerprint, once.fingerprint, again.fingerprint))
    if before is None or now is None:
        return False
    texts = [Counter(_loud(one.parts, standards.mask)) for one in (before, now, then or now)]
    links = [Counter(keys) for keys in (known.links_last, once.link_keys, _links_after(once, again))]
    renumbered = _by_template(now.parts, standards.mask) - _by_template(before.parts, standards.mask)
    if _is_reordered(before.parts, now.parts, (then or now).parts, standards.mask | standards.suspects):
        return False
    return _nothing_new(*texts, masked=renumbered) and _nothing_new(*links)


def _is_reordered(before: PageParts, now: PageParts, then: PageParts, mask: frozenset[int]) -> bool:
    """Whether both observations have all parts of the version before in an order that is hardly the same by chance."""
    old, one, two = (list(_loud(parts, mask)) for parts in (before, now, then))
    moved = sum(map(ne, old, one))
    return one == two and moved >= _MOVED and Counter(one) == Counter(old)


def _links_after(once: ChangeResult, again: ChangeResult) -> frozenset[str]:
    return again.link_keys if again.links_read else once.link_keys


def _loud(parts: PageParts, mask: frozenset[int]) -> Iterable[int]:
    hidden = hidden_rows(parts, mask)
    return (content for content, is_hidden in zip(parts.content, hidden, strict=True) if not is_hidden)


def _by_template(parts: PageParts, mask: frozenset[int]) -> int:
    """How many parts are noise by their template alone.

    What stood in their place before may have other words, and so another template that nobody knows to be noise.
    """
    keys = filter(None, hiding_keys(parts, mask))
    return sum(split_key(key).kind == Difference.NUMBERS for key in keys)


def _nothing_new(before: Counter[_Kept], one: Counter[_Kept], two: Counter[_Kept], *, masked: int = 0) -> bool:
    """``masked`` are parts of the observation that are noise for sure, and that the version before had others for."""
    came = (one & two) - before
    went = before - (one | two)
    return not came and went.total() <= (one - two).total() + max(0, masked)


@runtime_checkable
class Detector(Protocol):
    """Decides whether a page changed.

    Rules for all implementations:
     1. A detector is a function: equal arguments give equal judgements. It reads no clock, does no I/O, stores nothing
        and modifies no argument. What must be known at the next visit is in the judgement (``validators``,
        ``fingerprint``) and comes back in ``known``.
     2. It does not raise because of what a server sent. An answer that cannot be used has the verdict unknown.
     3. The first answer of a page (``known`` is ``None``) has the verdict unknown: there is nothing to compare with.
     4. A failure has no verdict: no answer, a body that was cut off, 5xx, 429, 4xx other than 404 and 410.
        ``outcome`` is that of :func:`recrawl.detect.change_verdict.outcome_of`.
     5. The same bytes again are unchanged. 404 and 410 after an answer are a change, once.
     6. A detector pickles: large answers are classified in worker processes, with limits of CPU time and memory.
     7. With ``Effort.CHEAP`` it takes some milliseconds or raises :class:`~recrawl.detect.version.CostlyError`; with
        ``Effort.BYTES`` it does not parse; with ``Effort.ALL`` it may take what it needs. O(bytes of the body).
    """

    @property
    def name(self) -> str:
        """The name in settings. Not empty."""
        ...

    def classify(
        self, capture: Capture, known: PageState | None, criteria: ChangeCriteria, effort: Effort = Effort.ALL
    ) -> ChangeResult:
        """Compare a capture with the ``known`` state of its page (``None`` before its first answer).

        ``criteria`` are the rules of the user and the learned noise of the host. The captures of a page come in the
        order of their time.

        Raises:
            CostlyError: more than a cheap effort is needed, and no more is allowed.
        """
        ...


@runtime_checkable
class ConfirmingDetector(Detector, Protocol):
    """A detector that can separate noise from change by a second capture, fetched moments after the first.

    For other detectors no page is fetched a second time.
    """

    def confirm(
        self,
        first: Capture,
        second: Capture,
        known: PageState | None,
        criteria: ChangeCriteria,
        effort: Effort = Effort.ALL,
    ) -> tuple[ChangeResult, ChangeResult]:
        """The results of both captures, the first one corrected by the second. Raises as ``classify`` does."""
        ...


@dataclass(frozen=True, slots=True)
class PartsDetector:
    """Compares text, links and data of a page, part by part, without noise."""

    name: str = "parts"

    def classify(
        self, capture: Capture, known: PageState | None, criteria: ChangeCriteria, effort: Effort = Effort.ALL
    ) -> ChangeResult:
        """See :func:`~recrawl.detect.change_verdict.classify_change`."""
        return classify_change(capture, known, criteria, effort)

    def confirm(
        self,
        first: Capture,
        second: Capture,
        known: PageState | None,
        criteria: ChangeCriteria,
        effort: Effort = Effort.ALL,
    ) -> tuple[ChangeResult, ChangeResult]:
        """See :func:`~recrawl.detect.detector.classify_confirmed`."""
        return classify_confirmed(first, second, known, criteria, effort)


@dataclass(frozen=True, slots=True)
class BytesDetector:
    """Compares the bytes of the body. Every difference is a change, noise too. Finds no links."""

    name: str = "bytes"

    def classify(
        self, capture: Capture, known: PageState | None, criteria: ChangeCriteria, effort: Effort = Effort.ALL
    ) -> ChangeResult:
        """Cheap at any effort."""
        del effort
        return classify_change(capture, known, criteria, Effort.BYTES)


PARTS = PartsDetector()
"""The default."""
DETECTORS: Mapping[str, Detector] = MappingProxyType({PARTS.name: PARTS, "bytes": BytesDetector()})
"""The built-in detectors by name."""
