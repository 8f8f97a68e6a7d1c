"""Confirmation: fetch a changed page again at once to separate noise from change.

A page was found changed and is fetched again moments later. A difference between these two responses is noise. So a
change counts only if it is common to both:

 * both responses have a part that the version before did not have; or
 * more parts of the version before are in neither response than each response has parts of its own (noise replaces
   noise); or
 * both have the parts of the version before in the same new order, and at least four of them moved (shuffled parts come
   in the same order once in 24 times, two links in every second confirmation); or
 * a part differs between the responses that is known to be content, or that has most of the page's text.

This needs no earlier evidence, and corrects the verdict of the first visit that meets new noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from operator import ne
from typing import TypeVar

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
