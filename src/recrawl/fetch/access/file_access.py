"""Local files as pages, for data on this machine and for tests.

A file is a page under ``http://file.invalid/``: names below ``.invalid`` never resolve (RFC 2606), so no server can
answer in its place. Only files in allowed folders are read. A symbolic link that leads out of them is refused. No web
page can lead here, because links are http(s) only.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote, unquote, urlsplit

from recrawl.errors import ConfigError
from recrawl.fetch.access.access_method import (
    AccessRequest,
    AccessSource,
    Conversation,
    Options,
    checked_options,
    made_head,
)
from recrawl.fetch.request import FetchRequest
from recrawl.model import Capture
from recrawl.time import Clock, to_http_date

PLACE = "http://file.invalid"
"""The URL prefix of file pages."""
_TYPES = {
    ".csv": "text/csv",
    ".geojson": "application/geo+json",
    ".htm": "text/html",
    ".html": "text/html",
    ".json": "application/json",
    ".jsonld": "application/ld+json",
    ".ndjson": "application/x-ndjson",
    ".nq": "application/n-quads",
    ".nt": "application/n-triples",
    ".owl": "application/rdf+xml",
    ".rdf": "application/rdf+xml",
    ".srj": "application/sparql-results+json",
    ".trig": "application/trig",
    ".tsv": "text/tab-separated-values",
    ".ttl": "text/turtle",
    ".txt": "text/plain",
    ".xml": "application/xml",
}


class LocalFile:
    """Reads a local file."""

    name = "file"
    summary = "Read a file of this machine, in a folder that fetch.allow_files names."
    options: Mapping[str, str] = MappingProxyType({})

    def source(self, url: str, options: Options) -> AccessSource:
        """The file that a ``file:`` URL names."""
        kept, parts = checked_options(self, options), urlsplit(url)
        path, is_here = unquote(parts.path), parts.scheme == "file" and parts.netloc in ("", "localhost")
        if not is_here or not path.startswith("/") or "\0" in path:
            raise ConfigError(f"{url!r} names no file of this machine.", "Write for example file:///srv/data/list.csv.")
        kept["path"] = path
        return AccessSource(PLACE + quote(path), kept)

    def exchange(self, question: AccessRequest) -> Conversation:
        """Read the file, if it changed since the last read."""
        said = question.validators
        found = yield FetchRequest("file://" + quote(question.options["path"]), said.etag, said.last_modified)
        return replace(found, url=question.url)


class FileFetcher:
    """Reads files below some folders. A failure is a capture that says why."""

    def __init__(
        self,
        clock: Clock,
        folders: Iterable[Path],
        max_size: int = 64 * 1024 * 1024,
        in_thread: Callable[[Callable[[], Capture]], Awaitable[Capture]] = asyncio.to_thread,
    ) -> None:
        """At most ``max_size`` bytes of a file are read; ``in_thread`` reads it, because a disk may never answer."""
        self._clock = clock
        self._folders = tuple(Path(os.path.realpath(folder)) for folder in folders)
        self._max_size = max_size
        self._in_thread = in_thread

    async def fetch(self, request: FetchRequest) -> Capture:
        """The file as it is now: 200 with its bytes, 304 if time and size match the entity tag, 404 if gone."""
        began = self._clock.now()
        found = await self._in_thread(partial(self._read, request, began))
        return replace(found, duration=self._clock.now() - began)

    def _read(self, request: FetchRequest, began: float) -> Capture:
        path = Path(os.path.realpath(unquote(urlsplit(request.url).path)))
        if not any(path.is_relative_to(folder) for folder in self._folders):
            return Capture(request.url, began, 0, error=f"{path} is in no folder that fetch.allow_files names.")
        try:
            # The name was resolved above: a link that replaced it since is not followed. A pipe must not block.
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                return self._opened(handle, path, request, began)
            finally:
                os.close(handle)
        except FileNotFoundError:
            return Capture(request.url, began, 404, made_head(404, "Not Found", {}), made=True)
        except OSError as error:
            return Capture(request.url, began, 0, error=f"{path} cannot be read ({error.strerror}).")

    def _opened(self, handle: int, path: Path, request: FetchRequest, began: float) -> Capture:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            return Capture(request.url, began, 0, error=f"{path} is no file but a folder or a device.")
        tag = f'"{about.st_mtime_ns:x}-{about.st_size:x}"'
        said = {"ETag": tag, "Last-Modified": to_http_date(about.st_mtime)}
        if request.etag == tag:
            return Capture(request.url, began, 304, made_head(304, "Not Modified", said), made=True)
        with open(handle, "rb", closefd=False) as file:
            body = file.read(self._max_size + 1)
        media_type = _TYPES.get(path.suffix.lower(), "application/octet-stream")
        head = made_head(200, "OK", {"Content-Type": media_type, **said})
        cut = "length" if len(body) > self._max_size else ""
        return Capture(request.url, began, 200, head, body[: self._max_size], truncated=cut, made=True)
