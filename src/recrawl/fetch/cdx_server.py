"""Ask a CDX server which captures an archive holds, answer by answer, and go on later where it stopped.

Two dialects are spoken (conventions A2-A4). Both answer ``output=json``: the Wayback Machine with one array of arrays
whose first row names the fields, pywb and Common Crawl with one JSON object a line. Answers are handed on as they
came: what their lines mean is known to ``recrawl.formats``.

    paging        how the next answer is asked for
    RESUME_KEY    by the key that ends the answer before (Wayback Machine)
    PAGES         by number, after asking how many there are (Common Crawl, pywb over a ZipNum index)
    ONE           not at all; also what PAGES becomes where a server does not count pages
"""

from __future__ import annotations

import enum
import hashlib
import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Self
from urllib.parse import unquote_plus, urlencode

from recrawl.errors import FetchError, InputError
from recrawl.fetch.archive_client import ArchiveClient
from recrawl.fetch.cdx_query import CdxQuery, Dialect
from recrawl.model import Capture

_COUNT = re.compile(r"\d{1,14}")
_ALL = 2_000_000_000
"""A limit that no archive comes to, and that fits 32 bits."""
_STATE_VERSION = 1
_SHOWN = 200
"""Characters of a server's own words that are repeated in an error."""


class Paging(enum.Enum):
    """How a long answer is cut."""

    RESUME_KEY = "resume-key"
    PAGES = "pages"
    ONE = "one"


@dataclass(frozen=True, slots=True)
class CdxState:
    """Where a query stands. Opaque: save its text after each answer that you have kept, and hand it back."""

    query: str
    """Digest of server, dialect and query: a state fits no other."""
    paging: str
    page: int = 0
    """Number of the next page."""
    pages: int = -1
    """How many there are; -1 until asked."""
    key: str = ""
    """Where the next answer begins."""
    captures: int = 0
    answers: int = 0
    done: bool = False

    def to_text(self) -> str:
        """As text, in one line."""
        return json.dumps({"version": _STATE_VERSION, **asdict(self)}, sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """What :meth:`to_text` wrote."""
        try:
            values = json.loads(text)
            version = values.pop("version")
            state = cls(**values)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InputError("the saved state of a query cannot be read", "Begin the query anew.") from error
        if version != _STATE_VERSION or not all(
            isinstance(getattr(state, name), kind) for name, kind in _STATE_TYPES.items()
        ):
            raise InputError("the saved state of a query is of another version", "Begin the query anew.")
        return state


_STATE_TYPES = MappingProxyType(
    {"query": str, "paging": str, "page": int, "pages": int, "key": str, "captures": int, "answers": int, "done": bool}
)


@dataclass(frozen=True, slots=True)
class CdxAnswer:
    """One answer of the server."""

    url: str
    """What was asked."""
    body: bytes
    """Array of arrays or lines of JSON, without the resume key; a whole document of its own."""
    captures: int
    """How many it lists."""
    state: CdxState
    """To go on after it."""


class CdxServer:
    """A CDX server at ``endpoint`` (``https://…/cdx/search/cdx``, ``https://…/CC-MAIN-2025-33-index``, ``…/coll/cdx``).

    ``body_of`` gives the decoded body of an answer (``recrawl.detect.decoded``). Memory: one answer at a time, of at
    most ``page_captures`` captures where the server lets us choose.
    """

    def __init__(  # noqa: PLR0913 - what it needs of others, then its settings
        self,
        client: ArchiveClient,
        endpoint: str,
        *,
        body_of: Callable[[Capture], bytes],
        dialect: Dialect = Dialect.WAYBACK,
        paging: Paging | None = None,
        page_captures: int = 10_000,
        max_answers: int = 100_000,
    ) -> None:
        self._client = client
        self._endpoint = endpoint
        self._body_of = body_of
        self._dialect = dialect
        self._paging = paging or (Paging.RESUME_KEY if dialect is Dialect.WAYBACK else Paging.PAGES)
        self._page_captures = page_captures
        self._max_answers = max_answers

    async def answers(self, query: CdxQuery, state: CdxState | None = None) -> AsyncIterator[CdxAnswer]:
        """Every answer to a query, from the beginning or from a saved state on.

        Raises:
            FetchError: the server fails, does not know the query, or leads in circles. The last state still holds.
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

    def _fitting(self, query: CdxQuery, state: CdxState | None) -> CdxState:
        named = f"{self._endpoint} {self._dialect.value} {query!r}"
        digest = hashlib.sha256(named.encode()).hexdigest()[:16]
        if state is None:
            return CdxState(digest, self._paging.value)
        if state.query != digest:
            raise InputError("the saved state belongs to another query", "Begin the query anew.")
        return state

    async def _counted(self, query: CdxQuery, state: CdxState) -> CdxState:
        """Learn how many pages there are; a server that does not count them answers with captures, and all at once.

        So it is asked about a single page first: pywb heeds neither limit nor filters here, and would send all it has.
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
        while isinstance(said, list) and said:  # [["numpages"], ["12"]] is how some write it
            said = said[-1]
        count = said.get("pages") if isinstance(said, dict) else said
        if isinstance(said, dict) and count is None:
            return None
        if isinstance(count, bool) or not isinstance(count, int | str) or not _COUNT.fullmatch(str(count)):
            raise InputError(f"the number of pages cannot be read ({_words(body)})")
        return int(count)

    def _url(self, query: CdxQuery, state: CdxState) -> str:
        left = query.limit - state.captures if query.limit else 0
        more: list[tuple[str, str]] = []
        if state.paging == Paging.RESUME_KEY.value:
            left = min(left, self._page_captures) if left else self._page_captures
            more.append(("showResumeKey", "true"))
            if state.key:
                more.append(("resumeKey", state.key))
        elif state.paging == Paging.PAGES.value:
            more.append(("page", str(state.page)))
        more.append(("limit", str(left or _ALL)))  # pywb cuts at 100,000 without a word, unless it is asked for more
        return f"{self._endpoint}?{urlencode([*query.parameters(self._dialect), *more])}"

    def _read(self, capture: Capture, state: CdxState, query: CdxQuery) -> CdxAnswer:
        body, count, key = _taken_apart(self._checked(capture))
        total = state.captures + count
        full = bool(query.limit) and total >= query.limit
        page = state.page + 1
        last = {Paging.RESUME_KEY.value: not key, Paging.PAGES.value: page >= state.pages}.get(state.paging, True)
        after = replace(state, page=page, key=key, captures=total, answers=state.answers + 1, done=full or last)
        return CdxAnswer(capture.url, body, count, after)

    def _checked(self, capture: Capture) -> bytes:
        """The body of an answer that is one. Nothing found is an empty one, however the server says it."""
        body = self._body_of(capture)
        if capture.status == 200:  # noqa: PLR2004 - the only one that lists captures
            return body
        if capture.status == 404 and b"no captures found" in body.lower():  # noqa: PLR2004 - Common Crawl says it so
            return b""
        remedy = {
            400: "Check the query; the server's dialect may be another.",
            403: "The archive does not show these captures.",
            404: "Check the address of the CDX server.",
        }.get(capture.status, "Check the address of the CDX server.")
        raise FetchError(f"{capture.url}: the server answered {capture.status} ({_words(body)}).", remedy)


def _taken_apart(body: bytes) -> tuple[bytes, int, str]:
    """The captures of an answer, how many there are, and the resume key behind them; empty if there is none."""
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
    ):  # the first tells what it is, the last whether it is whole
        raise InputError(f"the answer is no list of captures ({_words(text)})")
    return body, sum(1 for line in lines if line.strip()), ""


def _json(text: bytes) -> Any:  # noqa: ANN401 - whatever a server says
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the answer is not whole or not JSON ({_words(text)})") from error


def _plain_key(key: str) -> str:
    """A resume key without the encoding of URLs, which servers put on it beforehand.

    >>> _plain_key("org%2Cexample%29%2F+20240101000000%21"), _plain_key("org,example)/a+b 2024!")
    ('org,example)/ 20240101000000!', 'org,example)/a+b 2024!')
    """
    return key if ")" in key else unquote_plus(key)


def _words(body: bytes) -> str:
    """What a server said, short and on one line."""
    return " ".join(body[: 4 * _SHOWN].decode("utf-8", "replace").split())[:_SHOWN] or "nothing"
