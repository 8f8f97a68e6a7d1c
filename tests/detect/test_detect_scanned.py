"""Pages read in compiled code and in the slow way: the same, whatever the page."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recrawl.detect import read_html
from recrawl.detect.body import text_of
from recrawl.detect.change_criteria import NO_PAGE_RULES, IgnoreRules, PageRules
from recrawl.detect.fingerprint import MOST_PARTS, packed
from recrawl.detect.html.html_document import Document
from recrawl.detect.html.scanned_page import scan_wellformed_page
from recrawl.detect.noise.noise_keys import Difference, noise_key
from recrawl.formats.warc.warc_stream import fastwarc
from recrawl_testweb.fault_injection import CHARSETS, PageFaults, PageNoise, SitemapLie, ValidatorLie, ValidatorOffer
from recrawl_testweb.page_render import PageLink, PageSubject, html, with_noise

pytest.importorskip("numba", reason="numba is not installed")

URL = "http://example.org/dir/page.html?x=1"
DATA = Path(__file__).parents[1] / "data"
LONGEST = 1_000_000

PIECES = (  # noqa: SIM905 - shorter so
    "<p>|</p>|<div class='a1 b'>|</div>|<a href='/x'>|<a href=y rel='NoFollow'>|</a>|<b>|</b>|text |12 |&amp;|&nbsp;"
    "|&lt;b&gt;|<script>|</script>|<style>|</style>|<!-- c -->|<!--|-->|<template>|</template>|<noscript>"
    "|</noscript>|<iframe src=z>|</iframe>|<svg>|</svg>|<math>|<title>|</title>|<textarea>|</textarea>|<table>"
    "|<tr>|<td>|</table>|<li>"
    "|<ul>|</ul>|<select>|<option>|\0|\x01|\x0b|\x1c|\u3000|\x85|\u2003|é|漢|<![CDATA[x]]>|<?pi ?>|<base href=/b/>"
    "|<meta name=robots content=nofollow>|<meta http-equiv=refresh content='0;url=/r'>|<link rel=canonical href=/can>"
    "|<link rel=alternate type=application/rss+xml href=/feed>|<link rel=canonical>|<xmp>|</xmp>|<plaintext>"
    "|<div id=ad>|<span class='clock x'>|<div role=timer>|09:14:07|Visits: 12|İ|\u212a|™|<div title=' id='>"
    "|<p class='é1'>|<p class='3 2 10 a'>|<p class='a-1b2c3 x4y5z #6##7 a1b2-c3'>|<div id=v-54e26c9-9f0a1b>"
    "|<p id=''>|<div class>|<frameset>|<frame src=f>|</frameset>|<noembed>"
    "|</noembed>|<noframes>|</noframes>"
    "|<a href=''>|<a>|<a xlink:href=q>|<img alt='<p>'>|<area href='/a&amp;b&quot;'>|<p a\"b>"
    "|<p <q>|<p =x>"
    "|<x-y z>|</br>|<br>|<button>|<form>|<dl>|<dd>|<center>|<font>|took 12 ms|<object>|<title|>|<|\"|'|/|="
    "|&|&#60;|deadbeefdeadbeef1|\n|<h1>|</h1>|<body class=z>|<html lang=x>|<head>|<foreignObject>|<desc>"
    "|<script><!--<script>|<style><|</scr|</SCRIPT>|<mi>|<area src=s href>|<iframe>|session id: abcdef|\x1f| "
).split("|")


def told(read: Document, *, use_kernels: bool) -> dict[str, object]:
    """Everything that was read of a page."""
    fields = ("links", "canonical", "nofollow", "feeds", "base", "partial", "text")
    parts = read.parts.parts()
    paths = (frozenset[int](), frozenset(parts.path[::3]), frozenset(parts.path[::2]))
    masks = [frozenset(noise_key(path, Difference.ITEMS) for path in some) for some in paths]
    masks += [frozenset(noise_key(one, Difference.NUMBERS, at) for one in parts.template if one for at in (1, -1))]
    return {name: getattr(read, name) for name in fields} | {
        "runs": (list(read.runs.path), list(read.runs.html)),
        "said": (list(read.parts.path), list(read.parts.said), read.parts.written()),
        "parts": list(map(list, parts)),
        "packed": read.parts.columns() or (packed(parts) if len(parts.path) <= MOST_PARTS else None),
        "samples": [read.parts.sample(parts, mask, use_kernels=use_kernels).tolist() for mask in masks],
        "links outside": [read.links_outside(some) for some in paths],
    }


def both(page: str, rules: PageRules = NO_PAGE_RULES) -> tuple[dict[str, object], dict[str, object], bool]:
    """What is read of a page slowly and in compiled code, and whether the second really was."""
    slow, quick = read_html(page, URL, rules), read_html(page, URL, rules, use_kernels=True)
    return told(slow, use_kernels=False), told(quick, use_kernels=True), is_scanned(quick)


def same(page: str, rules: PageRules = NO_PAGE_RULES) -> bool:
    """Whether the page was read in compiled code; that it is the same is asserted."""
    slow, quick, scanned = both(page, rules)
    assert quick == slow
    return scanned


def is_scanned(page: Document) -> bool:
    return type(page.runs).__name__ == "ScannedRuns"


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
@example("<title<ul>x</ul><p>y</p>>")
@example("<script><!--<script></script>--></script>x")
@example("<svg><style>a{}</style><title>t</title></svg><svg><template><a href=x></template></svg>")
@example("<noscript><iframe></noscript><a href=x></iframe></noscript>y")
@example("<svg><iframe><a href=x>y</a></iframe></svg>")
@example("<p title=' id='>x<p data-a='b class=' class=c>y")
@example("<p class='" + "a " * 200 + "'>x")
@example("<p>&nbsp;<a href=x>y</a></p><p>\u3000<a href=x>y</a><!-- c --> </p>")
def test_anything_is_read_the_same_with_kernels(page: str) -> None:
    slow, quick, _ = both(page)
    assert quick == slow


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from("<>/ab=\"' &;!-pti12\u00a0é"), max_size=60))
def test_any_characters_are_read_the_same_with_kernels(page: str) -> None:
    slow, quick, _ = both(page)
    assert quick == slow


WORDS = [
    *(
        "a",
        "Bc",
        "-",
        ",",
        "12",
        "7",
        ":",
        "=",
        "_",
        "é",
        "漢",
        "\u3000",
        "&amp;",
        "&nbsp;",
        "&lt;",
        " ",
        " ",
        "\n",
        "\x02",
    ),
    *("x" * 7, "y" * 8, "Z" * 9, "w" * 63, "token", "visits", "users online", "just", "now", "ago", "took", "09:14:07"),
    *(
        "<script></script>",
        "<noscript>n</noscript>",
        "<b>",
        "<!-- c -->",
        "<p>",
        "<p class=b>",
        "session id:",
        "İ",
        "\u212a",
    ),
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40).map("".join))
@example("took<script></script> 5 s<p>took<p>5 s<p>took 5 s")
@example("&nbsp;<script></script>a<script></script>b" * 40)
@example("2026-01-02<p>10:20:30 Z<p>on 2026-01-02 at 10:20:30 Z")
def test_any_words_are_read_the_same_with_kernels(text: str) -> None:
    assert same(f"<p>{text}")


@pytest.mark.parametrize(
    "tag",
    [
        '<a href=/x title="The "Original" one" class=c>',
        '<p class=""lead"">',
        f"<div class='{' '.join(f'a-long-name-{number}' for number in range(40))}'>",
        "<script>//<![CDATA[\ndocument.write('<script src=x><\\/script>')</script>",
    ],
)
def test_what_is_odd_but_common_is_read_with_kernels(tag: str) -> None:
    assert same(f"<p>One{tag}two <a href=/y>three</a>")


def test_common_pages_are_read_with_kernels() -> None:
    page = (
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>T 1</title><script>if (a < b) x('<p>')</script>"
        "<link rel=canonical href=/c><link rel=stylesheet href=s><style>p > a {}</style></head><body class='x-1'>"
        "<!-- menu --><nav id=m1><a href=/a?b&amp;c>A</a> <a href=é rel='nofollow me'>É</a></nav>"
        "<p class='text lead'>Prose &amp; more<br>12&nbsp;it.<noscript><img src=x></noscript><svg><path d=m></svg></p>"
        "<template><p>no</p></template><iframe src=/f><p></iframe></body></html>"
    )
    assert same(page)
    assert same(page.replace("lead", "banner"))
    assert same(page, IgnoreRules.parse(ignore_text="12 .*").of(URL))
    assert not same(page, IgnoreRules.parse(".lead").of(URL))


@pytest.mark.parametrize("charset", CHARSETS)
def test_pages_of_the_test_web_are_read_with_kernels(charset: str) -> None:
    for noise in range(64):
        fault_profile = PageFaults(
            ValidatorOffer(0), ValidatorLie(0), PageNoise(noise), charset, True, False, False, 0, SitemapLie(0)
        )
        links = [PageLink(f"/page/{noise + step}?a=1&b={step}", f"Page {step}") for step in range(5)]
        subject = PageSubject(7, noise, 3, URL, "A & B", np.array([1e9, 2e9, 3e9]), 3e9, links, fault_profile)
        assert same(with_noise(html(subject), now=3e9, key=noise))


def test_a_deep_page_is_read_the_same_with_kernels() -> None:
    assert same("<div class=a>" * 5_000 + "deep<a href=/x>down</a>" + "</div>" * 5_000)


def archived(folder: Path) -> Iterator[str]:
    """Pages out of all archives in a folder, as far as they can be read."""
    library = fastwarc()
    for path in sorted([*folder.rglob("*.warc"), *folder.rglob("*.warc.gz")]):
        with suppress(OSError), path.open("rb") as file:  # some are broken on purpose
            records = library.ArchiveIterator(file, record_types=library.WarcRecordType.response, parse_http=True)
            for record in records:
                kind = (record.http_headers and record.http_headers.get("Content-Type")) or ""
                if "html" in kind:
                    yield text_of(record.reader.read(LONGEST), kind)


def test_pages_of_archives_are_read_the_same_with_kernels() -> None:
    read = [same(page) for page in archived(DATA)]
    assert any(read)


def test_pages_of_many_archives_are_read_the_same_with_kernels(data_folder: Path) -> None:
    read = [same(page) for page in islice(archived(data_folder / "formats" / "warc"), 300)]
    assert sum(read) > len(read) / 2


def test_half_the_pages_of_many_archives_need_no_parser(data_folder: Path) -> None:
    pages = {page for page in islice(archived(data_folder / "formats" / "warc"), 300) if "<" in page}
    assert sum(scan_wellformed_page(page) is not None for page in pages) > len(pages) / 2


def test_a_page_with_many_tags_after_a_long_one_with_few_is_read_the_same() -> None:
    assert same(f"<p>One {'two ' * 300_000}</p>")
    assert same("<p>One <a href=/x>two</a>" + "<b>x</b>" * 100_000)


COUNTED = """
import gc
from numba.core.dispatcher import Dispatcher
from recrawl.detect import read_html
from recrawl.detect.html.scanned_page import warm_up

def made():
    return sum(len(one.signatures) for one in gc.get_objects() if isinstance(one, Dispatcher))

warm_up()
before = made()
words = " ".join(map(str, range(2_000)))
page = read_html(f"<p class=x>One <a href=/b>three</a> 12:30</p>{words}", "http://a.org/", use_kernels=True)
page.parts.sample(page.parts.parts(), frozenset(), use_kernels=True)
print(type(page.runs).__name__, before > 0, made() - before)
"""


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text(st.sampled_from("abZ_ 019.,:-#é漢"), max_size=40), max_size=8),
    st.integers(0, 3),
)
def test_templates_are_the_same_with_kernels(lines: list[str], long: int) -> None:
    assert same("".join(f"<p>{line}{' x1' * 70 * long}</p>" for line in lines))


def test_what_is_compiled_can_be_compiled_beforehand() -> None:
    """In a process of its own, where nothing was compiled yet."""
    done = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["ScannedRuns", "True", "0"]
