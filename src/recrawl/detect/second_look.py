"""Looking twice: what of a difference is noise, found out by asking for the page again at once.

A page was found changed, and is fetched once more moments later. What differs between these two looks is nobody's
work. So a change is believed only if it is in what both looks have in common:

    something is in both looks that was not in the version before, or
    more parts of the version before are in neither look than the looks have parts of their own (noise replaces noise),
    or
    a part differs between the looks that is known to be content, or that carries most of the page's text.

This needs no evidence from before, and cleans the verdict of the very first visit that meets new noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from recrawl.detect.fingerprint import Fingerprint
from recrawl.detect.known import Known
from recrawl.detect.noise_keys import Difference, hidden_rows, hiding_keys, split_key
from recrawl.detect.parts import Parts
from recrawl.detect.standards import Standards
from recrawl.detect.verdict import Judgement, judge, known_after, unchanged
from recrawl.detect.version import Effort
from recrawl.model import Capture, ChangeKind, Outcome, Verdict

_Kept = TypeVar("_Kept", int, str)


def looked_twice(
    first: Capture, second: Capture, known: Known | None, standards: Standards, effort: Effort = Effort.ALL
) -> tuple[Judgement, Judgement]:
    """The judgements of two captures of a page moments apart, the first one in the light of the second.

    What the second teaches about noise is in its ``compared``. Where the second look failed, the first stands as it is.

    Raises:
        CostlyError: more than a cheap effort is needed, and no more is allowed.
    """
    once = judge(first, known, standards, effort)
    if once.verdict != Verdict.CHANGED or not once.kinds:
        return once, _audited(first, second, standards, effort)
    again = _judged_again(once, second, known, standards, effort)
    if again.outcome > Outcome.GONE or known is None:
        return once, again
    seen = again.compared.differed if again.compared else frozenset[int]()
    if once.compared and once.compared.differed & seen & standards.content:
        return once, again
    masked = replace(standards, mask=standards.mask | (seen - standards.content))
    cleaned = judge(first, known, masked, effort)
    if cleaned.verdict == Verdict.CHANGED and _only_noise(once, again, known, masked):
        noise = replace(unchanged(cleaned), kinds=ChangeKind.CONTENT & cleaned.kinds, fingerprint=b"")
        cleaned = replace(noise, links_read=cleaned.links_read)
    return replace(cleaned, compared=once.compared), replace(
        _judged_again(cleaned, second, known, masked, effort), compared=again.compared
    )


def _judged_again(
    once: Judgement, second: Capture, known: Known | None, standards: Standards, effort: Effort
) -> Judgement:
    """The second look, compared with the first."""
    asked = once.compared.differed | once.compared.doubtful if once.compared else frozenset[int]()
    return judge(second, known_after(once, known), replace(standards, watched=standards.watched | asked), effort)


def _audited(first: Capture, second: Capture, standards: Standards, effort: Effort) -> Judgement:
    """The second look, compared with the first one and not with what was known: where that stayed, it is older."""
    return judge(second, known_after(judge(first, None, standards, effort), None), standards, effort)


def _only_noise(once: Judgement, again: Judgement, known: Known, standards: Standards) -> bool:
    """Whether the looks have nothing in common that is new, and nothing is missing but what noise replaced.

    Where most of the text differs between the looks, that is content which changes fast.
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
    return _nothing_new(*texts, masked=renumbered) and _nothing_new(*links)


def _links_after(once: Judgement, again: Judgement) -> frozenset[str]:
    return again.link_keys if again.links_read else once.link_keys


def _loud(parts: Parts, mask: frozenset[int]) -> Iterable[int]:
    hidden = hidden_rows(parts, mask)
    return (content for content, is_hidden in zip(parts.content, hidden, strict=True) if not is_hidden)


def _by_template(parts: Parts, mask: frozenset[int]) -> int:
    """How many parts are noise by their template alone.

    What stood in their place before may have other words, and so another template that nobody knows to be noise.
    """
    keys = filter(None, hiding_keys(parts, mask))
    return sum(split_key(key).kind == Difference.NUMBERS for key in keys)


def _nothing_new(before: Counter[_Kept], one: Counter[_Kept], two: Counter[_Kept], *, masked: int = 0) -> bool:
    """``masked`` are parts of the look that are noise for sure, and that the version before had others for."""
    came = (one & two) - before
    went = before - (one | two)
    return not came and went.total() <= (one - two).total() + max(0, masked)
