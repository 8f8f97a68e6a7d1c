"""Fixed rules for noise in text: clocks, nonces, advertisements.

The rules are few and favour a person who reads the page. The comment beside each rule states what it hides when it is
wrong. They are three tables: :data:`WORD_RULES` and :data:`TEXT_RULES` for the visible text, :data:`ELEMENT_RULES` for
elements whose class, id or role names their purpose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from recrawl.model.compiled import can_compile

_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?"
_SECONDS = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?"
_ZONE = r"(?:\s?[ap]\.?m\b\.?)?(?:\s?(?:z|utc|gmt|ces?t|[ecmp][sd]t)\b|\s?[+-]\d{2}:?\d{2}\b)?"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"


class TextRule(NamedTuple):
    """A piece of text that is not content."""

    name: str
    pattern: re.Pattern[str]
    """In small letters, for small letters: to search without regard to case takes twice as long."""
    hides: str
    """What is missed where the rule is wrong."""
    hints: tuple[str, ...]
    """Lower-case texts; every match contains at least one of them. They limit the search."""
    marked: re.Pattern[str] | None = None
    """If any: finds a character that every match holds right behind a hint, or with a space between: rarer still."""


def _rule(name: str, pattern: str, hides: str, *hints: str, marks: str = "") -> TextRule:
    # The mark first: that is what the search is quick for. Then it looks back, which works for fixed lengths only.
    behind = "|".join(f"(?<={hint}{gap}.)" for hint in hints for gap in ("", r"\s"))
    return TextRule(name, re.compile(pattern), hides, hints, re.compile(f"[{marks}](?:{behind})") if marks else None)


TEXT_RULES: tuple[TextRule, ...] = (
    _rule(
        "date with time",
        rf"\b(?:\d{{4}}-\d{{2}}-\d{{2}}[t,]?\s?"
        rf"|(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{{0,6}},?\s)?\d{{1,2}}\.?\s{_MONTH},?\s\d{{4}},?\s(?:at\s)?"
        rf"|{_MONTH}\s\d{{1,2}},?\s\d{{4}},?\s(?:at\s)?"
        rf"|\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}},?\s){_TIME}{_ZONE}",
        "an event that moves to another hour",
        ":",
    ),
    _rule("clock with seconds", rf"\b{_SECONDS}{_ZONE}", "a lap time or a track length of hours", ":"),
    _rule(
        "clock with a label",
        rf"\b(?:time|clock|now|updated|generated|rendered|served|retrieved|as\sof)\b[\s:]{{1,3}}(?:is\s|at\s)?{_TIME}{_ZONE}",
        "a meeting time written like a clock",
        ":",
    ),
    _rule(
        "relative time",
        r"\b(?:\d{1,9}|an?|one|few)\s(?:second|minute|hour|day|week|month|year)s?\sago\b|\bjust\snow\b",
        "a sentence that counts backwards",
        "ago",
        "just now",
    ),
    _rule(
        "how long the page took",
        r"\b(?:generated|rendered|loaded|served|processed|executed|took)\s(?:in\s)?\d{1,9}(?:[.,]\d{1,9})?\s?"
        r"(?:ms|s|msec|sec|seconds?|milliseconds?)\b",
        "a benchmark result in these words",
        "generated",
        "rendered",
        "loaded",
        "served",
        "processed",
        "executed",
        "took",
    ),
    _rule(
        "visitor count",
        r"\b(?:visitors?|visits|page\s?views|hits|users\sonline)\s?[:=]\s?\d[\d.,]*",
        "statistics of the site itself",
        "visitor",
        "visitors",
        "visits",
        "views",
        "hits",
        "users online",
        marks=":=",
    ),
    _rule(
        "labelled token",
        r"\b(?:nonce|csrf|xsrf|token|session(?:\sid)?|request(?:\sid)?|trace(?:\sid)?)\s?[:=#]\s?\S{4,}",
        "a published token",
        "nonce",
        "csrf",
        "xsrf",
        "token",
        "session",
        "session id",
        "request",
        "request id",
        "trace",
        "trace id",
        marks=":=#",
    ),
)
"""In the order in which they are applied."""

WORD_RULES: tuple[TextRule, ...] = (
    TextRule(
        "UUID",
        re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE),
        "a record known by its UUID only",
        (),
    ),
    TextRule(
        "long hexadecimal number",
        re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{16,}\b", re.IGNORECASE),
        "a new checksum beside an unchanged name",
        (),
    ),
    TextRule(
        "long random token",
        re.compile(r"\b(?=[A-Za-z]*\d)(?=[a-z0-9]*[A-Z])(?=[A-Z0-9]*[a-z])[A-Za-z0-9]{24,}(?![A-Za-z0-9])={0,2}"),
        "a new key beside an unchanged name",
        (),
    ),
)
"""Applied before the others, with capitals, and to words of at least :data:`LONG_WORD` characters only."""
LONG_WORD = 16

ELEMENT_RULES: dict[str, tuple[str, ...]] = {
    "advertisement": (
        ".ad",
        ".ads",
        ".advert",
        ".advertisement",
        ".adsbygoogle",
        ".ad-banner",
        ".banner-ad",
        ".ad-container",
        ".ad-slot",
        ".ad-unit",
        ".sponsored",
        "#ad",
        "#ads",
        "[data-ad-slot]",
        "[role=marquee]",
    ),
    "banner": (".banner", "#banner", ".banner-rotator", ".rotating-banner"),
    "clock": (
        ".clock",
        "#clock",
        ".current-time",
        ".server-time",
        ".countdown",
        ".timestamp",
        "#timestamp",
        "[role=timer]",
    ),
    "counter": (".hit-counter", ".visitor-counter", "#hit-counter", "#visitor-counter"),
}
"""CSS selectors by kind of noise. ``role=banner`` is missing on purpose: in ARIA it is the header of the site."""

NEVER_NOISE = frozenset({"html", "head", "body", "main", "article", "header", "nav"})
MAX_NOISE_TEXT = 500
"""Characters. A clock or a banner is short; a longer text is content, whatever its class."""
MAX_NOISE_LINKS = 3
"""A banner points to one place; what points to many is navigation."""

_REACH = 80
"""Characters on both sides of a hint that a match may need."""
_CLOCK_BEFORE, _CLOCK_AFTER = 44, 32
"""The same for the colon of a clock, of which there are many: a full date before it, seconds and zone after it."""
_COLON_OF_CLOCK = re.compile(r":(?=\d\d)(?<=\d:)")  # the plain character first: that is what the search is quick for
_KINDS = (1, 1, 1, 2, 4, 8, 16)
"""A bit for each of the rules, as ``noise_scan.py`` numbers them."""
_ANYTHING = 63
_SELECTORS = [selector for selectors in ELEMENT_RULES.values() for selector in selectors]
_SELECTOR = ", ".join(_SELECTORS)
_STEMS = ("ad", "banner", "clock", "count", "sponsored", "time")
_MAYBE_NOISY = ", ".join(
    [f"[{name}*={stem} i]" for name in ("class", "id") for stem in _STEMS]
    + [one for one in _SELECTORS if one[0] == "["]
)
"""Holds all that the selectors hold, and is checked in half the time: they are many, and noise is rare."""
NAMES = frozenset(one[1:] for one in _SELECTORS)
_TOKEN_IN_KEY = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-z]{24,}|[0-9a-f]{16,}")


def without_noise(text: str, *, use_kernels: bool = False) -> str:
    """The text with every noisy piece cut out and runs of space made one.

    Patterns are slow and noise is rare, so they are tried only on long words and near hints: O(length) with a
    small constant. ``use_kernels`` takes a quarter of the time where numba is installed, and seconds at the first
    call: for those who have thousands of texts.

    >>> without_noise("Served 2026-11-15 09:14:07 UTC.  Open 9:00 to 17:00.")
    'Served . Open 9:00 to 17:00.'
    """
    may_be = _ANYTHING
    if use_kernels and can_compile():
        from recrawl.detect.noise.noise_scan import scanned  # numba is slow to import

        text, may_be = scanned(text)
        if not may_be:
            return text
    return without_kinds(text, may_be)


def without_kinds(text: str, may_be: int) -> str:
    """The text without noise of the kinds in ``may_be``, which are bits of ``noise_scan.py``; others are not there."""
    return _searched(text, lambda _rule, _piece: None, may_be)


def noisy_pieces(text: str) -> list[tuple[str, str]]:
    """What :func:`without_noise` cuts out: the name of the rule and the piece, rule by rule.

    >>> noisy_pieces("Served 2026-11-15 09:14:07 UTC.")
    [('date with time', '2026-11-15 09:14:07 UTC')]
    """
    pieces: list[tuple[str, str]] = []
    _searched(text, lambda rule, piece: pieces.append((rule.name, piece)))
    return pieces


def _searched(text: str, on_noise: Callable[[TextRule, str], None], may_be: int = _ANYTHING) -> str:
    """The text without noise; ``on_noise`` is called for each piece. Only the kinds in ``may_be`` are searched for.

    A cut brings together what stood apart, so after one anything may be there.
    """
    words = text.split()
    cut = max(map(len, words), default=0) >= LONG_WORD and _cut_long_words(words, on_noise)
    text = " ".join(words)
    lower = text.replace("İ", "I").lower()  # the one letter that would become two, after which places disagree
    for kind, rule in zip(_KINDS, TEXT_RULES, strict=True):
        if not (cut or may_be & kind):
            continue
        near = _near_hints(lower, rule)
        spans = [found.span() for start, end in near for found in rule.pattern.finditer(lower, start, end)]
        if spans:
            text, lower, cut = _cut(text, spans, rule, on_noise), _outside(lower, spans), True
    return " ".join(text.split()) if cut else text


def _cut_long_words(words: list[str], on_noise: Callable[[TextRule, str], None]) -> bool:
    """Cut noise out of the long words, in place; whether there was any."""
    long = [place for place, length in enumerate(map(len, words)) if length >= LONG_WORD]
    # All long words at once, each on a line of its own: no rule reaches over the end of a line.
    uncut = less = "\n".join([words[place] for place in long])
    for rule in WORD_RULES:
        spans = [found.span() for found in rule.pattern.finditer(less)]
        if spans:
            less = _cut(less, spans, rule, on_noise)
    for place, word in zip(long, less.split("\n"), strict=True):
        words[place] = word
    return less != uncut


def _cut(text: str, spans: Sequence[tuple[int, int]], rule: TextRule, on_noise: Callable[[TextRule, str], None]) -> str:
    for start, end in spans:
        on_noise(rule, text[start:end])
    return _outside(text, spans)


def _outside(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """What is not in the spans, with a space for each."""
    pieces, done = [], 0
    for start, end in spans:
        pieces.append(text[done:start])
        done = end
    return " ".join([*pieces, text[done:]])


def _near_hints(lower: str, rule: TextRule) -> Iterator[tuple[int, int]]:
    """Disjoint spans, ending at spaces, that hold every match of a rule."""
    start = end = -1
    reaches = _reaches_of_marks(lower, rule.marked) if rule.marked else _reaches(lower, rule.hints)
    for first, last in sorted(reaches):
        if last <= end:
            continue
        left = max(lower.rfind(" ", 0, max(0, first)), 0)
        right = lower.find(" ", last)
        right = len(lower) if right < 0 else right
        if left <= end:
            end = right
            continue
        if end >= 0:
            yield start, end
        start, end = left, right
    if end >= 0:
        yield start, end


def _reaches(lower: str, hints: Iterable[str]) -> Iterator[tuple[int, int]]:
    """How far a match may go on both sides of each hint."""
    for hint in hints:
        if hint == ":":  # nearly all colons are prose; a clock has digits on both sides
            for found in _COLON_OF_CLOCK.finditer(lower):
                place = found.start()
                yield place - _CLOCK_BEFORE, place + _CLOCK_AFTER
            continue
        place = lower.find(hint)
        while place >= 0:
            yield place - _REACH, place + _REACH
            place = lower.find(hint, place + 1)


def _reaches_of_marks(lower: str, marked: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """The same for the marks of a rule that stand behind a hint."""
    for found in marked.finditer(lower):
        place = found.start()
        yield place - _REACH, place + _REACH


def drop_noisy_elements(tree: Any) -> None:  # noqa: ANN401 - a selectolax tree, which has no types of its own here
    """Remove from a parsed page the elements whose class, id or role marks them as noise."""
    if not any(map(_may_be_noisy, tree.css(_MAYBE_NOISY))):
        return
    # Inner elements come last in document order and must go first: an element may not outlive its parent.
    content = set[int]()
    for node in reversed(tree.css(_SELECTOR)):
        if node.tag in NEVER_NOISE or node.mem_id in content:
            continue
        if len(node.text(deep=True)) <= MAX_NOISE_TEXT and len(node.css("a[href]")) <= MAX_NOISE_LINKS:
            node.decompose()
            continue
        # What holds content is content: to measure all that is around it would take as long as the page is deep.
        around = node.parent
        while around is not None and around.mem_id not in content:
            content.add(around.mem_id)
            around = around.parent


def _may_be_noisy(node: Any) -> bool:  # noqa: ANN401 - a selectolax node
    attributes = node.attributes
    if "role" in attributes or "data-ad-slot" in attributes:
        return True
    names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}".lower().split()
    return not NAMES.isdisjoint(names)


@lru_cache(maxsize=1 << 16)  # the same links come up from version to version
def is_noisy_key(key: str) -> bool:
    """True if the query of a SURT key carries a nonce, so that the same link looks new on every visit.

    >>> is_noisy_key("com,example)/form?token=9f86d081884c7d659a2feaa0c55ad015"), is_noisy_key("com,example)/a?page=2")
    (True, False)
    """
    _, _, query = key.partition("?")
    return any(
        _TOKEN_IN_KEY.fullmatch(value) and any(map(str.isdigit, value))
        for _, _, value in (argument.partition("=") for argument in query.split("&"))
    )
