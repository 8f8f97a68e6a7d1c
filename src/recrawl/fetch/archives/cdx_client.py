"""CDX server client: lists the captures of an archive, response by response, and can be resumed.

Two dialects exist (conventions A1-A4). Both answer ``output=json``: the Wayback Machine with one array of arrays whose
first row names the fields, pywb and Common Crawl with one JSON object per line. Responses are passed on as received;
``recrawl.formats`` parses their lines.

    paging        how the next response is requested
    RESUME_KEY    by the key at the end of the last one (Wayback Machine)
    PAGES         by number, after a request for their count (Common Crawl, pywb over a ZipNum index)
    ONE           there is only one; also the fallback of PAGES where a server does not count pages
"""

from __future__ import annotations

import enum
import hashlib
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Self
from urllib.parse import unquote_plus, urlencode

from recrawl.errors import ConfigError, FetchError, InputError
from recrawl.fetch.archives.archive_client import ArchiveClient
from recrawl.model import Capture

_DIGITS = re.compile(r"\d{1,14}")


class CdxDialect(enum.Enum):
    """The dialect of a server: parameters and field names."""

    WAYBACK = "wayback"
    PYWB = "pywb"


_FIELDS: Mapping[CdxDialect, Mapping[str, str]] = MappingProxyType(
    {
        CdxDialect.WAYBACK: {"url": "original", "mime": "mimetype", "status": "statuscode"},
        CdxDialect.PYWB: {"original": "url", "mimetype": "mime", "statuscode": "status"},
    }
)


@dataclass(frozen=True, slots=True)
class CdxServerFilter:
    """Keep captures whose field matches; with ``inverted``, drop them. Fields may be named in either dialect."""

    field: str
    pattern: str
    """A regular expression for the whole value, or with ``literal`` the value itself."""
    literal: bool = False
    inverted: bool = False

    def written(self, dialect: CdxDialect) -> str:
        """As the dialect writes it (conventions A2).

        >>> CdxServerFilter("status", "200", literal=True).written(CdxDialect.WAYBACK)
        'statuscode:200'
        >>> CdxServerFilter("mimetype", "text/.*", inverted=True).written(CdxDialect.PYWB)
        '!~mime:(?:text/.*)$'
        """
        name = _FIELDS[dialect].get(self.field, self.field)
        sign = "!" if self.inverted else ""
        if dialect is CdxDialect.WAYBACK:
            return f"{sign}{name}:{re.escape(self.pattern) if self.literal else self.pattern}"
        # pywb's regular expressions need only match at the start.
        return f"{sign}={name}:{self.pattern}" if self.literal else f"{sign}~{name}:(?:{self.pattern})$"


@dataclass(frozen=True, slots=True)
class CdxServerQuery:
    """The captures to list (conventions A1-A3)."""

    url: str
    """``example.org/a``; ``example.org/a/*`` for a prefix; ``*.example.org`` for a domain with its hosts."""
    match: str = ""
    """``exact``, ``prefix``, ``host`` or ``domain`` instead of a star in the URL."""
    since: str = ""
    """1 to 14 digits; both ends are included."""
    until: str = ""
    filters: tuple[CdxServerFilter, ...] = ()
    fields: tuple[str, ...] = ()
    """Only these fields, named in either dialect; all fields of the server if empty."""
    collapse: str = ""
    """``field`` or ``field:N``: of adjacent captures with the same first N characters keep the first."""
    limit: int = 0
    """Maximum captures; 0 for no limit."""

    def __post_init__(self) -> None:
        if not self.url or self.match not in ("", "exact", "prefix", "host", "domain"):
            raise ConfigError(
                f"{self.url!r} cannot be matched as {self.match!r}.",
                "Give a URL, and as match exact, prefix, host or domain.",
            )
        for moment in (self.since, self.until):
            if moment and not _DIGITS.fullmatch(moment):
                raise ConfigError(f"{moment!r} is not a time of an index.", "Give 1 to 14 digits, for example 202405.")
        if self.limit < 0:
            raise ConfigError(f"{self.limit} captures cannot be asked for.", "Give a limit above 0, or 0 for all.")

    def of_one_page(self) -> CdxServerQuery:
        """The same query for the first page alone.

        >>> CdxServerQuery("*.example.org").of_one_page().url, CdxServerQuery("example.org/a/*").of_one_page().url
        ('example.org', 'example.org/a/')
        """
        if self.match:
            return replace(self, match="exact")
        bare = self.url[2:] if self.url.startswith("*.") else self.url.removesuffix("*")
        return replace(self, url=bare, match="exact") if bare not in ("", self.url) else self

    def parameters(self, dialect: CdxDialect) -> list[tuple[str, str]]:
        """The request parameters without paging.

        >>> CdxServerQuery("*.example.org", since="2024", fields=("url", "digest")).parameters(CdxDialect.WAYBACK)
        [('url', '*.example.org'), ('from', '2024'), ('fl', 'original,digest'), ('output', 'json')]
        """
        named = _FIELDS[dialect]
        fields = ",".join(named.get(name, name) for name in self.fields)
        plain = [("url", self.url), ("matchType", self.match), ("from", self.since), ("to", self.until)]
        plain += [("filter", one.written(dialect)) for one in self.filters]
        plain += [("fl", fields), self._collapsed(dialect), ("output", "json")]
        return [(name, value) for name, value in plain if value]

    def _collapsed(self, dialect: CdxDialect) -> tuple[str, str]:
        field, _, length = self.collapse.partition(":")
        if dialect is CdxDialect.WAYBACK or not self.collapse:
            return "collapse", ":".join(filter(None, (_FIELDS[dialect].get(field, field), length)))
        if field == "timestamp":
            return "collapseTime", length or "14"
        raise ConfigError(f"pywb cannot collapse by {field!r}.", "Collapse by timestamp:N, or not at all.")


_COUNT = re.compile(r"\d{1,14}")
_ALL = 2_000_000_000
"""A limit that no archive reaches, and that fits 32 bits."""
_STATE_VERSION = 1
_SHOWN = 200
"""Characters of a server's message that are repeated in an error."""


class Paging(enum.Enum):
    """How a long result is split."""

    RESUME_KEY = "resume-key"
    PAGES = "pages"
    ONE = "one"


@dataclass(frozen=True, slots=True)
class CdxState:
    """The state of a query. Opaque: save its text after each stored response, and pass it back to resume."""

    query: str
    """Digest of server, dialect and query: a state fits no other query."""
    paging: str
    page: int = 0
    """Number of the next page."""
    pages: int = -1
    """Number of pages; -1 until it is known."""
    key: str = ""
    """Where the next response starts."""
    captures: int = 0
    answers: int = 0
    done: bool = False

    def to_text(self) -> str:
        """As text, on one line."""
        return json.dumps({"version": _STATE_VERSION, **asdict(self)}, sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse the text of :meth:`to_text`."""
        try:
            values = json.loads(text)
            version = values.pop("version")
            state = cls(**values)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InputError("the saved state of a query cannot be read", "Start the query again.") from error
        if version != _STATE_VERSION or not all(
            isinstance(getattr(state, name), kind) for name, kind in _STATE_TYPES.items()
        ):
            raise InputError("the saved state of a query is of another version", "Start the query again.")
        return state


_STATE_TYPES = MappingProxyType(
    {"query": str, "paging": str, "page": int, "pages": int, "key": str, "captures": int, "answers": int, "done": bool}
)


@dataclass(frozen=True, slots=True)
class CdxServerPage:
    """One response of the server."""

    url: str
    """The requested URL."""
    body: bytes
    """Array of arrays or lines of JSON, without the resume key; a complete document."""
    captures: int
    """Number of captures in it."""
    state: CdxState
    """The state to resume after it."""


class CdxClient:
    """A CDX server at ``endpoint`` (``https://…/cdx/search/cdx``, ``https://…/CC-MAIN-2025-33-index``, ``…/coll/cdx``).

    ``body_of`` returns the decoded body of a response (``recrawl.detect.decoded``). Memory: one response at a time, of
    at most ``page_captures`` captures where the server lets the client choose.
    """

    def __init__(  # noqa: PLR0913 - its parts, then its settings
        self,
        client: ArchiveClient,
        endpoint: str,
        *,
        body_of: Callable[[Capture], bytes],
        dialect: CdxDialect = CdxDialect.WAYBACK,
        paging: Paging | None = None,
        page_captures: int = 10_000,
        max_answers: int = 100_000,
    ) -> None:
        self._client = client
        self._endpoint = endpoint
        self._body_of = body_of
        self._dialect = dialect
        self._paging = paging or (Paging.RESUME_KEY if dialect is CdxDialect.WAYBACK else Paging.PAGES)
        self._page_captures = page_captures
        self._max_answers = max_answers

    async def answers(self, query: CdxServerQuery, state: CdxState | None = None) -> AsyncIterator[CdxServerPage]:
        """Every response to a query, from the start or from a saved state.

        Raises:
            FetchError: the server fails, does not know the query, or loops. The last state is still valid.
            InputError: the state belongs to another query.
        """
        state = self._fitting(query, state)
        if state.paging == Paging.PAGES.value and state.pages < 0:
            state = await self._counted(query, state)
        keys = {state.key}
        for _ in range(self._max_answers):
            if state.done:
                return
            read = partial(self._read, state=state, query=query)
            answer = await self._client.ask(self._url(query, state), read)
            state = answer.state
            if not state.done and state.paging == Paging.RESUME_KEY.value:
                if state.key in keys:
                    raise FetchError(
                        f"{answer.url}: the server leads in circles (resume key {state.key!r} came before).",
                        "Ask for a smaller part of the archive.",
                    )
                keys.add(state.key)
            yield answer
        if not state.done:
            raise FetchError(
                f"{self._endpoint}: the server has not come to an end after {self._max_answers} answers.",
                "Ask for a smaller part, or go on from the saved state.",
            )

    def _fitting(self, query: CdxServerQuery, state: CdxState | None) -> CdxState:
        named = f"{self._endpoint} {self._dialect.value} {query!r}"
        digest = hashlib.sha256(named.encode()).hexdigest()[:16]
        if state is None:
            return CdxState(digest, self._paging.value)
        if state.query != digest:
            raise InputError("the saved state belongs to another query", "Start the query again.")
        return state

    async def _counted(self, query: CdxServerQuery, state: CdxState) -> CdxState:
        """Request the number of pages; a server that does not count them answers with all captures at once.

        So the query is about a single page first: pywb ignores limit and filters here, and would send everything.
        """
        pages = 0
        for one in dict.fromkeys((query.of_one_page(), query)):
            asked = [*one.parameters(self._dialect), ("showNumPages", "true"), ("limit", "1"), ("allowFuzzy", "false")]
            counted = await self._client.ask(f"{self._endpoint}?{urlencode(asked)}", self._page_count)
            if counted is None:
                return replace(state, paging=Paging.ONE.value)
            pages = counted
        return replace(state, pages=pages, done=pages == 0)

    def _page_count(self, capture: Capture) -> int | None:
        """The number of pages; ``None`` if captures came, or none of them."""
        body = self._checked(capture).strip()
        if not body:
            return None
        try:
            said = json.loads(body.partition(b"\n")[0])
        except ValueError as error:
            raise InputError(f"the number of pages cannot be read ({_words(body)})") from error
        while isinstance(said, list) and said:  # some write [["numpages"], ["12"]]
            said = said[-1]
        count = said.get("pages") if isinstance(said, dict) else said
        if isinstance(said, dict) and count is None:
            return None
        if isinstance(count, bool) or not isinstance(count, int | str) or not _COUNT.fullmatch(str(count)):
            raise InputError(f"the number of pages cannot be read ({_words(body)})")
        return int(count)

    def _url(self, query: CdxServerQuery, state: CdxState) -> str:
        left = query.limit - state.captures if query.limit else 0
        more: list[tuple[str, str]] = []
        if state.paging == Paging.RESUME_KEY.value:
            left = min(left, self._page_captures) if left else self._page_captures
            more.append(("showResumeKey", "true"))
            if state.key:
                more.append(("resumeKey", state.key))
        elif state.paging == Paging.PAGES.value:
            more.append(("page", str(state.page)))
        more.append(("limit", str(left or _ALL)))  # pywb truncates at 100,000 silently, unless a limit is given
        return f"{self._endpoint}?{urlencode([*query.parameters(self._dialect), *more])}"

    def _read(self, capture: Capture, state: CdxState, query: CdxServerQuery) -> CdxServerPage:
        body, count, key = _taken_apart(self._checked(capture))
        total = state.captures + count
        full = bool(query.limit) and total >= query.limit
        page = state.page + 1
        last = {Paging.RESUME_KEY.value: not key, Paging.PAGES.value: page >= state.pages}.get(state.paging, True)
        after = replace(state, page=page, key=key, captures=total, answers=state.answers + 1, done=full or last)
        return CdxServerPage(capture.url, body, count, after)

    def _checked(self, capture: Capture) -> bytes:
        """The body of a valid response. An empty result is an empty body, however the server expresses it."""
        body = self._body_of(capture)
        if capture.status == 200:  # noqa: PLR2004 - the only one that lists captures
            return body
        if capture.status == 404 and b"no captures found" in body.lower():  # noqa: PLR2004 - Common Crawl's empty result
            return b""
        remedy = {
            400: "Check the query; the server's dialect may be another.",
            403: "The archive does not show these captures.",
            404: "Check the address of the CDX server.",
        }.get(capture.status, "Check the address of the CDX server.")
        raise FetchError(f"{capture.url}: the server answered {capture.status} ({_words(body)}).", remedy)


def _taken_apart(body: bytes) -> tuple[bytes, int, str]:
    """The captures of a response, their number, and the resume key after them; empty if there is none."""
    text = body.strip()
    if not text:
        return b"", 0, ""
    if text[:1] == b"[":
        rows = _json(text)
        if not all(isinstance(row, list) for row in rows):
            raise InputError(f"the answer is no list of captures ({_words(text)})")
        if len(rows) > 1 and rows[-2] == [] and len(rows[-1]) == 1:
            rows, key = rows[:-2], _plain_key(str(rows[-1][0]))
            return b"[" + b",\n".join(json.dumps(row).encode() for row in rows) + b"]\n", max(len(rows) - 1, 0), key
        return body, max(len(rows) - 1, 0), ""
    lines = text.split(b"\n")
    if not all(
        isinstance(_json(line), dict) for line in (lines[0], lines[-1])
    ):  # the first line shows the format, the last whether it is complete
        raise InputError(f"the answer is no list of captures ({_words(text)})")
    return body, sum(1 for line in lines if line.strip()), ""


def _json(text: bytes) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the answer is not whole or not JSON ({_words(text)})") from error


def _plain_key(key: str) -> str:
    """A resume key without the URL encoding that servers apply beforehand.

    >>> _plain_key("org%2Cexample%29%2F+20240101000000%21"), _plain_key("org,example)/a+b 2024!")
    ('org,example)/ 20240101000000!', 'org,example)/a+b 2024!')
    """
    return key if ")" in key else unquote_plus(key)


def _words(body: bytes) -> str:
    """The message of a server, short and on one line."""
    return " ".join(body[: 4 * _SHOWN].decode("utf-8", "replace").split())[:_SHOWN] or "nothing"
