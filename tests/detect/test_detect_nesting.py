"""Pages made to keep a parser busy are judged by their bytes; all others are read."""

import pytest

from recrawl.detect import classify_change, read_html
from recrawl.detect.html.html_document import is_too_costly
from recrawl.model import Capture, Outcome

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
MADE_TO_HARM = {
    "nested blocks": "<div>" * 30_000,
    "inline elements around blocks": "<span>" * 30_000 + "<div></div>" * 30_000,
    "ends of other elements": "<div></ul>" * 30_000,
    "capitals": "<DIV></UL>" * 30_000,
    "formatting in each paragraph": "".join(f"<font size={n}><p>" for n in range(3_000)),
    "formatting of every kind": "".join(f"<{name} x{n}><p>" for n in range(300) for name in ("b", "i", "tt", "STRONG")),
    "formatting that is closed in the end": "".join(f"<u x{n}><p>" for n in range(3_000)) + "</u>" * 3_000,
    "attributes": f"<p {' '.join(f'a{n}=1' for n in range(30_000))}>",
    "attributes in quotes": "<p " + " ".join(f"a{n}='1 2'" for n in range(30_000)) + ">",
}
HARMLESS = {
    "a long list": "<ul>" + "<li>one" * 30_000,
    "a table": "<table>" + "<tr><td>1<td>2" * 10_000,
    "lines": "one<br>" * 30_000,
    "links that nobody closed": "<a href=/x>x" * 30_000,
    "siblings": "<div><p><b>one</b> <i>two</i></div>" * 10_000,
    "one kind of font, never closed": "<p><font size=2>one" * 2_000,
    "data in an attribute": f"<div data-x='{'one two three ' * 10_000}'>four</div>",
    "a long script": f"<script>{'a = b; ' * 10_000}</script><p>four",
}


@pytest.mark.parametrize("html", MADE_TO_HARM.values(), ids=MADE_TO_HARM)
def test_a_page_made_to_harm_is_judged_by_its_bytes(html):
    judged = classify_change(Capture("http://x/", 0.0, 200, HEAD, html.encode()), None)
    assert judged.outcome == Outcome.FETCHED
    assert judged.validators.digest
    assert not judged.validators.text_digest
    assert not judged.links_read


@pytest.mark.parametrize("html", HARMLESS.values(), ids=HARMLESS)
def test_a_large_page_is_read(html):
    assert not is_too_costly(html)


def test_what_stands_around_content_is_content():
    inner = f"<p class=ad>Buy</p><div class=ad>{'word ' * 200}</div>"
    page = read_html(f"<div class=banner><span class=ad>{inner}</span></div><p class=banner>Sale</p>", "http://x/")
    assert page.text == ("word " * 200).strip()
