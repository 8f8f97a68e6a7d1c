"""Feed the readers bytes that a coverage-guided fuzzer makes up: nothing but InputError may come out, in bounded time.

    uv run --with atheris python fuzz/readers.py --list
    uv run --with atheris python fuzz/readers.py cdx -max_total_time=60
    uv run --with atheris python fuzz/readers.py warc CORPUS_FOLDER -max_total_time=60

What follows the name of a reader goes to libFuzzer: folders with samples to start from, and its options.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["recrawl"]):
    from recrawl.detect import classify_change
    from recrawl.detect.data.rdf import read_rdf
    from recrawl.detect.html.embedded_resources import embedded_in_css, embedded_in_html
    from recrawl.errors import InputError
    from recrawl.formats.cdx.cdx_lines import read_cdx
    from recrawl.formats.cdx.cdx_responses import read_answer
    from recrawl.formats.cdx.cdxj import read_cdxj
    from recrawl.formats.columnar.capture_batches import ReadReport
    from recrawl.formats.crawl_log import read_crawl_log
    from recrawl.formats.seeds import read_seeds
    from recrawl.formats.sitemap_feed import read_claims
    from recrawl.formats.sniff import sniff_bytes
    from recrawl.formats.timemap import read_timemap, read_timemap_file
    from recrawl.formats.warc.arc import index_arc
    from recrawl.formats.warc.warc_reader import index_warc
    from recrawl.model import Capture
    from recrawl.urls import address

_SCRATCH = Path(tempfile.mkdtemp()) / "input"


def _streamed(read: Callable[[io.BytesIO, str, ReadReport], Iterator[Any]]) -> Callable[[bytes], None]:
    def target(data: bytes) -> None:
        for batch in read(io.BytesIO(data), "fuzz", ReadReport()):
            batch.validate()

    return target


def _from_file(read: Callable[[Path, ReadReport], Iterator[Any]]) -> Callable[[bytes], None]:
    def target(data: bytes) -> None:
        _SCRATCH.write_bytes(data)
        for batch in read(_SCRATCH, ReadReport()):
            batch.validate()

    return target


def _judged(data: bytes) -> None:
    head, _, body = data.partition(b"\r\n\r\n")
    classify_change(Capture("http://example.com/", 0.0, 200, b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n", body), None)


TARGETS: dict[str, Callable[[bytes], object]] = {
    "warc": _from_file(index_warc),
    "arc": _from_file(index_arc),
    "cdx": _streamed(read_cdx),
    "cdxj": _streamed(read_cdxj),
    "answer": _streamed(read_answer),
    "crawl-log": _streamed(read_crawl_log),
    "timemap": lambda data: read_timemap(data, "fuzz", ReadReport()),
    "timemap-file": _streamed(read_timemap_file),
    "sitemap": lambda data: list(read_claims(data, "fuzz", 0.0, ReadReport())),
    "seeds": lambda data: read_seeds(data.decode("utf-8", "replace"), "fuzz"),
    "sniff": lambda data: sniff_bytes(data, "fuzz.gz"),
    "url": lambda data: address(data.decode("utf-8", "replace"), base="http://example.com/a/b"),
    "judge": _judged,
    "embeds": lambda data: embedded_in_html(data.decode("utf-8", "replace"), "http://example.com/a/b"),
    "css": lambda data: embedded_in_css(data.decode("utf-8", "replace"), "http://example.com/a/b"),
    "json-ld": lambda data: read_rdf(data.decode("utf-8", "replace"), "application/ld+json", "http://example.com/"),
    "rdf-untyped": lambda data: _judged(b"Content-Type: application/octet-stream\r\n\r\n" + data),
}


def main() -> None:
    """Fuzz one reader."""
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"Name one of: {', '.join(TARGETS)}")
    target = TARGETS[sys.argv[1]]

    def one_input(data: bytes) -> None:
        try:
            target(data)
        except InputError:
            pass

    atheris.Setup([sys.argv[0], *sys.argv[2:]], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
