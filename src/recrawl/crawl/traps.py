"""URLs that look like one of endlessly many: crawler traps.

Nobody can tell all traps from their URLs. What these rules miss ends at the number of pages that a host may have
(``HostCap``); what they catch does not use that number up.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

_LONGEST = 2_000
"""Characters of a URL; nobody reads longer ones, and traps make them."""
_MOST_REPEATS = 2
"""How often one folder, or one argument, may come up again: /a/b/a/b/a is the mark of a link relative to the wrong
place."""
_SESSION = re.compile(
    r"(?:^|[;&/])(?:jsessionid|phpsessid|aspsessionid\w*|oscsid|zenid|sid|sess(?:ion)?[_-]?id|cfid|cftoken)=",
    re.IGNORECASE,
)
_SESSION_FOLDER = re.compile(r"/\((?:[A-Z]\(\w+\))+\)(?:/|$)", re.IGNORECASE)
"""As ASP.NET writes it: ``/(S(lit3py55t21z5v55vlm25s55))/``."""
_DATE_IN_PATH = re.compile(r"/(\d{4})(?:/|-)(?:0?[1-9]|1[0-2])(?=[/-]|$)")
_DATE_IN_QUERY = re.compile(r"(\d{4})-?(?:0[1-9]|1[0-2])(?:-?\d\d)?(?:T.*)?")
_YEAR_ARGUMENT = re.compile(r"(?:cal)?_?(?:year|yr|jahr|annee|ano|anno)", re.IGNORECASE)
_CALENDAR = re.compile(r"calend|kalend|agenda|events?\b|termine|veranstaltung|schedule|month|week|day", re.IGNORECASE)
MOST_HOPS = 20
"""Redirects in a row by which new pages are found: as many as browsers follow."""
_CHAINS = 100_000
"""Ends of chains that are remembered."""
_NO_WAY = ("", "")
_YEARS_AHEAD, _YEARS_BACK = 1, 30
"""How far a calendar is followed."""


def trap(url: str, *, max_depth: int, year: int | None = None) -> str:
    """Why a URL looks like one of endlessly many, in words; empty text if it does not.

    With ``year``, the year it is now, calendars are followed a year ahead and some decades back only.

    >>> trap("http://x/a/b/a/b/a/b/a/", max_depth=20), trap("http://x/a;jsessionid=1", max_depth=20)
    ('a folder comes up again and again', 'it carries a session')
    >>> trap("http://x/2026/11/15/news", max_depth=20, year=2026), trap("http://x/2031/05/", max_depth=20, year=2026)
    ('', 'it is a page of a calendar, of a far year')
    """
    if len(url) > _LONGEST:
        return "it is too long"
    parts = urlsplit(url)
    folders = [folder for folder in parts.path.split("/") if folder]
    if len(folders) > max_depth:
        return "it is too deep"
    if any(folders.count(folder) > _MOST_REPEATS for folder in set(folders)):
        return "a folder comes up again and again"
    if _SESSION.search(parts.path) or _SESSION.search(parts.query) or _SESSION_FOLDER.search(parts.path):
        return "it carries a session"
    arguments = parse_qsl(parts.query, keep_blank_values=True)
    if len(arguments) > _MOST_REPEATS and max(Counter(arguments).values()) > _MOST_REPEATS:
        return "an argument comes up again and again"
    far = year is not None and _in_a_far_year(parts.path, arguments, year)
    return "it is a page of a calendar, of a far year" if far else ""


def _in_a_far_year(path: str, arguments: list[tuple[str, str]], this_year: int) -> bool:
    """Whether a date in the URL lies years ahead, or, where the URL speaks of a calendar, decades back.

    Without such words old dates are left alone: they name what pages are about.
    """
    years = [int(found) for found in _DATE_IN_PATH.findall(path)]
    for name, value in arguments:
        found = _DATE_IN_QUERY.fullmatch(value)
        if found or (_YEAR_ARGUMENT.fullmatch(name) and re.fullmatch(r"\d{4}", value)):
            years.append(int(value[:4]))
    if not years:
        return False
    said = f"{path} {' '.join(name for name, _ in arguments)}"
    earliest = this_year - _YEARS_BACK if _CALENDAR.search(said) else 0
    return any(not earliest <= year <= this_year + _YEARS_AHEAD for year in years)


class HostCap:
    """How many pages a host may have that are found on the way; pages that people name are always taken."""

    def __init__(self, most: int, held: Mapping[str, int]) -> None:
        """``held`` says how many pages each host has already."""
        self._most = most
        self._held = Counter(held)

    def has_room(self, host: str, more: int = 0) -> bool:
        """Whether one more page of the host may be taken in, beside ``more`` that are about to be."""
        return self._held.get(host, 0) + more < self._most

    def took(self, host: str) -> None:
        """A page was taken in."""
        self._held[host] += 1


class RedirectChains:
    """How pages were found by redirects, one leading to the next. In memory only, and not all of them."""

    def __init__(self) -> None:
        self._ways: OrderedDict[str, tuple[str, str]] = OrderedDict()

    def way(self, url: str) -> tuple[str, str]:
        """The URL that redirected to this one, and a letter for each redirect on the way; empty texts if none did.

        >>> chains = RedirectChains()
        >>> chains.lead("http://x/a", "http://x/b")
        >>> chains.lead("http://x/b", "http://x/c")
        >>> chains.way("http://x/c"), chains.way("http://x/a")
        (('http://x/b', 'RR'), ('', ''))
        """
        return self._ways.get(url, _NO_WAY)

    def lead(self, url: str, to: str) -> None:
        """The first URL redirects to the second. The first way that was found to a page stays its way."""
        if to in self._ways or to == url:
            return
        self._ways[to] = url, self.way(url)[1] + "R"
        if len(self._ways) > _CHAINS:
            self._ways.popitem(last=False)
