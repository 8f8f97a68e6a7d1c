"""Explain a verdict: the steps of the change detector and the differences, for people to check.

Nothing is decided here. The verdict comes from the change detector, run again on the two versions; the rest shows what
it compared, and which text of a version was left out and why. Two versions of a text can be shown side by side, line by
line, with the differing words marked. Slower than classification, and meant for one page at a time.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import NamedTuple, TypeAlias

from recrawl.detect.body import html_of, media_type
from recrawl.detect.change_criteria import NO_PAGE_RULES, ChangeCriteria
from recrawl.detect.change_verdict import ChangeResult, classify_change, known_after
from recrawl.detect.html.html_document import is_too_costly, read_html
from recrawl.detect.noise.learned_noise import NO_NOISE, HostNoise
from recrawl.detect.noise.noise_keys import hiding_keys, without_largest
from recrawl.detect.noise.text_noise import noisy_pieces
from recrawl.detect.text.shingles import shingles, similarity
from recrawl.detect.text.text_parts import text_in_parts
from recrawl.detect.version import MAX_READ, body_of, comparable_answer, is_html
from recrawl.errors import counted
from recrawl.model import Capture, ChangeKind

Piece: TypeAlias = tuple[str, bool]
"""A stretch of a line, and whether it differs from the other side."""
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_LONG = 1_000
"""Characters of a line beyond which words are not compared: it is marked as a whole."""
_ALIKE = 0.3
"""Share of words in common below which two lines are not one line that was edited."""
MOST_LINES = 1_500
"""Lines of a version beyond which it is not compared: the time would grow with their square."""
MOST_PAIRS = 1_000_000
"""Pairs of words that are compared at most, of all lines together: further lines are marked as a whole."""


class LineSide(Enum):
    """What became of a line."""

    SAME = "same"
    EDITED = "edited"
    WENT = "went"
    CAME = "came"
    SKIPPED = "skipped"
    """Lines left out because they and their neighbours are the same."""


@dataclass(frozen=True, slots=True)
class SideRow:
    """A line of the earlier version and the one of the later version beside it."""

    side: LineSide
    before: tuple[Piece, ...] = ()
    after: tuple[Piece, ...] = ()
    skipped: int = 0
    """How many lines this row stands for, where they are left out."""


def side_by_side(before: Sequence[str], after: Sequence[str], context: int = 3) -> list[SideRow] | None:
    """Rows of both versions with N equal lines around each difference; ``None`` if they are too long.

    O(lines²) at worst, also for hostile pages: lines that many others equal, as a page of one line a thousand times,
    are no places to meet at, and words are compared up to ``MOST_PAIRS``.

    >>> for row in side_by_side(["Open daily", "Fee: 3 EUR"], ["Open daily", "Fee: 4 EUR"]):
    ...     print(row.side.value, row.before, row.after)
    same (('Open daily', False),) (('Open daily', False),)
    edited (('Fee: ', False), ('3', True), (' EUR', False)) (('Fee: ', False), ('4', True), (' EUR', False))
    """
    if max(len(before), len(after)) > MOST_LINES:
        return None
    rows: list[SideRow] = []
    words = _Words(MOST_PAIRS)
    # Without "autojunk" equal lines would cost the third power of their number.
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=True)
    for tag, low, high, other_low, other_high in matcher.get_opcodes():
        if tag == "equal":
            rows += (SideRow(LineSide.SAME, *(((line, False),),) * 2) for line in before[low:high])
        else:
            rows += _replaced(before[low:high], after[other_low:other_high], words)
    return list(_shortened(rows, context))


class _Words:
    """Compares lines word by word, until it has compared enough."""

    def __init__(self, most: int) -> None:
        self._left = most

    def edited(self, old: str, new: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]] | None:
        """The pieces of two lines by words; ``None`` if they have too little in common."""
        if max(len(old), len(new)) > _LONG:
            return ((old, True),), ((new, True),)
        one, other = _WORDS.findall(old), _WORDS.findall(new)
        self._left -= len(one) * len(other)
        if self._left < 0:
            return ((old, True),), ((new, True),)
        matcher = difflib.SequenceMatcher(None, one, other, autojunk=True)
        if matcher.quick_ratio() < _ALIKE or matcher.ratio() < _ALIKE:
            return None
        left: list[Piece] = []
        right: list[Piece] = []
        for tag, low, high, other_low, other_high in matcher.get_opcodes():
            differs = tag != "equal"
            left.append(("".join(one[low:high]), differs))
            right.append(("".join(other[other_low:other_high]), differs))
        return tuple(piece for piece in left if piece[0]), tuple(piece for piece in right if piece[0])


def _replaced(went: Sequence[str], came: Sequence[str], words: _Words) -> Iterator[SideRow]:
    """Lines that became others: beside each other where they have words in common, else one below the other."""
    paired = min(len(went), len(came))
    for old, new in zip(went[:paired], came[:paired], strict=True):
        pieces = words.edited(old, new)
        if pieces is None:
            yield SideRow(LineSide.WENT, ((old, True),))
            yield SideRow(LineSide.CAME, (), ((new, True),))
        else:
            yield SideRow(LineSide.EDITED, *pieces)
    for old in went[paired:]:
        yield SideRow(LineSide.WENT, ((old, True),))
    for new in came[paired:]:
        yield SideRow(LineSide.CAME, (), ((new, True),))


def _shortened(rows: list[SideRow], context: int) -> Iterator[SideRow]:
    """The rows without equal ones that are further than ``context`` from every difference."""
    near = [False] * len(rows)
    for at, row in enumerate(rows):
        if row.side is not LineSide.SAME:
            for close in range(max(0, at - context), min(len(rows), at + context + 1)):
                near[close] = True
    left_out = 0
    for row, shown in zip(rows, near, strict=True):
        if shown:
            if left_out:
                yield SideRow(LineSide.SKIPPED, skipped=left_out)
            left_out = 0
            yield row
        else:
            left_out += 1
    if left_out:
        yield SideRow(LineSide.SKIPPED, skipped=left_out)


_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+(?=[\w\"'(«“])")
"""Where a paragraph is broken into lines, so that a difference is a sentence and not a paragraph."""
_BY_RULE = "a rule of yours"


class IgnoredPart(NamedTuple):
    """A part of a page that was not compared."""

    text: str
    why: str
    key: int = 0
    """Of learned noise (``noise_keys``)."""


@dataclass(frozen=True, slots=True)
class VisibleText:
    """What a reader sees of one version, and what was not observed."""

    lines: tuple[str, ...] = ()
    """The comparable form, piece by piece; none where only bytes can be compared."""
    noise: tuple[tuple[str, str], ...] = ()
    """Rule and text of each piece that fixed rules left out."""
    left_out: tuple[IgnoredPart, ...] = ()
    """Parts that were learned to be noise, or that rules of the user leave out."""
    size: int = 0
    """Bytes of the decoded body."""
    mime: str = ""


def shown(capture: Capture, standards: ChangeCriteria, noise: HostNoise, page: int = 0) -> VisibleText:
    """One version of a page as it is compared; ``noise`` is the learned noise of its host, with the reasons."""
    body, whole = body_of(capture)
    mime = media_type(capture)
    if not whole or len(body) > MAX_READ:
        return VisibleText(size=len(body), mime=mime)
    content_type = capture.header("content-type")
    if is_html(mime, body):
        html = html_of(body, content_type)
        if is_too_costly(html):
            return VisibleText(size=len(body), mime=mime)
        return _shown_page(
            html, capture.url, VisibleText(size=len(body), mime=mime), standards, partial(noise.why, page=page)
        )
    return VisibleText(tuple(_data_lines(capture, body, mime, standards)), (), (), len(body), mime)


def _shown_page(
    html: str, url: str, frame: VisibleText, standards: ChangeCriteria, why: Callable[[int], str]
) -> VisibleText:
    rules = standards.rules.of(url)
    page = read_html(html, url, rules)
    written = text_in_parts(page.runs, lambda text: " ".join(text.split())).said
    parts = page.parts.parts()
    mask = without_largest(parts, list(map(len, page.parts.said)), standards.mask, standards.most_masked)
    hidden = hiding_keys(parts, mask)
    left_out = [IgnoredPart(said, why(key), key) for said, key in zip(page.parts.said, hidden, strict=True) if key]
    if rules is not NO_PAGE_RULES:
        kept = Counter(page.parts.said)
        ruled = (said for said in read_html(html, url).parts.said if not _taken(kept, said))
        left_out += [IgnoredPart(said, _BY_RULE) for said in ruled]
    noisy = tuple(piece for run in written for piece in noisy_pieces(run))
    seen = (said for said, is_hidden in zip(page.parts.said, hidden, strict=True) if not is_hidden)
    lines = (line for said in seen for line in _SENTENCE_END.split(said))
    return VisibleText(tuple(filter(None, lines)), noisy, tuple(left_out), frame.size, frame.mime)


def _taken(kept: Counter[str], said: str) -> bool:
    """Take one of these texts out of those kept; whether there was one."""
    if not kept[said]:
        return False
    kept[said] -= 1
    return True


def _data_lines(capture: Capture, body: bytes, mime: str, standards: ChangeCriteria) -> list[str]:
    found = comparable_answer(capture, body, row_order=standards.row_order)
    if found is None:
        return []
    form, content = found.form, found.content
    rules = standards.rules.of(capture.url)
    if rules.texts:
        return list(rules.cut(content()).said)
    if form[:1] in ("{", "["):
        try:
            return json.dumps(json.loads(form), indent=1, ensure_ascii=False).splitlines()
        except ValueError:
            pass
    is_data = mime != "text/plain" or found.kind == ChangeKind.DATA
    return form.splitlines() if is_data else list(content().said)


_ANY = ChangeCriteria()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Two versions of a page side by side."""

    before: VisibleText
    after: VisibleText
    judgement: ChangeResult
    """The result of the change detector for the later version, given only the earlier one."""
    standards: ChangeCriteria
    """What the change detector went by."""
    same_bytes: bool
    similarity: float | None
    """Share of ten-word shingles in common (SHARC 8.2); ``None`` where there is no text."""
    links_added: tuple[str, ...]
    links_removed: tuple[str, ...]

    def diff(self, context: int = 2) -> list[str]:
        """Lines that left and came, marked ``-`` and ``+``, with N lines around them."""
        found = difflib.unified_diff(self.before.lines, self.after.lines, n=context, lineterm="")
        return list(found)[2:]  # without the names of files


def explain(
    before: Capture, after: Capture, standards: ChangeCriteria = _ANY, noise: HostNoise = NO_NOISE, page: int = 0
) -> Explanation:
    r"""Compare two captures of one page, the earlier one first. O(length²) at worst, for texts that share nothing.

    ``standards`` are those of the page, ``noise`` is what was learned of its host, ``page`` its number there.

    >>> def page(text):
    ...     return Capture("http://x/", 0.0, 200, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", text.encode())
    >>> told = explain(page("<p>One<p>At 09:14:07"), page("<p>Two<p>At 09:20:00"))
    >>> told.judgement.verdict.name, told.diff(0)[1:], told.after.noise
    ('CHANGED', ['-One', '+Two'], (('clock with seconds', '09:20:00'),))
    """
    first = classify_change(before, None, standards)
    second = classify_change(after, known_after(first, None), standards)
    earlier, later = (shown(one, standards, noise, page) for one in (before, after))
    old_passages, passages = (shingles("\n".join(one.lines)) for one in (earlier, later))
    alike = similarity(old_passages, passages) if len(old_passages) or len(passages) else None
    # A change detector who finds the same bytes reads no links: they are those of the version before.
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


_QUOTED = 60
"""Characters of a line that a summary quotes."""
_ROWS = ("text/csv", "text/tab-separated-values")
"""Media types whose lines are rows."""


def summary(told: Explanation) -> str:
    r"""One sentence on what differs between two versions: the first edited, added and removed line, and how many more.

    O(lines²) at worst, up to ``MOST_LINES``; beyond that, lines are only counted.

    >>> def page(text):
    ...     return Capture("http://x/", 0.0, 200, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", text.encode())
    >>> summary(explain(page("<p>Fee: 3 EUR"), page("<p>Fee: 4 EUR<p><a href=/why>Why?</a>")))
    'Fee: 3 EUR → Fee: 4 EUR; 1 line added: “Why?”; 1 link added.'
    """
    before, after = told.before, told.after
    parts = [] if before.mime == after.mime else [f"{before.mime or 'no type'} → {after.mime or 'no type'}"]
    unit = "row" if after.mime in _ROWS else "line"
    rows = side_by_side(before.lines, after.lines, 0)
    if rows is None:
        went, came = Counter(before.lines), Counter(after.lines)
        parts += _counted_lines(unit, "added", list((came - went).elements()))
        parts += _counted_lines(unit, "removed", list((went - came).elements()))
    else:
        edited = [row for row in rows if row.side is LineSide.EDITED]
        if edited:
            more = f" and {counted(len(edited) - 1, f'more edited {unit}')}" if len(edited) > 1 else ""
            parts.append(_edited(edited[0]) + more)
        for side, word in ((LineSide.CAME, "added"), (LineSide.WENT, "removed")):
            of_side = [row.after if side is LineSide.CAME else row.before for row in rows if row.side is side]
            parts += _counted_lines(unit, word, ["".join(text for text, _ in pieces) for pieces in of_side])
    for links, word in ((told.links_added, "added"), (told.links_removed, "removed")):
        if links:
            parts.append(f"{counted(len(links), 'link')} {word}")
    if not parts and before.lines != after.lines:
        parts.append("the same lines in another order")
    if not parts and not (told.same_bytes or before.lines or after.lines):
        parts.append(f"only bytes can be compared, and they differ: {before.size:,} → {after.size:,} bytes")
    said = "; ".join(parts) or "no visible difference"
    return f"{said[0].upper()}{said[1:]}."


def _counted_lines(unit: str, word: str, lines: Sequence[str]) -> list[str]:
    first = next((line for line in lines if line.strip()), "")
    return [f"{counted(len(lines), unit)} {word}: “{_quoted(first)}”"] if lines else []


def _edited(row: SideRow) -> str:
    """Both sides of an edited line, from shortly before their first difference."""
    old, new = ("".join(text for text, _ in pieces) for pieces in (row.before, row.after))
    same = next((at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), 0)
    start = max(0, same - _QUOTED // 3) if max(len(old), len(new)) > _QUOTED else 0
    lead = "…" if start else ""
    return f"{lead}{_quoted(old[start:])} → {lead}{_quoted(new[start:])}"


def _quoted(text: str) -> str:
    """The beginning of a line without control characters: page content must not control a terminal."""
    clean = "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))
    return clean if len(clean) <= _QUOTED else clean[: _QUOTED - 1] + "…"


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
        steps.append(("links", f"{len(told.links_added)} added, {len(told.links_removed)} removed"))
    if judgement.shunned:
        steps.append(("not followed", f"{counted(len(judgement.shunned), 'link')}, as the page asks"))
    return steps


def _measured(magnitude: float, threshold: float) -> str:
    if not threshold:
        return f"{magnitude:.3f}; any visible difference counts"
    return f"{magnitude:.3f}; {'above' if magnitude > threshold else 'not above'} detect.min_change = {threshold:g}"
