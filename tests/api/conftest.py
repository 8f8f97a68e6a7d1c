"""A small archive, and the commands beside the Python API."""

import json
import sys

import pytest

from recrawl.cli.main import main
from recrawl.time import DAY, to_timestamp14

START = 1_700_000_000.0
VERSIONS = {"": "AAAABBBB", "news/1": "ABCDEFGH", "news/2": "AABBCCDD", "about": "AAAAAAAA"}


@pytest.fixture
def say(monkeypatch, capsys):
    """What a command prints as JSON, without its provenance, or as text if that is no JSON."""

    def run(*arguments: str):
        monkeypatch.setattr(sys, "argv", ["recrawl", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as done:
            main()
        said = capsys.readouterr()
        assert not done.value.code, said.err
        if "--json" not in arguments:
            return said.out
        found = json.loads(said.out)
        if isinstance(found, dict):
            found.pop("provenance", None)
        return found

    return run


def weekly_index(pages: dict[str, str]) -> str:
    """A CDX index of weekly crawls: of each page its versions, a letter each."""
    lines = [" CDX N b a m s k r M S V g"]
    for place, (path, versions) in enumerate(pages.items()):
        for week, version in enumerate(versions):
            time = to_timestamp14(START + week * 7 * DAY + place * 60)
            lines.append(
                f"org,site)/{path} {time} http://site.org/{path} text/html 200 {version * 32} - - 100 0 a.warc.gz"
            )
    return "\n".join([*lines, ""])


@pytest.fixture
def index_of():
    """A function that makes the text of a CDX index."""
    return weekly_index


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with an index of eight weekly crawls, in which we stand."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crawls").mkdir()
    (tmp_path / "crawls" / "site.cdx").write_text(weekly_index(VERSIONS), encoding="utf-8")
    return tmp_path
