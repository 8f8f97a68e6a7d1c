"""How many records every file at hand has, counted by somebody else than our readers.

``tests/data/at_hand.tsv`` says for each file what an import must accept, skip (by reason) and find broken; the test of
``recrawl import`` compares. Here each of its rows is held against a judge that knows nothing of recrawl: the README of
the data where it counts records (also those that are broken), warcio where it reads the file to its end, else counting
of lines, elements or rows. What no judge can read is explained one by one.
"""

from __future__ import annotations

import gzip
import json
import re
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from warcio.archiveiterator import ArchiveIterator

PINS = Path(__file__).resolve().parents[1] / "data" / "at_hand.tsv"
CAPTURES = ("response", "revisit", "resource")
NO_PAGE = ("not an http(s) URL", "not http or https")
LISTED = re.compile(r"^- `((?:warc|warc_malformed)/[^`]+)`.*?\(WARC [^:)]*: ?([^)]*)\)", re.MULTILINE)
BY_HAND = {
    "arc/archivesunleashed__aut/badexample.arc.gz": "one gzip member for all, and damaged: two records are whole",
    "arc/richardlehane__webarchive/hello-world2.arc": "its first length is wrong by one; warcio gives up there",
    "arc/ukwa__webarchive-discovery/IAH-20080430204825-00000-blackbook-truncated.arc": "as its .gz, which warcio reads",
    "arc/webrecorder__pywb/bad.arc": "lengths of -1 and abc, which warcio takes for 0: the one between is whole",
    "arc/webrecorder__warcio/bad.arc": "the same file",
    "cdx/webrecorder__pywb/zipnum-bad.idx": "three lines, each of a part that is not there",
    "robots_real/robots_real.parquet": "a Parquet table of something else",
    "url/crawler-commons__crawler-commons/invalidUrls.csv": "a list in which nothing is a URL",
    "url/crawler-commons__crawler-commons/url-resolve.csv": "tables of tests, not lists: the first field of a line",
    "url/crawler-commons__crawler-commons/weirdToNormalizedUrls.csv": "the same",
    "wacz/webrecorder__pywb/invalid_example_1.wacz": "a WACZ without a WARC file",
    "warc/chatnoir-eu__chatnoir-resiliparse/block-sized-records.warc.lz4": "as its .gz",
    "warc/chatnoir-eu__chatnoir-resiliparse/warcfile.warc.lz4": "as its .gz",
    "warc/iipc__webarchive-commons/link-extraction-test.warc": "a length is wrong; warcio gives up. Six are pages",
}


def pins() -> dict[str, tuple[int, int, dict[str, int], str]]:
    """Path: accepted, broken, skipped by reason, and who judges."""
    rows = (line.split("\t") for line in PINS.read_text().splitlines() if not line.startswith("#"))
    return {path: (int(taken), int(bad), reasons(why), judge) for path, taken, bad, why, judge in rows}


def reasons(text: str) -> dict[str, int]:
    return {reason: int(count) for count, _, reason in (part.partition(" ") for part in text.split(", ") if part)}


def rows_of(judge: str) -> list[tuple[str, int, int, dict[str, int]]]:
    return [(path, taken, bad, why) for path, (taken, bad, why, by) in pins().items() if by == judge]


def captures_among(taken: int, why: dict[str, int]) -> int:
    return taken + sum(why.get(reason, 0) for reason in NO_PAGE)


@pytest.mark.big
def test_every_row_has_its_judge(data_folder):
    judges = {"README", "broken", "warcio", "lines", "elements", "mementos", "answers", "package", "hand"}
    assert {row[3] for row in pins().values()} == judges
    assert {path for path, *_ in rows_of("hand")} == BY_HAND.keys()
    assert not [path for path in pins() if not (data_folder / "formats" / path).is_file()]


@pytest.mark.big
def test_the_readme_counts_the_same_records(data_folder):
    listed = dict(LISTED.findall((data_folder / "formats" / "README.md").read_text()))
    assert len(rows_of("README")) > 100
    for path, taken, _, why in rows_of("README"):
        kinds = Counter({kind: int(count) for count, kind in re.findall(r"(\d+) (\w+)", listed[path])})
        assert captures_among(taken, why) == sum(kinds.pop(kind, 0) for kind in CAPTURES), path
        others = {reason: count for reason, count in why.items() if reason not in NO_PAGE}
        unknown = others.pop("a record of no known type", 0)
        assert sum(kinds.values()) == sum(others.values()) + unknown, path
        assert all(kinds[reason] == count for reason, count in others.items()), path


@pytest.mark.big
def test_what_the_readme_counts_and_nobody_can_read_is_told_as_broken(data_folder):
    listed = dict(LISTED.findall((data_folder / "formats" / "README.md").read_text()))
    for path, taken, bad, why in rows_of("broken"):
        assert taken + bad + sum(why.values()) == sum(map(int, re.findall(r"(\d+) \w+", listed[path]))), path


@pytest.mark.big
def test_warcio_counts_the_same_records(data_folder):
    for path, taken, _, why in rows_of("warcio"):
        kinds: Counter[str] = Counter()
        with (data_folder / "formats" / path).open("rb") as stream:
            for record in ArchiveIterator(stream):
                kinds[record.rec_type] += 1
        assert captures_among(taken, why) == sum(kinds.pop(kind, 0) for kind in CAPTURES), path
        assert sum(kinds.values()) == sum(count for reason, count in why.items() if reason not in NO_PAGE), path


def unpacked(data: bytes) -> bytes:
    """All gzip members, each with an end of line."""
    text = b""
    while data.startswith(b"\x1f\x8b"):
        member = zlib.decompressobj(31)
        part = member.decompress(data)
        text, data = text + part + (b"" if part.endswith(b"\n") else b"\n"), member.unused_data
    return text or data


@pytest.mark.big
def test_indexes_and_lists_have_as_many_lines(data_folder):
    for path, taken, bad, why in rows_of("lines"):
        file = data_folder / "formats" / path
        packed = file.with_name("zipnum-sample.cdx.gz") if file.suffix == ".idx" else file
        lines = [line for line in unpacked(packed.read_bytes()).splitlines() if line.strip()]
        about = [line for line in lines if line.startswith(b"!")]
        fields = [line for line in lines if re.match(rb" ?CDX( [A-Za-z])+$", line)]
        assert why.get("a line about the file", 0) == len(about), path
        assert taken + bad + sum(why.values()) == len(lines) - len(fields), path


@pytest.mark.big
def test_sitemaps_and_feeds_have_as_many_elements(data_folder):
    for path, taken, _, why in rows_of("elements"):
        data = (data_folder / "formats" / path).read_bytes()
        root = ET.fromstring(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data.lstrip())
        names = [element.tag.rpartition("}")[2] for element in root.iter()]
        entries = sum(names.count(name) for name in ("item", "entry")) or sum(
            child.tag.rpartition("}")[2] in ("url", "sitemap") for child in root
        )
        assert taken + sum(why.values()) == entries, path


@pytest.mark.big
def test_maps_have_as_many_mementos(data_folder):
    for path, taken, bad, why in rows_of("mementos"):
        text = (data_folder / "formats" / path).read_text()
        if path.endswith(".json"):
            count = len(json.loads(text)["mementos"]["list"])
        elif path.endswith(".cdxj"):
            count = sum(line[:14].isdigit() for line in text.splitlines())
        else:
            count = len(re.findall(r'rel="[^"]*\bmemento\b', text))
        assert (taken, bad, why) == (count, 0, {}), path


@pytest.mark.big
def test_recorded_answers_have_as_many_captures(data_folder):
    for path, taken, bad, why in rows_of("answers"):
        found: Counter[str] = Counter()
        for line in (data_folder / "formats" / path).read_text("utf-8").splitlines():
            text = json.loads(line)["response_text"]
            if text.startswith("[["):
                found["taken"] += sum(len(row) > 1 for row in json.loads(text)) - 1
            elif text.startswith("["):
                found["an answer without captures"] += 1
            else:
                found["taken"] += sum('"timestamp"' in row for row in text.splitlines())
                found["a message of the server"] += sum('"timestamp"' not in row for row in text.splitlines())
        assert (taken, bad) == (found.pop("taken", 0), 0), path
        assert why == {reason: count for reason, count in found.items() if count}, path


@pytest.mark.big
def test_warcio_counts_the_same_in_a_package(data_folder):
    for path, taken, _, why in rows_of("package"):
        kinds: Counter[str] = Counter()
        with zipfile.ZipFile(data_folder / "formats" / path) as package:
            for name in package.namelist():
                if name.startswith("archive/"):
                    with package.open(name) as stream:
                        kinds.update(record.rec_type for record in ArchiveIterator(stream))
        assert taken == sum(kinds.pop(kind, 0) for kind in CAPTURES), path
        assert kinds == why, path
