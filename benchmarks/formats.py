"""Import of WARC files with verdicts (digest, text, links) beside the same done with warcio and BeautifulSoup on lxml.

    uv run python benchmarks/formats.py                          made-up pages
    uv run python benchmarks/formats.py --pages FOLDER           real pages: HTML answers out of the WARC files there
    uv run python benchmarks/formats.py --gigabytes 5            memory of importing a large file
    uv run python benchmarks/formats.py --members 200000         a WACZ package of 200,000 members

Seconds are of the processor, so that other work on the machine does not count. Beside it, benchmarks/formats_index.py
measures CDX and CDXJ, benchmarks/formats_warc.py indexing and writing of WARC, benchmarks/formats_text.py sitemaps
and git.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from figures import note, options_of

from recrawl.detect import ChangeCriteria
from recrawl.formats.columnar.capture_batches import ReadReport, RecordKind
from recrawl.formats.wacz import WaczReader
from recrawl.formats.warc.warc_reader import index_warc, read_capture
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture
from recrawl.store.open import open_store
from recrawl.time import VirtualClock
from recrawl.transfer.archive_import import CleaningRules, Importer
from recrawl.transfer.payload_classifier import PayloadClassifier

DAY = 86_400.0
START = 1_700_000_000.0


def main() -> None:
    """Print pages per second, the ratio, and the peak of memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, help="folder with WARC files whose HTML pages are used")
    parser.add_argument("--versions", type=int, default=3, help="captures of each page, each a little different")
    parser.add_argument("--gigabytes", type=float, default=0.0, help="size of a file to import for its memory")
    parser.add_argument("--members", type=int, default=0, help="members of a WACZ package to unpack")
    options = options_of(parser)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if options.gigabytes:
            _memory(place, options.gigabytes)
            return
        if options.members:
            for count in (options.members // 10, options.members):
                _unpack(place / f"{count}.wacz", count)
            return
        bodies = list(_real(options.pages) if options.pages else _made_up())
        size = _write(place / "warc", bodies, options.versions)
        pages = len(bodies) * options.versions
        print(f"{pages:,} captures of {len(bodies):,} pages, {size / pages / 1e3:.0f} kB each on average")
        _write(place / "warm-up" / "warc", bodies[:3], options.versions)
        _ours(place / "warm-up")  # loads what making a store needs, and compiled code, once
        ours = _timed(lambda: _ours(place))
        baseline = _timed(lambda: _baseline(place / "warc"))
        print(f"warcio + BeautifulSoup (lxml)   {pages / baseline:8.1f} captures/s")
        print(f"recrawl import                  {pages / ours:8.1f} captures/s   {baseline / ours:.1f} x the baseline")
        kind, beside = "real" if options.pages else "made-up", "warcio + BeautifulSoup (lxml)"
        sizes = f"{pages:,} captures of {len(bodies):,} {kind} pages, {size / pages / 1e3:.0f} kB each"
        note("import", pages / ours, "pages/s", sizes, baseline=pages / baseline, beside=beside)


def _timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _real(folder: Path) -> Iterator[bytes]:
    """Bodies of HTML answers as they came over the wire, decoded."""
    from recrawl.detect import decoded
    from recrawl.errors import InputError

    for path in sorted(folder.rglob("*.warc*")):
        for batch in index_warc(path, ReadReport()):
            for row in batch.to_pylist():
                wanted = row["kind"] == RecordKind.RESPONSE and row["mime"] == "text/html" and row["status"] == 200
                if not wanted or row["offset"] < 0:
                    continue
                try:
                    body = decoded(read_capture(path, row["offset"]))
                except InputError:
                    continue
                if len(body) > 2_000:
                    yield body


def _made_up(pages: int = 300) -> Iterator[bytes]:
    rng = np.random.default_rng(0)
    words = [f"word{n}" for n in range(2_000)]
    for page in range(pages):
        text = " ".join(rng.choice(words, 4_000))
        links = "".join(f'<li><a href="/section/{n % 40}/page-{n}.html">{words[n]}</a></li>' for n in range(150))
        yield f"<html><head><title>{page}</title></head><body><ul>{links}</ul><p>{text}</p></body></html>".encode()


def _write(folder: Path, bodies: list[bytes], versions: int) -> int:
    """One WARC file with every page several times, each version with another paragraph."""
    size = 0
    with WarcWriter(folder, VirtualClock(START)) as writer:
        for version in range(versions):
            for number, body in enumerate(bodies):
                changed = body + f"<p>Edited for the {version}. time.</p>".encode()
                head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(changed)}\r\n\r\n".encode()
                url = f"http://site{number % 20}.example/page/{number}.html"
                writer.write(Capture(url, START + version * DAY + number, 200, head, changed))
                size += len(changed)
    return size


def _ours(place: Path) -> None:
    with open_store(str(place / "store.db"), create=True) as store:
        importer, report = Importer(store, VirtualClock(START), CleaningRules()), ReadReport()
        for path in sorted((place / "warc").glob("*.warc.gz")):
            importer.take(str(path), "1", index_warc(path, report), report, file=str(path))
        touched = store.unjudged()
        importer.judge()
        standards = ChangeCriteria(use_kernels=True)  # as for every import that is worth measuring
        PayloadClassifier(store, lambda file, offset: read_capture(Path(file), offset), standards=standards).judge(
            touched
        )


def _baseline(folder: Path) -> dict[str, list[bool]]:
    """The same questions asked of the libraries most people use: did digest, text or links change?"""
    from bs4 import BeautifulSoup
    from warcio.archiveiterator import ArchiveIterator

    last: dict[str, tuple[Any, ...]] = {}
    changed: dict[str, list[bool]] = {}
    for path in sorted(folder.glob("*.warc.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type != "response":
                    continue
                url, body = record.rec_headers["WARC-Target-URI"], record.content_stream().read()
                soup = BeautifulSoup(body, "lxml")
                links = frozenset(link["href"] for link in soup.find_all("a", href=True))
                version = (hashlib.sha1(body).digest(), soup.get_text(" ", strip=True), links)
                changed.setdefault(url, []).append(last.get(url) != version)
                last[url] = version
    return changed


def _memory(place: Path, gigabytes: float) -> None:
    rng = np.random.default_rng(0)
    wanted, written, number = gigabytes * 1e9, 0, 0
    with WarcWriter(place / "warc", VirtualClock(START), roll_size=1 << 40) as writer:
        while written < wanted:
            body = rng.bytes(1_000_000)
            head = f"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            writer.write(Capture(f"http://big.example/{number}", START + number, 200, head, body))
            written, number = written + len(body), number + 1
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _ours(place)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"importing {written / 1e9:.1f} GB in {number:,} captures takes {after / 1e3:.0f} MB at the peak,")
    print(f"{(after - before) / 1e3:.0f} MB more than writing the file took")
    sizes = f"{written / 1e9:.1f} GB in {number:,} captures"
    note("memory", after / 1e3, "MB", sizes, baseline=before / 1e3, beside="writing the same file")


def _unpack(path: Path, members: int) -> None:
    """Print what it takes to find and check each member of a package; 1,000 of them are unpacked."""
    data = b"WARC/1.1"
    listed = {"hash": f"sha256:{hashlib.sha256(data).hexdigest()}", "bytes": len(data)}
    names = [f"archive/{number}.warc" for number in range(members)]
    with zipfile.ZipFile(path, "w") as package:
        for name in names:
            package.writestr(name, data)
        package.writestr("datapackage.json", json.dumps({"resources": [{"path": name, **listed} for name in names]}))
    began = time.process_time()
    with WaczReader(path, ReadReport(strict=True)) as package_reader:
        opened = time.process_time()
        some = package_reader.warcs[:: max(members // 1_000, 1)][-1_000:]
        folder = path.parent / f"unpacked {members}"
        folder.mkdir()
        for name in some:
            package_reader.extract(name, folder)
        each = (time.process_time() - opened) / len(some)
    print(f"{members:,} members: opened in {opened - began:.2f} s, {each * 1e6:,.0f} us a member to unpack")


if __name__ == "__main__":
    main()
