"""Why a visit found a change or none: the judge's steps, and what differs, for people to check.

Nothing is decided here. The verdict is the judge's own, asked again with the two versions; the rest shows what it
looked at. Dearer than judging, and meant for one page at a time.
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass

from recrawl.detect.body import media_type, text_of
from recrawl.detect.html import text_runs
from recrawl.detect.noise import noisy_pieces, without_noise
from recrawl.detect.shingles import shingles, similarity
from recrawl.detect.verdict import Judgement, judge, known_after
from recrawl.detect.version import MAX_READ, body_of, comparable, is_comparable, is_html
from recrawl.errors import InputError
from recrawl.model import Capture, ChangeKind

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+(?=[\w\"'(«“])")
"""Where a paragraph is broken into lines, so that a difference is a sentence and not a paragraph."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a reader sees of one version, and what was not looked at."""

    lines: tuple[str, ...] = ()
    """The comparable form, piece by piece; none where only bytes can be compared."""
    noise: tuple[tuple[str, str], ...] = ()
    """Rule and text of each piece that was left out."""
    size: int = 0
    """Bytes of the decoded body."""
    mime: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Two versions of a page side by side."""

    before: Shown
    after: Shown
    judgement: Judgement
    """What the judge says of the later one, knowing the earlier one alone."""
    same_bytes: bool
    similarity: float | None
    """Share of ten-word shingles in common (SHARC 8.2); ``None`` where there is no text."""
    links_added: tuple[str, ...]
    links_removed: tuple[str, ...]

    def diff(self, context: int = 2) -> list[str]:
        """Lines that left and came, marked ``-`` and ``+``, with so many lines around them."""
        found = difflib.unified_diff(self.before.lines, self.after.lines, n=context, lineterm="")
        return list(found)[2:]  # without the names of files


def explain(before: Capture, after: Capture) -> Explanation:
    r"""Compare two captures of one page, the earlier one first. O(length²) at worst, for texts that share nothing.

    >>> def page(text):
    ...     return Capture("http://x/", 0.0, 200, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", text.encode())
    >>> told = explain(page("<p>One<p>At 09:14:07"), page("<p>Two<p>At 09:20:00"))
    >>> told.judgement.verdict.name, told.diff(0)[1:], told.after.noise
    ('CHANGED', ['-One', '+Two'], (('clock with seconds', '09:20:00'),))
    """
    first = judge(before, None)
    second = judge(after, known_after(first, None))
    shown = _shown(before), _shown(after)
    earlier, later = (shingles("\n".join(one.lines)) for one in shown)
    alike = similarity(earlier, later) if len(earlier) or len(later) else None
    # A judge who finds the same bytes reads no links: they are those of the version before.
    old, new = first.links, second.links if second.links_read else first.links
    return Explanation(
        *shown,
        second,
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
        steps.append(("noise", f"{len(after.noise)} {'piece' if len(after.noise) == 1 else 'pieces'} left out"))
    if told.similarity is not None:
        differs = bool(judgement.kinds & (ChangeKind.TEXT | ChangeKind.DATA))
        share = f"{told.similarity:.1%} of the ten-word passages are in both"
        steps.append(("content", f"differs; {share}" if differs else f"the same; {share}"))
    if told.links_added or told.links_removed:
        steps.append(("links", f"{len(told.links_added)} came, {len(told.links_removed)} went"))
    return steps


def _shown(capture: Capture) -> Shown:
    body, whole = body_of(capture)
    mime = media_type(capture)
    if not whole or len(body) > MAX_READ:
        return Shown(size=len(body), mime=mime)
    text = text_of(body, capture.header("content-type"))
    if is_html(mime, body):
        runs = text_runs(text)
        noise = tuple(piece for run in runs for piece in noisy_pieces(run))
        lines = (line for run in runs for line in _SENTENCE_END.split(without_noise(run)))
        return Shown(tuple(filter(None, lines)), noise, len(body), mime)
    return Shown(tuple(_data_lines(text, mime, capture.url)), (), len(body), mime)


def _data_lines(text: str, mime: str, url: str) -> list[str]:
    if not is_comparable(mime):
        return []
    try:
        form, _, _ = comparable(text, mime, url)
    except InputError:
        return []
    if form[:1] in ("{", "["):
        try:
            return json.dumps(json.loads(form), indent=1, ensure_ascii=False).splitlines()
        except ValueError:
            pass
    return form.splitlines()
