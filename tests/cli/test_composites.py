"""Captured pages with what they embed, as ``recrawl assess`` and ``report`` tell of them: real archive files."""

import base64
import csv
import hashlib
import json
import zipfile

import pytest

from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture
from recrawl.time import VirtualClock, to_http_date, to_timestamp14

START = 1_700_000_000.0
SITE = "http://site.example"
PAGE = (
    b"<html><head><link rel=stylesheet href=/s.css></head><body class=x><img src=/left.png><img src=/right.png>"
    b"<img src=/newer.png><img src=/missing.png width=512 height=384><img src=/same.png><img src=/moved.png>"
    b"<img src=/nowhere.png><img src=/gone.png></body></html>"
)
PLAIN = b"<p>Nothing but words.</p>"


def head(status, *lines):
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


def write(folder, *captures):
    """An archive file of captures: path, seconds after the page, status and headers, body."""
    with WarcWriter(folder, VirtualClock(START), durable=False) as writer:
        for path, after, raw_head, body in captures:
            status = int(raw_head.split()[1])
            place = writer.write(Capture(f"{SITE}{path}", START + after, status, raw_head, body))
    return folder / place.file


def plot(*lines):
    return head("200 OK", "Content-Type: image/png", *lines)


def before(seconds):
    """A Last-Modified so long before the page."""
    return f"Last-Modified: {to_http_date(START - seconds)}"


@pytest.fixture
def archive(tmp_path):
    """One page, and parts of it in every state."""
    return write(
        tmp_path,
        ("/left.png", -50, plot(), b"left"),
        ("/same.png", -40, plot(), b"same"),
        ("/", 0, head("200 OK", "Content-Type: text/html"), PAGE),
        ("/plain", 1, head("200 OK", "Content-Type: text/html"), PLAIN),
        ("/s.css", 10, head("200 OK", "Content-Type: text/css", before(100)), b"p {x: url(bg.png)} @import 't.css';"),
        ("/t.css", 11, head("200 OK", "Content-Type: text/css", before(100)), b"p {x: url(deep.png)}"),
        ("/right.png", 20, plot(), b"right"),
        ("/newer.png", 30, plot(before(-15)), b"newer"),
        ("/bg.png", 40, plot(before(60)), b"bg"),
        ("/deep.png", 41, plot(before(60)), b"deep"),
        ("/same.png", 50, plot(), b"same"),
        ("/moved.png", 60, head("302 Found", "Location: /target.png", before(60)), b""),
        ("/target.png", 61, plot(before(60)), b"target"),
        ("/nowhere.png", 62, head("302 Found", "Location: /never.png"), b""),
        ("/gone.png", 63, head("404 Not Found", "Content-Type: text/html"), b"no"),
    )


EXPECTED = {
    "prima facie coherent": 6,  # s.css, t.css, bg.png, deep.png, same.png, moved.png → target.png
    "possibly coherent": 1,  # left.png
    "possibly violative": 1,  # right.png
    "prima facie violative": 1,  # newer.png
    "missing": 3,  # missing.png, gone.png, and nowhere.png, which leads to nothing
    "not known": 0,
}


def test_every_state_is_found_in_real_files(run, archive):
    told = json.loads(run("assess", archive, "--json").stdout)
    found = told["composites"]
    assert found["resources"] == EXPECTED
    assert (found["pages"], found["embedding"], found["sample"], found["unread"]) == (2, 1, False, 0)
    assert (found["coherent"], found["notViolative"], found["violative"], found["complete"]) == (0, 0, 1, 0)
    assert found["completeness"] == pytest.approx(9 / 12)
    # A picture of 300 × 150 is worth .3 b, the missing one with a size .3 · .625; there are 9 + 1 pictures, 2 sheets.
    small = 0.3 * (0.5 * 45_000 / 786_432 + 0.25 * (300 / 724 + 150 / 618))
    assert found["damage"] == pytest.approx((0.1875 + 2 * small) / (0.1875 + 9 * small + 2 * 0.05))
    [worst] = told["worstComposites"]
    assert (worst["url"], worst["embedded"], worst["archived"]) == (f"{SITE}/", 12, 9)
    assert worst["state"] == "prima facie violative"


def test_words_and_files_say_the_same(run, archive, tmp_path):
    done = run("assess", archive, "--output", tmp_path / "quality")
    assert "Composite coherence: checked 2 captured pages; 1 has page requisites." in done.stdout
    assert "6 prima facie coherent, 1 possibly coherent, 1 possibly violative, 1 prima facie violative, 3 missing" in (
        done.stdout
    )
    assert "1 of 1 pages (100.0%) are proved not to have existed" in done.stdout
    with (tmp_path / "quality" / "composites.csv").open(encoding="utf-8") as file:
        [row] = csv.DictReader(file)
    assert (row["missing"], row["possibly_violative"]) == ("3", "1")


def test_files_and_workspace_agree(run, archive, tmp_path):
    place = tmp_path / "ws"
    run("init", place)
    run("import", archive, "-w", place)
    told = [json.loads(run("assess", *given, "--json").stdout)["composites"] for given in ([archive], ["-w", place])]
    assert told[0] == told[1]


def test_without_bytes_nothing_is_known(run, archive, tmp_path):
    index = tmp_path / "index.cdxj"
    index.write_text(
        f'example,site)/ 20231114221320 {{"url": "{SITE}/", "mime": "text/html", "status": "200", "digest": "sha1:'
        'AYLWTCTP5Q6IQJS3ZLKZBRGIRXTTLGRG", "filename": "elsewhere.warc.gz", "offset": "0", "length": "100"}\n',
        encoding="utf-8",
    )
    for given in (["assess", index], ["assess", archive, "--digests-only"], ["assess", archive, "--composites", "0"]):
        done = run(*given)
        assert "existed as shown, with their page requisites) is not known" in done.stdout
        assert json.loads(run(*given, "--json").stdout)["composites"] is None


def test_parts_that_an_archive_lists_are_not_missing_though_their_bytes_are_elsewhere(run, tmp_path):
    """As after an import of another archive: pages and style sheets were fetched, equal captures and pictures not."""
    html, css = head("200 OK", "Content-Type: text/html"), head("200 OK", "Content-Type: text/css")
    page = b"<link rel=stylesheet href=/s.css><img src=/a.png><img src=/b.png><img src=/gone.png><img src=/never.png>"
    fetched = write(tmp_path, ("/", 0, html, page), ("/s.css", 1, css, b"p {color: red}"))
    both = hashlib.sha1(page).digest(), hashlib.sha1(b"p {color: red}").digest()
    listed = [
        ("/", 0, "text/html", 200, both[0]),
        ("/", 86_400, "text/html", 200, both[0]),
        ("/s.css", 1, "text/css", 200, both[1]),
        ("/s.css", 86_401, "text/css", 200, both[1]),
        ("/a.png", 2, "image/png", 200, b"a" * 20),
        ("/b.png", 3, "image/png", 200, b"b" * 20),
        ("/gone.png", 4, "text/html", 404, b"c" * 20),
    ]
    lines = [
        f"example,site){path} {to_timestamp14(START + after)} {SITE}{path} {mime} {status} "
        f"{base64.b32encode(digest).decode()} - - 9 0 elsewhere.warc.gz"
        for path, after, mime, status, digest in listed
    ]
    index = tmp_path / "all.cdx"
    index.write_text("\n".join([" CDX N b a m s k r M S V g", *sorted(lines), ""]))
    found = json.loads(run("assess", fetched, index, "--json").stdout)["composites"]
    assert found["pages"] == 2  # the second capture of the page is known by its digest
    assert found["resources"] == {
        "prima facie coherent": 1,  # the style sheet of the second page: the same before and after
        "possibly coherent": 0,
        "possibly violative": 1,
        "prima facie violative": 0,
        "missing": 4,
        "not known": 4,
    }
    assert found["completeness"] == pytest.approx(3 / 5)
    assert (found["coherent"], found["complete"]) == (0, 0)
    assert found["damage"] < 0.5
    said = " ".join(run("assess", fetched, index).stdout.split())
    assert "4 missing, 4 not known" in said
    assert "4 page requisites without bytes here: they are listed by an archive and counted as archived" in said


def test_a_page_that_repeats_an_earlier_one_is_judged_at_its_own_time(run, tmp_path):
    with WarcWriter(tmp_path, VirtualClock(START), durable=False) as writer:
        shown = Capture(f"{SITE}/", START, 200, head("200 OK", "Content-Type: text/html"), b"<img src=a.png>")
        first = writer.write(shown)
        writer.write(Capture(f"{SITE}/a.png", START + 10, 200, plot(before(5)), b"a"))
        again = Capture(f"{SITE}/", START + 1000, 200, head("200 OK", "Content-Type: text/html"), b"<img src=a.png>")
        writer.write(again, revisit_of=first.ref)
    found = json.loads(run("assess", tmp_path / first.file, "--json").stdout)
    assert (found["composites"]["pages"], found["composites"]["coherent"], found["composites"]["notViolative"]) == (
        2,
        1,
        2,
    )
    assert {row["state"] for row in found["worstComposites"]} == {"prima facie coherent", "possibly coherent"}


def test_a_large_archive_is_judged_by_a_sample(run, tmp_path):
    page = head("200 OK", "Content-Type: text/html")
    many = [(f"/{number}", number, page, b"<img src=a.png>%d" % number) for number in range(600)]
    file = write(tmp_path, *many)
    told = json.loads(run("assess", file, "--composites", "20", "--json").stdout)
    found = told["composites"]
    assert found["sample"] is True
    assert any("a sample of" in line for line in told["words"])
    assert 20 <= found["pages"] < 600


def section(told):
    return next(one for one in told["sections"] if one["anchor"] == "composites")


def test_the_report_says_it_where_quality_is_told(run, archive, tmp_path):
    found = section(json.loads(run("report", archive, "--json").stdout))
    assert any("6 prima facie coherent" in line for line in found["words"])
    assert run("report", archive, "-o", tmp_path / "report.html").returncode == 0
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Pages with their page requisites" in text
    assert "composite-states" in text
    unknown = section(json.loads(run("report", archive, "--digests-only", "--json").stdout))
    assert "is not known" in unknown["words"][0]


def test_the_last_crawl_is_told_apart_from_what_pages_embed(run, tmp_path):
    page = head("200 OK", "Content-Type: text/html")
    file = write(tmp_path, *((f"/{name}", day * 86_400, page, b"<img src=a.png>") for name in "ab" for day in range(3)))
    told = json.loads(run("report", file, "--json").stdout)
    last = next(one for one in told["sections"] if one["anchor"] == "last-crawl")
    assert last["title"].startswith("The last crawl of site.example")


def test_a_package_states_it(run, archive, tmp_path):
    place = tmp_path / "ws"
    run("init", place)
    run("import", archive, "-w", place)
    done = run("export", tmp_path / "site.wacz", "-w", place)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "site.wacz") as package:
        stated = json.loads(package.read("quality/composites.json"))
        listed = json.loads(package.read("datapackage.json"))["resources"]
    assert stated["schema"] == "recrawl-composites/1"
    assert stated["composites"]["resources"] == EXPECTED
    assert "quality/composites.json" in [one["path"] for one in listed]
