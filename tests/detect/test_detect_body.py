"""Decoding of bodies: what was meant comes out, what cannot be decoded gets a sentence, bombs do not go off."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.detect import classify_change, decoded, media_type, text_of, unchunked
from recrawl.detect.body import _percent, html_of
from recrawl.errors import InputError
from recrawl.model import Capture


def capture(body: bytes, *headers: str, truncated: str = "") -> Capture:
    head = "\r\n".join(["HTTP/1.1 200 OK", *headers, "", ""]).encode("latin-1")
    return Capture("http://example.org/", 0.0, 200, head, body, truncated=truncated)


def bare_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


ENCODERS = {"gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress, "identity": bytes}
CHUNKED = "Transfer-Encoding: chunked"


def framed(parts: list[bytes], end: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%X;x=y\r\n%s\r\n" % (len(part), part) for part in parts) + end


@given(
    st.lists(st.binary(min_size=1, max_size=30), max_size=5),
    st.sampled_from([b"0\r\n\r\n", b"000\r\nT: x\r\n\r\n", b""]),
)
def test_chunks_are_joined(parts, end):
    assert unchunked(capture(framed(parts, end), CHUNKED)) == b"".join(parts)


@given(st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=5), st.integers(0, 200))
def test_a_cut_chunked_body_gives_a_beginning_of_the_whole(parts, cut):
    body = framed(parts)
    cut_body = body[: max(0, len(body) - cut)]
    got = unchunked(capture(cut_body, CHUNKED, truncated="disconnect"))
    assert b"".join(parts).startswith(got)
    # Nothing is lost but what the cut took: frames around a part are at most 16 bytes.
    assert len(got) >= len(b"".join(parts)) - cut


@pytest.mark.parametrize("body", [b"", b"no chunks", b"zz\r\nhello\r\n", b"abc", b"-5\r\nhello"])
def test_what_is_called_chunked_and_is_not_stays(body):
    assert unchunked(capture(body, CHUNKED)) == body


@given(st.binary(max_size=200))
def test_any_bytes_can_be_called_chunked(body):
    assert len(unchunked(capture(body, CHUNKED))) <= len(body)
    assert unchunked(capture(body)) == body


@given(st.binary(max_size=300), st.lists(st.sampled_from(sorted(ENCODERS)), max_size=4), st.booleans())
def test_every_layer_comes_off(data, layers, in_chunks):
    body = data
    for name in layers:
        body = ENCODERS[name](body)
    headers = [f"Content-Encoding: {', '.join(layers).upper()}"]
    if in_chunks:
        body, headers = framed([body[i : i + 50] for i in range(0, len(body), 50)]), [*headers, CHUNKED]
    assert decoded(capture(body, *headers)) == data


def test_deflate_may_be_bare():
    assert decoded(capture(bare_deflate(b"hello" * 100), "Content-Encoding: deflate")) == b"hello" * 100


def test_several_members_are_one_body_and_what_follows_is_dropped():
    body = gzip.compress(b"one ") + gzip.compress(b"two") + b"trailing rubbish"
    assert decoded(capture(body, "Content-Encoding: gzip")) == b"one two"


def test_an_empty_body_needs_no_decoding():
    assert decoded(capture(b"", "Content-Encoding: gzip")) == b""


@pytest.mark.parametrize(
    ("body", "encoding", "reason"),
    [
        (b"plain text", "gzip", "broken"),
        (gzip.compress(b"hello" * 50, mtime=0)[:-12], "gzip", "broken.*too early"),
        (b"plain text", "deflate", "broken"),
        (b"whatever", "br", "'br' is not one we asked for"),
        (b"whatever", "gzip, gzip, gzip, gzip, gzip", "encoded 5 times"),
        (gzip.compress(b"", mtime=0) * 101, "gzip", "members"),
    ],
)
def test_what_cannot_be_decoded_gets_its_sentence(body, encoding, reason):
    with pytest.raises(InputError, match=reason) as caught:
        decoded(capture(body, f"Content-Encoding: {encoding}"))
    assert "http://example.org/" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", bare_deflate)]
)
def test_a_bomb_stops_at_the_limit(name, pack):
    bomb = pack(bytes(10_000_000))
    with pytest.raises(InputError, match="more than 1000 bytes"):
        decoded(capture(bomb, f"Content-Encoding: {name}"), limit=1_000)
    double = pack(bomb)
    with pytest.raises(InputError, match="more than"):
        decoded(capture(double, f"Content-Encoding: {name}, {name}"), limit=100_000)


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_the_limit_is_exact(extra):
    body = capture(gzip.compress(bytes(1_000 + extra)), "Content-Encoding: gzip")
    if extra > 0:
        with pytest.raises(InputError):
            decoded(body, limit=1_000)
    else:
        assert len(decoded(body, limit=1_000)) == 1_000 + extra


def test_a_plain_body_has_a_limit_too():
    with pytest.raises(InputError, match="longer than 4 bytes"):
        decoded(capture(b"hello"), limit=4)


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate", "gzip, deflate"]))
def test_any_bytes_end_in_bytes_or_a_sentence(body, encoding):
    answer = capture(body, f"Content-Encoding: {encoding}")
    body, told = b"", answer.url
    try:
        body = decoded(answer, limit=10_000)
    except InputError as error:
        told = str(error)
    assert len(body) <= 10_000
    assert answer.url in told


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("text/html", "text/html"),
        (" Text/HTML ;charset=x", "text/html"),
        ("", ""),
        (";", ""),
        ("application/ld+json", "application/ld+json"),
    ],
)
def test_media_types(header, expected):
    assert media_type(capture(b"", f"Content-Type: {header}")) == expected


PHRASE = "Žluťoučký kůň – naïve café"


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (PHRASE.encode(), "text/html; charset=utf-8", PHRASE),
        (b"\xef\xbb\xbf" + PHRASE.encode(), "text/html; charset=iso-8859-1", PHRASE),
        (PHRASE.encode("utf-16"), "text/html", PHRASE),
        (b"\xfe\xff" + PHRASE.encode("utf-16-be"), "text/html; charset=utf-8", PHRASE),
        (
            "caf\xe9 \u201cquoted\u201d".encode("cp1252"),
            'text/html; charset="ISO-8859-1"',
            "caf\xe9 \u201cquoted\u201d",
        ),
        (
            "<meta charset=windows-1252><p>\u201ccaf\xe9\u201d".encode("cp1252"),
            "text/html",
            "<meta charset=windows-1252><p>\u201ccaf\xe9\u201d",
        ),
        ("日本語のページです".encode("shift_jis"), "text/html; charset=Shift_JIS", "日本語のページです"),
        (PHRASE.encode(), "text/html; charset=no-such-thing", PHRASE),
        (b"", "text/html", ""),
    ],
)
def test_characters_are_what_the_author_meant(body, content_type, text):
    assert text_of(body, content_type) == text


@given(
    st.binary(max_size=200),
    st.sampled_from(["", "charset=utf-8", "charset=utf-16", "charset=shift_jis", "charset=\x00"]),
)
def test_any_bytes_are_some_text(body, content_type):
    assert text_of(body, content_type).encode("utf-8", "surrogatepass") is not None


@pytest.mark.big
def test_real_encoded_bodies(data_folder):
    samples = data_folder / "formats" / "gzip" / "scrapy__scrapy"
    encodings = {
        "html-gzip.bin": "gzip",
        "html-rawdeflate.bin": "deflate",
        "html-zlibdeflate.bin": "deflate",
        "html-gzip-deflate.bin": "gzip, deflate",
        "html-gzip-deflate-gzip.bin": "gzip, deflate, gzip",
    }
    for name, encoding in encodings.items():
        page = decoded(capture((samples / name).read_bytes(), f"Content-Encoding: {encoding}"))
        assert page.startswith(b"<!DOCTYPE HTML"), name
        assert page.endswith(b"</html>\n"), name
    for kind in ("gzip", "deflate"):
        with pytest.raises(InputError, match="more than"):
            decoded(capture((samples / f"bomb-{kind}.bin").read_bytes(), f"Content-Encoding: {kind}"), limit=1_000_000)


@pytest.mark.parametrize(
    ("encoding", "written", "link"),
    [
        ("iso-8859-1", '<a href="/é?q=é&r=1">x</a>', "http://a.org/%C3%A9?q=%E9&r=1"),
        ("windows-1251", "<a href='?имя=да'>x</a>", "http://a.org/?%E8%EC%FF=%E4%E0"),
        ("shift_jis", "<a href=/s?q=日本>x</a>", "http://a.org/s?q=%93%FA%96{"),
        ("iso-8859-1", '<a href="/s?q=&#8364;é">x</a>', "http://a.org/s?q=%E2%82%AC%E9"),
        ("iso-8859-1", '<a href="/a#b?é">x</a><a href="?x#é?é">y</a>', "http://a.org/a"),
        ("utf-8", '<a href="/é?q=é">x</a>', "http://a.org/%C3%A9?q=%C3%A9"),
    ],
)
def test_queries_of_links_are_sent_in_the_encoding_of_their_page(encoding, written, link):
    """As browsers do (WHATWG, "percent-encode after encoding"); what an entity stands for is sent in UTF-8."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset={encoding}\r\n\r\n".encode()
    capture = Capture("http://a.org/", 0.0, 200, head, written.encode(encoding))
    assert classify_change(capture, None).links[0] == link


def test_what_the_encoding_of_a_page_lacks_is_sent_as_a_number():
    assert html_of("<a href='?q=ж'>".encode("windows-1251"), "text/html; charset=windows-1251") == "<a href='?q=%E6'>"
    assert _percent("ж", "windows-1252") == "%26%231078%3B"
