"""How fast WARC files are indexed and written, and that memory does not grow with them.

Baselines run in the same process on the same captures: indexing against fastwarc's own walk over all records,
writing against warcio at its default level with the same digests. CPU time, best of several rounds.

    python benchmarks/formats_warc.py --gigabytes 5
"""

from __future__ import annotations

import argparse
import io
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from figures import note, options_of
from warcio.statusandheaders import StatusAndHeadersParser
from warcio.warcwriter import WARCWriter

from recrawl.formats.columnar.capture_batches import ReadReport, RecordKind
from recrawl.formats.warc.warc_reader import index_warc, read_capture
from recrawl.formats.warc.warc_stream import fastwarc
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture
from recrawl.time import VirtualClock

START = 1_700_000_000.0
REQUEST = b"GET / HTTP/1.1\r\nHost: example.org\r\nUser-Agent: recrawl (+https://example.org/bot)\r\n\r\n"
REAL = Path(__file__).parents[2] / "shared/data/formats/warc/archivesunleashed__aut/example.warc.gz"
WORDS = b"archive page crawl change visit history content server version element paragraph link".split()


def real_captures(path: Path) -> list[Capture]:
    """The answers of a real crawl."""
    rows = (row for batch in index_warc(path, ReadReport()) for row in batch.to_pylist())
    captures = [
        read_capture(path, row["offset"]) for row in rows if row["kind"] == RecordKind.RESPONSE and row["status"]
    ]
    return [
        Capture(c.url, START + n, c.status, c.raw_head, c.raw_body, REQUEST, "192.0.2.7")
        for n, c in enumerate(captures)
    ]


def made_captures(count: int = 250) -> list[Capture]:
    """Pages of about 30 KB of words, where the real crawl is not available."""
    captures = []
    for number in range(count):
        body = b" ".join(WORDS[(number * position + position // 7) % len(WORDS)] for position in range(4000))
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n" % len(body)
        captures.append(Capture(f"http://example.org/{number}", START + number, 200, head, body, REQUEST, "192.0.2.7"))
    return captures


def best(run: Callable[[], object], rounds: int) -> float:
    """The least CPU time of several rounds, seconds."""
    spent = []
    for _ in range(rounds):
        before = time.process_time()
        run()
        spent.append(time.process_time() - before)
    return min(spent)


def write_ours(folder: Path, captures: list[Capture]) -> Path:
    """The captures as recrawl writes them."""
    with WarcWriter(folder, VirtualClock(START)) as writer:
        for capture in captures:
            writer.write(capture)
    return writer.path


def write_warcio(path: Path, captures: list[Capture]) -> None:
    """The captures as warcio writes them, with its default compression and both digests."""
    parser = StatusAndHeadersParser(["HTTP/1.0", "HTTP/1.1"])
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True, warc_version="1.1")
        for capture in captures:
            response = writer.create_warc_record(
                capture.url,
                "response",
                payload=io.BytesIO(capture.raw_body),
                length=len(capture.raw_body),
                http_headers=parser.parse(io.BytesIO(capture.raw_head)),
            )
            request = writer.create_warc_record(
                capture.url,
                "request",
                payload=io.BytesIO(capture.raw_request),
                warc_content_type="application/http; msgtype=request",
            )
            writer.write_request_response_pair(request, response)


def digests(path: Path) -> list[str]:
    """The payload digests a file gives."""
    return [text for batch in index_warc(path, ReadReport()) for text in batch.column("digest").to_pylist()]


def walk(path: Path) -> int:
    """All records, as fastwarc reads them by itself."""
    return sum(1 for _ in fastwarc().ArchiveIterator(str(path)))


def rows(path: Path) -> int:
    """All captures, as recrawl indexes them."""
    return sum(batch.num_rows for batch in index_warc(path, ReadReport(strict=True)))


def grow(path: Path, to: int, part: bytes) -> int:
    """Repeat some records until a file has N bytes; how many it has."""
    with path.open("wb") as file:
        while file.tell() < to:
            file.write(part)
        return file.tell()


def megabytes() -> float:
    """The most memory this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=0.5, help="size of the file for the memory run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where to put the large file")
    options = options_of(parser)
    captures = real_captures(REAL) if REAL.exists() else made_captures()
    print(f"{len(captures)} {'real' if REAL.exists() else 'made'} captures")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        compare_writing(Path(name), captures, options.rounds)
        compare_indexing(Path(name) / "small", captures * 8, options.rounds)
        compare_indexing(Path(name) / "large", joined(captures, 6) * 8, options.rounds)
        watch_memory(Path(name), captures, int(options.gigabytes * 1e9))


def joined(captures: list[Capture], count: int) -> list[Capture]:
    """Fewer and larger captures of the same bytes: the pages of today are larger than those of 2008."""
    groups = (captures[at : at + count] for at in range(0, len(captures), count))
    return [replace(group[0], raw_body=b"".join(capture.raw_body for capture in group)) for group in groups]


def bytes_of(captures: list[Capture]) -> int:
    """All bodies together."""
    return sum(len(capture.raw_body) for capture in captures)


def compare_writing(folder: Path, captures: list[Capture], rounds: int) -> None:
    """Our writer beside warcio's."""
    other = folder / "warcio.warc.gz"
    ours = best(lambda: write_ours(folder / "ours", captures), rounds)
    theirs = best(lambda: write_warcio(other, captures), rounds)
    written, size = write_ours(folder / "compared", captures), bytes_of(captures) / 1e6
    print(f"writing   {size / ours:6.0f} MB/s, warcio   {size / theirs:6.0f} MB/s: {theirs / ours:5.2f} x (>= 3)")
    sizes = f"{len(captures):,} captures, {size:,.0f} MB"
    note("writing", size / ours, "MB/s", sizes, baseline=size / theirs, beside="warcio")
    print(f"          {written.stat().st_size} bytes, warcio {other.stat().st_size} bytes", end=", ")
    print("the same payload digests" if digests(written) == digests(other) else "OTHER PAYLOAD DIGESTS")


def compare_indexing(folder: Path, captures: list[Capture], rounds: int) -> None:
    """Our index beside a bare walk of fastwarc."""
    path, size = write_ours(folder, captures), bytes_of(captures) / 1e6
    rows(path)
    base, index = best(lambda: walk(path), rounds), best(lambda: rows(path), rounds)
    print(
        f"indexing  {size / index:6.0f} MB/s, fastwarc {size / base:6.0f} MB/s: {base / index:5.2f} x (>= 0.8)"
        f" for bodies of {size / len(captures) * 1000:.0f} KB"
    )
    sizes = f"{len(captures):,} captures of {size / len(captures) * 1000:.0f} KB"
    note(f"indexing {folder.name}", size / index, "MB/s", sizes, baseline=size / base, beside="fastwarc's walk")


def watch_memory(folder: Path, captures: list[Capture], to: int) -> None:
    """Index a large file and see what it took."""
    path = folder / "huge.warc.gz"
    stored = grow(path, to, write_ours(folder / "seed", captures * 8).read_bytes())
    before = megabytes()
    count = rows(path)
    print(
        f"memory    {count} captures of a file of {stored / 1e9:.2f} GB: at most {megabytes():.0f} MB (< 500)", end=", "
    )
    print(f"{megabytes() - before:.0f} MB more than before")
    sizes = f"{count:,} captures, {stored / 1e9:.1f} GB"
    note("memory", megabytes(), "MB", sizes, baseline=before, beside="the same before the file was read")


if __name__ == "__main__":
    main()
