"""robots.txt for one crawler: parse the file, then say which line decides about a URL (RFC 9309).

Groups
:   A group is one or more ``User-agent`` lines and the ``Allow`` and ``Disallow`` lines after them. Only those two end
    the list of agents: a ``Crawl-delay``, ``Sitemap``, ``Clean-param`` or unknown line does not (RFC 9309, 2.2.4).
    All groups of our product token count together; if there is none, all groups of ``*`` do.
Rules
:   The matching rule with the longest pattern decides; ``Allow`` wins a tie; without a match a URL is allowed.
Crawl-delay
:   Not part of the RFC. It holds for the agents named directly before it, not for the whole group (as crawler-commons
    reads it). Of several the longest counts.

Where the RFC is silent, Google's published parser is followed: the length of a pattern is that of its text as
written, a missing colon and common misspellings are accepted, ``Allow: /x/index.html`` allows ``/x/``.

Parsing is linear in the file. A decision costs O(rules × length of the URL) at worst: patterns are matched piece by
piece, never by backtracking.
"""

from __future__ import annotations

import codecs
import math
import re
from typing import NamedTuple

MAX_BYTES = 500 * 1024
"""Bytes of a file that are parsed (RFC 9309, 2.5)."""
_PRODUCT = re.compile(r"[A-Za-z_-]+")
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_AGENT = frozenset({"user-agent", "useragent", "user agent"})
_ALLOW = frozenset({"allow"})
_DISALLOW = frozenset({"disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"})
_DELAY = frozenset({"crawl-delay", "crawldelay", "crawl delay"})
_SITEMAP = frozenset({"sitemap", "site-map", "sitemaps"})
_LAST_ASCII = 127
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._~-]*")
"""Text that is in normal form already; most paths are."""
_ODD_OCTET = re.compile(rb"%([0-9A-Fa-f]{2})|[^A-Za-z0-9/._~-]")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class RobotsRule(NamedTuple):
    """One ``Allow`` or ``Disallow`` line."""

    line: int
    """Its number in the file, from 1."""
    allows: bool
    pattern: str
    """As written."""
    start: str
    """The normal form of the text before the first wildcard."""
    pieces: tuple[str, ...]
    """The normal form of the text after each wildcard."""
    anchored: bool
    """Whether the pattern ends with ``$``: nothing may follow in the URL."""

    def matches(self, path: str) -> bool:
        """Whether the pattern matches a path in normal form (:func:`normal_path`)."""
        if not path.startswith(self.start):
            return False
        position, pieces = len(self.start), self.pieces
        if not pieces:
            return not self.anchored or len(path) == position
        for piece in pieces[:-1] if self.anchored else pieces:
            position = path.find(piece, position)  # the leftmost match is the best: it leaves most to what follows
            if position < 0:
                return False
            position += len(piece)
        return not self.anchored or (len(path) - len(pieces[-1]) >= position and path.endswith(pieces[-1]))

    def __str__(self) -> str:
        return f"line {self.line}: {'Allow' if self.allows else 'Disallow'}: {_readable(self.pattern)}"


class AgentRules(NamedTuple):
    """The rules of a robots.txt for one crawler."""

    rules: tuple[RobotsRule, ...] = ()
    """In order of precedence: longest pattern first, ``Allow`` before ``Disallow``."""
    starts: tuple[str, ...] = ()
    """The starts of the rules' patterns, each once."""
    crawl_delay: float | None = None
    """Seconds; ``None`` if the file has none."""
    sitemaps: tuple[str, ...] = ()
    """As written, in order, each once."""
    agent: str = ""
    """The agent whose groups apply: our product token in lower case, ``*``, or empty if there is no group for us."""

    def deciding_rule(self, url: str) -> RobotsRule | None:
        """The rule that decides about a URL; ``None`` if none matches, so that it is allowed."""
        if not self.rules:
            return None
        path = normal_path(url)
        if not path.startswith(self.starts):  # much quicker than rule by rule, and enough for most URLs
            return None
        return next((rule for rule in self.rules if rule.matches(path)), None)

    def allowed(self, url: str) -> bool:
        """Whether the URL may be fetched."""
        rule = self.deciding_rule(url)
        return rule is None or rule.allows


def product_token(user_agent: str) -> str:
    """The name by which a robots.txt addresses a crawler, in lower case.

    >>> product_token("Recrawl/1.0 (+https://example.org/bot)")
    'recrawl'
    """
    found = _PRODUCT.match(user_agent)
    return found[0].lower() if found else ""


def parse_robots_txt(body: bytes, product: str) -> AgentRules:
    r"""The rules of a robots.txt for the crawler with this product token. Accepts any bytes.

    Of a file that is too long only the complete lines of the first 500 KiB count: half a rule would be another rule.

    >>> said = parse_robots_txt(b"User-agent: *\nCrawl-delay: 600\nUser-agent: Bingbot\nDisallow: /private", "recrawl")
    >>> said.crawl_delay, said.allowed("http://example.org/"), str(said.deciding_rule("http://example.org/private/x"))
    (600.0, True, 'line 4: Disallow: /private')
    """
    reading = _RobotsParser(product.lower())
    for number, text in enumerate(_LINE_ENDS.split(_text(body)), 1):
        field, value = _record(text)
        if field:
            reading.take(number, field, value)
    return reading.result()


class _RobotsParser:
    """The state between two lines: the agents addressed, and the rules so far for us and for everybody."""

    def __init__(self, product: str) -> None:
        self._product = product
        self._rules: dict[str, list[RobotsRule]] = {}
        """By agent: ours and ``*``, if they were named."""
        self._delay: dict[str, float] = {}
        self._sitemaps: dict[str, None] = {}
        self._group: set[str] = set()
        """Agents of the open group, as far as they concern us."""
        self._group_has_rules = False
        self._named: set[str] = set()
        """Agents of the last ``User-agent`` lines in a row: a Crawl-delay applies to them."""
        self._named_is_over = False

    def take(self, number: int, field: str, value: str) -> None:
        """Add the next record."""
        if field in _AGENT:
            self._address(value)
        elif field in _ALLOW or field in _DISALLOW:
            self._group_has_rules = self._named_is_over = True
            if value:
                self._add(number, value, allows=field in _ALLOW)
        elif field in _DELAY:
            self._named_is_over = True
            delay = _seconds(value)
            if delay is not None:
                for agent in self._named:
                    self._delay[agent] = max(delay, self._delay.get(agent, 0.0))
        elif field in _SITEMAP and value:
            self._sitemaps[_readable(value)] = None

    def _address(self, value: str) -> None:
        if self._group_has_rules:
            self._group, self._group_has_rules = set(), False
        if self._named_is_over:
            self._named, self._named_is_over = set(), False
        agent = "*" if value.split()[:1] == ["*"] else product_token(value)
        if agent and agent in {"*", self._product}:
            self._group.add(agent)
            self._named.add(agent)
            self._rules.setdefault(agent, [])

    def _add(self, number: int, pattern: str, *, allows: bool) -> None:
        if not self._group:
            return
        rules = [_rule(number, pattern, allows=allows)]
        folder, slash, page = pattern.rpartition("/")
        if allows and slash and page.startswith("index.htm"):
            rules.append(_rule(number, f"{folder}/$", allows=True))
        for agent in self._group:
            self._rules[agent] += rules

    def result(self) -> AgentRules:
        """The rules for us."""
        agent = next((name for name in (self._product, "*") if name in self._rules), "")
        rules = sorted(self._rules.get(agent, ()), key=_precedence)
        starts = tuple({rule.start for rule in rules})
        return AgentRules(tuple(rules), starts, self._delay.get(agent), tuple(self._sitemaps), agent)


def _precedence(rule: RobotsRule) -> tuple[int, bool]:
    """The longest first, non-ASCII octets counted as percent-encoded; of equal ones ``Allow`` first."""
    octets = rule.pattern.encode("utf-8", "surrogateescape")
    return -len(octets) - 2 * sum(octet > _LAST_ASCII for octet in octets), not rule.allows


def _text(body: bytes) -> str:
    if len(body) > MAX_BYTES:
        body = body[: max(body.rfind(b"\n", 0, MAX_BYTES), body.rfind(b"\r", 0, MAX_BYTES)) + 1]
    for mark, name in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if body.startswith(mark):
            return body[2:].decode(name, "replace")
    return body.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")


def _record(line: str) -> tuple[str, str]:
    """Field, in lower case, and value of a line; an empty field if it is none.

    >>> _record(" Disallow : /a b # why"), _record("Disallow /a"), _record("no record at all")
    (('disallow', '/a b'), ('disallow', '/a'), ('', ''))
    """
    line = line.partition("#")[0].strip(" \t\x00\ufeff")
    field, colon, value = line.partition(":")
    if not colon:
        words = line.split()
        if len(words) != 2:  # noqa: PLR2004 - a field and a value
            return "", ""
        field, value = words
    return field.strip().lower(), value.strip()


def _seconds(text: str) -> float | None:
    try:
        delay = float(text)
    except ValueError:
        return None
    return delay if math.isfinite(delay) and delay >= 0 else None


def _rule(line: int, pattern: str, *, allows: bool) -> RobotsRule:
    anchored = pattern.endswith("$")
    pieces = [_normal(piece) for piece in (pattern[:-1] if anchored else pattern).split("*")]
    # Consecutive wildcards are one; one at the end changes nothing, unless the end is anchored.
    between = [piece for piece in pieces[1:-1] if piece]
    last = pieces[-1:] if len(pieces) > 1 and (pieces[-1] or anchored) else []
    return RobotsRule(line, allows, pattern, pieces[0], (*between, *last), anchored)


def normal_path(url: str) -> str:
    """Path and query of an absolute URL in the form in which they are compared (RFC 9309, 2.2.2).

    >>> normal_path("http://example.org/a%62c/%e7%84%bc?q=a:b#top")
    '/abc/%E7%84%BC%3Fq%3Da%3Ab'
    """
    start = url.find("/", url.find("://") + 3)
    query = url.find("?")
    if start < 0 or 0 <= query < start:  # no path at all
        return _normal("/" + (url[query:].partition("#")[0] if query >= 0 else ""))
    return _normal(url[start:].partition("#")[0])


def _normal(text: str) -> str:
    """Each octet in one spelling only: percent-encoded except letters, digits, ``-._~`` and ``/``.

    ``%2F`` stays different from ``/``. Text that is not UTF-8 keeps its bytes.
    """
    if _PLAIN_PATH.fullmatch(text):
        return text
    return _ODD_OCTET.sub(_spelled, text.encode("utf-8", "surrogateescape")).decode("ascii")


def _spelled(octet: re.Match[bytes]) -> bytes:
    """One spelling of an octet that is percent-encoded, or should be."""
    code = int(octet[1], 16) if octet[1] else octet[0][0]
    return bytes([code]) if code in _UNRESERVED else b"%%%02X" % code


def _readable(text: str) -> str:
    """Text of a file without the bytes that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
