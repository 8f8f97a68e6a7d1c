"""``recrawl demo --archive``: WARC files of a past that is the same each time, and the site that goes on from there."""

from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from warcio.archiveiterator import ArchiveIterator

from recrawl.crawl.clock import RealClock
from recrawl_testweb.demo.demo_archive import DemoArchive, town

PORT = 19_871


def contents(folder: Path) -> list[tuple[str, float, bytes]]:
    """URL, time and body of every capture, as an independent reader has them."""
    found = []
    for path in sorted(folder.glob("*.warc.gz")):
        with path.open("rb") as file:
            found += [
                (
                    record.rec_headers.get_header("WARC-Target-URI"),
                    datetime.fromisoformat(record.rec_headers.get_header("WARC-Date")).timestamp(),
                    record.content_stream().read(),
                )
                for record in ArchiveIterator(file)
                if record.rec_type == "response"
            ]
    return found


def test_the_same_numbers_make_the_same_past_and_it_is_that_of_the_site(run, tmp_path):
    for name in ("one", "two"):
        result = run("demo", "--archive", name, "--pages", "13", "--years", "1", "--port", PORT)
        assert result.returncode == 0, result.stderr
        assert "in 4 WARC files" in result.stdout
    found = contents(tmp_path / "one")
    assert found == contents(tmp_path / "two")
    assert len({url for url, _, _ in found}) >= 10
    asked = DemoArchive(13, 1, 1, PORT)
    web = town(asked, RealClock().now())
    numbers = {web.url(page, PORT): page for page in range(13)}
    page = np.array([numbers[url] for url, _, _ in found])
    version = web.version(page, np.array([time for _, time, _ in found]))
    # Copies of a page are equal exactly where its version is.
    bodies = {}
    for where, number, (_, _, body) in zip(page.tolist(), version.tolist(), found, strict=True):
        assert bodies.setdefault((where, number), body) == body
    assert len(set(bodies.values())) == len(bodies)


def test_what_lies_there_is_used_again_or_left_alone(run, tmp_path):
    order = ("demo", "--archive", "old", "--pages", "7", "--years", "1", "--port", PORT)
    assert run(*order).returncode == 0
    before = sorted(path.name for path in (tmp_path / "old").iterdir())
    assert run(*order).returncode == 0
    assert sorted(path.name for path in (tmp_path / "old").iterdir()) == before
    other = run(*order, "--seed", "2")
    assert (other.returncode, "other numbers" in other.stderr) == (4, True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").touch()
    refused = run("demo", "--archive", "mine", "--pages", "7", "--years", "1")
    assert (refused.returncode, "not empty" in refused.stderr) == (4, True)


@pytest.mark.parametrize(("more", "why"), [(("--port", "0"), "--port"), (("--years", "90"), "--years")])
def test_what_cannot_be_is_said(run, more, why):
    result = run("demo", "--archive", "old", *more)
    assert (result.returncode, why in result.stderr) == (4, True)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (("--years", "3"), "Add --archive FOLDER."),
        (("--serve", "--years", "3"), "Add --archive FOLDER."),
        (("--port", "8000"), "Add --serve."),
        (("--truth", "truth.csv"), "Add --serve."),
        (("--archive", "old", "--data"), "Leave out --archive."),
        (("--archive", "old", "--serve", "--truth", "truth.csv"), "Leave out --archive."),
    ],
)
def test_options_that_would_do_nothing_are_refused(run, tmp_path, options, remedy):
    result = run("demo", *options)
    assert (result.returncode, remedy in result.stderr) == (4, True)
    assert list(tmp_path.iterdir()) == []
