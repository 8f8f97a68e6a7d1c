"""Links and text of pages, and what in them is noise."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from recrawl.detect import read_html
from recrawl.detect.noise.text_noise import (
    ELEMENT_RULES,
    LONG_WORD,
    MAX_NOISE_LINKS,
    MAX_NOISE_TEXT,
    NEVER_NOISE,
    TEXT_RULES,
    WORD_RULES,
    drop_noisy_elements,
    is_noisy_key,
    without_noise,
)
from recrawl.urls import address

URL = "http://example.org/dir/page.html"


def links(html: str) -> list[str]:
    return [link.url for link in read_html(html, URL).links]


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<a href=x>", ["http://example.org/dir/x"]),
        ("<a href='../y#part'>", ["http://example.org/y"]),
        ("<map><area href=/z></map>", ["http://example.org/z"]),
        ("<base href='http://other.example/b/'><a href=x>", ["http://other.example/b/x"]),
        ("<base href='mailto:x'><a href=x>", ["http://example.org/dir/x"]),
        ("<base target=_top><base href=/b/><base href=/c/><a href=x>", ["http://example.org/b/x"]),
        ("<meta http-equiv=REFRESH content='5; URL=next.html'>", ["http://example.org/dir/next.html"]),
        ("<meta http-equiv=refresh content=\"0;url='next.html'\">", ["http://example.org/dir/next.html"]),
        ("<meta http-equiv=refresh content='0 next.html'>", ["http://example.org/dir/next.html"]),
        ("<meta http-equiv=refresh content='30'>", []),
        ("<meta http-equiv=refresh content='30;'>", []),
        ("<meta http-equiv=content-type content='text/html; url=x'>", []),
        ("<iframe src=/f></iframe>", ["http://example.org/f"]),
        ("<frameset><frame src=/f></frameset>", ["http://example.org/f"]),
        ("<link rel='canonical' href=/c><link rel=stylesheet href=/s.css>", ["http://example.org/c"]),
        ("<a href='mailto:a@b.example'><a href='javascript:x()'><a href='tel:1'><a href=''><a name=x>", []),
        ("<a href='#top'><a href='page.html'>", []),
        ("<a href=x>1</a><a href=X>2</a><a href='x#y'>3</a>", ["http://example.org/dir/x"]),
        ("<template><a href=/t></template>", []),
        ("<noscript><a href=/n></a></noscript>", ["http://example.org/n"]),
        ("<svg><a xlink:href='/s'></a></svg>", ["http://example.org/s"]),
        ("<!-- <a href=/no> --><a href=/yes", []),
        ("<a href=' /space\n'>x", ["http://example.org/space"]),
        ("<a href='http://[bad'><a href=/good>", ["http://example.org/good"]),
        ("<table><a href=/foster><td>", ["http://example.org/foster"]),
    ],
)
def test_links(html, found):
    assert links(html) == found


def test_canonical_is_also_named():
    assert read_html("<link rel='alternate Canonical' href=/c>", URL).canonical == "http://example.org/c"
    assert read_html("<p>", URL).canonical == ""


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<title>A  title</title><p>Some\n<b>text</b></p>", "A title Some text"),
        (
            "<p>x<script>no()</script><style>p{}</style><template>no</template><noscript>no</noscript><!-- no -->y",
            "x y",
        ),
        ("&lt;b&gt; &eacute;&nbsp;&#8211;", "<b> é –"),
        ("", ""),
        ("<textarea>kept</textarea><input value=not>", "kept"),
    ],
)
def test_visible_text(html, text):
    assert read_html(html, URL).text == text


def test_deep_nesting_loses_nothing():
    page = read_html("<div>" * 20_000 + "deep<a href=/x>down</a>" + "</div>" * 20_000, URL)
    assert (page.text, len(page.links)) == ("deep down", 1)


@given(st.text(max_size=300))
@example("<div class=ad><div class=banner><p class=clock>x</p></div></div>")
@example("<frameset><frame src=x></frameset><body>")
@example("\x00<a href=\x00>")
def test_any_text_is_a_page(html):
    page = read_html(html, URL)
    assert page.text == " ".join(page.text.split())
    assert len({link.key for link in page.links}) == len(page.links)


fragments = st.sampled_from(
    [
        "<div class=ad>",
        "<p id=clock>",
        "</div>",
        "</p>",
        "<a href=/x>",
        "text ",
        "<table>",
        "<span class='banner x'>",
        "</span>",
        "<template>",
        "<nav class=banner>",
    ]
)


@given(st.lists(fragments, max_size=30))
def test_noisy_elements_nest_in_any_way(parts):
    page = read_html("".join(parts), URL)
    assert page.text == " ".join(page.text.split())
    assert {link.url for link in page.links} <= {"http://example.org/x"}


@pytest.mark.parametrize("selector", [selector for group in ELEMENT_RULES.values() for selector in group])
def test_every_element_rule_hides_its_element(selector):
    opening = {".": "class='x {}'", "#": "id='{}'", "[": "{}"}[selector[0]].format(selector.strip(".#[]"))
    page = read_html(f"<p>before <span {opening}>noise <a href=/n>here</a></span> after", URL)
    assert page.text == "before after"
    assert page.links == ()


@pytest.mark.parametrize(
    "html",
    [
        "<p class='banners'>content",
        "<p class=adventure>content",
        "<header role=banner>content</header>",
        "<body class=ad>content",
        "<nav class=banner>content</nav>",
        f"<div class=ad>content {'word ' * (MAX_NOISE_TEXT // 5)}</div>",
        "<div class=banner>content <a href=/1>1</a><a href=/2>2</a><a href=/3>3</a><a href=/4>4</a></div>",
    ],
)
def test_content_is_not_taken_for_noise(html):
    assert "content" in read_html(html, URL).text


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("now 2026-11-15 09:14", "now 2027-01-01 23:59"),
        ("2026-11-15T09:14:07Z", "2026-11-15T09:14:07.123456+01:00"),
        ("Sun, 15 Nov 2026 09:14:07 GMT", "Mon, 16 Nov 2026 10:00:00 GMT"),
        ("15. November 2026 at 9:14 pm", "1. May 2027 at 10:00 am"),
        ("November 15, 2026, 9:14 AM EST", "Dec. 1, 2026, 12:00 PM EST"),
        ("15.11.2026, 09:14", "16.11.2026, 10:15"),
        ("11/15/2026 09:14:07 AM", "1/1/27 01:00:00 PM"),
        ("It is 09:14:07", "It is 23:00:01"),
        ("Current time: 9:14", "Current time: 10:15"),
        ("posted 5 minutes ago", "posted an hour ago"),
        ("Page generated in 0.123 seconds", "Page generated in 17 ms"),
        ("Visitors: 1,234", "Visitors: 1,301"),
        ("csrf: a1b2c3", "csrf: d4e5f6"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id 123e4567-e89b-12d3-a456-426614174001"),
        ("build 9f86d081884c7d65", "build 60303ae22b998861"),
        ("key Zm9vYmFyYmF6cXV4MTIzNDU2Nzg", "key AAAvYmFyYmF6cXV4MTIzNDU2Nzg="),
    ],
)
def test_noise_is_no_difference(first, second):
    assert without_noise(f"A page. {first} The end.") == without_noise(f"A page. {second} The end.")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Open 9:00 to 17:00", "Open 10:00 to 17:00"),
        ("On 2026-11-15 we meet", "On 2026-11-16 we meet"),
        ("15 November 2026", "16 November 2026"),
        ("version 1.2.3", "version 1.2.4"),
        ("Price: 12.50", "Price: 13.50"),
        ("call 0123456789", "call 0123456780"),
        ("deadbeef", "deadbeee"),
        ("Donaudampfschifffahrtsgesellschaft", "Donaudampfschifffahrtskapitaen"),
        ("1234567890123456789", "1234567890123456780"),
        ("the token economy", "the token society"),
        ("score 3:1", "score 3:2"),
        ("", "x"),
    ],
)
def test_content_makes_a_difference(first, second):
    assert without_noise(f"A page. {first} The end.") != without_noise(f"A page. {second} The end.")


def test_every_text_rule_says_what_it_costs():
    rules = WORD_RULES + TEXT_RULES
    assert all(rule.name and rule.hides for rule in rules)
    assert all(rule.hints for rule in TEXT_RULES)
    assert len({rule.name for rule in rules}) == len(rules)


NOISY_WORDS = (
    "2026-11-15 09:14:07 Z UTC 9:14 pm at Sunday, 15 November 2026, time now: is few minutes ago. just now generated "
    "in 0.123 seconds took 17 ms Visitors: 1,234 page views = 7 csrf: token=abcdef nonce request id # İstanbul ß word "
    "and 123e4567-e89b-12d3-a456-426614174000 9f86d081884c7d659f86 a1B2c3D4e5F6g7H8i9J0k1L2m3 : :: 12: :30 1:2 users "
    "online:"
)
pieces = st.sampled_from(NOISY_WORDS.split())


@given(st.lists(pieces | st.text(max_size=12), max_size=60), st.sampled_from([" ", "  ", "\n", ""]))
def test_looking_near_hints_finds_what_looking_everywhere_finds(parts, between):
    words = " ".join(between.join(parts).split())
    text = " ".join(w if len(w) < LONG_WORD else without_words(w) for w in words.split())
    for rule in TEXT_RULES:
        for found in reversed(list(rule.pattern.finditer("".join(small(letter) for letter in text)))):
            text = f"{text[: found.start()]} {text[found.end() :]}"
    assert without_noise(words) == " ".join(text.split())


def small(letter):
    return "i" if letter == "İ" else letter.lower()


def without_words(word):
    for rule in WORD_RULES:
        word = rule.pattern.sub(" ", word)
    return word


@given(st.lists(fragments, max_size=30), st.sampled_from(["", "<!doctype html>"]))
def test_a_coarse_look_misses_no_noisy_element(parts, doctype):
    html = doctype + "".join(parts) + "<i class=AD-slot>x</i>"
    tree, whole = LexborHTMLParser(html), LexborHTMLParser(html)
    drop_noisy_elements(tree)
    for node in reversed(whole.css(", ".join(selector for group in ELEMENT_RULES.values() for selector in group))):
        if (
            node.tag not in NEVER_NOISE
            and len(node.text()) <= MAX_NOISE_TEXT
            and len(node.css("a[href]")) <= MAX_NOISE_LINKS
        ):
            node.decompose()
    assert tree.html == whole.html


@given(st.text(max_size=200))
@example("0" * 5_000 + "a" * 5_000)
@example("1:" * 5_000)
@example("aA1" * 5_000)
@example("jan 1 " * 2_000)
@example("a-" * 5_000)
def test_removing_noise_is_quick_and_final(text):
    once = without_noise(text)
    assert once == " ".join(once.split())
    assert len(once) <= len(text)


@pytest.mark.parametrize(
    ("key", "noisy"),
    [
        ("org,example)/?nonce=9f86d081884c7d65", True),
        ("org,example)/?a=1&t=123e4567-e89b-12d3-a456-426614174000", True),
        ("org,example)/?s=zm9vymfyymf6cxv4mtizndu2nzg", True),
        ("org,example)/9f86d081884c7d65", False),
        ("org,example)/?page=12", False),
        ("org,example)/?q=donaudampfschifffahrtsgesellschaft", False),
        ("org,example)/", False),
    ],
)
def test_links_with_a_nonce(key, noisy):
    assert is_noisy_key(key) == noisy


@given(
    st.sampled_from(["", "/", "/a", "/a/b?x=/y/z", "/a\\b/c", "/a#x/y", "?q/r", "/%2e%2e/x/y", "//a//b", "/a/.."]),
    st.lists(
        st.sampled_from(["a", "/", "..", "./", "?x", "#y", ":", "http:", "https://k.org/", "\\", " ", "%2e", "0", "@"]),
        min_size=1,
        max_size=4,
    ).map("".join),
)
def test_a_link_means_the_same_as_its_address(path: str, href: str) -> None:
    url = f"http://example.org{path}"
    found, own = address(href, base=url), address(url)
    assert found is not None or not read_html(f'<a href="{href}">', url).links
    if found is not None and own is not None and found.key != own.key:
        assert read_html(f'<a href="{href}">', url).links == (found,)
