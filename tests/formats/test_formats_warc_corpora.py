"""The archives of other projects pass through, with as many captures as are known to be in them."""

from __future__ import annotations

import re

import pytest

from recrawl.errors import InputError
from recrawl.formats.columnar.capture_batches import NO_SIZE, ReadReport
from recrawl.formats.warc.arc import index_arc, read_arc_capture
from recrawl.formats.warc.warc_reader import index_warc, read_capture

pytestmark = pytest.mark.big
LISTED = re.compile(r"^- `((?:warc|warc_malformed)/[^`]+)`.*?\(WARC [^:)]*: ?([^)]*)\)", re.MULTILINE)
OTHERWISE = {
    "archivesunleashed__aut/example.warc.gz": (299, "the list stopped early; warcio counts 299 too"),
    "chatnoir-eu__chatnoir-resiliparse/warcfile.warc.lz4": (16, "the list could not read lz4"),
    "iipc__webarchive-commons/link-extraction-test.warc": (6, "one response names no page"),
}
BEYOND_READING = {
    "invalid-warcfile-lonely-request-response-resource-conversion.warc": 2,  # nothing but a type
    "invalid-warcfile-lonely-revisit.warc": 1,
    "invalid-warcheaderversion-18.warc": 1,  # no version of WARC
    "invalid-warcheaderversion-19.warc": 1,
    "invalid-warcheaderversion-22.warc": 1,  # nothing but a type
    "invalid-warcheaderversion-23.warc": 1,
    "invalid-warcheaderversion-26.warc": 1,
}
"""How many of the listed captures of a malformed file are lost, and why: told each time."""
ILLEGIBLE = ("missing-status-text.warc",)  # two carriage returns end each line: the block is not found
ARCS = {
    "archivesunleashed__aut/badexample.arc.gz": 2,
    "archivesunleashed__aut/example.arc.gz": 299,
    "richardlehane__webarchive/hello-world.arc": 1,
    "richardlehane__webarchive/hello-world2.arc": 1,
    "ukwa__webarchive-discovery/IAH-20080430204825-00000-blackbook-truncated.arc": 8,
    "ukwa__webarchive-discovery/IAH-20080430204825-00000-blackbook-truncated.arc.gz": 8,
    "webrecorder__pywb/bad.arc": 1,
    "webrecorder__pywb/example.arc": 1,
    "webrecorder__pywb/example.arc.gz": 1,
    "webrecorder__warcio/bad.arc": 1,
    "webrecorder__warcio/example-space-in-url.arc": 1,
    "webrecorder__warcio/example.arc": 1,
    "webrecorder__warcio/example.arc.gz": 1,
}


def rows_of(index, path, report):
    return [row for batch in index(path, report) for row in batch.to_pylist()]


def listed(folder):
    """How many responses, revisits and resources the list of the data gives for each file."""
    for name, counts in LISTED.findall((folder / "README.md").read_text()):
        kinds = {kind: int(count) for count, kind in re.findall(r"(\d+) (\w+)", counts)}
        yield name, sum(kinds.get(kind, 0) for kind in ("response", "revisit", "resource"))


def reads_again(path, rows, read):
    for row in rows:
        if path.name in ILLEGIBLE:
            with pytest.raises(InputError, match="no capture begins here"):
                read(path, row["offset"])
        elif row["offset"] != NO_SIZE:
            capture = read(path, row["offset"])
            # A resource has no status of its own; read back it is an answer like any other.
            status = 200 if capture.made else row["status"]
            assert (capture.url, capture.time, capture.status) == (row["url"], row["time"], status)


def test_real_warc_files_give_every_capture(data_folder):
    folder = data_folder / "formats"
    found = {}
    for name, count in listed(folder):
        if name.startswith("warc/"):
            path, short = folder / name, name.removeprefix("warc/")
            rows = rows_of(index_warc, path, ReadReport())
            reads_again(path, rows, read_capture)
            found[short] = (len(rows), OTHERWISE.get(short, (count,))[0])
    assert {name: counts for name, counts in found.items() if counts[0] != counts[1]} == {}
    assert len(found) == len([path for path in (folder / "warc").rglob("*") if path.is_file()])


def test_malformed_warc_files_pass_through_and_say_what_is_lost(data_folder):
    folder = data_folder / "formats"
    names = [(name, count) for name, count in listed(folder) if name.startswith("warc_malformed/")]
    assert len(names) >= 70
    for name, count in names:
        report = ReadReport()
        rows = rows_of(index_warc, folder / name, report)
        lost = BEYOND_READING.get(name.rpartition("/")[2], 0)
        assert len(rows) == count - lost, name
        assert not lost or report.bad, name


def test_real_arc_files_give_every_capture(data_folder):
    folder = data_folder / "formats" / "arc"
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        rows = rows_of(index_arc, path, ReadReport())
        reads_again(path, rows, read_arc_capture)
        found[str(path.relative_to(folder))] = len(rows)
    assert found == ARCS


def test_one_crawl_as_arc_and_as_warc_is_the_same(data_folder):
    folder = data_folder / "formats"
    arc = rows_of(index_arc, folder / "arc/archivesunleashed__aut/example.arc.gz", ReadReport())
    warc = rows_of(index_warc, folder / "warc/archivesunleashed__aut/example.warc.gz", ReadReport())
    columns = ("url", "time", "status", "size", "digest")
    pages = [[[row[name] for name in columns] for row in rows if row["url"].startswith("http")] for rows in (arc, warc)]
    assert sorted(pages[0]) == sorted(pages[1])
