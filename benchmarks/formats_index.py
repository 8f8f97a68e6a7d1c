"""How fast indexes become columns: ``python benchmarks/formats_index.py [--lines N]``.

Lines of CDX-11 and CDXJ, all different and of the shapes that pywb writes, are read from memory into record batches of
captures, with all checks. Beside it, in the same process, plain Python makes lists of the same values without checks,
and does the least it can: split the lines or parse the JSON, and keep nothing. Figures are lines a second of
processor time, on one core.

A sorted index of pages with ``--captures`` captures each is then imported into a store in SQLite: pages, captures,
verdicts and visits. Beside it, in the same process, the index is only read into columns.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, BinaryIO

import numpy as np
from figures import note, options_of

from recrawl.formats.cdx.cdx_lines import HEADER, read_cdx
from recrawl.formats.cdx.cdxj import read_cdxj
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.store.open import open_store
from recrawl.time import VirtualClock, to_timestamp14
from recrawl.transfer.archive_import import Importer

MIMES = ("text/html", "image/jpeg", "application/javascript", "text/css", "application/pdf")
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def captures(count: int, rng: np.random.Generator) -> Iterator[tuple[str, ...]]:
    """Values of made-up captures: paths of various lengths, a tenth of them revisits, a twentieth not found."""
    letters = np.array(list(ALPHABET))
    digests = ["".join(letters[row]) for row in rng.integers(0, 32, (10_000, 32))]
    stamps = [to_timestamp14(when) for when in 1.2e9 + rng.random(50_000) * 5e8]
    for number, (seeded, depth) in enumerate(zip(rng.random(count), rng.integers(0, 5, count), strict=True)):
        path = (
            "/".join(f"section-{number * place % 997}" for place in range(depth)) + f"/Page_{number}.html?id={number}"
        )
        host = f"site{number % 5_000}"
        revisit = seeded < 0.1
        yield (
            f"org,{host})/{path.lower()}",
            stamps[number % len(stamps)],
            f"http://www.{host}.org/{path}",
            "warc/revisit" if revisit else MIMES[number % len(MIMES)],
            "" if revisit else "404" if seeded > 0.95 else "200",
            digests[number % len(digests)],
            str(300 + number % 90_000),
            str(number * 977 % 1_000_000_000),
            f"CRAWL-2015-{number // 50_000:05}.warc.gz",
        )


def indexes(count: int) -> tuple[bytes, bytes]:
    """The same captures as CDX-11 and as CDXJ."""
    cdx, cdxj = [HEADER.encode()], []
    names = ("url", "mime", "status", "digest", "length", "offset", "filename")
    for key, stamp, url, mime, status, digest, length, offset, file in captures(count, np.random.default_rng(7)):
        cdx.append(f"{key} {stamp} {url} {mime} {status or '-'} {digest} - - {length} {offset} {file}".encode())
        values = dict(zip(names, (url, mime, status, digest, length, offset, file), strict=True))
        cdxj.append(f"{key} {stamp} {json.dumps({k: v for k, v in values.items() if v})}".encode())
    return b"\n".join(cdx) + b"\n", b"\n".join(cdxj) + b"\n"


def split_lines(data: bytes) -> int:
    """The least that plain Python must do with CDX: split the lines and keep nothing."""
    return sum(len(line.split(b" ")) == 11 for line in io.BytesIO(data))


def split_values(data: bytes) -> int:
    """The same values as ours by plain Python: lists of texts, numbers and times."""
    columns: list[list[Any]] = [[] for _ in range(9)]
    for line in io.TextIOWrapper(io.BytesIO(data), "utf-8"):
        if not line.startswith(" CDX"):
            _add(columns, line.rstrip("\n").split(" "))
    return len(columns[0])


def parse_lines(data: bytes) -> int:
    """The least that plain Python must do with CDXJ: parse the JSON and keep nothing."""
    return sum("url" in json.loads(line.split(b" ", 2)[2]) for line in io.BytesIO(data))


def parse_values(data: bytes) -> int:
    """The same values as ours by plain Python."""
    columns: list[list[Any]] = [[] for _ in range(9)]
    for line in io.BytesIO(data):
        key, stamp, rest = line.split(b" ", 2)
        pairs = json.loads(rest)
        values = [pairs.get(name, "-") for name in ("url", "mime", "status", "digest", "length", "offset", "filename")]
        _add(columns, [key.decode(), stamp.decode(), *values[:4], "-", "-", *values[4:]])
    return len(columns[0])


def _add(columns: list[list[Any]], fields: list[str]) -> None:
    key, stamp, url, mime, status, digest, _, _, length, offset, file = fields
    moment = datetime(
        int(stamp[:4]),
        int(stamp[4:6]),
        int(stamp[6:8]),
        int(stamp[8:10]),
        int(stamp[10:12]),
        int(stamp[12:14]),
        tzinfo=UTC,
    )
    numbers = [-1 if text == "-" else int(text) for text in (status, length, offset)]
    for column, value in zip(columns, (key, moment.timestamp(), url, mime, digest, file, *numbers), strict=True):
        column.append(value)


def rate(work: Callable[[], int], lines: int, repeats: int = 3) -> float:
    """Lines a second of processor time, the best of some runs."""
    best = float("inf")
    for _ in range(repeats):
        begun = process_time()
        found = work()
        best = min(best, process_time() - begun)
        if found < lines - 1:
            raise SystemExit(f"only {found} of {lines} lines were read")
    return lines / best


def rows(read: Callable[[BinaryIO, str, ReadReport], Iterator[Any]], data: bytes) -> int:
    """Read all and count."""
    return sum(batch.num_rows for batch in read(io.BytesIO(data), "benchmark", ReadReport(strict=True)))


def histories(lines: int, each: int) -> bytes:
    """A sorted CDX-11 index of pages with ``each`` captures; a third of them differ from the one before."""
    rng = np.random.default_rng(11)
    letters = np.array(list(ALPHABET))
    digests = ["".join(letters[row]) for row in rng.integers(0, 32, (10_000, 32))]
    found = []
    for page in range(lines // each):
        host = f"site{page * 7_919 % 5_000:04}"
        path = f"section-{page % 97}/Page_{page}.html"
        times = [to_timestamp14(when) for when in np.sort(1.2e9 + rng.random(each) * 4e8)]
        version = page + np.cumsum(rng.random(each) < 0.3)
        before = f"org,{host})/{path.lower()} "
        after = f" http://www.{host}.org/{path} {MIMES[page % len(MIMES)]} 200 "
        for number, (time, digest) in enumerate(zip(times, version.tolist(), strict=True)):
            place = f"- - {300 + number} {page * 977 + number} CRAWL-2015-{page // 2_000:05}.warc.gz"
            found.append(f"{before}{time}{after}{digests[digest % len(digests)]} {place}")
    found.sort()
    return "\n".join([HEADER, *found, ""]).encode()


def imported(data: bytes, folder: Path) -> int:
    """Import an index into a new store, up to its visits."""
    place = folder / f"{len(list(folder.iterdir()))}.db"
    with open_store(place, create=True) as store:
        importer, report = Importer(store, VirtualClock(1.8e9)), ReadReport(strict=True)
        importer.take("index", "1", read_cdx(io.BytesIO(data), "index", report), report)
        return importer.judge().new


def main() -> None:
    """Measure, and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--captures", type=int, default=20, help="captures of each page of the index that is imported")
    options = options_of(parser)
    lines: int = options.lines
    cdx, cdxj = indexes(lines)
    packed = gzip.compress(cdxj, 6)
    print(f"{lines:,} lines; CDX {len(cdx) / lines:.0f}, CDXJ {len(cdxj) / lines:.0f} bytes a line")
    for name, read, data, least, same in (
        ("CDX", read_cdx, cdx, split_lines, split_values),
        ("CDXJ", read_cdxj, cdxj, parse_lines, parse_values),
    ):
        ours = rate(partial(rows, read, data), lines)
        print(f"{name + ' into columns':27} {ours:>10,.0f} lines/s")
        for what, work in (("same values", same), ("nothing kept", least)):
            plain = rate(partial(work, data), lines)
            print(f"  plain Python, {what:12} {plain:>10,.0f} lines/s   ratio {ours / plain:.1f}")
            if work is same:
                note(name, ours, "lines/s", f"{lines:,} lines", baseline=plain, beside="plain Python, same values")
    print(f"CDXJ into columns, gzipped {rate(partial(rows, read_cdxj, packed), lines):>10,.0f} lines/s")
    del cdx, cdxj, packed
    _import(histories(lines, options.captures), lines // options.captures * options.captures, options.captures)


def _import(data: bytes, lines: int, each: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        imported(histories(each, each), Path(folder))  # loads what making a store needs, once
        ours = rate(partial(imported, data, Path(folder)), lines - lines // 1_000, 1)  # some times coincide
    columns = rate(partial(rows, read_cdx, data), lines)
    print(f"CDX into a store, SQLite    {ours:>10,.0f} lines/s   {each} captures a page, with verdicts and visits")
    print(f"  into columns only         {columns:>10,.0f} lines/s   ratio {ours / columns:.2f}")
    sizes = f"{lines:,} lines, {each} captures a page"
    note("import, SQLite", ours, "lines/s", sizes, baseline=columns, beside="the same into columns only")


if __name__ == "__main__":
    main()
