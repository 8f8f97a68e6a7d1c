"""``recrawl demo``, small, as a user runs it."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SMALL = ["--pages", "15", "--days", "3", "--budget", "60"]
TINY = ["--pages", "6", "--days", "1", "--budget", "20/day"]


def recrawl(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "recrawl", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("demo")
    run = recrawl("demo", *SMALL, cwd=place)
    assert run.returncode == 0, run.stderr
    (place / "said.txt").write_text(run.stderr, encoding="utf-8")
    return place, run.stdout


def test_it_says_what_was_done_and_what_was_so(made):
    _, out = made
    for words in ("pages found", "changes of the pages", "not observable", "freshness", "error of estimated rates"):
        assert words in out


def test_it_tells_how_far_it_is_where_there_is_no_terminal(made):
    place, _ = made
    said = (place / "said.txt").read_text(encoding="utf-8").splitlines()
    assert said[0].startswith("Crawling a test web of 15 pages for 3 days of virtual time.")
    for what in ("recrawl", "uniform revisits"):
        assert f"{what}: getting ready (the first start takes longest)" in said
        days = [line for line in said if line.startswith(f"{what}: day ")]
        assert len(days) > 3
        assert " 3 of 3, " in days[-1]
    assert "Capturing the site news …" in said
    assert said[-2:] == ["Drawing the plot …", "Writing the report …"]


def test_it_prints_true_and_estimated_rates_side_by_side(made):
    _, out = made
    table = out.partition("Time between changes of some pages")[2].partition("Plot:")[0]
    assert table.count("about every ") == 8
    for host in ("data", "office", "news"):
        assert f"\n   {host} " in out


def test_it_leaves_a_workspace_with_a_picture_and_archive_files(made):
    place, _ = made
    folder = place / "recrawl-demo"
    assert (folder / "reports" / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert {"recrawl.yaml", "recrawl.db", "recrawl.log", "warc"} <= {path.name for path in folder.iterdir()}
    assert [path for path in (folder / "warc").iterdir() if path.name.endswith(".warc.gz")]


def test_it_ends_with_a_report_and_names_it(made):
    place, out = made
    named = out.partition("Report: ")[2].splitlines()[0]
    text = (place / named).read_text("utf-8")
    assert "Contents" in text
    assert "living.test" in text


def test_it_captures_a_site_whole_and_tells_the_truth_about_that(made):
    place, out = made
    words = " ".join(out.partition("A day later ")[2].partition("Report: ")[0].split())
    shown = json.loads(recrawl("capture", "show", "1", "--json", "-w", "recrawl-demo", cwd=place).stdout)
    quality = shown["quality"]
    pages, coherent = quality["pages"], quality["coherence"]["coherent"]
    assert shown["site"].startswith("http://news.living.test")
    assert words.startswith("the site news was captured in ")
    assert f": {pages} pages, 1 of them new and ordered by the change rates of neighbouring pages. " in words
    assert f"{coherent} pages ({coherent / pages:.0%}) are coherent, that is unchanged from visit to revisit" in words
    claimed = re.search(r"True for (\d+) of (\d+) pages\.$", words)
    assert claimed
    assert 0 < int(claimed[1]) <= int(claimed[2]) <= coherent
    report = (place / "recrawl-demo" / "reports" / "report.html").read_text("utf-8")
    assert "Capture 1 of http://news.living.test" in report


def test_the_commands_it_names_work(made):
    place, out = made
    named = [line.partition("recrawl ")[2].split() for line in out.splitlines() if " -w recrawl-demo" in line]
    assert [arguments[0] for arguments in named] == ["status", "list", "rates", "plan", "capture", "compare", "serve"]
    for arguments in named[:-1]:  # the last one serves until somebody ends it
        quicker = ("--repeats", "1", "--jobs", "1", "--policy", "nutch") if arguments[0] == "compare" else ()
        run = recrawl(*arguments, *quicker, cwd=place)
        assert run.returncode == 0, run.stderr
        assert run.stdout.strip()


def test_the_workspace_knows_the_visits(made):
    place, _ = made
    run = recrawl("status", "-w", "recrawl-demo", "--json", cwd=place)
    status = json.loads(run.stdout)
    status = status[0] if isinstance(status, list) else status
    assert status["visits"] > 60
    assert status["pages"] >= 14


def test_another_demo_replaces_the_first_and_nothing_else(made, tmp_path):
    place, _ = made
    shutil.copytree(place / "recrawl-demo", tmp_path / "recrawl-demo")
    (tmp_path / "recrawl-demo" / "left.txt").touch()
    again = recrawl("demo", *TINY, "--seed", "2", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "recrawl-demo" / "reports" / "report.html").is_file()
    assert not (tmp_path / "recrawl-demo" / "left.txt").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("do not touch")
    refused = recrawl("demo", *TINY, "--folder", "mine", cwd=tmp_path)
    assert refused.returncode == 4
    assert "--folder" in refused.stderr
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "do not touch"


def test_an_interrupted_demo_leaves_whole_archive_files(tmp_path):
    command = [sys.executable, "-m", "recrawl", "demo", "--pages", "15", "--folder", "left"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as demo:
        for line in demo.stderr:
            if re.match("recrawl: day [3-9]", line):
                demo.send_signal(signal.SIGTERM)
                break
        demo.stderr.read()
    assert demo.returncode == 11
    [file] = (tmp_path / "left" / "warc").iterdir()
    assert file.name.endswith(".warc.gz")
    checked = recrawl("verify", "-w", "left", "--json", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout
    assessed = recrawl("assess", "-w", "left", cwd=tmp_path)
    assert "no bytes of a captured page can be read" not in assessed.stdout
