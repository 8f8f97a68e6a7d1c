"""TimeMaps: which captures an archive holds of one URL (Memento, RFC 7089; conventions M3 and M4).

Three forms are read and told apart by how they begin: link-format (RFC 6690), JSON as MemGator writes it (and the
lines and tables that pywb and the Wayback Machine give as JSON), and CDXJ (also pywb's, whose lines begin with a key
as in an index). Long maps come in pages: a map names further ones, and whoever follows them keeps track of where it
has been, since they may form a circle.
"""

from __future__ import annotations

import json
import re
from typing import Any

from recrawl.errors import InputError
from recrawl.formats.captures import Report
from recrawl.formats.timemap_values import TIMESTAMP, Findings, TimeMap
from recrawl.urls import url_of_key

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


def read_timemap(data: bytes, source: str, report: Report) -> TimeMap:
    """The TimeMap in a file or answer, of whichever form.

    Raises:
        InputError: it is none.

    >>> link = b'<http://a.org/>; rel="original", <http://x/1>; rel="memento"; datetime="Sat, 02 Feb 2013 10:00:00 GMT"'
    >>> read_timemap(link, "x", Report()).mementos
    (Memento(uri='http://x/1', original='http://a.org/', time=1359799200.0),)
    """
    text = data.removeprefix(b"\xef\xbb\xbf")
    found = Findings(source, report, offset=len(data) - len(text))
    read_text(text, found)
    return found.timemap()


def read_text(text: bytes, found: Findings) -> None:
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


def read_links(data: bytes, found: Findings, *, final: bool = True) -> int:
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


def _take_link(uri: str, parameters: dict[str, str], position: int, found: Findings) -> None:
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


def _read_json(data: bytes, found: Findings) -> None:
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


def _read_lines(data: bytes, found: Findings) -> bool:
    """One JSON object a line, as pywb answers; false if this is not what it is."""
    position = read = 0
    for line in data.splitlines(keepends=True):
        row = _loaded(line)
        if isinstance(row, dict) and "timestamp" in row:
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


def _take_capture(row: dict[str, Any], position: int, found: Findings) -> None:
    uri = row.get("uri") or row.get("load_url") or ""
    found.memento(str(uri), str(row["timestamp"]), position, str(row.get("url") or row.get("original") or ""))


def _take_rows(rows: list[Any], found: Findings) -> None:
    """A table with its header in the first row, as the Wayback Machine answers, or a list of objects."""
    header = rows[0] if rows and isinstance(rows[0], list) else None
    for number, row in enumerate(rows[1:] if header else rows):
        fields = dict(zip(header, row, strict=False)) if header and isinstance(row, list) else row
        if not isinstance(fields, dict) or not fields.keys() & {"timestamp", "datetime"}:
            found.broken(f"row {number} is no capture", 0)
        elif "timestamp" in fields:
            _take_capture(fields, 0, found)
        else:
            found.memento(str(fields.get("uri", "")), fields["datetime"], 0)


def _take_map(whole: dict[str, Any], found: Findings) -> None:
    """MemGator's form; a list of pages is under ``timemap_index``."""
    found.original = _string(whole.get("original_uri"))
    found.timegate = _string(whole.get("timegate_uri"))
    found.self_uri = _string(whole.get("self"))
    mementos = whole.get("mementos", {})
    listed = mementos.get("list", mementos.get("all", [])) if isinstance(mementos, dict) else mementos
    for number, one in enumerate(listed if isinstance(listed, list) else []):
        if isinstance(one, dict):
            found.memento(_string(one.get("uri")), one.get("datetime"), 0)
        else:
            found.broken(f"memento {number} is no object", 0)
    _take_pages(whole.get("timemap_index"), found)
    pages = whole.get("pages")
    _take_pages([pages[name] for name in ("prev", "next") if name in pages] if isinstance(pages, dict) else None, found)


def _take_pages(index: object, found: Findings) -> None:
    for page in index if isinstance(index, list) else []:
        if isinstance(page, dict) and isinstance(page.get("uri"), str):
            found.page(page["uri"], page.get("from"), page.get("until"))


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


# -- CDXJ -----------------------------------------------------------------------------------------


def is_cdxj(text: bytes) -> bool:
    """Whether a map that begins so is one of lines: about the map, of 14 digits, or of a key and digits."""
    return _CDXJ.match(text) is not None


def read_lines(data: bytes, found: Findings) -> None:
    """Take whole lines of a map in CDXJ."""
    position = 0
    for line in data.splitlines(keepends=True):
        key, _, value = line.strip().partition(b" ")
        indexed = _INDEXED.match(value) if key[:1] not in (b"!", b"@") else None
        if indexed:
            _take_indexed(_text(key), _text(indexed[1]), _loaded(value[indexed.end() :]), position, found)
        elif key:
            # InterPlanetary Wayback writes "datetime"="…", which is nearly JSON.
            _take_line(_text(key), _loaded(value.replace(b'"datetime"=', b'"datetime":')), position, found)
        position += len(line)


def _take_indexed(key: str, timestamp: str, value: Any, position: int, found: Findings) -> None:  # noqa: ANN401
    """A line as in an index, which is what pywb gives as its map."""
    if isinstance(value, dict):
        url = value.get("url") or url_of_key(key) or ""
        _take_capture({**value, "url": url, "timestamp": timestamp}, position, found)
    else:
        found.broken("the JSON of this line cannot be read", found.offset + position)


def _take_line(key: str, value: Any, position: int, found: Findings) -> None:  # noqa: ANN401 - whatever JSON holds
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
