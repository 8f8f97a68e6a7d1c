"""Short rounds of the fuzzers in ``fuzz/``, the same every time. These run for as long as you like."""

import asyncio
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[2] / "fuzz"


@pytest.fixture(autouse=True)
def fuzzers(monkeypatch):
    monkeypatch.syspath_prepend(str(FUZZ))
    yield
    for name in ("files", "answers", "mutate"):
        sys.modules.pop(name, None)


@pytest.mark.slow
def test_changed_files_never_break_an_importer():
    import files

    assert files.run(files.parsed(["--cases", "520", "--seed", "21"])) == []


@pytest.mark.slow
def test_changed_answers_never_break_a_crawl(tmp_path):
    import answers

    words = ["--answers", "250", "--seed", "21", "--hosts", "120", "--round", "15", "--found", str(tmp_path)]
    assert asyncio.run(answers.run(answers.parsed(words))) == []


def test_a_case_is_the_same_every_time():
    import files
    from mutate import FILES

    for number in range(260):
        assert files.case_of(5, number, FILES, "") == files.case_of(5, number, FILES, "")
