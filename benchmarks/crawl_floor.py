"""What a page costs before anybody writes a line of Python: the compiled code that a crawl calls, each part alone.

Each function does one part for as many pages as there are URLs, by a library's own loop where it has one, and tells of
each page. What our own change detector does besides (noise, parts, links, comparing) is left out, and so are the waits
for the disk: the sum is less than any crawler with this pipeline can need, whatever it is written in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from crawl_web import DOCUMENTS, LINKS, document

from recrawl.detect.text.shingles import SAMPLE, shingles_of
from recrawl.formats.warc.warc_records import COMPRESSION
from recrawl.store import open_store

OnPage = Callable[[], None]

AT_ONCE = 50
"""Requests at once, over all hosts."""
GROUP = 128
"""Pages in a transaction, as the crawl groups them."""
FINGERPRINT = 1_300
"""Bytes that are kept of what a page looks like, about as many as of these pages."""

PARTS = {
    "libcurl": "libcurl, into memory, no callbacks",
    "lexbor": "Lexbor: parse, text",
    "shingles": "shingles, compiled code",
    "digests": "SHA-1 of body, record and text",
    "compressed": "gzip of the record (isal, our level)",
    "rows": "SQLite rows of a page and its links",
}
"""The functions of this file, and what is printed of them."""


def libcurl(urls: Sequence[str], _folder: Path, on_page: OnPage) -> None:
    """Fetch by libcurl's own loop; each handle writes into memory and takes the next URL when it is done."""
    pycurl: Any = import_module("pycurl")
    multi, left = pycurl.CurlMulti(), iter(urls)
    bodies: dict[Any, BytesIO] = {}

    def begin(curl: Any) -> None:  # noqa: ANN401 - a handle of libcurl
        url = next(left, None)
        if url is not None:
            bodies[curl] = BytesIO()
            curl.setopt(pycurl.URL, url)
            curl.setopt(pycurl.WRITEDATA, bodies[curl])
            multi.add_handle(curl)

    for _ in range(AT_ONCE):
        begin(pycurl.Curl())
    while bodies:
        multi.perform()
        _, done, failed = multi.info_read()
        assert not failed, failed
        for curl in done:
            assert bodies.pop(curl).tell()
            multi.remove_handle(curl)
            on_page()
            begin(curl)
        multi.select(1.0)


def lexbor(urls: Sequence[str], _folder: Path, on_page: OnPage) -> None:
    """Parse each page and take its text."""
    parser: Any = import_module("selectolax.lexbor").LexborHTMLParser
    for body in _bodies(urls):
        assert parser(body).text()
        on_page()


def shingles(urls: Sequence[str], _folder: Path, on_page: OnPage) -> None:
    """Number the shingles of each text."""
    parser: Any = import_module("selectolax.lexbor").LexborHTMLParser
    texts = [parser(body).text().encode() for body in _bodies(range(DOCUMENTS))]
    for number in range(len(urls)):
        assert len(shingles_of(texts[number % DOCUMENTS], SAMPLE, use_kernels=True))
        on_page()


def digests(urls: Sequence[str], _folder: Path, on_page: OnPage) -> None:
    """Digest the body as received, the record, and the text, which is about two thirds of it."""
    for body in _bodies(urls):
        for data in (body, body, body[: len(body) * 2 // 3]):
            hashlib.sha1(data, usedforsecurity=False).digest()
        on_page()


def compressed(urls: Sequence[str], _folder: Path, on_page: OnPage) -> None:
    """Compress each page, as its record would be."""
    isal: Any = import_module("isal.igzip_lib")
    for body in _bodies(urls):
        assert isal.compress(body, COMPRESSION, isal.COMP_GZIP)
        on_page()


def rows(urls: Sequence[str], folder: Path, on_page: OnPage) -> None:
    """Write what the store keeps of a page that is met for the first time, in transactions that wait for no disk."""
    apsw: Any = import_module("apsw")
    statements: Any = import_module("recrawl.store.engine.sqlite").SqliteSession.statements
    with open_store(str(folder / "recrawl.db")) as store:
        pages = store.pages().id
    connection = apsw.Connection(str(folder / "recrawl.db"))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "off")
    [(segment,)] = connection.execute(statements.add_segment).fetchall()
    rng, digest = np.random.default_rng(7), bytes(range(20))
    targets = [np.sort(rng.choice(pages, LINKS, replace=False)) for _ in range(DOCUMENTS)]
    for start in range(0, len(urls), GROUP):
        chosen = [(int(pages[n % len(pages)]), 1e9 + n) for n in range(start, min(start + GROUP, len(urls)))]
        with connection:
            for page, time in chosen:
                to = apsw.carray(targets[page % DOCUMENTS])
                connection.execute(statements.add_links_of, (page, time, time, to))
            visits = [(segment, page, time, 0, 1, 3, 200, 20_000, 0.01, 1, 0, 1, 0, 0.5) for page, time in chosen]
            connection.executemany(statements.add_visits, visits)
            validators = [(page, "", "", digest, digest, "text/html", 0, time) for page, time in chosen]
            connection.executemany(statements.set_validators, validators)
            captures = [(page, time, 200, "text/html", digest, 20_000, "a.warc.gz", 0, 4_000) for page, time in chosen]
            connection.executemany(statements.add_captures, captures)
            connection.executemany(statements.set_due, [(page, time + 9.0) for page, time in chosen])
            observations = [(page, bytes(FINGERPRINT)) for page, _ in chosen]
            connection.executemany(statements.live.set_fingerprints, observations)
        for _ in chosen:
            on_page()
    connection.close()


def _bodies(of_each: Sequence[object] | range) -> Iterator[bytes]:
    """The pages that the server has, again and again."""
    made = [document(number, DOCUMENTS) for number in range(DOCUMENTS)]
    return (made[number % DOCUMENTS] for number in range(len(of_each)))
