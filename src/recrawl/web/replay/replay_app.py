"""The replay server: Memento, CDX, replay and packages, on a separate origin.

It must not share its origin (host and port) with the dashboard: what it serves was written by others.

Access rules for reading and for sending index lines are those of the dashboard, adapted to URLs that contain URLs.

The token is taken from the addresses of the start page only: an archived URL may have an argument of that name. Every
request other than GET, HEAD or OPTIONS needs the token itself, before routing.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from recrawl.errors import InputError, MissingExtraError, RecrawlError, StorageError, StoreError, require
from recrawl.formats.cdx.cdx_lines import read_cdx
from recrawl.formats.cdx.cdxj import read_cdxj
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.timemap import ArchiveUris
from recrawl.store.browse import PageQuery
from recrawl.time import to_timestamp14
from recrawl.web.dashboard.access_control import (
    SAFE_METHODS,
    SHOW_TOKEN,
    WRONG_TOKEN,
    AccessGuard,
    AccessRefusal,
    cookies_of,
    headers_of,
    refuse,
    say,
    token_in_address,
)
from recrawl.web.html_templates import InlineAssets, environment
from recrawl.web.replay import cdx_server
from recrawl.web.replay.cdx_server import CdxRequest, query_of
from recrawl.web.replay.mementos import Mementos, TimeMapPage, TimeMapQuery, time_map
from recrawl.web.replay.replay_port import (
    IngestOptions,
    MementoRequest,
    RefusalError,
    ReplayPort,
    TimeGateRequest,
    TimeMapRequest,
    asked_for,
    moment_of,
    uris_at,
    web_url,
)

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from recrawl.store.base import Store


def add_lines(archive: ReplayPort, data: bytes, options: IngestOptions) -> str:
    """Take lines over, all or none, unless bad ones are to be passed over; what became of them, in words."""
    if archive.ingest is None:
        raise RefusalError("This archive does not accept captures.", 405)
    if not data.strip():
        raise RefusalError("The body has no lines. Send CDX or CDXJ.")
    taken = archive.ingest(data, options)
    return f"Added {taken.added} records\n" + (f"Skipped {taken.bad} bad lines\n" if taken.bad else "")


def delete_lines(archive: ReplayPort, data: bytes, options: IngestOptions) -> str:
    """Forget the captures that lines name. What a visit of our own brought stays."""
    if archive.ingest is None:
        raise RefusalError("This archive does not accept captures.", 405)
    dropped = 0
    batches = batches_of(data, ReadReport(strict=not options.skip_bad))
    with archive.store() as store:
        for batch in batches:
            seconds = np.floor(batch.column("time").to_numpy())
            for url, second in zip(batch.column("url").to_pylist(), seconds.tolist(), strict=True):
                page = store.find(url)
                if page is None:
                    continue
                there = store.captures_between(page.id, second, second + 0.999_999, 100)
                dropped += store.drop_captures(there.page, there.time)
    return f"Deleted {dropped} records\n"


def batches_of(data: bytes, report: ReadReport) -> list[Any]:
    """Lines of CDX or CDXJ as captures, all of them: so a bad one shows before anything is done.

    Of the file that a line names only its bare name is taken: no line leads out of the folder of our archive files.
    """
    first = data.lstrip().partition(b"\n")[0]
    read = read_cdxj if b"{" in first else read_cdx
    return [_with_bare_names(batch) for batch in read(io.BytesIO(data), "the lines", report)]


def _with_bare_names(batch: Any) -> Any:  # noqa: ANN401 - pyarrow ships no types
    pa: Any = require("pyarrow", "columns")
    names = [_bare(name) for name in batch.column("file").to_pylist()]
    at = batch.schema.get_field_index("file")
    return batch.set_column(at, batch.schema.field(at), pa.array(names, pa.string()))


def _bare(name: str) -> str:
    """The last part of a path.

    >>> _bare("/srv/other/a.warc.gz"), _bare("../../a.warc.gz"), _bare(".."), _bare("a.warc.gz")
    ('a.warc.gz', 'a.warc.gz', '', 'a.warc.gz')
    """
    last = name.replace("\\", "/").rpartition("/")[2]
    return "" if last in {".", ".."} else last


class ReplayAccessGate:
    """Stands before the server of archived content. It sets no cookie but that of who shows the token."""

    def __init__(self, app: ASGIApp, guard: AccessGuard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = headers_of(scope)
        if self._guard.refuses_host(headers):
            await say(send, 421, "This server only accepts the host names of this machine.", {})
            return
        safe = scope["method"] in SAFE_METHODS
        shown = token_in_address(scope) if safe and scope["path"] in START_PATHS else None
        if shown:
            if self._guard.is_token(shown):
                await say(send, 303, "", {"location": scope["path"], "set-cookie": self._guard.pass_cookie})
            else:
                await refuse(send, WRONG_TOKEN, headers, {})
            return
        if not self._guard.may_look(headers, cookies_of(headers)):
            await refuse(send, AccessRefusal(401, "Reading needs the token.", SHOW_TOKEN), headers, {})
            return
        if (not safe or scope["path"].startswith(FILES)) and not self._guard.shows_bearer(headers):
            # A cookie is not enough: the browser of an archived page has it, and the page is not ours.
            await refuse(send, AccessRefusal(401, "This needs the token.", ONLY_PROGRAMS), headers, {})
            return
        await self._app(scope, receive, send)


ONLY_PROGRAMS = "Sending captures and reading archive files needs the token: Authorization: Bearer TOKEN."
"""The error for a request without the token."""


COLLECTION = "archive"
FILES = "/warc/"
"""Below it are archive files, for other workers."""
START_PATHS = ("/", f"/{COLLECTION}", f"/{COLLECTION}/")
"""Addresses of the start page."""
_LISTED = 50
"""Pages that the start page lists."""
_WARC = "application/warc"
_RANGE = re.compile(r"bytes=(\d{1,15})-(\d{1,15})")
LARGEST_INGEST = 64 << 20
"""Bytes of lines that may be sent at once."""
_PACKAGE_ORIGIN = "https://replayweb.page"
"""The one other site that may read packages from a browser: it replays them."""
PLAIN = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Content-Security-Policy": "sandbox"}
_START = PLAIN | {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
    "Vary": "Accept",
}
"""Headers of the start page: a form, and no archived content."""


def time_travel_app(
    archive: ReplayPort, guard: AccessGuard | None = None, *, replay: str = "", hidden_below: str = ""
) -> Starlette:
    """The application. ``replay`` is where pywb replays the same collection, if it does.

    With ``hidden_below`` it serves a program that knows this path: only captures and their index, read-only.
    """
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.routing import Route

    guard = guard or AccessGuard()
    collection = f"{hidden_below}/{COLLECTION}" if hidden_below else COLLECTION
    travel = ReplayApp(archive, collection, replay)
    both = ["GET", "HEAD"]
    of_captures = [
        Route(f"/{collection}/cdx", _told(travel.cdx), methods=both),
        Route(f"/{collection}/{{rest:path}}", _told(travel.travel), methods=both),
    ]
    of_all = [
        *(Route(path, _told(travel.start), methods=both) for path in START_PATHS),
        Route("/api/memento", _told(travel.memento_facts), methods=["GET"]),
        Route("/cdx/search/cdx", _told(travel.cdx), methods=both),
        Route(f"/{collection}.wacz", _told(travel.package), methods=[*both, "OPTIONS"]),
        Route(f"/{collection}", travel.ingest, methods=["POST"]),
        Route(f"/{collection}/delete", travel.delete, methods=["POST"]),
        Route("/timegate/{rest:path}", _told(travel.travel), methods=both),
        Route(f"{FILES}{{name}}", _told(travel.archive_file), methods=both),
    ]
    return Starlette(
        routes=of_captures if hidden_below else [*of_all, *of_captures],
        middleware=[Middleware(ReplayAccessGate, guard=guard)],
    )


class ReplayApp:
    """One answer for each kind of question."""

    def __init__(self, archive: ReplayPort, collection: str, replay: str) -> None:
        self._archive = archive
        self._collection = collection
        self._mementos = Mementos(archive, replay)
        place = urlsplit(replay)
        self._for_replay = (
            {
                "Access-Control-Allow-Origin": f"{place.scheme}://{place.netloc}",
                "Access-Control-Allow-Credentials": "true",
                "Vary": "Origin",
            }
            if replay
            else {}
        )
        """The replay banner sends requests from its own origin."""

    def start(self, request: Request) -> Response:
        """The start page: a form and a list of pages for browsers, the list of services as JSON for programs.

        With ``url``, and optionally ``at``, it redirects to the copy: that is what the form sends.
        """
        from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse

        words, uris = request.query_params, self._uris(request)
        if wanted := words.get("url", ""):
            at = words.get("at", "").strip()
            url = web_url(wanted.strip())
            return RedirectResponse(
                uris.memento(url, to_timestamp14(moment_of(at))) if at else uris.timegate(url), 302, headers=PLAIN
            )
        services = self._services(uris)
        if "text/html" not in request.headers.get("accept", ""):
            return JSONResponse(services, headers=PLAIN | {"Vary": "Accept"})
        with self._archive.store() as store:
            found = store.browse_pages(PageQuery(limit=_LISTED), self._archive.clock())
            captures = store.capture_counts(found.page).tolist()
        pages = [
            {"url": url, "captures": count, "latest": uris.timegate(url), "timemap": uris.timemap(url, "link")}
            for url, count in zip(found.url, captures, strict=True)
            if count
        ]
        template = environment(InlineAssets()).get_template("replay/start.html")
        page = template.render(
            name=self._archive.name,
            start=request.url.path,
            pages=pages,
            more=found.next is not None,
            services=services,
        )
        return HTMLResponse(page, headers=_START)

    def _services(self, uris: ArchiveUris) -> dict[str, str]:
        base = uris.base
        origin = base.removesuffix(f"{self._collection}/")
        places = {
            "workspace": self._archive.name,
            "timegate": f"{base}{{url}}",
            "memento": f"{base}{{timestamp}}/{{url}}",
            "raw_memento": f"{base}{{timestamp}}id_/{{url}}",
            "timemap": f"{base}timemap/{{link|json|cdxj}}/{{url}}",
            "cdx": f"{base}cdx?url={{url}}",
            "sharpness": f"{origin}api/memento?url={{url}}&at={{time}}",
        }
        if self._archive.package is not None:
            places["wacz"] = f"{base.removesuffix('/')}.wacz"
        return places

    def travel(self, request: Request) -> Response:
        """A TimeGate, a TimeMap or a memento: what the path says."""
        asked = asked_for(_rest(request, self._collection))
        uris, accept = self._uris(request), request.headers.get("accept-datetime", "")
        with self._archive.store() as store:
            match asked:
                case TimeMapRequest():
                    return _map_response(time_map(store, uris, TimeMapQuery(asked.url, asked.form, asked.number)))
                case TimeGateRequest():
                    return self._mementos.gate(store, uris, asked.url, accept)
                case MementoRequest():
                    return self._mementos.memento(store, uris, asked, accept)

    def memento_facts(self, request: Request) -> Response:
        """How sharp the answer for a moment would be, as JSON."""
        from starlette.responses import JSONResponse

        words = request.query_params
        with self._archive.store() as store:
            asked = (words.get("url", ""), words.get("at", ""), words.get("rule", ""))
            facts = self._mementos.facts(store, self._uris(request), *asked)
        return JSONResponse(facts, headers=PLAIN | self._for_replay)

    def cdx(self, request: Request) -> Response:
        """Lines of the index."""
        from starlette.responses import Response

        query = query_of(request.query_params.multi_items())
        with self._archive.store() as store:
            if query.show_pages:
                pages = cdx_server.pages_of(store, query)
                facts = {"pages": pages, "pageSize": query.page_size, "blocks": pages * query.page_size}
                told = json.dumps(facts) if query.output in ("json", "ndjson") else str(pages)
                return Response(
                    f"{told}\n", media_type="application/json" if "{" in told else "text/plain", headers=PLAIN
                )
            if query.embedded and query.closest is not None:
                query = self._only_the_part(store, query, query.closest)
            found = cdx_server.answer(store, query)
        written = cdx_server.written(found, query, self._uris(request))
        more = {"X-Recrawl-Resume-Key": found.resume} if found.resume else {}
        return Response(written.text, media_type=written.media_type, headers=PLAIN | more)

    def _only_the_part(self, store: Store, query: CdxRequest, at: float) -> CdxRequest:
        """The same query for the one capture that is shown in a page of that time; as it is if there is none to show.

        The others are left out, not put behind: pywb sorts the lines by their distance once more.
        """
        kept = self._mementos.part(store, query.exact, at)
        return query if kept is None else replace(query, keys=replace(query.keys, since=kept.time, until=kept.time))

    def package(self, request: Request) -> Response:
        """The whole archive as one file (conventions Z2)."""
        from starlette.responses import FileResponse, Response

        headers = PLAIN | {
            "Access-Control-Allow-Origin": _PACKAGE_ORIGIN,
            "Access-Control-Allow-Headers": "Range",
            "Access-Control-Expose-Headers": "Accept-Ranges, Content-Length, Content-Range, ETag",
            "Vary": "Origin",
        }
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=headers)
        if self._archive.package is None:
            raise RefusalError("This archive has no package.", 404)
        path = self._archive.package()
        return FileResponse(path, media_type="application/wacz", filename=path.name, headers=headers)

    def archive_file(self, request: Request) -> Response:
        """An archive file, or a range of its bytes, for other workers."""
        from starlette.responses import FileResponse, Response

        found = self._archive.file(request.path_params["name"]) if self._archive.file else None
        if found is None:
            raise RefusalError("There is no such archive file.", 404)
        if isinstance(found, Path):
            return FileResponse(found, media_type=_WARC, headers=PLAIN)
        size = found.stat().st_size
        headers = PLAIN | {"Accept-Ranges": "bytes"}
        asked = _RANGE.fullmatch(request.headers.get("range", ""))
        if request.method == "HEAD" or asked is None:
            if request.method != "HEAD":
                raise RefusalError("Ask for a range of bytes: this file is in object storage.", 416)
            return Response(headers=headers | {"Content-Length": str(size)}, media_type=_WARC)
        start, end = int(asked[1]), min(int(asked[2]) + 1, size)
        if not 0 < end - start <= LARGEST_INGEST:
            raise RefusalError("The range is empty or too long.", 416)
        with found.open() as file:
            data = file.pread(end - start, start)
        said = headers | {"Content-Range": f"bytes {start}-{end - 1}/{size}"}
        return Response(data, 206, headers=said, media_type=_WARC)

    async def ingest(self, request: Request) -> Response:
        """Take lines of an index over (conventions A5)."""
        return await self._written(request, add_lines)

    async def delete(self, request: Request) -> Response:
        """Forget captures that lines of an index name (conventions A5)."""
        return await self._written(request, delete_lines)

    async def _written(self, request: Request, work: Callable[[ReplayPort, bytes, IngestOptions], str]) -> Response:
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import PlainTextResponse

        def answer(data: bytes, options: IngestOptions) -> Response:
            return PlainTextResponse(work(self._archive, data, options), headers=PLAIN)

        try:
            words = request.query_params
            options = IngestOptions(words.get("badLines", "") == "skip", _flag(words.get("schedule", "false")))
            return await run_in_threadpool(answer, await _body(request), options)
        except (RefusalError, RecrawlError) as error:
            return _refused(error)

    def _uris(self, request: Request) -> ArchiveUris:
        return uris_at(request.url.scheme, request.headers.get("host", ""), self._collection)


def _flag(text: str) -> bool:
    if text not in {"true", "false"}:
        raise RefusalError(f"schedule is {text[:40]!r}; write true or false.")
    return text == "true"


def _told(endpoint: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """The endpoint, with errors as sentences. Runs in a thread, since it uses the store and reads files."""

    def answer(request: Request) -> Response:
        try:
            return endpoint(request)
        except (RefusalError, RecrawlError) as error:
            return _refused(error)

    return answer


def _refused(error: RefusalError | RecrawlError) -> Response:
    from starlette.responses import PlainTextResponse

    if isinstance(error, RefusalError):
        sentence, status = error.sentence, error.status
    else:
        sentence = str(error)
        kinds = ((InputError, 400), (StoreError, 503), (StorageError, 503), (MissingExtraError, 501))
        status = next((code for kind, code in kinds if isinstance(error, kind)), 422)
    return PlainTextResponse(f"{sentence}\n", status_code=status, headers=PLAIN)


def _rest(request: Request, collection: str) -> str:
    """What stands behind the collection's name, as it was sent: a URL in a path is no path."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    path = raw.partition(b"?")[0].decode("latin-1").lstrip("/")
    rest = path.removeprefix(f"{collection}/")
    query = request.scope.get("query_string", b"").decode("latin-1")
    return f"{rest}?{query}" if query else rest


async def _body(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST_INGEST:
            raise RefusalError(f"More than {LARGEST_INGEST >> 20} MiB at once; send the lines in several parts.", 413)
        parts.append(part)
    return b"".join(parts)


def _map_response(found: TimeMapPage) -> Response:
    from starlette.responses import Response

    return Response(found.text, media_type=found.media_type, headers=PLAIN | {"X-Memento-Count": str(found.count)})
