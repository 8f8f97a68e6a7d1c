"""Which archive files an export speaks of, and what it calls them."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recrawl.transfer.wacz_export import ArchiveFiles, FileLocation, UniqueNames, packed_name, plain_name, whereabouts

RECORD = b"WARC/1.1\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n"
NOTHING = frozenset().__contains__
"""Nobody imported anything."""
ARC = b"filedesc://a.arc 0.0.0.0 20140101000000 text/plain 5\n1 0 a\n"


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "data", "where"),
    [
        ("a.warc", RECORD, FileLocation.HERE),
        ("a.warc.gz", gzip.compress(RECORD), FileLocation.HERE),
        ("no-ending", RECORD, FileLocation.HERE),
        ("a.warc.gz", gzip.compress(RECORD)[:-9], FileLocation.HERE),
        ("a.warc.zst", b"\x28\xb5\x2f\xfd1234", FileLocation.HERE),
        ("a.arc", ARC, FileLocation.ARC),
        ("passwords", b"root:secret\n", FileLocation.OTHER),
    ],
    ids=lambda value: value if isinstance(value, str) else len(value),
)
def test_a_file_is_what_its_bytes_say(name, data, where, tmp_path):
    assert whereabouts(write(tmp_path / name, data)) is where


def test_files_that_are_not_there_or_not_closed(tmp_path):
    assert whereabouts(tmp_path / "a.warc.gz") is FileLocation.MISSING
    assert whereabouts(tmp_path) is FileLocation.MISSING
    write(tmp_path / "a.warc.gz.open", b"")
    assert whereabouts(tmp_path / "a.warc.gz") is FileLocation.OPEN


def test_captures_are_counted_by_where_they_lie(tmp_path):
    here = write(tmp_path / "out" / "a.warc", RECORD)
    write(tmp_path / "ws" / "b.warc", RECORD)
    files = ArchiveFiles(tmp_path / "ws", {str(here)}.__contains__)
    for name in (str(here), "b.warc", "b.warc", "", "CC-MAIN/segments/c.warc.gz", str(tmp_path / "gone.warc")):
        files.name_of(name)
    assert files.elsewhere() == {FileLocation.NOWHERE: 1, FileLocation.MISSING: 2}
    assert {file.name: file.captures for file in files} == {
        "a.warc": 1,
        "b.warc": 2,
        "CC-MAIN/segments/c.warc.gz": 1,
        "gone.warc": 1,
    }


def test_a_name_that_was_made_up_before_is_not_made_up_again():
    names, path = UniqueNames(), Path("young/a.warc.gz")
    made = [names.take("a.warc.gz", path) for _ in range(3)]
    assert len(set(made)) == 3
    assert all(re.fullmatch(r"a(-[0-9a-f]{12})?\.warc\.gz", name) for name in made)


def test_one_file_under_several_paths_is_one(tmp_path):
    path = write(tmp_path / "ws" / "a.warc", RECORD)
    (tmp_path / "link").symlink_to(tmp_path / "ws")
    files = ArchiveFiles(tmp_path / "link", NOTHING)
    names = {files.name_of(name) for name in ("a.warc", str(path), str(tmp_path / "link" / "a.warc"))}
    assert names == {"a.warc"}
    files.add_workspace()
    assert [(file.path, file.captures) for file in files] == [(path.resolve(), 3)]


def test_a_name_that_leads_out_of_the_workspace_is_only_a_name(tmp_path):
    """Names come from indexes of strangers."""
    write(tmp_path / "private.warc", RECORD)
    (tmp_path / "ws").mkdir()
    files = ArchiveFiles(tmp_path / "ws", NOTHING)
    files.name_of("../private.warc")
    files.name_of(str(tmp_path / "private.warc"))
    assert files.elsewhere() == {FileLocation.MISSING: 1, FileLocation.UNNAMED: 1}


@pytest.mark.parametrize(
    ("name", "data", "packed"),
    [
        ("a.warc.gz", gzip.compress(RECORD), "a.warc.gz"),
        ("a.WARC.GZ", gzip.compress(RECORD), "a.warc.gz"),
        ("a.warc.gz", RECORD, "a.warc"),
        ("a.warc", gzip.compress(RECORD), "a.warc.gz"),
        ("a.warc.gz.bad", gzip.compress(RECORD), "a.warc.gz.bad.warc.gz"),
        (".hidden", RECORD, "hidden.warc"),
        ("a.warc.zst", b"\x28\xb5\x2f\xfd1234", "a.warc.gz"),
    ],
    ids=lambda value: value if isinstance(value, str) else len(value),
)
def test_a_package_calls_a_file_by_what_is_in_it(name, data, packed, tmp_path):
    assert packed_name(write(tmp_path / name, data)) == packed


@given(st.lists(st.text(st.characters(exclude_characters="/\0"), min_size=1), min_size=1))
@example(["\ud800"])
def test_names_are_plain_and_come_only_once(parts):
    names = UniqueNames()
    paths = {Path("folder") / str(number) / part for number, part in enumerate(parts) if part not in {".", ".."}}
    taken = [names.take(plain_name(path), path) for path in paths]
    assert len({name.lower() for name in taken}) == len(taken)
    for name in taken:
        assert re.fullmatch(r"[A-Za-z0-9_~+=@][A-Za-z0-9._~+=@-]*", name)
