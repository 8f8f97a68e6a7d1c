"""WACZ: what is written is read back, and what strangers send does no harm (conventions Z1)."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import struct
import subprocess
import sys
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recrawl.errors import InputError
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.wacz import DIGEST, LINES_PER_BLOCK, PACKAGE, WaczInfo, WaczPage, WaczReader, write_wacz

CREATED = 1_700_000_000.0
LINES = [b'org,example)/%05d 20240101000000 {"url": "http://example.org/%d"}\n' % (n, n) for n in range(2500)]
PAGES = [
    WaczPage("http://example.org/", CREATED, "Home é", text="words", size=7),
    WaczPage("http://example.org/2", 0.0),
]


@pytest.fixture
def warcs(tmp_path):
    paths = [tmp_path / "a.warc.gz", tmp_path / "b.warc"]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]) * (3 << 20))
    return paths


def written(path, warcs, lines=LINES, pages=PAGES):
    write_wacz(path, warcs, lines, pages, WaczInfo(CREATED, title="Ours"))
    return path


def checked(path):
    """How many members are as listed, and what was told."""
    told = []
    report = ReadReport(on_bad=lambda error: told.append(str(error)))
    with WaczReader(path, report) as reader:
        return reader.check(report), told


def test_what_is_written_is_read_back(tmp_path, warcs):
    path = written(tmp_path / "ours.wacz", warcs)
    with WaczReader(path, ReadReport(strict=True)) as reader:
        assert reader.warcs == ("archive/a.warc.gz", "archive/b.warc")
        assert reader.indexes == ("indexes/index.cdx.gz",)
        for name, warc in zip(reader.warcs, warcs, strict=True):
            with reader.open(name) as stream:
                assert stream.read() == warc.read_bytes()
        with reader.open(reader.indexes[0]) as stream:
            assert gzip.decompress(stream.read()) == b"".join(LINES)
        assert [page.url for page in reader.pages(ReadReport(strict=True))] == [page.url for page in PAGES]
        first = next(iter(reader.pages(ReadReport(strict=True))))
        assert (first.title, first.text, first.size, first.time) == ("Home é", "words", 7, CREATED)
        assert first.id
        assert reader.package["wacz_version"] == "1.1.1"
        assert reader.package["created"] == "2023-11-14T22:13:20Z"
    assert checked(path) == (6, [])


def test_members_are_stored_as_replay_needs_them(tmp_path, warcs):
    with zipfile.ZipFile(written(tmp_path / "ours.wacz", warcs)) as package:
        stored = {info.filename for info in package.infolist() if info.compress_type == zipfile.ZIP_STORED}
        assert stored == {"archive/a.warc.gz", "archive/b.warc", "indexes/index.cdx.gz"}
        blocks = package.read("indexes/index.cdx.gz")
        small = package.read("indexes/index.idx").splitlines()
        digest = json.loads(package.read(DIGEST))
        assert digest["hash"] == f"sha256:{hashlib.sha256(package.read(PACKAGE)).hexdigest()}"
    assert small[0].startswith(b"!meta 0 ")
    unfolded = []
    for number, line in enumerate(small[1:]):
        key, when, place = line.split(b" ", 2)
        place = json.loads(place)
        member = blocks[place["offset"] : place["offset"] + place["length"]]
        unfolded.append(gzip.decompress(member))
        assert place["digest"] == f"sha256:{hashlib.sha256(member).hexdigest()}"
        assert unfolded[-1].startswith(LINES[number * LINES_PER_BLOCK])
        assert unfolded[-1].startswith(key + b" " + when)
    assert b"".join(unfolded) == b"".join(LINES)


@pytest.mark.parametrize("limit", [zipfile.ZIP64_LIMIT, None])
def test_the_list_at_the_end_says_where_each_member_begins(tmp_path, warcs, monkeypatch, limit):
    """ReplayWeb.page reads the head of a member only where that list has more of it than a name.

    Also where a file is all but too large for sizes of 4 bytes, here by a lower limit.
    """
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", limit or max(one.stat().st_size for one in warcs))
    file = written(tmp_path / "ours.wacz", warcs)
    monkeypatch.undo()
    data = file.read_bytes()
    with zipfile.ZipFile(file) as package:
        for info in package.infolist():
            name, extra = struct.unpack_from("<2H", data, info.header_offset + 26)
            assert name == len(info.filename)
            assert not extra or info.extra, info.filename


def test_the_same_input_gives_the_same_bytes(tmp_path, warcs):
    first, second = (written(tmp_path / name, warcs).read_bytes() for name in ("one.wacz", "two.wacz"))
    assert first == second


def test_an_existing_file_stays_until_the_new_one_is_complete(tmp_path, warcs):
    path = tmp_path / "ours.wacz"
    path.write_bytes(b"old")

    def failing():
        yield LINES[0]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        written(path, warcs, failing())
    assert path.read_bytes() == b"old"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.warc.gz", "b.warc", "ours.wacz"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [([LINES[1], LINES[0]], "line 2 of the index is not sorted"), ([b"nonsense\n"], "no line of CDXJ")],
)
def test_a_wrong_index_is_refused(tmp_path, warcs, lines, words):
    with pytest.raises(InputError, match=words):
        written(tmp_path / "ours.wacz", warcs, lines)


def test_warcs_that_cannot_be_packed_are_refused(tmp_path, warcs):
    other = tmp_path / "other" / "a.warc.gz"
    for several, words in (
        ([*warcs, other], "same name"),
        ([tmp_path / "c.warc.gz.open"], "closed"),
        ([tmp_path / "missing.warc.gz"], "cannot be read"),
        ([], "no WARC file"),
    ):
        with pytest.raises(InputError, match=words):
            written(tmp_path / "ours.wacz", several)
    with pytest.raises(InputError, match="cannot be written"):
        written(tmp_path / "no" / "folder.wacz", warcs)


def test_files_may_get_other_names_and_the_list_tells_them_apart(tmp_path, warcs):
    told = []
    names = {"A~b.warc.gz": warcs[0], "a-b.warc.gz": warcs[1]}
    path = tmp_path / "ours.wacz"
    write_wacz(path, names, LINES, PAGES, WaczInfo(CREATED), progress=told.append)
    assert sum(told) == sum(warc.stat().st_size for warc in warcs)
    assert checked(path) == (6, [])
    with WaczReader(path, ReadReport(strict=True)) as reader:
        assert reader.warcs == ("archive/A~b.warc.gz", "archive/a-b.warc.gz")
        listed = [entry["name"] for entry in reader.package["resources"]]
        assert len(set(listed)) == len(listed)
        assert all(re.fullmatch(r"[-a-z0-9._]+", name) for name in listed)
        with reader.open("archive/a-b.warc.gz") as stream:
            assert stream.read() == warcs[1].read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_full_disk_leaves_nothing(tmp_path, warcs):
    code = """
import resource, sys
from pathlib import Path
from recrawl.errors import DiskFullError
from recrawl.formats.wacz import WaczInfo, write_wacz
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
try:
    write_wacz(Path(sys.argv[1]), [Path(sys.argv[2])], [], [], WaczInfo(0.0))
except DiskFullError as error:
    print(error)
"""
    command = [sys.executable, "-c", code, tmp_path / "ours.wacz", warcs[0]]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert "the disk is full" in done.stdout
    assert sorted(tmp_path.iterdir()) == warcs


def test_lists_of_pages_are_those_that_the_format_knows(tmp_path):
    """All files of lines in ``pages/``; a list has no further parts, whatever its first line names."""
    header = b'{"format": "json-pages-1.0", "id": "pages", "next": "pages/other.json"}\n'
    lists = [
        ("pages/pages.jsonl", header + b'{"url": "http://a/1", "ts": "2024-01-01T00:00:00Z"}\n'),
        ("pages/extraPages.jsonl", header + b'{"url": "http://a/2", "ts": "2024-01-01T00:00:00Z"}\n'),
        ("pages/other.json", b'{"url": "http://a/3", "ts": "2024-01-01T00:00:00Z"}\n'),
    ]
    with WaczReader(strange(tmp_path / "x.wacz", lists), ReadReport(strict=True)) as reader:
        assert [page.url for page in reader.pages(ReadReport(strict=True))] == ["http://a/1", "http://a/2"]


def test_an_empty_index_and_no_pages_are_fine(tmp_path, warcs):
    path = written(tmp_path / "ours.wacz", warcs, [], [])
    assert checked(path) == (6, [])
    with WaczReader(path, ReadReport(strict=True)) as reader:
        assert list(reader.pages(ReadReport(strict=True))) == []


def test_memory_does_not_grow_with_the_warc(tmp_path):
    warc = tmp_path / "large.warc.gz"
    with warc.open("wb") as file:
        file.truncate(96 << 20)
    tracemalloc.start()
    try:
        path = written(tmp_path / "ours.wacz", [warc], [])
        with WaczReader(path, ReadReport(strict=True)) as reader:
            assert reader.check(ReadReport(strict=True)) == 5
            reader.extract("archive/large.warc.gz", tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()


def strange(path, members, *, resources=(), package=None):
    """A ZIP with these members and a package that lists ``resources``."""
    with zipfile.ZipFile(path, "w") as file:
        for name, data in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(info, data)
        file.writestr(PACKAGE, json.dumps({"resources": list(resources)}) if package is None else package)
    return path


@pytest.mark.parametrize(
    "name", ["../out.warc.gz", "/etc/out", "archive/../../out", "archive//x", "./x", "C:\\x", "archive\\..\\x"]
)
def test_names_that_lead_out_of_the_folder_are_not_handed_out(tmp_path, name):
    told = []
    path = strange(tmp_path / "x.wacz", [(name, b"x"), ("archive/a.warc", b"fine")])
    with WaczReader(path, ReadReport(on_bad=told.append)) as reader:
        assert reader.names == ("archive/a.warc", PACKAGE)
        with pytest.raises(InputError, match="no member"):
            reader.extract(name, tmp_path)
    assert ["leads out of the folder" in str(error) for error in told] == [True]


def test_a_bomb_is_not_unfolded(tmp_path):
    path = strange(tmp_path / "x.wacz", [("archive/a.warc", bytes(200 << 20))])
    with WaczReader(path, ReadReport()) as reader, pytest.raises(InputError, match="would unfold"):
        reader.open("archive/a.warc")
    assert "would unfold" in "".join(
        checked(strange(path, [("archive/a.warc", bytes(200 << 20))],
                        resources=[{"path": "archive/a.warc", "hash": "sha256:00"}]))[1]
    )  # fmt: skip


def test_a_size_that_lies_does_not_unfold_more(tmp_path):
    path = strange(tmp_path / "x.wacz", [("archive/a.warc", bytes(100 << 20))])
    data = bytearray(path.read_bytes())
    entry = data.rindex(b"PK\x01\x02", 0, data.rindex(PACKAGE.encode()) - 46)
    struct.pack_into("<I", data, entry + 24, 1000)
    path.write_bytes(data)
    with WaczReader(path, ReadReport()) as reader, reader.open("archive/a.warc") as stream, pytest.raises(InputError):
        assert len(stream.read()) <= 1000


def test_a_member_that_is_there_twice_is_told(tmp_path):
    told = []
    with pytest.warns(UserWarning, match="Duplicate"):
        path = strange(tmp_path / "x.wacz", [("archive/a.warc", b"1"), ("archive/a.warc", b"2")])
    with WaczReader(path, ReadReport(on_bad=told.append)) as reader, reader.open("archive/a.warc") as stream:
        assert stream.read() == b"1"
    assert "twice" in str(told[0])


@pytest.mark.parametrize("data", [b"", b"no zip", b"PK\x03\x04" + bytes(100)])
def test_what_is_no_zip_is_refused(tmp_path, data):
    (tmp_path / "x.wacz").write_bytes(data)
    with pytest.raises(InputError, match="no WACZ"):
        WaczReader(tmp_path / "x.wacz", ReadReport())
    with pytest.raises(InputError, match="no WACZ"):
        WaczReader(tmp_path / "missing.wacz", ReadReport())


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"resources": 3}', "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ('{"profile": "multi-wacz-package", "resources": []}', "other WACZ files"),
    ],
    ids=["cut", "list", "number", "deep", "multi"],
)
def test_a_package_that_makes_no_sense_is_refused(tmp_path, package, words):
    with pytest.raises(InputError, match=words):
        WaczReader(strange(tmp_path / "x.wacz", [], package=package), ReadReport())


def test_a_zip_without_a_package_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.wacz", "w") as file:
        file.writestr("archive/a.warc", b"")
    with pytest.raises(InputError, match="no datapackage"):
        WaczReader(tmp_path / "x.wacz", ReadReport())


def test_every_difference_from_the_list_is_told(tmp_path):
    digest = hashlib.sha256(b"data").hexdigest()
    resources = [
        {"path": "archive/good.warc", "hash": f"sha256:{digest}", "bytes": 4},
        {"path": "archive/old.warc", "stats": {"hash": digest, "bytes": 4}, "hashing": "sha256"},
        {"path": "archive/long.warc", "hash": f"sha256:{digest}", "bytes": 5},
        {"path": "archive/other.warc", "hash": f"sha256:{'0' * 64}"},
        {"path": "archive/odd.warc", "hash": "crc7:00"},
        {"path": "archive/gone.warc", "hash": f"sha256:{digest}"},
        {"path": 3},
        "x",
    ]
    names = [f"archive/{name}.warc" for name in ("good", "old", "long", "other", "odd", "unlisted")]
    good, told = checked(strange(tmp_path / "x.wacz", [(name, b"data") for name in names], resources=resources))
    assert good == 2
    assert sum("names no member" in text for text in told) == 2
    for words in ("'archive/long.warc' has 4 bytes", "'archive/other.warc' is not what", "'crc7'", "'archive/gone.warc' is listed and missing", "unlisted.warc' is not listed"):  # fmt: skip  # noqa: E501
        assert sum(words in text for text in told) == 1, words
    assert len(told) == 7


def test_a_spoilt_warc_is_not_extracted(tmp_path):
    resources = [{"path": "archive/a.warc", "hash": f"sha256:{'0' * 64}"}]
    path = strange(tmp_path / "x.wacz", [("archive/a.warc", b"data")], resources=resources)
    with WaczReader(path, ReadReport()) as reader, pytest.raises(InputError, match="is not what"):
        reader.extract("archive/a.warc", tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["x.wacz"]


def test_extracting_never_replaces_another_file(tmp_path):
    folder = tmp_path / "warc"
    folder.mkdir()
    path = strange(tmp_path / "x.wacz", [("archive/a.b.warc.gz", b"theirs")])
    with WaczReader(path, ReadReport()) as reader:
        first = reader.extract("archive/a.b.warc.gz", folder)
        assert reader.extract("archive/a.b.warc.gz", folder) == first == folder / "a.b.warc.gz"
        first.write_bytes(b"ours")
        second = reader.extract("archive/a.b.warc.gz", folder)
    assert (first.read_bytes(), second.read_bytes()) == (b"ours", b"theirs")
    assert second.name.endswith(".b.warc.gz")
    assert sorted(folder.iterdir()) == sorted([first, second])


def test_lines_that_are_no_pages_are_told_with_their_place(tmp_path):
    good = b'{"url": "http://a/", "ts": "2024-01-01T00:00:00.5Z", "title": null}\n'
    lines = [b'{"format": "json-pages-1.0", "id": "pages"}\n', b"{\n", b"3\n", b'{"url": 3}\n', b"\n", good]
    told = []
    path = strange(tmp_path / "x.wacz", [("pages/pages.jsonl", b"".join(lines)), ("pages/more.jsonl", good)])
    with WaczReader(path, ReadReport()) as reader:
        pages = list(reader.pages(ReadReport(on_bad=told.append)))
    assert [(page.url, page.time, page.title) for page in pages] == [("http://a/", 1_704_067_200.5, "")] * 2
    start = len(lines[0])
    assert [error.position for error in told] == [start, start + 2, start + 4]


def test_a_member_without_a_name_is_told(tmp_path):
    (tmp_path / "a.warc.gz").write_bytes(zlib.compress(b"x" * 5000))
    path, told = written(tmp_path / "ours.wacz", [tmp_path / "a.warc.gz"], LINES[:50]), []
    with zipfile.ZipFile(path, "a") as package:
        package.writestr(nameless := zipfile.ZipInfo("x"), b"?")
        nameless.filename = ""
    with WaczReader(path, ReadReport(on_bad=told.append)) as reader:
        assert "" not in reader.names
    [error] = told
    assert error.what.endswith("the member '' leads out of the folder")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_a_damaged_file_is_told_and_nothing_else_happens(tmp_path, data):
    whole = tmp_path / "whole.wacz"
    if not whole.exists():
        (tmp_path / "a.warc.gz").write_bytes(zlib.compress(b"x" * 5000))
        written(whole, [tmp_path / "a.warc.gz"], LINES[:50])
    spoilt = bytearray(whole.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        spoilt[data.draw(st.integers(0, len(spoilt) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "spoilt.wacz"
    path.write_bytes(spoilt[: data.draw(st.integers(0, len(spoilt)))] if data.draw(st.booleans()) else spoilt)
    report, told = ReadReport(), str(path)
    try:
        with WaczReader(path, report) as reader:
            reader.check(report)
            list(reader.pages(report))
            for name in reader.names:
                with reader.open(name) as stream:
                    stream.read()
    except InputError as error:
        told = str(error)
    assert str(path) in told
    assert sorted(found.name for found in tmp_path.iterdir()) == ["a.warc.gz", "spoilt.wacz", "whole.wacz"]


@pytest.mark.big
def test_the_examples_of_others(data_folder: Path):
    folder = data_folder / "formats" / "wacz" / "webrecorder__pywb"
    assert checked(folder / "valid_example_1.wacz") == (4, [])
    with WaczReader(folder / "valid_example_1.wacz", ReadReport(strict=True)) as reader:
        assert reader.warcs == ("archive/example-collection.warc",)
        assert [page.title for page in reader.pages(ReadReport(strict=True))] == ["Example Domain"]
        with reader.open(reader.indexes[0]) as stream, gzip.GzipFile(fileobj=io.BytesIO(stream.read())) as index:
            assert len(index.read().splitlines()) == 1
    good, told = checked(folder / "invalid_example_1.wacz")
    assert good == 0
    assert len(told) == 3
    assert "is listed and missing" in "".join(told)
    assert "'data/archive/test.txt' is not listed" in "".join(told)
    assert "no WARC file" in "".join(told)
