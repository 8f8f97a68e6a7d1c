"""``recrawl export``: what archives held goes out in every form, and comes in again as it was."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.formats.timemap import read_timemap
from recrawl.formats.warc.warc_reader import read_capture
from recrawl.formats.warc.warc_writer import WarcInfo, WarcWriter
from recrawl.model import Capture
from recrawl.store.open import open_store
from recrawl.time import DAY, VirtualClock

START = 1_700_000_000.0
SAMPLES = Path(__file__).parents[1] / "data" / "formats" / "warcio"
HEADER = " CDX N b a m s k r M S V g\n"
CDX = HEADER + "".join(
    f"com,far)/ 2014010{day}000000 http://far.com/ text/html 200 {'A' * 32} - - 9 {day} far.warc.gz\n" for day in (1, 2)
)


def warc(path, pages, *, days=(0,)):
    """A WARC file at a path, with a capture of each page on each day."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with WarcWriter(path.parent / "new", VirtualClock(START), WarcInfo(host="crawler")) as writer:
        refs = {}
        for day in days:
            for url in pages:
                body = f"<p>{url} as of {day // 2} {path.parent.name}</p>".encode()
                head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body)
                capture = Capture(url, START + day * DAY, 200, head, body, b"GET / HTTP/1.1\r\n\r\n")
                refs[url] = writer.write(capture, revisit_of=refs.get(url)).ref
    writer.path.rename(path)
    writer.path.parent.rmdir()
    return path


def rows(workspace, *without):
    """All visits with all that is known of them."""
    with open_store(str(workspace / "recrawl.db")) as store:
        visits = store.visits()
        columns = [column.tolist() for name, column in visits.columns().items() if name not in ("page", *without)]
        return sorted(zip(store.urls(visits.page), *columns, strict=True))


@pytest.fixture
def imported(run, tmp_path, new_workspace):
    """``imported(name, *sources)`` is a new workspace that holds them."""

    def make(name, *sources):
        folder = shutil.copytree(new_workspace, tmp_path / name)
        done = run("import", *sources, "-w", folder)
        assert done.returncode == 0, done.stderr
        return folder

    return make


@pytest.fixture
def alike(tmp_path):
    """Two folders whose files have the same names, and one file with a name that no package takes."""
    pages = ["http://a.org/", "http://a.org/x"]
    warc(tmp_path / "old" / "crawl.warc.gz", pages, days=(0, 1, 2))
    warc(tmp_path / "young" / "crawl.warc.gz", pages, days=(4, 5))
    warc(tmp_path / "young" / "my crawl (2).warc.gz", ["http://b.org/"])
    return [tmp_path / "old", tmp_path / "young"]


def exported(run, workspace, file, *options):
    done = run("export", file, "-w", workspace, *options)
    assert done.returncode == 0, done.stderr
    return done


def index_of(package):
    with zipfile.ZipFile(package) as parts:
        lines = gzip.decompress(parts.read("indexes/index.cdx.gz")).splitlines()
    return [json.loads(line.split(b" ", 2)[2]) for line in lines]


# -- round trips ----------------------------------------------------------------------------------


def test_samples_in_package_out_package_in_is_the_identity(run, imported, tmp_path):
    """Files of strangers, among them damaged ones and one that is a single stream of gzip."""
    files = sorted(SAMPLES.glob("*.warc*"))
    first = imported("first", *files)
    exported(run, first, tmp_path / "all.wacz")
    second = imported("second", tmp_path / "all.wacz")
    assert rows(second) == rows(first)
    assert len(rows(first)) >= 4
    with zipfile.ZipFile(tmp_path / "all.wacz") as parts:
        packed = [name.removeprefix("archive/") for name in parts.namelist() if name.startswith("archive/")]
        for name in {*packed} - {"example-bad-non-chunked.warc.gz"}:  # which is packed anew
            assert parts.read(f"archive/{name}") == (SAMPLES / name).read_bytes()
    assert 3 <= len(packed) <= len(files)  # a file whose captures all lie in another one, too, may be left out


def test_samples_in_visits_out_visits_in_is_the_identity(run, imported, tmp_path):
    first = imported("first", *SAMPLES.glob("*arc*"))
    exported(run, first, tmp_path / "visits.parquet")
    assert rows(imported("second", tmp_path / "visits.parquet")) == rows(first)
    assert len(rows(first)) >= 5


def test_alike_files_in_index_out_index_in_keeps_what_digests_say(run, tmp_path, alike, new_workspace):
    first = shutil.copytree(new_workspace, tmp_path / "first")
    second = shutil.copytree(new_workspace, tmp_path / "second")
    run("import", *alike, "-w", first, "--digests-only")
    exported(run, first, tmp_path / "all.cdxj")
    run("import", tmp_path / "all.cdxj", "-w", second)
    assert rows(second, "size") == rows(first, "size")
    assert {row[3] for row in rows(first)} == {0, 1, 2}


def test_a_package_has_as_many_captures_as_the_archive(run, imported, tmp_path):
    """wget writes its own log and arguments into WARC files, as records that are no captures."""
    files = sorted((SAMPLES.parents[1] / "wget" / "counter").glob("*.warc.gz"))
    place = imported("first", *files)
    captures = len(rows(place))
    done = exported(run, place, tmp_path / "all.wacz")
    assert f"Packed 3 WARC files, {captures} captures and 15 pages" in done.stdout
    assert "3 records packed that the store does not list" in done.stdout
    assert f'"captures": {captures},' in run("status", "-w", place, "--json").stdout


def test_alike_files_in_package_out_package_in_is_the_identity(run, imported, tmp_path, alike):
    first = imported("first", *alike)
    done = exported(run, first, tmp_path / "all.wacz")
    assert done.stdout == f"Packed 3 WARC files, 11 captures and 3 pages into {tmp_path / 'all.wacz'}.\n"
    second = imported("second", tmp_path / "all.wacz")
    assert rows(second) == rows(first)
    assert len(rows(first)) == 11


@pytest.mark.slow
@pytest.mark.big
def test_the_whole_corpus_in_package_out_package_in_is_the_identity(run, imported, tmp_path, data_folder):
    first = imported("first", data_folder / "formats" / "warc", data_folder / "formats" / "warc_malformed")
    exported(run, first, tmp_path / "all.wacz")
    assert rows(imported("second", tmp_path / "all.wacz")) == rows(first)
    assert len(rows(first)) > 600


# -- packages -------------------------------------------------------------------------------------


def test_every_line_of_the_index_leads_to_its_record(run, imported, tmp_path, alike):
    exported(run, imported("first", *alike), tmp_path / "all.wacz")
    with zipfile.ZipFile(tmp_path / "all.wacz") as parts:
        names = {name.removeprefix("archive/") for name in parts.namelist() if name.startswith("archive/")}
        parts.extractall(tmp_path / "unpacked")
        pages = [json.loads(line) for line in parts.read("pages/pages.jsonl").splitlines()[1:]]
    index = index_of(tmp_path / "all.wacz")
    assert len(names) == 3
    assert {"crawl.warc.gz", "my_crawl_2_.warc.gz"} < names
    assert {line["filename"] for line in index} == names
    for line in index:
        found = read_capture(tmp_path / "unpacked" / "archive" / line["filename"], int(line["offset"]))
        assert found.url == line["url"]
    assert {page["url"]: page["ts"] for page in pages} == {
        "http://a.org/": "2023-11-18T22:13:20Z",  # the last in full: what came later only repeats it
        "http://a.org/x": "2023-11-18T22:13:20Z",
        "http://b.org/": "2023-11-14T22:13:20Z",
    }


def test_captures_whose_files_are_not_at_hand_are_counted_and_left_out(run, imported, tmp_path, alike):
    (tmp_path / "far.cdx").write_text(CDX, encoding="utf-8")
    first = imported("first", *alike, tmp_path / "far.cdx", SAMPLES / "example.arc")
    (tmp_path / "young" / "crawl.warc.gz").unlink()
    done = exported(run, first, tmp_path / "all.wacz")
    assert "Packed 2 WARC files, 7 captures and 3 pages" in done.stdout
    assert "Left out: 6 captures in files that are not here." in done.stdout  # 4 of the file, 2 of the index
    assert re.search(r"Left out: \d+ captures? in ARC files\.", done.stdout)
    assert {line["url"] for line in index_of(tmp_path / "all.wacz")} == {
        "http://a.org/",
        "http://a.org/x",
        "http://b.org/",
    }


def test_a_package_of_nothing_says_why(run, imported, tmp_path):
    (tmp_path / "far.cdx").write_text(CDX, encoding="utf-8")
    done = run("export", tmp_path / "all.wacz", "-w", imported("first", tmp_path / "far.cdx"))
    assert done.returncode == 1
    assert "Left out: 2 captures in files that are not here" in done.stderr
    assert not (tmp_path / "all.wacz").exists()


# -- indexes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["cdxj", "cdx"])
def test_an_index_names_each_file_differently_and_says_where_it_lies(form, run, imported, tmp_path, alike):
    first = imported("first", *alike)
    file, paths = tmp_path / f"all.{form}", tmp_path / "paths.txt"
    done = exported(run, first, file, "--path-index", paths)
    assert f"Wrote where 3 archive files can be found to {paths}." in done.stdout
    lines = paths.read_text(encoding="utf-8").splitlines()
    assert lines == sorted(lines)
    places = dict(line.split("\t") for line in lines)
    assert sorted(map(Path, places.values())) == sorted(path for folder in alike for path in folder.iterdir())
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if form == "cdxj":
            fields = json.loads(line.split(" ", 2)[2])
            url, name, offset = fields["url"], fields["filename"], fields["offset"]
        elif not line.startswith(" CDX"):
            _, _, url, *_, offset, name = line.split(" ")
        else:
            continue
        found.append(read_capture(Path(places[name]), int(offset)).url == url)
    assert found == [True] * 11


def test_an_index_says_what_has_another_name_and_what_is_not_here(run, imported, tmp_path, alike):
    (tmp_path / "far.cdx").write_text(CDX, encoding="utf-8")
    done = exported(run, imported("first", *alike, tmp_path / "far.cdx"), tmp_path / "all.cdxj")
    assert "Wrote 13 lines" in done.stdout
    assert "2 captures lie in files that are not here." in done.stdout
    assert "2 archive files have another name in the index; --path-index FILE lists them." in done.stdout
    assert '"filename": "far.warc.gz"' in (tmp_path / "all.cdxj").read_text(encoding="utf-8")


# -- timemaps -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ending", "form"), [("link", "link"), ("json", "json"), ("cdxj", "cdxj"), ("LINK", "link")])
def test_a_timemap_has_the_addresses_of_the_archive(ending, form, run, imported, tmp_path):
    first = imported("mine", warc(tmp_path / "in" / "a.warc.gz", ["http://a.org/x"], days=(0, 1, 2)))
    file, url = tmp_path / f"map.{ending}", "http://a.org/x"
    exported(run, first, file, "--url", url, "--base-url", "https://archive.example.org/coll")
    found = read_timemap(file.read_bytes(), "x", ReadReport(strict=True))
    base = "https://archive.example.org/coll/"
    assert (found.original, found.timegate, found.self_uri) == (url, base + url, f"{base}timemap/{form}/{url}")
    assert found.mementos[0].uri == f"{base}20231114221320/{url}"
    assert [one.time for one in found.mementos] == [START + day * DAY for day in (0, 1, 2)]
    exported(run, first, file, "--url", url, "--what", "timemap")
    assert read_timemap(file.read_bytes(), "x", ReadReport()).timegate == f"http://localhost:8080/mine/{url}"


def test_a_timemap_in_link_format_reads_as_memento_says(run, imported, tmp_path):
    first = imported("mine", warc(tmp_path / "in" / "a.warc.gz", ["http://a.org/"], days=(0, 1, 2)))
    exported(run, first, tmp_path / "map.link", "--url", "http://a.org/")
    base = "http://localhost:8080/mine"
    first_date, last_date = "Tue, 14 Nov 2023 22:13:20 GMT", "Thu, 16 Nov 2023 22:13:20 GMT"
    span = f'from="{first_date}"; until="{last_date}"'
    assert (tmp_path / "map.link").read_text(encoding="utf-8").splitlines() == [
        '<http://a.org/>; rel="original",',
        f'<{base}/timemap/link/http://a.org/>; rel="self"; type="application/link-format"; {span},',
        f'<{base}/http://a.org/>; rel="timegate",',
        f'<{base}/20231114221320/http://a.org/>; rel="first memento"; datetime="{first_date}",',
        f'<{base}/20231115221320/http://a.org/>; rel="memento"; datetime="Wed, 15 Nov 2023 22:13:20 GMT",',
        f'<{base}/20231116221320/http://a.org/>; rel="last memento"; datetime="{last_date}"',
    ]


def test_a_timemap_in_json_names_its_other_forms(run, imported, tmp_path):
    first = imported("mine", warc(tmp_path / "in" / "a.warc.gz", ["http://a.org/"]))
    exported(run, first, tmp_path / "map.json", "--url", "http://a.org/")
    found = json.loads((tmp_path / "map.json").read_bytes())
    assert found["timemap_uri"] == {
        f"{form}_format": f"http://localhost:8080/mine/timemap/{form}/http://a.org/"
        for form in ("link", "json", "cdxj")
    }
    assert found["mementos"]["first"] == found["mementos"]["last"] == found["mementos"]["list"][0]


@pytest.mark.parametrize(
    "options",
    [("a.cdxj",), ("a.cdx",), ("i.parquet", "--what", "index"), ("s.txt",), ("g.graphml",), ("v.parquet",)],
    ids=lambda options: options[0],
)
def test_of_nothing_comes_a_file_with_nothing_in_it(options, run, workspace, tmp_path):
    assert run("export", *options, "-w", workspace).returncode == 0
    assert (tmp_path / options[0]).is_file()
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]


# -- what cannot be ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (("a.cdxj", "--host", "a.org"), "--host"),
        (("a.cdxj", "--url", "http://a.org/", "--what", "cdxj"), "--url"),
        (("a.cdxj", "--base-url", "http://a.org/"), "--base-url"),
        (("a.wacz", "--path-index", "p.txt"), "--path-index"),
        (("a.link", "--url", "http://a.org/", "--base-url", "archive.org"), "http://localhost:8080/"),
        (("a.link", "--url", "http://a.org/", "--base-url", "http://x/?q="), "http://localhost:8080/"),
    ],
)
def test_options_that_make_no_sense_are_refused(arguments, remedy, run, workspace, tmp_path):
    done = run("export", *arguments, "-w", workspace)
    assert done.returncode == 4
    assert remedy in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["ws"]


@pytest.fixture(scope="module")
def large(tmp_path_factory, new_workspace):
    """A workspace of which no export is small."""
    folder = tmp_path_factory.mktemp("large")
    lines = (
        f"com,a)/{n} 20140101000000 http://a.com/{os.urandom(8).hex()} text/html 200 - - - 100 {n} far.warc.gz\n"
        for n in range(9000)
    )
    (folder / "far.cdx").write_text(HEADER + "".join(lines), encoding="utf-8")
    warc(folder / "in" / "a.warc.gz", [f"http://b.org/{os.urandom(90).hex()}" for _ in range(300)])
    shutil.copytree(new_workspace, folder / "ws")
    command = [sys.executable, "-m", "recrawl", "import", "far.cdx", "in/a.warc.gz", "-w", "ws"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "ws"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
@pytest.mark.parametrize(
    "options", [("a.cdxj",), ("a.wacz",), ("i.parquet", "--what", "index")], ids=lambda options: options[0]
)
def test_a_full_disk_has_its_own_exit_code_and_leaves_nothing(options, large, tmp_path):
    file = tmp_path / options[0]
    file.write_bytes(b"as before")
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, resource.RLIM_INFINITY));"
        "from recrawl.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "export", *options, "-w", large],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 3, done.stdout + done.stderr
    assert "the disk is full" in done.stderr
    assert list(tmp_path.iterdir()) == [file]
    assert file.read_bytes() == b"as before"
