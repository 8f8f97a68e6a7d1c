"""TimeMaps, read and written: the captures that an archive holds of one URL (Memento, RFC 7089).

Three forms are read and recognised by their first bytes: link-format (RFC 6690), JSON as MemGator writes it (and the
lines and tables of pywb and the Wayback Machine in JSON), and CDXJ (also pywb's, whose lines start with a key as in an
index). Long maps come in pages: a map names further ones. They may form a loop, so the caller tracks which it has read.
A file of any length can also be streamed as captures, without the further maps.

The same three forms are written (conventions M3 and M4), whole or in pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote, urlsplit

from recrawl.errors import InputError, require
from recrawl.formats.cdx.cdx_lines import archived
from recrawl.formats.cdx.line_blocks import pieces_of
from recrawl.formats.columnar import capture_batches
from recrawl.formats.columnar.capture_batches import ReadReport, and_rest
from recrawl.formats.dates import w3c_time
from recrawl.time import to_http_date, to_iso, to_timestamp14
from recrawl.urls import url_of_key

BATCH = 20_000
"""Rows of a batch."""
NAN = float("nan")
_SHOWN = 200
"""Letters of a URI that names an entry in an error."""
_EARLIEST = datetime(1990, 1, 1, tzinfo=UTC).timestamp()
"""There was no web before."""
_LATEST = datetime(2101, 1, 1, tzinfo=UTC).timestamp()
TIMESTAMP = re.compile(r"\d{14}(?:\d{3})?")
"""A time as archives write it, perhaps with milliseconds."""
_IN_MEMENTO = re.compile(r"/\d{14}(?:[a-z]{2}_)?/(https?:/.*)", re.DOTALL | re.IGNORECASE)


class TimeMapMemento(NamedTuple):
    """One capture, as a TimeMap lists it."""

    uri: str
    """Where the archive keeps it; may be empty where a map gives only times."""
    original: str
    """What was captured."""
    time: float
    """Seconds since the epoch."""


class MapPage(NamedTuple):
    """A further TimeMap of the same URL."""

    uri: str
    start: float = NAN
    """The first capture it lists, seconds since the epoch; NaN if unsaid."""
    end: float = NAN
    """The last one."""


@dataclass(frozen=True, slots=True)
class TimeMap:
    """One TimeMap, or one page of it."""

    mementos: tuple[TimeMapMemento, ...]
    pages: tuple[MapPage, ...] = ()
    """Further maps to read; other forms of this one and itself are not among them."""
    original: str = ""
    timegate: str = ""
    self_uri: str = ""


class TimeMapContents:
    """What has been read so far, and where complaints go."""

    def __init__(self, source: str, report: ReadReport, offset: int) -> None:
        self.original = self.timegate = self.self_uri = ""
        self._found: list[tuple[str, str, float, int]] = []
        self._pages: dict[str, MapPage] = {}
        self.source = source
        self._report = report
        self.offset = offset
        """Where the bytes begin that are read now; positions count from there."""

    def broken(self, what: str, position: int) -> None:
        """Tell what is wrong, and at which byte of the file."""
        self._report.broken(what, source=self.source, position=position)

    def isolated(self, position: int) -> AbstractContextManager[None]:
        """A block that takes one entry, which begins at this byte of those that are read now: it harms no other."""
        return self._report.isolated(self.source, self.offset + position)

    def memento(self, uri: str, when: object, position: int, original: str = "") -> None:
        """One capture; its time is an HTTP date, a W3C date or 14 digits."""
        time = _time(when)
        if time is None:
            self.broken(f"the datetime {when!r} of a memento is no date", self.offset + position)
        elif time < _EARLIEST:
            self._report.skip("dated before 1990")
        elif time >= _LATEST:
            self._report.skip("dated after 2100")
        else:
            self._found.append((uri, original, time, self.offset + position))

    def page(self, uri: str, start: object = None, end: object = None) -> None:
        """A further map, each once."""
        times = (_time(start), _time(end))
        self._pages.setdefault(uri, MapPage(uri, *(NAN if time is None else time for time in times)))

    def timemap(self) -> TimeMap:
        """Everything, now that the whole map is known: a map may name its original last, or not at all."""
        mementos = tuple(self.mementos())
        pages = tuple(page for page in self._pages.values() if page.uri != self.self_uri)
        return TimeMap(mementos, pages, self.original, self.timegate, self.self_uri)

    def __len__(self) -> int:
        """How many mementos wait to be taken."""
        return len(self._found)

    def rest(self, damage: InputError | None = None) -> Iterator[TimeMapMemento]:
        """Take the last ones. Where reading ends with damage, what they are of may stand behind it: no error."""
        if damage is None:
            yield from self.mementos()
        else:
            with suppress(InputError):
                yield from self.mementos()

    def mementos(self) -> Iterator[TimeMapMemento]:
        """Take those found so far, with what is known by now of what they are mementos of."""
        waiting, self._found = self._found, []
        for uri, given, time, position in waiting:
            found = None
            with self._report.isolated(self.source, position):
                found = self._memento(uri, given, time, position)
            if found is not None:
                yield found

    def _memento(self, uri: str, given: str, time: float, position: int) -> TimeMapMemento | None:
        original = given or self.original or _original_in(uri)
        if not original:
            self.broken("nothing says what this is a memento of", position)
        elif not (is_unicode(original) and is_unicode(uri)):  # JSON can write half a character
            self.broken("the URL of a memento is not Unicode", position)
        else:
            return TimeMapMemento(uri, original, time)
        return None


def is_unicode(text: str) -> bool:
    r"""Whether every character is one; half of a surrogate pair is not.

    >>> is_unicode("a"), is_unicode("\ud800")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _time(when: object) -> float | None:
    if isinstance(when, str):
        return w3c_time(when[:14] if TIMESTAMP.fullmatch(when) else when)
    return None


def _original_in(uri: str) -> str:
    """The URL within the URI of a memento, which most archives write behind the 14 digits."""
    found = _IN_MEMENTO.search(uri)
    return found[1] if found else ""


def to_batches(
    mementos: Iterable[TimeMapMemento], report: ReadReport, source: str = "TimeMap", rows: int = BATCH
) -> Iterator[Any]:
    """Mementos as captures: Arrow record batches of ``captures.schema()``. A map says no more than URL and time."""
    pa = require("pyarrow", "columns")
    part: list[TimeMapMemento] = []

    def batches() -> Iterator[Any]:
        yield from report.by_halves(list(part), partial(_batch, pa), lambda some: f"{source}, {some[0].uri[:_SHOWN]}")
        part.clear()

    def full() -> Iterator[Any]:
        for memento in mementos:
            part.append(memento)
            if len(part) == rows:
                yield from batches()

    return capture_batches.and_rest(full(), lambda _damage: batches())


def _batch(pa: Any, part: list[TimeMapMemento]) -> Any:  # noqa: ANN401 - the pyarrow module and one of its batches
    schema = capture_batches.schema()
    given = {"url": [one.original for one in part], "time": [one.time for one in part]}
    same = {
        "kind": capture_batches.RecordKind.RESPONSE,
        "status": capture_batches.NO_STATUS,
        "size": capture_batches.NO_SIZE,
        "offset": capture_batches.NO_SIZE,
        "length": capture_batches.NO_SIZE,
    }
    columns = [
        pa.array(given[field.name], field.type)
        if field.name in given
        else pa.repeat(pa.scalar(same.get(field.name, ""), field.type), len(part))
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


_LINK_TYPE = "application/link-format"
_PAGES = frozenset({"timemap", "next", "prev"})
"""Relations of further maps; some archives leave out the first where they name the others."""
_LINK = re.compile(rb"\s*<([^<>\r\n]*)>")
_PARAMETER = re.compile(rb'\s*;\s*([^\s;,="<>]+)(?:\s*=\s*(?:"((?:[^"\\\r\n]|\\.)*)"|([^\s;,"]*)))?', re.DOTALL)
_END = re.compile(rb"\s*(?:;\s*)*(?:,\s*)*(?=<|\Z)")
_NEXT = re.compile(rb",\s*<")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_CDXJ = re.compile(rb"[!@\d]|\S+ \d{4,17} \{")
_INDEXED = re.compile(rb"(\d{4,17}) (?=\{)")


def read_timemap(data: bytes, source: str, report: ReadReport) -> TimeMap:
    """The TimeMap in a file or answer, of whichever form.

    Raises:
        InputError: it is none.

    >>> link = b'<http://a.org/>; rel="original", <http://x/1>; rel="memento"; datetime="Sat, 02 Feb 2013 10:00:00 GMT"'
    >>> read_timemap(link, "x", ReadReport()).mementos
    (TimeMapMemento(uri='http://x/1', original='http://a.org/', time=1359799200.0),)
    """
    text = data.removeprefix(b"\xef\xbb\xbf")
    found = TimeMapContents(source, report, offset=len(data) - len(text))
    read_text(text, found)
    return found.timemap()


def read_text(text: bytes, found: TimeMapContents) -> None:
    """Take a whole map of whichever form, without the mark of its byte order."""
    first = text.lstrip()[:1]
    if first == b"<":
        read_links(text, found)
    elif first in (b"{", b"["):
        _read_json(text, found)
    elif is_cdxj(text.lstrip()):
        read_lines(text, found)
    elif text.strip():
        raise InputError(
            "this is not a TimeMap", "It begins with '<' (link-format), '{' (JSON) or '!' (CDXJ).", source=found.source
        )


# -- link-format ----------------------------------------------------------------------------------


def read_links(data: bytes, found: TimeMapContents, *, final: bool = True) -> int:
    """Take the links of a piece of a map; returns where the rest begins, which only more bytes can make sense of.

    With ``final`` there are no more, and all is taken.
    """
    position = 0
    while position < len(data):
        begin, link = position, _LINK.match(data, position)
        parameters: dict[str, str] = {}
        end = link.end() if link else position
        while link and (parameter := _PARAMETER.match(data, end)):
            name, quoted, plain = parameter.groups()
            value = _ESCAPED.sub(r"\1", _text(quoted)) if quoted is not None else _text(plain or b"")
            parameters.setdefault(_text(name).lower(), value)
            end = parameter.end()
        after = _END.match(data, end) if link else None
        position = after.end() if after else _skip(data, end)
        if position == len(data) and not final:
            return begin
        if link is None:
            found.broken("a link begins with '<' and goes on to '>' on the same line", found.offset + begin)
            continue
        with found.isolated(link.start(1) - 1):
            _take_link(_text(link[1]).strip(), parameters, link.start(1) - 1, found)
        if after is None:
            found.broken("a link ends in something that is no parameter", found.offset + end)
    return position


def _skip(data: bytes, position: int) -> int:
    """Where the next link may begin."""
    found = _NEXT.search(data, position)
    return found.end() - 1 if found else len(data)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _take_link(uri: str, parameters: dict[str, str], position: int, found: TimeMapContents) -> None:
    relations = parameters.get("rel", "").lower().split()
    if "memento" in relations:
        found.memento(uri, parameters.get("datetime"), position)
    elif "original" in relations:
        found.original = found.original or uri
    elif "timegate" in relations:
        found.timegate = found.timegate or uri
    elif "self" in relations:
        found.self_uri = found.self_uri or uri
    elif not _PAGES.isdisjoint(relations) and parameters.get("type", _LINK_TYPE).lower() == _LINK_TYPE:
        found.page(uri, parameters.get("from"), parameters.get("until"))


# -- JSON -----------------------------------------------------------------------------------------


def _read_json(data: bytes, found: TimeMapContents) -> None:
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError) as error:
        if not _read_lines(data, found):
            found.broken(f"the JSON is broken ({error})", found.offset + getattr(error, "pos", 0))
        return
    if isinstance(whole, list):
        _take_rows(whole, found)
    elif isinstance(whole, dict) and "timestamp" in whole:
        _take_capture(whole, 0, found)
    elif isinstance(whole, dict):
        _take_map(whole, found)


def _read_lines(data: bytes, found: TimeMapContents) -> bool:
    """One JSON object a line, as pywb answers; false if this is not what it is."""
    position = read = 0
    for line in data.splitlines(keepends=True):
        row = _loaded(line)
        if isinstance(row, dict) and "timestamp" in row:
            with found.isolated(position):
                _take_capture(row, position, found)
            read += 1
        elif not read:
            return False
        elif line.strip():
            found.broken("this line is no JSON object of a capture", found.offset + position)
        position += len(line)
    return bool(read)


def _loaded(text: bytes) -> Any:  # noqa: ANN401 - whatever JSON holds
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _take_capture(row: dict[str, Any], position: int, found: TimeMapContents) -> None:
    uri = row.get("uri") or row.get("load_url") or ""
    found.memento(str(uri), str(row["timestamp"]), position, str(row.get("url") or row.get("original") or ""))


def _take_rows(rows: list[Any], found: TimeMapContents) -> None:
    """A table with its header in the first row, as the Wayback Machine answers, or a list of objects."""
    header = rows[0] if rows and isinstance(rows[0], list) else None
    for number, row in enumerate(rows[1:] if header else rows):
        with found.isolated(0):
            fields = dict(zip(header, row, strict=False)) if header and isinstance(row, list) else row
            if not isinstance(fields, dict) or not fields.keys() & {"timestamp", "datetime"}:
                found.broken(f"row {number} is no capture", 0)
            elif "timestamp" in fields:
                _take_capture(fields, 0, found)
            else:
                found.memento(str(fields.get("uri", "")), fields["datetime"], 0)


def _take_map(whole: dict[str, Any], found: TimeMapContents) -> None:
    """MemGator's form; a list of pages is under ``timemap_index``."""
    found.original = _string(whole.get("original_uri"))
    found.timegate = _string(whole.get("timegate_uri"))
    found.self_uri = _string(whole.get("self"))
    mementos = whole.get("mementos", {})
    listed = mementos.get("list", mementos.get("all", [])) if isinstance(mementos, dict) else mementos
    for number, one in enumerate(listed if isinstance(listed, list) else []):
        with found.isolated(0):
            if isinstance(one, dict):
                found.memento(_string(one.get("uri")), one.get("datetime"), 0)
            else:
                found.broken(f"memento {number} is no object", 0)
    _take_pages(whole.get("timemap_index"), found)
    pages = whole.get("pages")
    _take_pages([pages[name] for name in ("prev", "next") if name in pages] if isinstance(pages, dict) else None, found)


def _take_pages(index: object, found: TimeMapContents) -> None:
    for page in index if isinstance(index, list) else []:
        if isinstance(page, dict) and isinstance(page.get("uri"), str):
            with found.isolated(0):
                found.page(page["uri"], page.get("from"), page.get("until"))


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


# -- CDXJ -----------------------------------------------------------------------------------------


def is_cdxj(text: bytes) -> bool:
    """Whether a map that begins so is one of lines: about the map, of 14 digits, or of a key and digits."""
    return _CDXJ.match(text) is not None


def read_lines(data: bytes, found: TimeMapContents) -> None:
    """Take whole lines of a map in CDXJ."""
    position = 0
    for line in data.splitlines(keepends=True):
        key, _, value = line.strip().partition(b" ")
        with found.isolated(position):
            indexed = _INDEXED.match(value) if key[:1] not in (b"!", b"@") else None
            if indexed:
                _take_indexed(_text(key), _text(indexed[1]), _loaded(value[indexed.end() :]), position, found)
            elif key:
                # InterPlanetary Wayback writes "datetime"="…", which is nearly JSON.
                _take_line(_text(key), _loaded(value.replace(b'"datetime"=', b'"datetime":')), position, found)
        position += len(line)


def _take_indexed(key: str, timestamp: str, value: Any, position: int, found: TimeMapContents) -> None:  # noqa: ANN401
    """A line as in an index, which is what pywb gives as its map."""
    if isinstance(value, dict):
        url = value.get("url") or url_of_key(key) or ""
        _take_capture({**value, "url": url, "timestamp": timestamp}, position, found)
    else:
        found.broken("the JSON of this line cannot be read", found.offset + position)


def _take_line(key: str, value: Any, position: int, found: TimeMapContents) -> None:  # noqa: ANN401 - whatever JSON holds
    if key in ("!id", "@id") and isinstance(value, dict):
        found.self_uri = _string(value.get("uri"))
    elif key in ("!meta", "@meta") and isinstance(value, dict):
        found.original = found.original or _string(value.get("original_uri"))
        found.timegate = found.timegate or _string(value.get("timegate_uri"))
        _take_pages(value.get("timemap_index"), found)
    elif key.startswith(("!", "@")):
        return
    elif TIMESTAMP.fullmatch(key) and isinstance(value, dict):
        if "memento" in _string(value.get("rel", "memento")).lower().split():
            found.memento(_string(value.get("uri")), _string(value.get("datetime")) or key, position)
    else:
        found.broken("this line is no 14 digits with a JSON object behind them", found.offset + position)


MAX_JSON = 64 * 1024 * 1024
"""Bytes of a map in JSON, which cannot be read in parts; half a million captures fit."""
_PIECE = 1 << 20
_LONGEST = 1 << 20
"""Bytes of one link or line; what is longer makes no sense."""
_BOM = b"\xef\xbb\xbf"


def read_timemap_file(stream: BinaryIO, source: str, report: ReadReport) -> Iterator[Any]:
    """Captures of a TimeMap, plain or gzipped, as record batches (:mod:`~recrawl.formats.columnar.capture_batches`).

    Memory is bounded: link-format and CDXJ are read piece by piece, JSON up to :data:`MAX_JSON`. A map that names its
    original only behind 20,000 mementos is understood if those name it themselves.

    Raises:
        InputError: it is no TimeMap, or one in JSON that is too long.
    """
    pieces = pieces_of(stream, source, report, _PIECE)
    first = next(pieces, b"")
    offset = len(_BOM) if first.startswith(_BOM) else 0
    begin = first[offset:].lstrip()
    every = chain([first[offset:]], pieces)
    found = TimeMapContents(source, report, offset)
    if begin.startswith(b"<"):
        taken = _linked(every, found)
    elif is_cdxj(begin):
        taken = _listed(every, found)
    else:
        taken = _at_once(every, found)
    yield from to_batches(and_rest(taken, found.rest), report, source)


def _at_once(pieces: Iterator[bytes], found: TimeMapContents) -> Iterator[TimeMapMemento]:
    read_text(_whole(pieces, found.source), found)
    yield from ()


def _whole(pieces: Iterator[bytes], source: str) -> bytes:
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size > MAX_JSON:
            raise InputError(
                f"a TimeMap in JSON may have {MAX_JSON >> 20} MiB, and this one is longer",
                "Get it in link-format or as CDXJ, which can be of any length.",
                source=source,
            )
    return b"".join(held)


def _linked(pieces: Iterator[bytes], found: TimeMapContents) -> Iterator[TimeMapMemento]:
    rest = b""
    for piece in pieces:
        rest += piece
        done = read_links(rest, found, final=len(rest) > _PIECE + _LONGEST)
        rest, found.offset = rest[done:], found.offset + done
        if found.original or len(found) >= BATCH:
            yield from found.mementos()
    read_links(rest, found)


def _listed(pieces: Iterator[bytes], found: TimeMapContents) -> Iterator[TimeMapMemento]:
    rest = b""
    for piece in pieces:
        rest += piece
        done = len(rest) if len(rest) > _PIECE + _LONGEST else rest.rfind(b"\n") + 1
        read_lines(rest[:done], found)
        rest, found.offset = rest[done:], found.offset + done
        if found.original or len(found) >= BATCH:
            yield from found.mementos()
    read_lines(rest, found)


PAGE_SIZE = 5_000
"""Mementos in one page."""
CONTEXT = "http://oduwsdl.github.io/contexts/memento"
"""What CDXJ maps name as the meaning of their keys."""
_UNWRITABLE = re.compile(r"[\x00-\x20<>\"\x7f]")


@dataclass(frozen=True, slots=True)
class ArchiveUris:
    """Where an archive shows what it holds, in the form of pywb and the Wayback Machine (conventions M1 to M3).

    >>> uris = ArchiveUris.below("http://localhost:8080/mine")
    >>> uris.memento("http://a.org/", "20240101000000"), uris.timegate("http://a.org/")
    ('http://localhost:8080/mine/20240101000000/http://a.org/', 'http://localhost:8080/mine/http://a.org/')
    >>> uris.timemap("http://a.org/", "link")
    'http://localhost:8080/mine/timemap/link/http://a.org/'
    """

    base: str
    """The URL of the collection, with a slash at its end."""

    @classmethod
    def below(cls, base: str) -> ArchiveUris:
        """The URIs below the URL of a collection.

        Raises:
            InputError: it is no http(s) URL, or has a query, behind which nothing could follow.
        """
        try:
            parts = urlsplit(base)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not _UNWRITABLE.search(base)
        except ValueError:
            usable = False
        if not usable or "?" in base or "#" in base:
            raise InputError(
                f"{base!r} is not where an archive can be",
                "Give the address of the collection, such as http://localhost:8080/my-archive/.",
            )
        return cls(base if base.endswith("/") else f"{base}/")

    def memento(self, url: str, timestamp: str) -> str:
        """Where one capture is shown."""
        return f"{self.base}{timestamp}/{url}"

    def timegate(self, url: str) -> str:
        """Where one asks for a URL as it was at some time."""
        return self.base + url

    def timemap(self, url: str, form: str) -> str:
        """Where the list of captures is, in the form ``link``, ``json`` or ``cdxj``."""
        return f"{self.base}timemap/{form}/{url}"

    def timemaps(self, url: str) -> dict[str, str]:
        """All three forms, by the names that maps themselves have for them."""
        return {f"{form}_format": self.timemap(url, form) for form in ("link", "json", "cdxj")}

    def map_of(self, url: str, batches: Iterable[Any], form: str) -> TimeMap:
        """The captures of a URL as the map that the archive would give in a form."""
        mementos = tuple(mementos_of(batches, self.memento))
        return TimeMap(mementos, original=url, timegate=self.timegate(url), self_uri=self.timemap(url, form))


def mementos_of(batches: Iterable[Any], uri_of: Callable[[str, str], str]) -> Iterator[TimeMapMemento]:
    """Captures as mementos: ``uri_of(url, timestamp)`` says where the archive shows one. Failed fetches are none.

    ``batches`` are Arrow record batches of ``captures.schema()``.
    """
    for batch in archived(batches):
        for url, time in zip(batch.column("url").to_pylist(), batch.column("time").to_pylist(), strict=True):
            yield TimeMapMemento(uri_of(url, to_timestamp14(time)), url, time)


def paged(whole: TimeMap, page_uri: Callable[[int], str], size: int = PAGE_SIZE) -> tuple[TimeMap, ...]:
    """The map cut into pages of at most ``size`` mementos, by time.

    The first page keeps the map's own URI; the others have ``page_uri(2)``, ``page_uri(3)`` and so on. Each names
    its neighbours, so whoever enters anywhere finds all of them.
    """
    mementos = _by_time(whole)
    cuts = [mementos[start : start + size] for start in range(0, len(mementos), size)] or [()]
    uris = [whole.self_uri, *(page_uri(number) for number in range(2, len(cuts) + 1))]
    links = [MapPage(uri, cut[0].time, cut[-1].time) for uri, cut in zip(uris, cuts, strict=True) if cut]
    return tuple(
        replace(
            whole,
            mementos=cut,
            pages=whole.pages + tuple(links[max(at - 1, 0) : at] + links[at + 1 : at + 2]),
            self_uri=uris[at],
        )
        for at, cut in enumerate(cuts)
    )


def to_link(timemap: TimeMap) -> Iterator[str]:
    """The map in link-format (``application/link-format``), link by link; ``from`` and ``until`` stand on itself."""
    mementos = _by_time(timemap)
    span = _span(mementos[0].time, mementos[-1].time) if mementos else ""
    head = [
        f'<{_uri(timemap.original)}>; rel="original"' if timemap.original else "",
        f'<{_uri(timemap.self_uri)}>; rel="self"; type="application/link-format"{span}' if timemap.self_uri else "",
        f'<{_uri(timemap.timegate)}>; rel="timegate"' if timemap.timegate else "",
        *(
            f'<{_uri(page.uri)}>; rel="timemap"; type="application/link-format"{_span(page.start, page.end)}'
            for page in timemap.pages
        ),
    ]
    between = ""
    for line in head:
        if line:
            yield between + line
            between = ",\n"
    for one, relation in zip(mementos, _relations(timemap, mementos), strict=True):
        yield f'{between}<{_uri(one.uri)}>; rel="{relation}"; datetime="{to_http_date(one.time)}"'
        between = ",\n"
    yield "\n"


def to_json(timemap: TimeMap, others: dict[str, str] | None = None) -> str:
    """The map as JSON, as MemGator writes it. ``others`` are its URIs by form (``link_format``, ``cdxj_format``)."""
    mementos = [{"datetime": to_iso(one.time), "uri": one.uri} for one in _by_time(timemap)]
    listed: dict[str, Any] = {"list": mementos}
    if mementos:
        listed |= {"first": mementos[0], "last": mementos[-1]}
    whole: dict[str, Any] = {"original_uri": timemap.original, "self": timemap.self_uri, "mementos": listed}
    if timemap.pages:
        whole["timemap_index"] = _index(timemap)
    whole["timemap_uri"] = others or {"json_format": timemap.self_uri}
    whole["timegate_uri"] = timemap.timegate
    return json.dumps(whole, indent=2) + "\n"


def to_cdxj(timemap: TimeMap, others: dict[str, str] | None = None) -> Iterator[str]:
    """The map as CDXJ, line by line. ``others`` are its URIs by form, as for :func:`to_json`."""
    meta: dict[str, Any] = {"original_uri": timemap.original}
    if others:
        meta["timemap_uri"] = others
    if timemap.timegate:
        meta["timegate_uri"] = timemap.timegate
    if timemap.pages:
        meta["timemap_index"] = _index(timemap)
    yield f"!context {json.dumps([CONTEXT])}\n"
    yield f"!id {json.dumps({'uri': timemap.self_uri})}\n"
    yield '!keys ["memento_datetime_YYYYMMDDhhmmss"]\n'
    yield f"!meta {json.dumps(meta)}\n"
    mementos = _by_time(timemap)
    for one, relation in zip(mementos, _relations(timemap, mementos), strict=True):
        fields = {"uri": one.uri, "rel": relation, "datetime": to_http_date(one.time)}
        yield f"{to_timestamp14(one.time)} {json.dumps(fields)}\n"


def _relations(timemap: TimeMap, mementos: tuple[TimeMapMemento, ...]) -> Iterator[str]:
    """What each memento is: the first or last one of all, if no other page of the map begins earlier or ends later."""
    for at, one in enumerate(mementos):
        first = at == 0 and not any(page.start < one.time for page in timemap.pages)
        last = at == len(mementos) - 1 and not any(page.end > one.time for page in timemap.pages)
        yield "first " * first + "last " * last + "memento"


def _by_time(timemap: TimeMap) -> tuple[TimeMapMemento, ...]:
    return tuple(sorted(timemap.mementos, key=lambda one: one.time))


def _index(timemap: TimeMap) -> list[dict[str, str]]:
    return [
        {"uri": page.uri}
        | {name: to_iso(time) for name, time in (("from", page.start), ("until", page.end)) if time == time}  # noqa: PLR0124 - not NaN
        for page in timemap.pages
    ]


def _span(start: float, end: float) -> str:
    given = (("from", start), ("until", end))
    return "".join(f'; {name}="{to_http_date(time)}"' for name, time in given if time == time)  # noqa: PLR0124 - not NaN


def _uri(uri: str) -> str:
    """The URI with what would end it early percent-encoded."""
    return _UNWRITABLE.sub(lambda found: quote(found[0]), uri)
