"""Digests of chunked bodies that are never held."""

from __future__ import annotations

import hashlib
import tracemalloc

from hypothesis import example, given
from hypothesis import strategies as st

from recrawl.detect import unchunked
from recrawl.formats.warc.warc_fields import ChunkedDecoder
from recrawl.model import Capture

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
PARTS = [
    b"5\r\nhello\r\n",
    b"0\r\n\r\n",
    b"3;x=y\nabc\n",
    b"\r\n",
    b"\n",
    b"\r",
    b"a",
    b"4",
    b";",
    b" ",
    b"zz",
    b"4\r\nab",
]


@given(st.lists(st.sampled_from(PARTS) | st.binary(max_size=6), max_size=12), st.integers(1, 9))
@example([b"5\r\nhello\r\n", b"\r\n5"], 1)
@example([b"5\r\nhello\r\n", b"no chunk"], 3)
@example([b"no chunk\n"], 2)
@example([b"fffffffffffffff\r\nall that came"], 4)
def test_the_digest_is_that_of_the_body_without_its_chunks(parts, size):
    body = b"".join(parts)
    streamed = ChunkedDecoder(hashlib.sha1())
    for start in range(0, len(body), size):
        streamed.update(body[start : start + size])
    assert streamed.finished().digest() == hashlib.sha1(unchunked(Capture("", 0.0, 200, HEAD, body))).digest()


def test_nothing_is_held_however_long_a_frame_or_a_body_is():
    chunks, noise = ChunkedDecoder(hashlib.sha1()), ChunkedDecoder(hashlib.sha1())
    whole, raw = hashlib.sha1(), hashlib.sha1()
    piece = bytes(1 << 20)
    tracemalloc.start()
    for _ in range(32):
        for part in (b"100000\r\n", piece, b"\r\n"):
            chunks.update(part)
        noise.update(piece)
        whole.update(piece)
        raw.update(piece)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert chunks.finished().digest() == whole.digest()
    assert noise.finished().digest() == raw.digest()
    assert peak < 4 << 20
