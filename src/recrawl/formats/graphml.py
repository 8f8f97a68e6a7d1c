"""GraphML: the links between pages, with attributes of the pages, for graph tools. There is no reader.

It is written as a stream: all pages first, then all links. The format cannot express unknown values, so NaN, nulls and
empty texts are left out.

Nodes may have a drawing, too, in yFiles' extension of the format, as in the SHARC thesis (Listing 8.1): a circle with a
fill colour, whose area is proportional to the pages that the node stands for. yEd shows it; other tools ignore it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from recrawl.errors import require

_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"'
    ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    ' xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns'
    ' http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">\n'
)
_YFILES = (
    ' xmlns:y="http://www.yworks.com/xml/graphml" xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns'
    ' http://www.yworks.com/xml/schema/graphml/1.1/ygraphml.xsd">\n'
)
_FILLS = {
    "green": "#00FF00",
    "yellow": "#FFFF00",
    "red": "#FF0000",
    "black": "#000000",
    "blue": "#0000FF",
    "grey": "#808080",
}
"""Colours by name, as yEd writes them."""
_DIAMETER = 10.0
"""Of the circle of one page, in pixels."""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML 1.0 file may hold, in whatever form."""


class _Key(NamedTuple):
    """One attribute that pages or links may have."""

    id: str
    column: int
    name: str
    kind: str


class NodeDrawing(NamedTuple):
    """Names of the columns that tell how to draw a node."""

    colour: str
    """One of green, yellow, red, black, blue and grey."""
    pages: str
    """How many pages a node stands for."""
    label: str
    """Shown beside a node that stands for several pages; else only a description."""


def write_graphml(
    file: IO[bytes], pages: Iterable[Any], links: Iterable[Any], drawing: NodeDrawing | None = None
) -> None:
    """Write a directed graph, with a ``drawing`` of its nodes for yEd if it is given.

    ``pages`` are Arrow record batches with a column ``id`` (whole numbers) and any others; ``links`` have ``source``
    and ``target`` (ids of pages) and any others. The other columns become attributes of their type: booleans, whole
    numbers, numbers, texts. All batches of a kind have one schema. Memory is that of one batch.
    """
    pages, page_keys = _keys(pages, "n", frozenset({"id"}))
    links, link_keys = _keys(links, "e", frozenset({"source", "target"}))
    head = _HEAD if drawing is None else _HEAD[: _HEAD.index(" xsi:schemaLocation")] + _YFILES
    file.write(head.encode())
    for scope, keys in (("node", page_keys), ("edge", link_keys)):
        for key in keys:
            words = f'id="{key.id}" for="{scope}" attr.name={quoteattr(_clean(key.name))} attr.type="{key.kind}"'
            file.write(f"  <key {words}/>\n".encode())
    if drawing is not None:
        file.write(b'  <key id="shape" for="node" yfiles.type="nodegraphics"/>\n')
        file.write(b'  <key id="about" for="node" attr.name="description" attr.type="string"/>\n')
    file.write(b'  <graph edgedefault="directed">\n')
    for batch in pages:
        ids = batch.column("id").to_pylist()
        heads = [f'    <node id="n{one}"' for one in ids]
        drawn = None if drawing is None else _drawn(batch, drawing)
        file.write("".join(_elements("node", heads, batch, page_keys, drawn)).encode())
    for batch in links:
        ends = zip(batch.column("source").to_pylist(), batch.column("target").to_pylist(), strict=True)
        heads = [f'    <edge source="n{source}" target="n{target}"' for source, target in ends]
        file.write("".join(_elements("edge", heads, batch, link_keys)).encode())
    file.write(b"  </graph>\n</graphml>\n")


def _keys(batches: Iterable[Any], prefix: str, own: frozenset[str]) -> tuple[Iterator[Any], list[_Key]]:
    """The same batches, and the attributes their schema declares."""
    iterator = iter(batches)
    first = next(iterator, None)
    if first is None:
        return iterator, []
    missing = own - set(first.schema.names)
    if missing:
        msg = f"there is no column {min(missing)!r}"
        raise ValueError(msg)
    fields = [(column, field) for column, field in enumerate(first.schema) if field.name not in own]
    keys = [_Key(f"{prefix}{at}", column, field.name, _kind(field.type)) for at, (column, field) in enumerate(fields)]
    return chain([first], iterator), keys


def _kind(arrow_type: Any) -> str:  # noqa: ANN401 - a pyarrow type
    types = require("pyarrow", "columns").types
    if types.is_boolean(arrow_type):
        return "boolean"
    if types.is_integer(arrow_type):
        return "long"
    return "double" if types.is_floating(arrow_type) else "string"


def _drawn(batch: Any, drawing: NodeDrawing) -> list[str]:  # noqa: ANN401 - a batch
    """The drawing of each node, and its description."""
    columns = (batch.column(name).to_pylist() for name in drawing)
    drawn = []
    for colour, pages, label in zip(*columns, strict=True):
        size, text = f"{_DIAMETER * math.sqrt(pages):.3f}", escape(_clean(label))
        shown = f"<y:NodeLabel>{text}</y:NodeLabel>" if pages > 1 else ""
        drawn.append(
            f'<data key="shape"><y:ShapeNode><y:Geometry width="{size}" height="{size}"/>'
            f'<y:Fill color="{_FILLS[colour]}" transparent="false"/>{shown}<y:Shape type="ellipse"/></y:ShapeNode>'
            f'</data><data key="about">{text}</data>'
        )
    return drawn


def _elements(
    tag: str,
    heads: list[str],
    batch: Any,  # noqa: ANN401 - a batch
    keys: list[_Key],
    drawn: list[str] | None = None,
) -> Iterator[str]:
    columns = [_data(batch.column(key.column).to_pylist(), key) for key in keys]
    if drawn is not None:
        columns.append(drawn)
    for head, *values in zip(heads, *columns, strict=True):
        inside = "".join(values)
        yield f"{head}>{inside}</{tag}>\n" if inside else f"{head}/>\n"


def _data(values: list[Any], key: _Key) -> list[str]:
    before, after = f'<data key="{key.id}">', "</data>"
    texts = (_text(value, key.kind) for value in values)
    return [before + text + after if text else "" for text in texts]


def _text(value: Any, kind: str) -> str:  # noqa: ANN401 - a value of any column
    if value is None or (kind == "double" and math.isnan(value)):
        return ""
    if kind == "boolean":
        return "true" if value else "false"
    if kind == "double" and math.isinf(value):
        return "INF" if value > 0 else "-INF"
    return escape(_clean(str(value)), {"\r": "&#13;"}) if kind == "string" else repr(value)


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
