"""The registry of access methods: built-in ones, and those of other packages.

A package adds one by an entry point of the group ``recrawl.access``. Its name is the method's name, its value is called
without arguments. ``package.module:Name`` names one without an entry point (:mod:`recrawl.plugins`). A method is loaded
when it is used, so a broken one does not affect others.

**Local files**, for data on this machine and for tests. A file is a page under ``http://file.invalid/``: names below
``.invalid`` never resolve (RFC 2606), so no server can answer in its place. Only files in allowed folders are read. A
symbolic link that leads out of them is refused. No web page can lead here, because links are http(s) only.

**Content negotiation**: one URL serves HTML to browsers and data to clients that request it.
Linked data names things that are no documents; such a URL answers 303 and leads to a document about the thing.
Persistent URLs (purl.org, w3id.org, doi.org) lead to the current host of the data. So redirects are followed here, also
to other hosts: the last response is the version of the page. Each request follows the pauses and the robots.txt of its
host.

With the option ``redirects=host`` a redirect to another host ends the exchange: it is the version, and its target is a
page like any other. A redirect to another spelling of the page's own URL always ends it; the crawler adopts that
spelling.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote, unquote, urlsplit

from recrawl import plugins
from recrawl.errors import ConfigError
from recrawl.fetch.access.access_method import (
    REDIRECTS_OPTION,
    AccessMethod,
    AccessRequest,
    AccessSource,
    Conversation,
    Options,
    check_redirects,
    checked_options,
    failed,
    made_head,
    next_hop,
)
from recrawl.fetch.access.sparql import Sparql
from recrawl.fetch.request import FetchRequest
from recrawl.model import Capture
from recrawl.time import Clock, to_http_date
from recrawl.urls import address, surt

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


RDF_TYPES = (
    "text/turtle, application/n-triples;q=0.9, application/ld+json;q=0.8, application/rdf+xml;q=0.7, "
    "application/n-quads;q=0.6, application/trig;q=0.6, text/html;q=0.1, */*;q=0.05"
)
"""Compact formats that parse quickly first; HTML where there is no data."""
MAX_HOPS = 5


class Negotiation:
    """Requests RDF, or other media types, and follows redirects."""

    name = "rdf"
    summary = "Ask for RDF by content negotiation, and follow redirects."
    options = MappingProxyType(
        {
            "accept": "media types wanted, as in the Accept header; RDF if not given",
            "redirects": REDIRECTS_OPTION,
        }
    )

    def source(self, url: str, options: Options) -> AccessSource:
        """Any page; the media types must fit into a header."""
        found = address(url)
        if found is None:
            raise ConfigError(f"{url!r} is not an http(s) URL.", "Write it with http:// or https:// in front.")
        kept = checked_options(self, options)
        if not kept.get("accept", "x").isprintable() or not kept.get("accept", "x").isascii():
            raise ConfigError(
                "The option accept holds characters that HTTP forbids.", "Write for example accept=text/csv."
            )
        check_redirects(kept)
        return AccessSource(found.url, kept)

    def exchange(self, question: AccessRequest) -> Conversation:
        """Send the request, and follow redirects."""
        accept = question.options.get("accept", "") or RDF_TYPES
        said, url, began, asked = question.validators, question.url, None, {question.url}
        for _ in range(MAX_HOPS + 1):
            answer = yield FetchRequest(url, said.etag, said.last_modified, accept=accept)
            began = answer.time if began is None else began
            to = next_hop(question, answer)
            if not to or surt(to) == surt(question.url):
                return answer
            if to in asked:
                return failed(question, answer, f"It redirects in circles, to {to} again.", began)
            asked.add(to)
            url = to
        return failed(question, answer, f"It redirects more than {MAX_HOPS} times.", began)


GROUP = plugins.GROUPS["access method"]
"""The group of entry points."""
PLAIN = "http"
"""The method of plain pages: one request."""
FEED = "feed"
"""Stored in place of a method for feeds, which are fetched like plain pages."""


class AccessMethods:
    """Access methods by name."""

    def __init__(self, brought: Iterable[EntryPoint] | None = None) -> None:
        """``brought`` are the entry points of other packages; by default those that are installed."""
        ours: tuple[AccessMethod, ...] = (Negotiation(), Sparql(), LocalFile())
        self._methods = {method.name: method for method in ours}
        self._ours = frozenset(self._methods) | {PLAIN, FEED}
        self._brought: dict[str, list[EntryPoint]] = {}
        for entry in entry_points(group=GROUP) if brought is None else brought:
            self._brought.setdefault(entry.name, []).append(entry)

    def names(self) -> list[str]:
        """Every name, built-in ones first. Loads none."""
        return [PLAIN, *self._methods, *(name for name in self._brought if name not in self._methods)]

    def get(self, name: str) -> AccessMethod:
        """The method of this name.

        Raises:
            ConfigError: there is none, there are two, or it cannot be loaded.
        """
        entries = self._brought.get(name, [])
        if entries and (len(entries) > 1 or name in self._ours):
            packages = ", ".join(map(plugins.package_of, entries))
            raise ConfigError(
                f"More than one access method is called {name!r}; one is from {packages}.", "Uninstall that package."
            )
        if name not in self._methods:
            if not entries and not plugins.is_reference(name):
                raise ConfigError(
                    f"There is no access method {name!r}.",
                    f"There are: {', '.join(self.names())}. One of another package is written package.module:Name.",
                )
            make = plugins.find(_KIND, name, {}, entries)
            said = name if not entries else f"{name} ({entries[0].value})"
            self._methods[name] = plugins.made(_KIND, said, AccessMethod, make)
        return self._methods[name]


_KIND = "access method"
