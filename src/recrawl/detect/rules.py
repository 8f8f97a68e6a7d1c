"""What users leave out of the comparison: elements by CSS selector, text by regular expression.

Rules are written one a line, or with ``;;`` between them. Each is for all pages, or for those whose URL fits a pattern
with ``*`` for anything:

    .cookie-notice ;; https://example.org/news/* => aside.weather

Rules decide what is compared, not what is followed: links in elements that are left out are still found. Whoever
changes the rules changes what the stored versions mean; each carries the number of the rules it was read under, and
versions under different rules are not compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar
from zlib import crc32

from recrawl.detect.patterns import checked, without_matches
from recrawl.errors import ConfigError, require

_BETWEEN_RULES = re.compile(r"\s*(?:\n|;;)\s*")
_FOR_SOME = re.compile(r"((?:https?://|\*)\S*)\s+=>\s+(.*)")


class Parted(Protocol):
    """A text or data in parts."""

    @property
    def path(self) -> Sequence[int]:
        """Where each part stands."""

    @property
    def said(self) -> Sequence[str]:
        """What it says."""

    def saying(self, kept: Sequence[tuple[int, str]]) -> Any:  # noqa: ANN401 - of the same type
        """The same with other parts."""


Content = TypeVar("Content", bound=Parted)


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


class Rule(NamedTuple):
    """One rule, and the URLs it is for (all, if there is no pattern)."""

    written: str
    urls: re.Pattern[str] | None = None

    def fits(self, url: str) -> bool:
        """Whether it is for this page."""
        return self.urls is None or self.urls.match(url) is not None


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules of a workspace."""

    ignored: tuple[Rule, ...] = ()
    only: tuple[Rule, ...] = ()
    texts: tuple[Rule, ...] = ()

    @classmethod
    def parse(cls, ignore_selectors: str = "", ignore_text: str = "", only_selectors: str = "") -> Rules:
        r"""Rules as users write them.

        >>> rules = Rules.parse(".ad ;; http://x/* => p.clock", r"\d+ visitors")
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


NO_RULES = Rules()


@lru_cache(maxsize=1024)
def _page_rules(ignored: tuple[str, ...], only: tuple[str, ...], texts: tuple[str, ...]) -> PageRules:
    return PageRules(", ".join(ignored), ", ".join(only), tuple(checked(text) for text in texts))


def each_written(text: str) -> list[str]:
    """What stands in a setting that holds several things, one a line or with ``;;`` between them.

    >>> each_written("/login ;; print=")
    ['/login', 'print=']
    """
    return [one for one in _BETWEEN_RULES.split(text.strip()) if one]


def _listed(written: str) -> tuple[Rule, ...]:
    rules = []
    for one in each_written(written):
        some = _FOR_SOME.fullmatch(one)
        rules.append(Rule(some[2], re.compile(translate(some[1]))) if some else Rule(one))
    return tuple(rules)


def _check_selector(selector: str) -> None:
    parser = require("selectolax.lexbor", "crawl")
    try:
        parser.LexborHTMLParser("<p>").css(selector)
    except parser.SelectolaxError:
        raise ConfigError(
            f"{selector!r} is not a CSS selector.", "Write for example .cookie-notice or #weather p."
        ) from None
