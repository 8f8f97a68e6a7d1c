"""What pages and style sheets embed: kinds, alternatives, sizes and bounds."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.detect.html.embedded_resources import (
    MOST_ALTERNATIVES,
    MOST_EMBEDS,
    embedded_in_css,
    embedded_in_html,
    read_embeds,
    rewrite_css,
)
from recrawl.detect.version import CostlyError, Effort
from recrawl.model import Capture
from recrawl.model.captures import EmbedKind

BASE = "http://site.example/dir/page.html"


def found(html):
    return [
        (one.kind.name.lower(), [named.url.removeprefix("http://site.example/dir/") for named in one.alternatives])
        for one in embedded_in_html(html, BASE).embeds
    ]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<img src=a.png>", [("image", ["a.png"])]),
        ("<img src=a.png srcset='b.png 2x, c.png 3x'>", [("image", ["a.png", "b.png", "c.png"])]),
        (
            "<picture><source srcset='a.webp'><source srcset='a.avif 2x'><img src=a.png></picture>",
            [("image", ["a.webp", "a.avif", "a.png"])],
        ),
        (
            "<video poster=p.jpg><source src=a.webm><source src=a.mp4><track src=t.vtt></video>",
            [("image", ["p.jpg"]), ("multimedia", ["a.webm", "a.mp4"]), ("other", ["t.vtt"])],
        ),
        ("<audio src=a.ogg></audio><embed src=b.swf>", [("multimedia", ["a.ogg"]), ("multimedia", ["b.swf"])]),
        ("<object data=a.swf><embed src=b.swf></object>", [("multimedia", ["a.swf", "b.swf"])]),
        ("<iframe src=f.html></iframe>", [("frame", ["f.html"])]),
        ("<frameset><frame src=f.html></frameset>", [("frame", ["f.html"])]),
        (
            "<link rel='STYLESHEET' href=a.css><script src=a.js></script>",
            [("stylesheet", ["a.css"]), ("script", ["a.js"])],
        ),
        ("<link rel=icon href=i.ico><link rel=preload href=x.js><a href=b.html>b</a>", []),
        ("<input type=image src=a.png><input type=text src=b.png>", [("image", ["a.png"])]),
        ("<body background=a.png><svg><image href=b.png></svg>", [("image", ["a.png"]), ("image", ["b.png"])]),
        ("<p style='background: url(a.png)'>", [("image", ["a.png"])]),
        (
            "<style>@import 'x.css'; p {background: url(a.png)}</style>",
            [("stylesheet", ["x.css"]), ("image", ["a.png"])],
        ),
        ("<style media=print>p {background: url(a.png)}</style>", []),
        ("<base href='/dir/x/'><img src=a.png>", [("image", ["x/a.png"])]),
        ("<img src='data:image/png;base64,AA'><img src=''><img src='#x'><img src='about:blank'>", []),
        ("<img src=a.png><img src=a.png>", [("image", ["a.png"])]),
    ],
)
def test_what_a_page_embeds(html, expected):
    assert found(html) == expected


def test_sizes_are_those_that_the_page_states():
    page = "<img src=a.png width=100 height=50><img src=a.png style='width: 30px'><iframe src=f width='50%'></iframe>"
    image, frame = embedded_in_html(page, BASE).embeds
    assert image.sizes[0] == (100, 50)
    assert [image.sizes[1].width, frame.sizes[0].width] == [30, 512]
    assert math.isnan(image.sizes[1].height)
    assert math.isnan(frame.sizes[0].height)


@pytest.mark.parametrize(
    ("page", "applies"),
    [
        ("<link rel=stylesheet href=a.css><p class=x>", 1.0),
        ("<link rel=stylesheet href=a.css><p>", 0.5),
        ("<link rel=stylesheet href=a.css media='screen and (color)'><p id=x>", 1.0),
        ("<link rel=stylesheet href=a.css media=print><p class=x>", 0.0),
        ("<link rel='alternate stylesheet' href=a.css><p class=x>", 0.0),
        ("<link rel=stylesheet href=a.css media=print><link rel=stylesheet href=a.css><p class=x>", 1.0),
    ],
)
def test_a_style_sheet_matters_as_far_as_it_can_apply(page, applies):
    [sheet] = embedded_in_html(page, BASE).embeds
    assert sheet.applies == applies


def test_words_are_those_of_the_text():
    assert embedded_in_html("<p>one <b>two</b><script>three four</script><style>p {}</style>", BASE).words == 2


@pytest.mark.parametrize(
    ("sheet", "expected"),
    [
        ("@import 'a'; @import url(b) print; @import url( \"c\" );", ["STYLESHEET a", "STYLESHEET b", "STYLESHEET c"]),
        ("p {background: url(a) url('b')} /* url(c) */ q {content: 'url(d)'}", ["IMAGE a", "IMAGE b"]),
        ("@font-face {src: url(a); src: url(b) format('x'), url(c)} p {x: url(d)}", ["OTHER a", "IMAGE d"]),
        ("@namespace svg url(http://a.org/svg); p {fill: url(#x); x: url(data:image/png;base64,AA)}", []),
        (r"p {background: url(a\20 b\).png)}", ["IMAGE a%20b).png"]),
        ("p {background: url(", []),
        ("p {background: url('a.png", []),
    ],
)
def test_what_a_style_sheet_embeds(sheet, expected):
    told = embedded_in_css(sheet, "http://site.example/s.css").embeds
    assert [
        f"{one.kind.name} {one.alternatives[0].url.removeprefix('http://site.example/')}" for one in told
    ] == expected


def test_formats_of_a_font_are_alternatives():
    sheet = "@font-face {src: url(a.woff2), url(a.ttf)} @font-face {src: url(b.woff2)}"
    assert [len(one.alternatives) for one in embedded_in_css(sheet, BASE).embeds] == [2, 1]


def test_addresses_in_a_style_sheet_are_rewritten_where_they_stand():
    sheet = "/* url(no) */ @import 'a.css'; p {background: url( \"b.png\" )} q {content: 'url(c)'} r {d: url(e f)}"
    written = rewrite_css(sheet, lambda name, imports: f"/in/{name}{'!' if imports else ''}")
    assert written == (
        "/* url(no) */ @import '/in/a.css!'; p {background: url( \"/in/b.png\" )} q {content: 'url(c)'} r {d: url(e f)}"
    )
    assert rewrite_css("p {a: url(b)}", lambda _name, _imports: "x');} evil") == "p {a: url(x%27%29;}%20evil)}"


def test_a_page_is_read_only_so_far():
    many = embedded_in_html("".join(f"<img src={n}.png>" for n in range(MOST_EMBEDS + 5)), BASE)
    assert (len(many.embeds), many.cut) == (MOST_EMBEDS, True)
    exactly = embedded_in_html("".join(f"<img src={n}.png>" for n in range(MOST_EMBEDS)), BASE)
    assert (len(exactly.embeds), exactly.cut) == (MOST_EMBEDS, False)
    wide = embedded_in_html(f"<img srcset='{', '.join(f'{n}.png {n + 1}x' for n in range(99))}'>", BASE)
    assert len(wide.embeds[0].alternatives) == MOST_ALTERNATIVES


_HOSTILE = (
    "url(",
    "url('",
    '"\\"',
    "'\\'",
    "/*",
    "@import ",
    "@font-face",
    "{",
    "\\",
    "@namespace ",
    "url(\t",
    '@import "',
)


@pytest.mark.parametrize("unit", _HOSTILE)
def test_a_style_sheet_made_to_harm_is_read_in_one_pass(unit):
    """One that took the square of its length would take hours here."""
    text = unit * (100_000 // len(unit))
    assert len(embedded_in_css(text, BASE).embeds) <= MOST_EMBEDS
    assert rewrite_css(text, lambda _name, _imports: None) == text


@given(st.text(alphabet="url()'\"\\/*@import{}; ab.#:-\n", max_size=200))
def test_any_style_sheet_can_be_read_and_rewritten(text):
    embedded_in_css(text, BASE)
    assert rewrite_css(text, lambda _name, _imports: None) == text
    rewrite_css(text, lambda name, _imports: name)


@given(st.text(alphabet="<>imgsrcetouvda/='\"# .:,-1\n", max_size=300))
def test_any_page_can_be_read(text):
    assert len(embedded_in_html(text, BASE).embeds) <= len(text)


def capture(body, kind="text/html"):
    return Capture(BASE, 0.0, 200, f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode(), body)


def test_only_pages_and_style_sheets_are_read():
    assert read_embeds(capture(b"<img src=a>", "image/png")) is None
    assert len(read_embeds(capture(b"<img src=a>")).embeds) == 1
    assert read_embeds(capture(b"p {b: url(c)}", "text/css"), stylesheet=True).embeds[0].kind is EmbedKind.IMAGE


def test_a_long_page_is_not_read_where_it_must_be_cheap():
    long = capture(b"<img src=a>" + b"x " * 200_000)
    with pytest.raises(CostlyError):
        read_embeds(long, effort=Effort.CHEAP)
    assert len(read_embeds(long).embeds) == 1


def test_a_page_made_to_harm_is_not_read():
    assert read_embeds(capture(b"<div>" * 50_000 + b"<img src=a>")) is None
