"""One record that our own code fails on is counted, named with file and position, and passed over."""

from __future__ import annotations

import hashlib
import itertools
import json
import pkgutil
import subprocess
import zipfile

import numpy as np
import pytest

from recrawl.detect import detector
from recrawl.formats.columnar.arrow_tables import PageUrls, write_visits
from recrawl.formats.wacz import WaczReader
from recrawl.formats.warc import warc_reader
from recrawl.formats.warc.archived_bytes import ArchivedBytes, imported_into
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture, Visits
from recrawl.store.open import open_store
from recrawl.time import VirtualClock
from recrawl.transfer import import_sources
from recrawl.transfer.archive_import import Importer
from recrawl.transfer.import_sources import ImportSources
from recrawl.transfer.payload_classifier import PayloadClassifier

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def poison(real, is_bad):
    def broken(*arguments, **named):
        if is_bad(*arguments):
            raise OverflowError("poison")
        return real(*arguments, **named)

    return broken


@pytest.fixture
def archive(tmp_path):
    """Files with three pages each."""
    for number in range(2):
        with WarcWriter(tmp_path / f"in{number}", VirtualClock(1.7e9)) as writer:
            for name in ("one", "bad", "two"):
                body = f"<a href=/x{name}>{name}</a>".encode()
                writer.write(Capture(f"http://a.example/{name}{number}", 1.7e9 + number, 200, HEAD, body))
    return tmp_path


@pytest.fixture
def import_all(archive):
    """Imports all files; the URLs that were visited, and what was told as broken."""

    def run():
        told = []
        with open_store(archive / "store.db", create=True) as store:
            importer = Importer(store, VirtualClock(1.8e9))
            sources = ImportSources(store, importer, VirtualClock(1.8e9), archive / "warc", on_bad=told.append)
            brought = [one for number in range(2) for one in sources.bring(archive / f"in{number}")]
            importer.judge()
            read = ArchivedBytes(archive / "warc", imported_into(store)).read
            judged = PayloadClassifier(store, read, on_bad=told.append).judge(store.unread())
            visits = store.visits()
            return sorted(store.urls(visits.page)), judged, told, brought

    return run


GOOD = [f"http://a.example/{name}{number}" for name in ("one", "two") for number in range(2)]
BAD = [f"http://a.example/bad{number}" for number in range(2)]


def test_a_record_that_breaks_the_reader_is_passed_over(import_all, monkeypatch):
    def is_bad(_index, record, *_more):
        return "/bad" in record.headers.get("WARC-Target-URI")

    monkeypatch.setattr(warc_reader._RowBuilder, "row", poison(warc_reader._RowBuilder.row, is_bad))
    urls, _, told, brought = import_all()
    assert urls == sorted(GOOD)
    assert [one.broken for one in brought] == [1, 1]
    assert len(told) == 2
    for error in told:
        assert error.source.endswith(".warc.gz")
        assert error.position > 0
        assert "OverflowError('poison')" in str(error)


def test_a_file_that_breaks_the_reader_is_passed_over(import_all, monkeypatch):
    monkeypatch.setattr(warc_reader, "opened", poison(warc_reader.opened, lambda path: path.parent.name == "in0"))
    urls, _, told, brought = import_all()
    assert [one.broken for one in brought] == [1, 0]
    assert "in0" in told[0].source
    assert [url for url in urls if url.endswith("1")] == sorted(url for url in [*GOOD, *BAD] if url.endswith("1"))


def test_a_page_whose_bytes_break_the_detector_is_classified_by_its_digest(import_all, monkeypatch):
    monkeypatch.setattr(
        detector, "classify_change", poison(detector.classify_change, lambda capture, *_: "/bad" in capture.url)
    )
    urls, judged, told, _ = import_all()
    assert urls == sorted([*GOOD, *BAD])
    assert judged == 4
    assert len(told) == 2
    assert all(error.position > 0 for error in told)


def test_a_page_that_cannot_be_recorded_harms_no_other(import_all, monkeypatch):
    def is_bad(_judge, urls, _times):
        return any("/xbad" in url for url in urls)

    monkeypatch.setattr(PayloadClassifier, "_pages", poison(PayloadClassifier._pages, is_bad))
    urls, judged, told, _ = import_all()
    assert urls == sorted([*GOOD, *BAD])
    assert judged == 4
    assert sorted(error.source for error in told) == BAD


# -- packages of many files -------------------------------------------------------------------------


def package(path, count):
    """A WACZ file with ``count`` WARC files of one record each; all have the same name, in folders of their own."""
    file = path / "a.wacz"
    listed = []
    with zipfile.ZipFile(file, "w") as members:
        for number in range(count):
            with WarcWriter(path / f"p{number}", VirtualClock(1.7e9)) as writer:
                writer.write(Capture(f"http://a.example/{number}", 1.7e9, 200, HEAD, b"<p>%d" % number))
            [warc] = (path / f"p{number}").glob("*.warc.gz")
            data, name = warc.read_bytes(), f"archive/{number}/data.warc.gz"
            members.writestr(name, data)
            listed.append({"path": name, "hash": f"sha256:{hashlib.sha256(data).hexdigest()}", "bytes": len(data)})
        members.writestr("datapackage.json", json.dumps({"resources": listed}))
    return file


def test_files_of_a_package_are_recorded_together(tmp_path, monkeypatch):
    """A transaction for each of 200,000 small files takes minutes."""
    file, told, batches = package(tmp_path, 40), [], []
    with open_store(tmp_path / "store.db", create=True) as store:
        real = type(store).add_captures

        def counted(self, captures, *more, **named):
            batches.append(len(captures))
            return real(self, captures, *more, **named)

        monkeypatch.setattr(type(store), "add_captures", counted)
        importer = Importer(store, VirtualClock(1.8e9))
        sources = ImportSources(store, importer, VirtualClock(1.8e9), tmp_path / "warc", on_bad=told.append)
        [brought] = sources.bring(file)
        importer.judge()
        assert (brought.accepted, brought.new, brought.broken, told) == (40, 40, 0, [])
        assert batches == [40]
        read = ArchivedBytes(tmp_path / "warc", imported_into(store)).read
        captures = store.capture_columns(store.pages().id)
        places = zip(captures.warc_file, captures.warc_offset.tolist(), strict=True)
        assert sorted(read(*place).raw_body for place in places) == sorted(b"<p>%d" % number for number in range(40))
        [again] = sources.bring(file)
        assert (again.accepted, again.skipped) == (0, {"imported before": 40})


@pytest.mark.parametrize(
    ("owner", "name", "is_bad"),
    [
        (WaczReader, "extract", lambda _self, name, *_: "/7/" in name),
        (import_sources, "index_warc", lambda *_: next(COUNTER) == 7),
    ],
)
def test_a_file_of_a_package_that_our_own_code_fails_on_costs_no_other(tmp_path, monkeypatch, owner, name, is_bad):
    file, told = package(tmp_path, 12), []
    global COUNTER  # noqa: PLW0603 - counts from 0 in every test
    COUNTER = itertools.count()
    monkeypatch.setattr(owner, name, poison(getattr(owner, name), is_bad))
    with open_store(tmp_path / "store.db", create=True) as store:
        importer = Importer(store, VirtualClock(1.8e9))
        sources = ImportSources(store, importer, VirtualClock(1.8e9), tmp_path / "warc", on_bad=told.append)
        [brought] = sources.bring(file)
        assert (brought.accepted, brought.broken) == (11, 1)
        expected = {f"http://a.example/{number}" for number in range(12) if number != 7}
        assert set(store.urls(store.pages().id)) == expected
    [error] = told
    assert "archive/7/data.warc.gz" in str(error)
    assert "poison" in str(error)


# -- formats of which a fault of our own cost the rest of the file ------------------------------------


MANY = [f"http://a.example/{name}" for name in ("one", "two", "bad", "three", "four")]
KEPT = [url for url in MANY if not url.endswith("bad")]
DAY = "2023-11-14"


def made(path, name, text):
    file = path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def sitemap(path):
    rows = "".join(f"<url><loc>{url}</loc><lastmod>{DAY}</lastmod></url>" for url in MANY)
    return made(path, "sitemap.xml", f"<urlset>{rows}</urlset>")


def feed(path):
    rows = "".join(f"<item><link>{url}</link><pubDate>{DAY}</pubDate></item>" for url in MANY)
    return made(path, "feed.xml", f"<rss><channel>{rows}</channel></rss>")


def url_list(path):
    return made(path, "seeds.txt", "\n".join(MANY))


def link_map(path):
    rows = [f'<http://x/{n}/{url}>; rel="memento"; datetime="Sat, 02 Feb 2013 1{n}:00:00 GMT"' for n, url in MAP]
    return made(path, "map.link", f'<{MANY[0]}>; rel="original",\n' + ",\n".join(rows))


def cdxj_map(path):
    rows = [f'201302021{n}0000 {{"uri": "http://x/{n}/{url}", "rel": "memento"}}' for n, url in MAP]
    return made(path, "map.cdxj", f'!meta {{"original_uri": "{MANY[0]}"}}\n' + "\n".join(rows))


def json_map(path):
    rows = [{"uri": f"http://x/{n}/{url}", "datetime": f"2013-02-02T1{n}:00:00Z"} for n, url in MAP]
    return made(path, "map.json", json.dumps({"original_uri": MANY[0], "mementos": {"list": rows}}))


MAP = list(enumerate(MANY))


def dataset(path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder = path / "dataset"
    folder.mkdir()
    count = len(MANY)
    ids, sites = list(range(count)), ["a"] * count
    parquet.write_table(pa.table({"site": sites, "page_id": ids, "url": MANY}), folder / "pages.parquet")
    times = [1.5e9 + (66 if url.endswith("bad") else place) for place, url in MAP]
    events = {"site": sites, "page_id": ids, "t": times, "kind": ["add"] * count, "bulk": [False] * count}
    parquet.write_table(pa.table(events), folder / "events.parquet")
    return folder


def own_parquet(path):
    times = [1.5e9 + (66 if url.endswith("bad") else place) for place, url in MAP]
    visits = Visits.of(np.arange(len(MANY)), np.array(times))
    write_visits(path / "visits.parquet", visits, PageUrls(np.arange(len(MANY)), MANY))
    return path / "visits.parquet"


def common_crawl(path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {
        "url": MANY,
        "fetch_time": pa.array([1_500_000_000] * len(MANY), pa.timestamp("s")),
        "fetch_status": 5 * [200],
    }
    parquet.write_table(pa.table(columns), path / "index.parquet")
    return path / "index.parquet"


def git(path):
    folder = path / "repository"
    folder.mkdir()

    def run(*words):
        subprocess.run(
            ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words],
            check=True,
            capture_output=True,
        )

    run("init", "-q")
    for url in MANY:
        (folder / f"{url.rpartition('/')[2]}.md").write_text("text")
        run("add", ".")
        run("commit", "-q", "-m", "page")
    return folder


def has_bad(*things):
    """Whether what a reader is given speaks of the bad record, and of no other."""
    return any("/bad" in str(thing) for thing in things)


FAULTS = {
    "sitemap, entry": (
        sitemap,
        "recrawl.formats.sitemap_feed:_SitemapHandler._add",
        lambda reader: has_bad(reader._fields),
    ),
    "sitemap, field": (sitemap, "recrawl.formats.sitemap_feed:address", has_bad),
    "sitemap, batch": (sitemap, "recrawl.formats.sitemap_feed:_batch", lambda part, *_: has_bad(part)),
    "sitemap, store": (
        sitemap,
        "recrawl.transfer.archive_import:Importer.pages",
        lambda _self, urls, *_: has_bad(urls),
    ),
    "feed, item": (feed, "recrawl.formats.sitemap_feed:FeedReader._add", lambda reader, *_: has_bad(reader._fields)),
    "feed, batch": (feed, "recrawl.formats.sitemap_feed:_batch", lambda part, *_: has_bad(part)),
    "list of URLs, line": (url_list, "recrawl.formats.sitemap_feed:entry_of", has_bad),
    "link map, link": (link_map, "recrawl.formats.timemap:_take_link", lambda uri, *_: has_bad(uri)),
    "link map, memento": (
        link_map,
        "recrawl.formats.timemap:TimeMapContents._memento",
        lambda _self, uri, *_: has_bad(uri),
    ),
    "link map, batch": (link_map, "recrawl.formats.timemap:_batch", lambda _pa, part: has_bad(part)),
    "link map, store": (
        link_map,
        "recrawl.transfer.archive_import:Importer._captures",
        lambda _self, batch, *_: 1359799200.0 + 7200 in batch.column("time").to_pylist(),
    ),
    "CDXJ map, line": (cdxj_map, "recrawl.formats.timemap:_take_line", lambda key, value, *_: has_bad(value)),
    "JSON map, memento": (
        json_map,
        "recrawl.formats.timemap:TimeMapContents.memento",
        lambda _self, uri, *_: has_bad(uri),
    ),
    "data set, page": (
        dataset,
        "recrawl.transfer.archive_import:Importer.pages",
        lambda _self, urls, *_: has_bad(urls),
    ),
    "data set, event": (
        dataset,
        "recrawl.formats.columnar.dataset:_read_events",
        lambda _pages, columns: 1.5e9 + 66 in columns[1],
    ),
    "data set, column": (
        dataset,
        "recrawl.formats.columnar.dataset:_array",
        lambda column: has_bad(column.to_pylist()),
    ),
    "own export, rows": (
        own_parquet,
        "recrawl.formats.columnar.arrow_tables:_located",
        lambda table, _source: has_bad(table.column("url").to_pylist()),
    ),
    "own export, store": (
        own_parquet,
        "recrawl.transfer.archive_import:Importer.pages",
        lambda _self, urls, *_: has_bad(urls),
    ),
    "Common Crawl, row": (
        common_crawl,
        "recrawl.formats.columnar.common_crawl:_kinds",
        lambda given, *_: has_bad(given["url"].to_pylist()),
    ),
    "git, file": (git, "recrawl.formats.git_history:PathRule.url", lambda _rule, path: b"bad" in path),
    "git, commit": (git, "recrawl.formats.git_history:_Replay._touches", lambda _self, named: has_bad(named)),
    "git, log": (git, "recrawl.formats.git_history:_file", lambda *_: next(COUNTER) == 2),
    "git, page": (git, "recrawl.transfer.archive_import:Importer.pages", lambda _self, urls, *_: has_bad(urls)),
}
COUNTER = itertools.count()
"""Calls of what gets nothing by which the bad record can be told."""


@pytest.mark.parametrize("kind", FAULTS)
def test_a_record_that_our_own_code_fails_on_costs_no_other(kind, tmp_path, monkeypatch):
    make, function, is_bad = FAULTS[kind]
    path = make(tmp_path)
    global COUNTER  # noqa: PLW0603 - counts from 0 in every test
    COUNTER = itertools.count()
    module, _, place = function.partition(":")
    within, _, name = place.rpartition(".")
    owner = pkgutil.resolve_name(f"{module}:{within}" if within else module)
    real = getattr(owner, name)

    def broken(*arguments, **named):
        if is_bad(*arguments):
            raise (OverflowError, ValueError, MemoryError)[len(kind) % 3]("poison")
        return real(*arguments, **named)

    monkeypatch.setattr(owner, name, broken)
    told = []
    with open_store(tmp_path / "store.db", create=True) as store:
        importer = Importer(store, VirtualClock(1.8e9))
        sources = ImportSources(
            store, importer, VirtualClock(1.8e9), tmp_path / "warc", base_url="http://a.example/", on_bad=told.append
        )
        [brought] = sources.bring(path)
        importer.judge()
        if make in (link_map, cdxj_map, json_map):
            assert sorted(store.visits().time - 1359799200) == [0, 3600, 10800, 14400]
        else:
            pages = store.pages(store.visits().page if len(store.visits()) else None)
            assert {url.rstrip("/") for url in store.urls(pages.id)} == set(KEPT)
    expected = 2 if kind == "data set, column" else 1  # the event of a page that could not be read belongs to no page
    assert brought.broken == len(told) == expected
    assert brought.accepted == len(KEPT)
    assert [str(error) for error in told if "poison" in str(error) and str(path.name) in str(error)]
