"""Give changed files of every format to every importer: nothing but InputError may come out, in bounded time and memory.

    uv run python fuzz/files.py --cases 100000 --samples ../shared/data/formats --samples tests/data/formats
    uv run python fuzz/files.py --cases 100000 --start 100000        # goes on behind the first hundred thousand
    uv run python fuzz/files.py --case 4711              # one case again, with its traceback

Cases run in a process of their own. It is ended, and the case is kept as a defect, when one case takes more than ten
seconds or the process more than 1 GB. A defect is told by the number of its case, which makes the same bytes again.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import os
import random
import select
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from mutate import MIMES, mutated, samples

LONGEST, LARGEST = 10.0, 1 << 30
"""Seconds of a case, and bytes of the process."""
_WHOLE = 20
"""Of so many cases one is imported whole, into a store; the others are only read."""
_FILES = (
    "warc",
    "arc",
    "cdx",
    "cdxj",
    "zipnum",
    "cdx-answer",
    "timemap",
    "crawl-log",
    "sitemap",
    "feed",
    "seeds",
    "wacz",
    "parquet",
)


def case_of(seed: int, number: int, found: dict[str, list[bytes]], only: str) -> tuple[str, bytes, bool]:
    """The format of a case, its bytes, and whether it is imported whole."""
    rng = random.Random(f"{seed}:{number}")
    name = only or sorted(found)[number % len(found)]
    data = mutated(rng.choice(found[name]), rng, rng.choice(found[name]))
    return name, data, rng.randrange(_WHOLE) == 0


class Targets:
    """Who reads which format."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "input"
        self._store = folder / "empty.db"

    def run(self, name: str, data: bytes, *, whole: bool) -> None:
        """Read one input; an ``InputError`` is as it should be."""
        from recrawl.errors import InputError

        with contextlib.suppress(InputError):
            if name in _FILES:
                (self._import if whole else self._read)(name, data)
            elif name == "robots":
                self._robots(data)
            elif name == "memento":
                self._memento(data)
            elif name == "git-log":
                from recrawl.formats.git_history import _commits, _tokens

                list(_commits(_tokens(io.BytesIO(data)), "fuzz"))
            else:
                self._judge(name, data)

    def _read(self, name: str, data: bytes) -> None:
        from recrawl.formats.columnar.capture_batches import ReadReport
        from recrawl.formats.columnar.common_crawl import read_common_crawl
        from recrawl.formats.sitemap_feed import read_claims
        from recrawl.formats.sniff import SourceFormat, sniff_bytes
        from recrawl.transfer.import_sources import _CAPTURES

        self._path.write_bytes(data)
        formats = {"warc": SourceFormat.WARC, "arc": SourceFormat.ARC, "cdx": SourceFormat.CDX, "cdxj": SourceFormat.CDXJ, "zipnum": SourceFormat.ZIPNUM,
                   "cdx-answer": SourceFormat.CDX_ANSWER, "timemap": SourceFormat.TIMEMAP, "crawl-log": SourceFormat.CRAWL_LOG}  # fmt: skip
        sniff_bytes(data[:65_536], "x")
        if name == "wacz":
            self._import(name, data)
        elif name == "parquet":
            for batch in read_common_crawl(self._path, ReadReport()):
                batch.validate()
        elif name in formats:
            for batch in _CAPTURES[formats[name]](self._path, ReadReport()):
                batch.validate()
        else:
            list(read_claims(io.BytesIO(data), "fuzz", 0.0, ReadReport()))

    def _import(self, name: str, data: bytes) -> None:
        """As ``recrawl import`` does: into a store, judged by digest and by content."""
        import shutil

        from recrawl.crawl.clock import RealClock
        from recrawl.formats.warc.archived_bytes import ArchivedBytes, imported_into
        from recrawl.store.open import open_store
        from recrawl.transfer.archive_import import CleaningRules, Importer
        from recrawl.transfer.import_sources import ImportSources
        from recrawl.transfer.payload_classifier import PayloadClassifier

        if not self._store.exists():
            open_store(self._store, create=True, durable=False).close()
        place = self._folder / "place"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        path = place / f"x.{name}"
        path.write_bytes(data)
        shutil.copy(self._store, place / "store.db")
        clock = RealClock()
        with open_store(place / "store.db", durable=False) as store:
            importer = Importer(store, clock, CleaningRules(0.0), lambda _count: None)
            list(
                ImportSources(store, importer, clock, place / "warc", on_bad=lambda error: str(error) and None).bring(
                    path
                )
            )
            importer.judge()
            archived = ArchivedBytes(place / "warc", imported_into(store))
            files = [file for file in store.unread_files() if archived.has(file)]
            PayloadClassifier(store, archived.read).judge(store.unread(files))

    def _robots(self, data: bytes) -> None:
        from recrawl.detect import decoded
        from recrawl.fetch.robots_cache import RobotsCache
        from recrawl.model import Capture
        from recrawl.time import VirtualClock

        class Answers:
            async def fetch(self, request: Any) -> Capture:
                return Capture(request.url, 0.0, 200, b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", data)

        cache = RobotsCache(
            Answers(), VirtualClock(0.0), "recrawl/1 (+http://x/)", body_of=decoded, on_capture=lambda _capture: None
        )  # type: ignore[arg-type]
        rules = asyncio.run(cache.rules("http://a.org/"))
        for path in ("/", "/a", "/" + "ab" * 500, "/?q=%41&b", "/a%2fb$*"):
            rules.allowed(f"http://a.org{path}")

    def _memento(self, data: bytes) -> None:
        """An answer of an archive, turned back into the capture it stands for, and its URI into the raw one."""
        from recrawl.detect import decoded
        from recrawl.errors import FetchError
        from recrawl.fetch.archives.memento_client import known_raw_uri, original_capture
        from recrawl.formats.warc.warc_records import payload_sha1
        from recrawl.model import Capture

        head, _, body = data.partition(b"\r\n\r\n")
        uri = "http://a.org/web/20200101000000id_/http://x.org/" + head[-40:].decode("latin-1")
        known_raw_uri(uri)
        with contextlib.suppress(FetchError):
            payload_sha1(original_capture(Capture(uri, 0.0, 200, head + b"\r\n\r\n", body), body_of=decoded))

    def _judge(self, name: str, data: bytes) -> None:
        from recrawl.detect import classify_change, known_after
        from recrawl.model import Capture

        head = f"HTTP/1.1 200 OK\r\nContent-Type: {MIMES[name]}\r\n\r\n".encode()
        first = classify_change(Capture("http://a.org/", 0.0, 200, head, data), None)
        classify_change(Capture("http://a.org/", 9.0, 200, head, data[: len(data) // 2]), known_after(first, None))


def work(options: argparse.Namespace) -> None:
    """Be the process that runs cases; tells each number before it begins, and what went wrong."""
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", category=DeprecationWarning, module="numba")
    found = samples([Path(folder) for folder in options.samples])
    with tempfile.TemporaryDirectory(prefix="recrawl-fuzz-") as name:
        targets = Targets(Path(name))
        for number in range(options.start, options.start + options.cases):
            kind, data, whole = case_of(options.seed, number, found, options.only)
            print(f"{number}", flush=True)
            try:
                targets.run(kind, data, whole=whole)
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                where = traceback.extract_tb(error.__traceback__)[-1]
                print(
                    f"! {number} {kind} {type(error).__name__} {where.name}:{where.lineno} {str(error)[:100]!r}",
                    flush=True,
                )
                if options.case is not None:
                    traceback.print_exc()


def _memory(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _lines(process: subprocess.Popen[bytes], late: Callable[[], bool]) -> Iterator[str | None]:
    """The lines that a process writes; ``None`` if it writes none for too long, or grew too large."""
    assert process.stdout is not None  # noqa: S101
    rest = b""
    last = time.monotonic()
    while True:
        ready = select.select([process.stdout], [], [], 1.0)[0]
        if ready:
            piece = os.read(process.stdout.fileno(), 65_536)
            if not piece:
                return
            last = time.monotonic()
            *whole, rest = (rest + piece).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in whole)
        elif time.monotonic() - last > LONGEST and late():
            yield None
            return
        if _memory(process.pid) > LARGEST:
            yield None
            return


def run(options: argparse.Namespace) -> list[str]:
    """Run all cases; the defects, a line each."""
    defects: list[str] = []
    at, end, began, peak = options.start, options.start + options.cases, time.monotonic(), 0
    told = time.monotonic()
    while at < end:
        words = [
            sys.executable,
            __file__,
            "--work",
            "--start",
            str(at),
            "--cases",
            str(end - at),
            "--seed",
            str(options.seed),
        ]
        words += [*(f"--samples={folder}" for folder in options.samples), "--only", options.only]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            number, used = at, _cpu(process.pid)
            for line in _lines(process, lambda: _cpu(process.pid) - used > LONGEST):
                if line is None:
                    defects.append(f"{number} hangs or grows: {_memory(process.pid) >> 20} MB")
                    break
                if line.startswith("!"):
                    defects.append(line[2:])
                    print(line[2:], flush=True)
                else:
                    number, used = int(line), _cpu(process.pid)
                if number % 64 == 0:
                    peak = max(peak, _memory(process.pid))
                if time.monotonic() - told > 60:
                    told = time.monotonic()
                    print(f"{number - options.start:,} cases, {len(defects)} defects, {peak >> 20} MB", flush=True)
            process.kill()
            process.wait()
            if number + 1 < end and not (defects and defects[-1].startswith(f"{number} ")):
                defects.append(f"{number} ended the process ({process.returncode})")
            at = number + 1
    print(f"{options.cases:,} cases in {time.monotonic() - began:.0f} s, peak {peak >> 20} MB, {len(defects)} defects")
    for defect in defects:
        print(" ", defect)
    return defects


def _cpu(pid: int) -> float:
    """CPU seconds of a process: a machine that is busy with others makes no case hang."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def parsed(words: list[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--start", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", action="append", default=[], help="folder with files to begin from")
    parser.add_argument("--only", default="", help="name of a format")
    parser.add_argument("--case", type=int, help="run one case in this process")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(words)


def main() -> None:
    """Run."""
    options = parsed()
    if options.case is not None:
        options.start, options.cases = options.case, 1
    if options.work or options.case is not None:
        work(options)
    elif run(options):
        sys.exit(1)


if __name__ == "__main__":
    main()
