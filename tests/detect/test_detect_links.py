"""What a page leads to, what it only embeds, and what it asks robots not to follow."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.detect import ChangeCriteria, PageState, classify_change, known_after, read_html
from recrawl.detect.html.html_document import MOST_FEEDS, _neighbours, candidates, embeds_of
from recrawl.model import UNCOUNTED, Capture, ChangeKind, Validators, Verdict

URL = "http://example.org/dir/page.html"
HERE = "http://example.org/dir/"


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<img src=a.png>", ["a.png"]),
        ("<img src='data:image/png;base64,AAAA' srcset='a.png, b.png 2x'>", ["a.png", "b.png"]),
        ("<picture><source srcset='a.webp 1x,b.webp 2x'><img src=a.png></picture>", ["a.webp", "b.webp", "a.png"]),
        ("<link rel=stylesheet href=s.css><link rel='shortcut icon' href=i.ico>", ["s.css", "i.ico"]),
        ("<link rel=next href=n><link rel=canonical href=c><a href=x>y</a><iframe src=f></iframe>", []),
        ("<link rel=preload as=image imagesrcset='a.png 1x, b.png 2x' href=a.png>", ["a.png", "b.png"]),
        ("<script src=j.js></script><script>inline()</script>", ["j.js"]),
        (
            "<video src=v.mp4 poster=p.jpg><track src=t.vtt></video><audio src=a.ogg></audio>",
            ["v.mp4", "p.jpg", "t.vtt", "a.ogg"],
        ),
        ("<object data=o.pdf></object><embed src=e.svg><input type=image src=go.png>", ["o.pdf", "e.svg", "go.png"]),
        ("<base href=/b/><img src=a.png>", ["../b/a.png"]),
        ("<img src=a.png><img src=A.png><img src='a.png#x'>", ["a.png"]),
        ("<img src=''><img srcset=''><img srcset=', ,'>", []),
    ],
)
def test_what_a_page_embeds(html, found):
    wanted = [(HERE + one).replace("dir/../", "") for one in found]
    assert [one.url for one in embeds_of(html, URL)] == wanted
    assert not {one.url for one in read_html(html, URL).links} & set(wanted)


@pytest.mark.parametrize(
    ("srcset", "urls"),
    [
        ("a", ["a"]),
        ("a 1x, b 2x", ["a", "b"]),
        ("a,b", ["a,b"]),
        ("a, b", ["a", "b"]),
        ("a 1x,b 2x", ["a", "b"]),
        ("  a  480w ,\n b\t800w", ["a", "b"]),
        ("a,,", ["a"]),
        ("a (x, y), b", ["a", "b"]),
        (
            "https://x/c_fill,w_100/a.jpg 1x, https://x/c_fill,w_200/a.jpg 2x",
            ["https://x/c_fill,w_100/a.jpg", "https://x/c_fill,w_200/a.jpg"],
        ),
        (",", []),
    ],
)
def test_candidates_of_a_picture(srcset, urls):
    assert list(candidates(srcset)) == urls


@given(st.text("ab ,()\n\t2x", max_size=60))
def test_any_srcset_ends(srcset):
    assert all(url and not url.endswith(",") for url in candidates(srcset))


def answer(html: str, *headers: str) -> Capture:
    head = "\r\n".join(["HTTP/1.1 200 OK", "Content-Type: text/html", *headers, "", ""])
    return Capture(URL, 0.0, 200, head.encode(), html.encode())


LINKS = "<a href=a rel='nofollow noopener'>a</a><a href=b>b</a><a href=a>again</a><a href=c rel=NoFollow>c</a>"
ALL = {f"{HERE}{name}" for name in "abc"}


@pytest.mark.parametrize(
    ("before", "headers", "shunned"),
    [
        ("", [], {f"{HERE}c"}),
        ("<meta name=robots content=noindex>", [], {f"{HERE}c"}),
        ("<meta name=ROBOTS content='noindex, NoFollow'>", [], ALL),
        ("<meta name=robots content=none>", [], ALL),
        ("<meta name=otherbot content=nofollow>", [], {f"{HERE}c"}),
        ("", ["X-Robots-Tag: noindex, nofollow"], ALL),
        ("", ["x-robots-tag: NONE"], ALL),
        ("", ["X-Robots-Tag: noindex", "X-Robots-Tag: nofollow"], ALL),
        ("", ["X-Robots-Tag: otherbot: nofollow"], {f"{HERE}c"}),
        ("", ["X-Robots-Tag: Recrawl: nofollow"], ALL),
        ("", ["X-Robots-Tag: unavailable_after: 25 Jun 2030 15:00:00 PST, nofollow"], ALL),
        ("", ["Other: X-Robots-Tag: nofollow"], {f"{HERE}c"}),
    ],
)
def test_what_is_not_to_be_followed(before, headers, shunned):
    judged = classify_change(answer(before + LINKS, *headers), None, ChangeCriteria(agent="recrawl"))
    assert set(judged.links) == ALL - shunned
    assert set(judged.shunned) == shunned
    assert len(judged.link_keys) == len(judged.links)
    free = classify_change(answer(before + LINKS, *headers), None, ChangeCriteria(obeys_nofollow=False))
    assert set(free.links) == ALL
    assert free.shunned == ()


def test_feeds_are_named_but_are_no_links():
    named = "<link rel=alternate type='application/rss+xml' href=/feed><link rel='alternate' hreflang=de href=/de>"
    judged = classify_change(answer(named + "<link rel=Alternate type=application/ATOM+xml href=a.xml>"), None)
    assert judged.feeds == ("http://example.org/feed", f"{HERE}a.xml")
    assert judged.links == ()
    many = "".join(f"<link rel=alternate type=application/feed+json href=/{number}>" for number in range(20))
    assert len(read_html(many, URL).feeds) == MOST_FEEDS


@pytest.mark.parametrize("unit", ["<!--", "<a ", "<div class=x>", "&lt;", "<p>"])
@pytest.mark.parametrize("before", ["<plaintext>", "<xmp>", "<svg><style>", "<textarea>", "<title>", "<table>", ""])
def test_pages_made_to_cost_time_are_read(before, unit):
    """What is not markup must not be taken for it again: each unclosed piece would be searched to the end."""
    page = read_html(f"{before}{unit * 20_000}", URL)
    assert (page.text != "") == (
        before in ("<plaintext>", "<xmp>", "<textarea>", "<title>") or (unit == "&lt;" and before != "<svg><style>")
    )


def test_old_elements_keep_their_text():
    assert read_html("<p>a<xmp><b>x</xmp>c<p>d", URL).text == "a <b>x c d"


def test_a_page_with_very_many_links_leaves_no_more_than_are_kept() -> None:
    many = "".join(f"<a href=/x{number}>a</a>" for number in range(5_000))
    assert len(read_html(many, "http://many.example/d/a").links) == 5_000
    assert len(_neighbours("http://many.example/d/")) < 1_000


def test_threads_may_read_pages_of_one_directory() -> None:
    pages = ["".join(f"<a href=/x{page}_{number}>a</a>" for number in range(600)) for page in range(4)]

    def read(page: int) -> set[int]:
        return {len(read_html(pages[page], f"{HERE}{page}").links) for _ in range(20)}

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert set().union(*threads.map(read, range(4))) == {600}
    finally:
        sys.setswitchinterval(before)


def test_where_only_a_digest_is_known_no_link_is_called_new():
    """A page known from an index of captures: its links were never read, so nobody can say which are new."""
    page = Capture("http://x/", 1.0, 200, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", b"<a href=/new>n</a>")
    listed = PageState(Validators(digest=b"\x01" * 20), mime="text/html", links_read=False)
    found = classify_change(page, listed)
    assert found.verdict == Verdict.CHANGED
    assert not found.kinds & (ChangeKind.LINKS | ChangeKind.NEW_LINKS)
    assert found.new_internal == found.added_internal == UNCOUNTED
    then = classify_change(
        replace(page, time=2.0, raw_body=b"<a href=/new>n</a><a href=/newer>m</a>"), known_after(found, listed)
    )
    assert (then.new_internal, then.added_internal) == (1, 1)
