"""GraphML, read back by an XML parser, and by networkx where it is installed."""

from __future__ import annotations

import io
import math
import tracemalloc
from importlib.util import find_spec
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.formats.graphml import NodeDrawing, write_graphml

SPACE = "{http://graphml.graphdrawing.org/xmlns}"
CASTS = {"string": str, "long": int, "double": float, "boolean": lambda text: {"true": True, "false": False}[text]}


def written(pages: list[pa.RecordBatch], links: list[pa.RecordBatch]) -> bytes:
    file = io.BytesIO()
    write_graphml(file, iter(pages), iter(links))
    return file.getvalue()


def read(data: bytes) -> tuple[dict[str, dict[str, object]], list[tuple[str, str, dict[str, object]]]]:
    """The graph, after the checks that the schema of GraphML would make."""
    root = ET.fromstring(data)
    assert root.tag == f"{SPACE}graphml"
    assert [child.tag for child in root][-1] == f"{SPACE}graph"
    keys = {key.get("id"): key for key in root.findall(f"{SPACE}key")}
    (graph,) = root.findall(f"{SPACE}graph")
    assert graph.get("edgedefault") == "directed"
    nodes, edges = {}, []
    for element in graph:
        fields = {}
        for one in element:
            key = keys[one.get("key")]
            assert one.tag == f"{SPACE}data"
            assert key.get("for") == element.tag.removeprefix(SPACE)
            fields[key.get("attr.name")] = CASTS[key.get("attr.type")](one.text)
        if element.tag == f"{SPACE}node":
            assert not edges
            assert element.get("id") not in nodes
            nodes[element.get("id")] = fields
        else:
            edges.append((element.get("source"), element.get("target"), fields))
    return nodes, edges


PAGES = pa.record_batch(
    {
        "id": pa.array([7, 8, 9]),
        "url": ["http://a.example/?x=1&y=<2>", "http://a.example/\x00b", ""],
        "rate": [0.1, math.nan, math.inf],
        "visits": pa.array([3, None, 2**40]),
        "alive": [True, False, None],
    }
)
LINKS = pa.record_batch({"source": [7, 8], "target": [8, 7], "added": [1.5, None], "text é\"'": ["a & b", None]})


def test_pages_and_links_with_their_attributes():
    nodes, edges = read(written([PAGES], [LINKS]))
    assert nodes == {
        "n7": {"url": "http://a.example/?x=1&y=<2>", "rate": 0.1, "visits": 3, "alive": True},
        "n8": {"url": "http://a.example/\ufffdb", "alive": False},
        "n9": {"rate": math.inf, "visits": 2**40},
    }
    assert edges == [("n7", "n8", {"added": 1.5, "text é\"'": "a & b"}), ("n8", "n7", {})]


def test_no_pages_are_a_graph_too():
    assert read(written([], [])) == ({}, [])


def test_a_missing_column_is_named():
    with pytest.raises(ValueError, match="'target'"):
        written([PAGES], [pa.record_batch({"source": [1]})])


@pytest.mark.skipif(find_spec("networkx") is None, reason="networkx is not installed")
def test_networkx_reads_it():
    import networkx as nx

    graph = nx.read_graphml(io.BytesIO(written([PAGES], [LINKS])))
    assert graph.is_directed()
    assert set(graph.edges) == {("n7", "n8"), ("n8", "n7")}
    assert graph.nodes["n7"]["visits"] == 3


DRAWN = pa.record_batch(
    {
        "id": [0, 1, 2],
        "label": ["http://a.example/?x=1&y=<2>", "http://a.example/b", "400 unchanged"],
        "colour": ["red", "black", "green"],
        "pages": [1, 1, 400],
    }
)


def drawn_for_yed():
    file = io.BytesIO()
    write_graphml(file, [DRAWN], [], NodeDrawing("colour", "pages", "label"))
    return file.getvalue()


def test_nodes_are_drawn_for_yed_as_in_the_thesis():
    """SHARC Listing 8.1 and Algorithm 8: circles, coloured by outcome, as large as the pages folded into them."""
    root = ET.fromstring(drawn_for_yed())
    [key] = [key.get("id") for key in root.findall(f"{SPACE}key") if key.get("yfiles.type") == "nodegraphics"]
    yed = "{http://www.yworks.com/xml/graphml}"
    nodes = []
    for data in root.iterfind(f".//{SPACE}node/{SPACE}data[@key='{key}']"):
        [shape] = list(data)
        assert shape.tag == f"{yed}ShapeNode"
        place, fill, form = (shape.find(f"{yed}{name}") for name in ("Geometry", "Fill", "Shape"))
        assert place.get("width") == place.get("height")
        label = shape.find(f"{yed}NodeLabel")
        shown = None if label is None else label.text
        nodes.append((fill.get("color"), float(place.get("width")), form.get("type"), shown))
    assert nodes == [
        ("#FF0000", 10.0, "ellipse", None),
        ("#000000", 10.0, "ellipse", None),
        ("#00FF00", 200.0, "ellipse", "400 unchanged"),
    ]


@pytest.mark.skipif(find_spec("networkx") is None, reason="networkx is not installed")
def test_networkx_reads_drawn_nodes():
    import networkx as nx

    graph = nx.read_graphml(io.BytesIO(drawn_for_yed()))
    assert graph.nodes["n0"]["description"] == "http://a.example/?x=1&y=<2>"
    assert graph.nodes["n2"]["pages"] == 400
    assert graph.nodes["n2"]["shape_type"] == "ellipse"


values = st.text(max_size=10)


@given(st.lists(st.tuples(values, st.floats(), st.booleans()), max_size=6))
def test_any_values_are_written_so_that_they_can_be_read(rows):
    rows = [(text.encode("utf-8", "replace").decode(), number, flag) for text, number, flag in rows]
    batch = pa.record_batch(
        {
            "id": pa.array(range(len(rows)), pa.int64()),
            "text": pa.array([row[0] for row in rows], pa.string()),
            "number": pa.array([row[1] for row in rows], pa.float64()),
            "flag": pa.array([row[2] for row in rows], pa.bool_()),
        }
    )
    nodes, _ = read(written([batch], []))
    for at, (text, number, flag) in enumerate(rows):
        kept = "".join(
            char if char in "\t\n\r" or (char >= " " and char not in "\ufffe\uffff") else "\ufffd" for char in text
        )
        assert nodes[f"n{at}"].get("text", "") == kept
        assert nodes[f"n{at}"]["flag"] == flag
        assert nodes[f"n{at}"].get("number") == (None if math.isnan(number) else number)


def test_memory_is_that_of_one_batch():
    class Nowhere(io.RawIOBase):
        def write(self, data):
            return len(data)

    def links():
        for _ in range(30):
            yield pa.record_batch({"source": pa.array(range(5_000)), "target": pa.array(range(5_000))})

    tracemalloc.start()
    try:
        write_graphml(Nowhere(), iter([PAGES]), links())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000  # one batch is about 1.5 MB of text and objects, all of them are 10 MB
