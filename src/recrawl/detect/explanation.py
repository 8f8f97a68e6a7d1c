"""Why a visit found a change or none: the judge's steps, and what differs, for people to check.

Nothing is decided here. The verdict is the judge's own, asked again with the two versions; the rest shows what it
looked at. Dearer than judging, and meant for one page at a time.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from recrawl.detect.learned_noise import NO_NOISE, HostNoise
from recrawl.detect.shingles import shingles, similarity
from recrawl.detect.shown import Shown, shown
from recrawl.detect.standards import Standards
from recrawl.detect.verdict import Judgement, judge, known_after
from recrawl.detect.version import body_of
from recrawl.model import Capture, ChangeKind
from recrawl.model.words import counted

_ANY = Standards()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Two versions of a page side by side."""

    before: Shown
    after: Shown
    judgement: Judgement
    """What the judge says of the later one, knowing the earlier one alone."""
    standards: Standards
    """What the judge went by."""
    same_bytes: bool
    similarity: float | None
    """Share of ten-word shingles in common (SHARC 8.2); ``None`` where there is no text."""
    links_added: tuple[str, ...]
    links_removed: tuple[str, ...]

    def diff(self, context: int = 2) -> list[str]:
        """Lines that left and came, marked ``-`` and ``+``, with so many lines around them."""
        found = difflib.unified_diff(self.before.lines, self.after.lines, n=context, lineterm="")
        return list(found)[2:]  # without the names of files


def explain(
    before: Capture, after: Capture, standards: Standards = _ANY, noise: HostNoise = NO_NOISE, page: int = 0
) -> Explanation:
    r"""Compare two captures of one page, the earlier one first. O(length²) at worst, for texts that share nothing.

    ``standards`` are those of the page, ``noise`` is what was learned of its host, ``page`` its number there.

    >>> def page(text):
    ...     return Capture("http://x/", 0.0, 200, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", text.encode())
    >>> told = explain(page("<p>One<p>At 09:14:07"), page("<p>Two<p>At 09:20:00"))
    >>> told.judgement.verdict.name, told.diff(0)[1:], told.after.noise
    ('CHANGED', ['-One', '+Two'], (('clock with seconds', '09:20:00'),))
    """
    first = judge(before, None, standards)
    second = judge(after, known_after(first, None), standards)
    earlier, later = (shown(one, standards, noise, page) for one in (before, after))
    old_passages, passages = (shingles("\n".join(one.lines)) for one in (earlier, later))
    alike = similarity(old_passages, passages) if len(old_passages) or len(passages) else None
    # A judge who finds the same bytes reads no links: they are those of the version before.
    old = dict.fromkeys(first.links)
    new = dict.fromkeys(second.links if second.links_read else first.links)
    return Explanation(
        earlier,
        later,
        second,
        standards,
        body_of(before)[0] == body_of(after)[0],
        alike,
        tuple(link for link in new if link not in old),
        tuple(link for link in old if link not in new),
    )


def reasons(told: Explanation) -> list[tuple[str, str]]:
    """The steps from cheap to dear, each with what it found, in words."""
    before, after, judgement = told.before, told.after, told.judgement
    sizes = f"the same {after.size:,}" if told.same_bytes else f"differ ({before.size:,} before, {after.size:,} now)"
    types = dict.fromkeys(one.mime or "none said" for one in (before, after))
    steps = [("bytes", sizes), ("type", " → ".join(types))]
    if after.noise:
        steps.append(("noise", f"{counted(len(after.noise), 'piece')} left out"))
    if after.left_out:
        steps.append(("not compared", counted(len(after.left_out), "part")))
    if told.similarity is not None:
        differs = bool(judgement.kinds & (ChangeKind.TEXT | ChangeKind.DATA))
        share = f"{told.similarity:.1%} of the ten-word passages are in both"
        steps.append(("content", f"differs; {share}" if differs else f"the same; {share}"))
    if judgement.magnitude >= 0:
        steps.append(("magnitude", _measured(judgement.magnitude, told.standards.min_change)))
    if told.links_added or told.links_removed:
        steps.append(("links", f"{len(told.links_added)} came, {len(told.links_removed)} went"))
    if judgement.shunned:
        steps.append(("not followed", f"{counted(len(judgement.shunned), 'link')}, as the page asks"))
    return steps


def _measured(magnitude: float, threshold: float) -> str:
    if not threshold:
        return f"{magnitude:.3f}; any visible difference counts"
    return f"{magnitude:.3f}; {'above' if magnitude > threshold else 'not above'} detect.min_change = {threshold:g}"
