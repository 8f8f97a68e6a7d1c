"""Logs that are put aside, by us or by others, and lose no line."""

import io
import json
import subprocess
import sys

from recrawl.crawl.control.json_log import LEVELS, JsonLinesLog, LogFile
from recrawl.time import VirtualClock


def lines(folder) -> list[str]:
    return sorted(line for file in folder.iterdir() for line in file.read_text().splitlines())


def test_a_log_that_is_large_begins_anew_and_keeps_what_there_was(tmp_path):
    path, clock = tmp_path / "recrawl.log", VirtualClock(1.5e9)
    written = [f"line {number:03}" for number in range(50)]
    with LogFile(path, clock, most=100) as log:
        for line in written:
            log.write(line + "\n")
            log.flush()
    assert lines(tmp_path) == written
    assert len(list(tmp_path.iterdir())) == 5
    assert all(file.stat().st_size < 100 + 10 for file in tmp_path.iterdir())
    assert (tmp_path / "recrawl.log.20170714T024000Z-1").exists()


def test_two_who_write_one_log_follow_it_when_one_puts_it_aside(tmp_path):
    path, clock = tmp_path / "recrawl.log", VirtualClock(1.5e9)
    with LogFile(path, clock, most=60) as first, LogFile(path, clock) as second:
        for number in range(30):
            for log, name in ((first, "first"), (second, "second")):
                log.write(f"{name} {number:02}\n")
                log.flush()
    expected = sorted(f"{name} {number:02}" for name in ("first", "second") for number in range(30))
    assert lines(tmp_path) == expected


WRITER = """
import sys
from pathlib import Path
from recrawl.crawl.control.json_log import LogFile
from recrawl.time import VirtualClock

with LogFile(Path(sys.argv[1]), VirtualClock(1.5e9), most=500) as log:
    sys.stdin.read()
    for number in range(int(sys.argv[3])):
        log.write(f"{sys.argv[2]} {number:05}\\n")
        log.flush()
"""


def test_processes_that_put_one_log_aside_at_the_same_moment_lose_no_line(tmp_path):
    names, count = "abcd", 4000
    orders = ([sys.executable, "-c", WRITER, str(tmp_path / "recrawl.log"), name, str(count)] for name in names)
    writers = [subprocess.Popen(order, stdin=subprocess.PIPE) for order in orders]
    for writer in writers:
        writer.stdin.close()
    assert [writer.wait() for writer in writers] == [0] * len(names)
    assert lines(tmp_path) == [f"{name} {number:05}" for name in names for number in range(count)]


def test_a_log_that_somebody_moves_is_begun_anew_where_it_was(tmp_path):
    path = tmp_path / "recrawl.log"
    with LogFile(path, VirtualClock()) as log:
        log.write("before\n")
        log.flush()
        path.rename(tmp_path / "recrawl.log.1")
        log.write("during\n")
        log.flush()
        log.write("after\n")
        log.flush()
    assert (tmp_path / "recrawl.log.1").read_text() == "before\nduring\n"
    assert path.read_text() == "after\n"


def test_events_that_matter_less_are_counted_and_not_written():
    stream = io.StringIO()
    log = JsonLinesLog(stream, VirtualClock(), level="warn")
    for level in LEVELS:
        log.event("fetch", "something", level=level)
    assert [json.loads(line)["logLevel"] for line in stream.getvalue().splitlines()] == ["warn", "error", "fatal"]
    assert log.counts == dict.fromkeys(LEVELS, 1)
