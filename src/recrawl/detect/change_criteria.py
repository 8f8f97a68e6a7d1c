"""Change criteria: how much must differ, in which respect, and which parts users exclude.

Users exclude elements by CSS selector and text by regular expression. Rules stand one per line, or with ``;;`` between
them. Each applies to all pages, or to those whose URL matches a pattern with ``*`` for anything:

    .cookie-notice ;; https://example.org/news/* => aside.weather

Rules decide what is compared, not which links are followed: links in excluded elements are still found. A change of the
rules changes the meaning of stored versions. So each version has the number of the rules it was read under, and
versions under different rules are not compared.

Some regular expressions take exponential time on hostile texts: ``(a|aa)*b`` on a long row of ``a``. Texts come from
strangers, and a running pattern cannot be stopped. So each pattern is checked first: the check counts the ways in which
it can be tried at one position (every repetition multiplies; a nested repetition takes the power), and refuses patterns
with too many ways. Texts are searched in pieces of bounded length, which bounds the ways of ``.*``. Plain patterns,
with at most two unbounded repetitions in a row, all pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from re import _constants as codes  # type: ignore[attr-defined] # the standard library's own reading of a pattern
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple, Protocol, TypeVar
from zlib import crc32

from recrawl.errors import ConfigError, require

LONGEST = 500
"""Characters of a text that are searched at once."""
MAX_WAYS = (LONGEST + 1) ** 2
"""Ways at one place. Two unbounded repetitions are this many; a piece then takes some 0.3 s at the very worst."""


def checked(pattern: str) -> re.Pattern[str]:
    r"""The compiled pattern.

    >>> checked(r"Visitors: \d+").pattern
    'Visitors: \\d+'

    Raises:
        ConfigError: it cannot be read, matches the empty text, or may take forever.
    """
    try:
        read = re.compile(pattern)
        ways = _ways(_parser.parse(pattern))
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"The pattern {pattern!r} cannot be read ({error}).", "Write it as Python's re reads it."
        ) from None
    if ways > MAX_WAYS:
        raise ConfigError(
            f"The pattern {pattern!r} can take forever on some texts.",
            "Use at most two of * and + in a row, and none around a group that has choices or repetitions in it.",
        )
    if read.match("") is not None:
        raise ConfigError(f"The pattern {pattern!r} matches the empty text.", "Write what must be there, as in \\d+.")
    return read


def without_matches(pattern: re.Pattern[str], text: str) -> str:
    """The text with a space for each match. Matches do not reach over the ends of pieces of :data:`LONGEST` characters.

    >>> without_matches(re.compile("b+"), "abbc")
    'a c'
    """
    if len(text) <= LONGEST:
        return pattern.sub(" ", text)
    return "".join(pattern.sub(" ", piece) for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces of bounded length, cut behind spaces where there are any."""
    start = 0
    while start < len(text):
        end = start + LONGEST
        if end < len(text):
            space = text.rfind(" ", start, end)
            end = space + 1 if space > start else end
        yield text[start:end]
        start = end


def _ways(pattern: Any) -> int:  # noqa: ANN401 - a pattern as the standard library reads it
    """In how many ways a parsed pattern can be tried at one place: the product over its items."""
    ways = 1
    for code, held in pattern:
        ways = min(ways * _ways_of(code, held), MAX_WAYS + 1)
    return ways


def _ways_of(code: Any, held: Any) -> int:  # noqa: ANN401 - as above
    """The same for one item."""
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        low, high, item = held
        inner, most = _ways(item), min(int(high), LONGEST)
        # Of a repetition with ways inside each time multiplies; after 64 times no bound holds any more.
        return max(1, most - int(low) + 1) if inner == 1 else inner ** min(most, 64)
    inside = {codes.SUBPATTERN: -1, codes.ASSERT: 1, codes.ASSERT_NOT: 1}
    if code in inside:
        return _ways(held[inside[code]])
    if code in (codes.BRANCH, codes.GROUPREF_EXISTS):
        branches = held[1] if code is codes.BRANCH else held[1:]
        return sum(_ways(branch) for branch in branches if branch is not None)
    return _ways(held) if code is codes.ATOMIC_GROUP else 1


_BETWEEN_RULES = re.compile(r"\s*(?:\n|;;)\s*")
_FOR_SOME = re.compile(r"((?:https?://|\*)\S*)\s+=>\s+(.*)")


class PartedContent(Protocol):
    """A text or data in parts."""

    @property
    def path(self) -> Sequence[int]:
        """Where each part stands."""

    @property
    def said(self) -> Sequence[str]:
        """What it says."""

    def saying(self, kept: Sequence[tuple[int, str]]) -> Any:  # noqa: ANN401 - of the same type
        """The same with other parts."""


Content = TypeVar("Content", bound=PartedContent)


class PageRules(NamedTuple):
    """The rules for one page."""

    ignored: str = ""
    """Selector of the elements that are left out."""
    only: str = ""
    """Selector of the elements that alone are compared."""
    texts: tuple[re.Pattern[str], ...] = ()
    """What is cut out of the text of every part."""

    @property
    def number(self) -> int:
        """The same for the same rules, 0 without any."""
        if not (self.ignored or self.only or self.texts):
            return 0
        written = "\n".join([self.ignored, self.only, *(pattern.pattern for pattern in self.texts)])
        return crc32(written.encode("utf-8", "surrogatepass")) or 1

    def applied(self, tree: Any) -> str:  # noqa: ANN401 - a selectolax tree, which is changed
        """The page as HTML with what is to be compared."""
        if self.ignored:
            # Inner elements come last in document order and must go first: an element may not outlive its parent.
            for node in reversed(tree.css(self.ignored)):
                if node.tag not in ("html", "body"):
                    node.decompose()
        if not self.only:
            return tree.html or ""
        chosen: list[Any] = []
        inside: set[int] = set()
        for node in tree.css(self.only):
            if node.mem_id not in inside:
                chosen.append(node)
                inside.update(inner.mem_id for inner in node.traverse())
        return "".join(f"<div>{node.html}</div>" for node in chosen)

    def cut(self, text: Content) -> Content:
        """The parts without what is to be ignored; parts of which nothing is left are left out."""
        if not self.texts:
            return text
        kept: list[tuple[int, str]] = []
        for path, said in zip(text.path, text.said, strict=True):
            for pattern in self.texts:
                said = without_matches(pattern, said)  # noqa: PLW2901 - cut by one after the other
            if said := " ".join(said.split()):
                kept.append((path, said))
        cut: Content = text.saying(kept)
        return cut


NO_PAGE_RULES = PageRules()


class IgnoreRule(NamedTuple):
    """One rule, and the URLs it is for (all, if there is no pattern)."""

    written: str
    urls: re.Pattern[str] | None = None

    def fits(self, url: str) -> bool:
        """Whether it is for this page."""
        return self.urls is None or self.urls.match(url) is not None


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """All rules of a workspace."""

    ignored: tuple[IgnoreRule, ...] = ()
    only: tuple[IgnoreRule, ...] = ()
    texts: tuple[IgnoreRule, ...] = ()

    @classmethod
    def parse(cls, ignore_selectors: str = "", ignore_text: str = "", only_selectors: str = "") -> IgnoreRules:
        r"""Rules as users write them.

        >>> rules = IgnoreRules.parse(".ad ;; http://x/* => p.clock", r"\d+ visitors")
        >>> rules.of("http://x/a").ignored, rules.of("http://y/").ignored
        ('.ad, p.clock', '.ad')

        Raises:
            ConfigError: a selector or a pattern cannot be read, or may take forever.
        """
        rules = cls(_listed(ignore_selectors), _listed(only_selectors), _listed(ignore_text))
        for rule in (*rules.ignored, *rules.only):
            _check_selector(rule.written)
        for rule in rules.texts:
            checked(rule.written)
        return rules

    def of(self, url: str) -> PageRules:
        """The rules for one page. O(rules)."""
        if not (self.ignored or self.only or self.texts):
            return NO_PAGE_RULES
        ignored, only, texts = (
            tuple(rule.written for rule in some if rule.fits(url)) for some in (self.ignored, self.only, self.texts)
        )
        return _page_rules(ignored, only, texts)


NO_RULES = IgnoreRules()


@lru_cache(maxsize=1024)
def _page_rules(ignored: tuple[str, ...], only: tuple[str, ...], texts: tuple[str, ...]) -> PageRules:
    return PageRules(", ".join(ignored), ", ".join(only), tuple(checked(text) for text in texts))


def each_written(text: str) -> list[str]:
    """What stands in a setting that holds several things, one a line or with ``;;`` between them.

    >>> each_written("/login ;; print=")
    ['/login', 'print=']
    """
    return [one for one in _BETWEEN_RULES.split(text.strip()) if one]


def _listed(written: str) -> tuple[IgnoreRule, ...]:
    rules = []
    for one in each_written(written):
        some = _FOR_SOME.fullmatch(one)
        rules.append(IgnoreRule(some[2], re.compile(translate(some[1]))) if some else IgnoreRule(one))
    return tuple(rules)


def _check_selector(selector: str) -> None:
    parser = require("selectolax.lexbor", "crawl")
    try:
        parser.LexborHTMLParser("<p>").css(selector)
    except parser.SelectolaxError:
        raise ConfigError(
            f"{selector!r} is not a CSS selector.", "Write for example .cookie-notice or #weather p."
        ) from None


@dataclass(frozen=True, slots=True)
class ChangeCriteria:
    """The measure a change detector applies to the pages of one host."""

    min_change: float = 0.0
    """Share of the text that must differ (:attr:`Judgement.magnitude` above it). 0: any visible difference; 0.1: the
    rule of SHARC 8.2. Above 0, links alone are no change."""
    row_order: bool = True
    """Whether the order of rows in CSV and of values in JSON lists is content."""
    rules: IgnoreRules = NO_RULES
    """What the user leaves out."""
    mask: frozenset[int] = frozenset()
    """Keys of parts that were learned to be noise on this page or on its host."""
    most_masked: float = 0.5
    """Share of a page's text that the mask may hide. What carries more is content, however often it differs."""
    watched: frozenset[int] = frozenset()
    """Keys of parts of this host that there is evidence on, noise or not."""
    content: frozenset[int] = frozenset()
    """Keys of parts of this host that confirmations have shown to be content: if such a part differs between two
    answers moments apart, it was edited in between."""
    probable: frozenset[int] = frozenset()
    """Keys of parts that differ moments apart as noise does, on too few pages or in too few minutes to be masked. If
    such a part is the same in two answers moments apart, that was chance."""
    suspects: frozenset[int] = frozenset()
    """Keys of parts that differed moments apart before: if only the order of such a list differs, that is no change."""
    use_kernels: bool = False
    """Compile the slowest step where numba is installed: takes seconds once, and pays from thousands of pages on."""
    obeys_nofollow: bool = True
    """Whether links that a page or its server asks robots not to follow are neither followed nor counted."""
    takes_embeds: bool = False
    """Whether page requisites (images, styles, scripts) are listed. Costs one pass of the parser."""
    agent: str = "recrawl"
    """Our name in ``X-Robots-Tag`` rules, lower-case."""
