"""Pages that need no parser are read as the parser reads them; whatever is in doubt is left to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

pytest.importorskip("numba", reason="numba is not installed")

from recrawl.detect.html.scanned_page import ScannedPage, scan_page, scan_wellformed_page
from recrawl.detect.html.wellformed_scan import repaired_html

INLINE = ["a", "b", "i", "em", "font", "span", "code", "label", "x-y", "time", "noscript", "object", "button"]
BLOCKS = ["p", "div", "ul", "ol", "li", "dl", "dt", "dd", "h1", "h2", "form", "pre", "main", "address", "blockquote"]
TABLES = ["table", "caption", "colgroup", "col", "tbody", "thead", "tr", "td", "th"]
OTHERS = ["select", "option", "optgroup", "svg", "template", "nobr", "marquee", "html", "head", "body", "center"]
VOID = ["br", "img", "hr", "input", "meta", "link", "base", "wbr"]
HELD = ["script", "style", "title", "textarea", "iframe"]
ATTRIBUTES = (  # noqa: SIM905 - shorter so
    'class="a b"|class=x|id=\'y\'|href="/a?b=1&c=2"|href=/b|href=\'q"r\'|hidden|CLASS=Z|rel="nofollow"|a=b=c|"|href'
    '|title="a&lt;b&copy;&#39;"|href="&copy=1&amp"|class="banner"|x=\'1\'y=2|href=""|\n data-a = \'b\' '
).split("|")
TEXTS = (  # noqa: SIM905 - shorter so
    "One| two  three |\n|| |é 漢|&amp;|&nbsp;|\u00a0|\u00a9|&copy;|&copy|&notit;|&#65;|&#x41;|&#150;|&#0;|& more|AT&T"
    "|a < b|a > b|12:30|\r\n|x\ry|\"|'|&zzz;|&sort=1|&lt;p&gt;|&#128512;|&#x1FFFF;|B\u00c2|&ampx|&a&b;"
    "|&bne;|&fjlig;|&NotEqualTilde;"
).split("|")
MARKUP = (  # noqa: SIM905 - shorter so
    "<!-- a -->|<!-->|<!---->|<!--a--!>|<?xml version='1.0'?>|</>|<3|<!DOCTYPE html>|<!doctype html public 'x'>|<image>"
    "|<![CDATA[x]]>|</br>|</p>|<a|<p class=|<div/>|<script><!-- <script></script> --></script>|<br></p >|<P>|</DIV>"
    "|<!DO>|<!DOCTYPE math>|<!doxxxxx html>|<a-name-that-is-long>"
).split("|")


def facts(page: ScannedPage) -> tuple[Any, ...]:
    """All that is found on a page."""
    return (
        page.text.written(),
        page.text.path,
        page.text.said,
        page.references,
        page.are_plain,
        page.maybe_noisy,
        page.maybe_based,
        page.marks.tolist(),
        page.runs.path,
        page.runs.html,
    )


def both(html: str) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
    """What is found on a page without a parser and with one; ``None`` if it needs one."""
    tidy = scan_wellformed_page(html)
    parsed = scan_page(LexborHTMLParser(html).html or "") if tidy else None
    return (facts(tidy), facts(parsed) if parsed else ()) if tidy else None


names = st.sampled_from(INLINE + BLOCKS + TABLES + OTHERS)
texts = st.sampled_from(TEXTS)
attributes = st.lists(st.sampled_from(ATTRIBUTES), max_size=3).map(lambda some: "".join(f" {one}" for one in some))


def element(inside: st.SearchStrategy[str], names: st.SearchStrategy[str] = names) -> st.SearchStrategy[str]:
    return st.builds(lambda name, some, held: f"<{name}{some}>{held}</{name}>", names, attributes, inside)


def leaf() -> st.SearchStrategy[str]:
    held = element(texts, st.sampled_from(HELD))
    ends = st.sampled_from([">", "/>", " />"])
    void = st.builds(lambda name, some, end: f"<{name}{some}{end}", st.sampled_from(VOID), attributes, ends)
    return st.one_of(texts, texts, held, void)


def joined(inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(inside, max_size=4).map("".join)


nested = st.recursive(leaf(), lambda inside: element(joined(inside)), max_leaves=12)
in_tables = "One|<p>two|<ul><li>three| |<td>|<tr>|<th>x</th>|</td>|</tr>|</table>|<tbody>|<script>x</script>"
parts_of_tables = st.recursive(
    st.sampled_from(in_tables.split("|")),
    lambda inside: element(joined(inside), st.sampled_from(TABLES)),
    max_leaves=10,
)
soup = st.lists(
    st.one_of(
        texts,
        st.sampled_from(MARKUP),
        st.builds(lambda name, some: f"<{name}{some}>", names | st.sampled_from(VOID + HELD), attributes),
        st.builds(lambda name: f"</{name}>", names | st.sampled_from(HELD)),
    ),
    max_size=12,
).map("".join)
heads = st.sampled_from(
    [
        "",
        "<!DOCTYPE html>",
        "<!DOCTYPE html><html lang=en><head><title>T &amp; t</title></head><body>",
        "<html><body class=x>",
        "<head><meta charset=utf-8></head>\n",
        "<!-- a --><html>\n<head>\n<link rel=canonical href=/c></head>\n<body>",
        "<title>A</title><script>a<b</script>",
        "<head></head><script>late()</script><title>B</title><body>",
        "<noscript><link rel=x></noscript>",
    ]
)
ends = st.sampled_from(["", "</body></html>", "</body>\n</html>\n<!-- b -->\n", "</div>", " ", "</body>x"])


@settings(max_examples=300)
@given(heads, st.one_of(joined(nested), joined(parts_of_tables), soup), ends)
def test_what_needs_no_parser_is_read_as_the_parser_reads_it(head: str, body: str, end: str) -> None:
    found = both(head + body + end)
    if found is not None:
        without, by_parser = found
        assert without == by_parser


@pytest.mark.parametrize(
    "html",
    [
        "<!DOCTYPE html><html><head><title>A</title></head><body><p>One<p>Two</body></html>",
        "<ul><li>One<li>Two <b>three</b></ul>",
        "<dl><dt>One<dd>Two<dt>Three</dl>",
        "<table><tr><td>One<td>Two<tr><td>Three</table>",
        "<table><td>One</table>after",
        "<!doctype html><p>One<table><tbody><tr><th>Two</table>",
        "<select><option>One<option selected>Two<optgroup label=x><option>Three</select>",
        "<p>One</div> two</p></p>three",
        "<img src=a /><br/><a href='/x?a=1&b=2'>One</a> &copy; &#8212; a < b & c",
        "<script>if (a < b) x('<p>') <!-- </script>One",
        "<style>p > a {}</style><textarea>a <b> &amp;</textarea>",
        '<div title="The "Original" one" class=a class=b>One</div>',
        "<!-- a --><p>One<!-- b -->two",
    ],
)
def test_common_ways_to_write_need_no_parser(html: str) -> None:
    found = both(html)
    assert found is not None
    without, by_parser = found
    assert without == by_parser


@pytest.mark.parametrize(
    "html",
    [
        "<b>One<p>two</b>three",
        "<a href=/x>One<a href=/y>two</a>",
        "<table>One<tr><td>two</table>",
        "<div><span>One</div>",
        "<p>One<table><tr><td>two</table>",
        "<svg><path d=m></svg>",
        "<template><p>One</template>",
        "&copy2 and &notit",
        "One\x00two",
        "<p>One <!-- two",
        "<?xml version='1.0'?><p>One",
        "<head></head><meta name=a><body>",
        "<p>a &bne; b",
        "<!DOCTYPE math><p>One",
        "<!doxxxxx html><p>One",
        "<table><colgroup></b><col></table>",
        "<xllpmmqpollkmmllmomknommnklmllm>",
        "<p class='one",
        "",
        "<div>" * 600 + "deep",
        "One \ud800",
        "<p>" + "x" * (1 << 20),
    ],
)
def test_what_is_in_doubt_is_left_to_the_parser(html: str) -> None:
    assert repaired_html(html) is None


TIGHT = """
import sys
import numpy as np
import recrawl.detect.html.scanned_page as scanned
import recrawl.detect.html.wellformed_scan as wellformed
from recrawl.detect.html.wellformed_scan import DEEPEST, GROWTH, MARGIN, MOST_ATTRIBUTES

class Nothing(list):
    def append(self, room): pass

class Tight(wellformed._WellformedBuffers):
    def __init__(self, twice):
        super().__init__(twice // 2)

wellformed._COMMON, wellformed._WellformedBuffers = 0, Tight
wellformed._buffers, scanned._buffers = Nothing(), Nothing()
scanned._buffers_for = lambda written: scanned._ScanBuffers(len(written), len(written) // 2 + 1)
pages = [
    *("<div>" * depth + inside for depth in range(500, 520) for inside in ("<table><td>x", "<p>", "x")),
    *("<table><td>" * depth + "x" for depth in range(120, 130)),
    *("<p a='" + '"' * many + end for many in range(40) for end in ("'>", "'")),
    *(one * many for many in range(1, 70) for one in ("a", "&", "a ", "<br>a", "a<!---->", "<p>", "</p>", "<tr>")),
    *("<p" + "".join(f" a{name}" for name in range(many)) + ">" for many in range(30, 36)),
    *("<p>x"[:size] for size in range(5)), *("<script></script>"[:size] for size in range(18)),
    *("<!-- a -->"[:size] for size in range(11)), *("<!DOCTYPE html>"[:size] for size in range(16)),
    *("&#x41;&copy;"[:size] for size in range(13)), *("<p a='b' c=d e>"[:size] for size in range(16)),
]
for page in pages:
    scanned.scan_wellformed_page(page)
print(len(pages))
"""


@pytest.mark.slow
def test_kernels_stay_within_their_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", TIGHT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 500
