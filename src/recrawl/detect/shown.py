"""What a reader sees of one version, and what of it was left out and why. For people; the judge does not need it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from recrawl.detect.body import html_of, media_type
from recrawl.detect.html import read_html
from recrawl.detect.learned_noise import HostNoise
from recrawl.detect.nesting import is_too_costly
from recrawl.detect.noise import noisy_pieces
from recrawl.detect.noise_keys import hiding_keys, without_largest
from recrawl.detect.parts import text_in_parts
from recrawl.detect.rules import NO_PAGE_RULES
from recrawl.detect.standards import Standards
from recrawl.detect.version import MAX_READ, body_of, comparable_answer, is_html
from recrawl.model import Capture, ChangeKind

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+(?=[\w\"'(«“])")
"""Where a paragraph is broken into lines, so that a difference is a sentence and not a paragraph."""
_BY_RULE = "a rule of yours"


class LeftOut(NamedTuple):
    """A part of a page that was not compared."""

    text: str
    why: str
    key: int = 0
    """Of learned noise (``noise_keys``)."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a reader sees of one version, and what was not looked at."""

    lines: tuple[str, ...] = ()
    """The comparable form, piece by piece; none where only bytes can be compared."""
    noise: tuple[tuple[str, str], ...] = ()
    """Rule and text of each piece that fixed rules left out."""
    left_out: tuple[LeftOut, ...] = ()
    """Parts that were learned to be noise, or that rules of the user leave out."""
    size: int = 0
    """Bytes of the decoded body."""
    mime: str = ""


def shown(capture: Capture, standards: Standards, noise: HostNoise, page: int = 0) -> Shown:
    """One version of a page as it is compared; ``noise`` was learned of its host, and says why."""
    body, whole = body_of(capture)
    mime = media_type(capture)
    if not whole or len(body) > MAX_READ:
        return Shown(size=len(body), mime=mime)
    content_type = capture.header("content-type")
    if is_html(mime, body):
        html = html_of(body, content_type)
        if is_too_costly(html):
            return Shown(size=len(body), mime=mime)
        return _shown_page(
            html, capture.url, Shown(size=len(body), mime=mime), standards, partial(noise.why, page=page)
        )
    return Shown(tuple(_data_lines(capture, body, mime, standards)), (), (), len(body), mime)


def _shown_page(html: str, url: str, frame: Shown, standards: Standards, why: Callable[[int], str]) -> Shown:
    rules = standards.rules.of(url)
    page = read_html(html, url, rules)
    written = text_in_parts(page.runs, lambda text: " ".join(text.split())).said
    parts = page.parts.parts()
    mask = without_largest(parts, list(map(len, page.parts.said)), standards.mask, standards.most_masked)
    hidden = hiding_keys(parts, mask)
    left_out = [LeftOut(said, why(key), key) for said, key in zip(page.parts.said, hidden, strict=True) if key]
    if rules is not NO_PAGE_RULES:
        kept = Counter(page.parts.said)
        ruled = (said for said in read_html(html, url).parts.said if not _taken(kept, said))
        left_out += [LeftOut(said, _BY_RULE) for said in ruled]
    noisy = tuple(piece for run in written for piece in noisy_pieces(run))
    seen = (said for said, is_hidden in zip(page.parts.said, hidden, strict=True) if not is_hidden)
    lines = (line for said in seen for line in _SENTENCE_END.split(said))
    return Shown(tuple(filter(None, lines)), noisy, tuple(left_out), frame.size, frame.mime)


def _taken(kept: Counter[str], said: str) -> bool:
    """Take one of these texts out of those kept; whether there was one."""
    if not kept[said]:
        return False
    kept[said] -= 1
    return True


def _data_lines(capture: Capture, body: bytes, mime: str, standards: Standards) -> list[str]:
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
