"""The tutorial, followed: a site that really changes is served, crawled as it says, and then tells the truth."""

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from recrawl_testweb.demo.demo_serve import ORDERS

pytestmark = pytest.mark.slow

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "first-steps.md"
TRIES = 8
"""How often the crawl goes on for some seconds until all pages were looked at, some of them again."""


@pytest.fixture
def served(tmp_path):
    """``recrawl demo --serve`` in a process, and the commands that it says to try."""
    command = [sys.executable, "-m", "recrawl", "demo", "--serve", "--pages", "12", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        commands = []
        while "Ctrl-C" not in (line := process.stdout.readline()):
            assert process.poll() is None, process.stderr.read()
            if line.startswith("  "):
                commands.append(shlex.split(line.partition("recrawl ")[2]))
        yield process, commands
        if process.poll() is None:
            process.kill()


def looks_at_all(run, pages):
    """Whether so many pages were looked at, and some of them again: a busy machine may take its time."""
    visits = json.loads(run("list", "visits", "-w", "my-archive", "--json", "--limit", "1000").stdout)
    return len(visits) > len({visit["url"] for visit in visits}) == pages


def test_what_the_served_site_says_to_do_works_and_the_truth_is_told(served, run):
    process, commands = served
    assert [arguments[0] for arguments in commands] == ["init", "add", "run", "rates"]
    for arguments in commands:
        shorter = ["4s" if part == "2min" else part for part in arguments]
        result = run(*shorter)
        for _ in range(TRIES):
            if arguments[0] != "run" or looks_at_all(run, 12):
                break
            result = run(*shorter)
        assert result.returncode == 0, (shorter, result.stderr)
    assert "about every" in result.stdout
    visits = json.loads(run("list", "visits", "-w", "my-archive", "--json", "--limit", "1000").stdout)
    assert len({visit["url"] for visit in visits}) == 12
    assert {visit["outcome"] for visit in visits} <= {"fetched", "not modified"}
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "True changes of some pages" in out
    assert int(re.search(r"and ([\d,]+) requests", out)[1].replace(",", "")) > len(visits)


def test_the_tutorial_names_the_same_commands():
    text = TUTORIAL.read_text(encoding="utf-8")
    for order in ORDERS:
        words = order.format(home="http://127.0.0.1:8080/").split()
        assert f"uv run recrawl {words[0]} " in text
        assert all(word in text for word in words), order
