"""The line that tells how a run goes."""

import math

import pytest

from recrawl.app.crawl_run import RunCounts, every, together
from recrawl.app.progress import bar, line, show_progress
from recrawl.cli.operate.run_display import display, getting_ready, sentence
from recrawl.cli.progress_bars import TerminalProgress
from recrawl.crawl.control.metrics import CrawlStats
from recrawl.time import HOUR


def stats(**changes) -> CrawlStats:
    calm = {
        "now": 0.0,
        "underway": 0,
        "in_hand": 0,
        "due": 0,
        "held": 0,
        "late": 0.0,
        "next_due": math.inf,
        "hosts_resting": 0,
        "workers": 1,
        "first": True,
        "budget": 1 / 90,
        "left": 5.0,
        "price": None,
        "paused": False,
        "fits": 1,
        "archived": 0,
        "events": {},
    }
    return CrawlStats(**(calm | changes))


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (stats(next_due=3600.0), "next due 1970-01-01 01:00"),
        (stats(), "next due never"),
        (stats(due=40), "40 due"),
        (stats(due=40, late=120.0), "40 due, late by 2 min"),
        (stats(due=40, held=10), "40 due (10 on paused hosts)"),
        (stats(due=40, left=0.3), "40 due; the budget is spent, one visit every 1.5 min"),
        (stats(due=40, left=0.0, budget=0.0), "40 due; the budget is spent, and it is 0"),
        (stats(due=40, paused=True), "paused, 40 due"),
    ],
)
def test_one_line_says_what_waits_and_why(seen, words):
    line = sentence(RunCounts(1200, 31, 2), seen, math.inf)
    assert line == f"1,200 visits, 31 changed, 2 failed, 0.0/s; {words}"
    assert sentence(RunCounts(), seen, HOUR).endswith("; 1 h left")


def test_no_time_is_left_after_the_end():
    assert sentence(RunCounts(), stats(now=2 * HOUR), HOUR).endswith("; 0 s left")


def test_what_is_due_is_done_after_a_time_that_follows_from_the_pace():
    tally = RunCounts()
    sentence(tally, stats(due=40), math.inf)
    tally.visits = 20
    assert sentence(tally, stats(now=10.0, due=40), math.inf).endswith("2.0/s; 40 due, done in 20 s")


def test_it_is_shown_as_often_as_it_should_be():
    shown: list[str] = []
    told = together(
        every(5.0, lambda: shown.append("at once")), every(5.0, lambda: shown.append("later"), at_once=False)
    )
    for now in range(12):
        told(float(now))
    assert shown.count("at once") == 3
    assert shown.count("later") == 2


def test_where_there_is_no_terminal_a_line_comes_every_few_minutes(capsys):
    with display(RunCounts(), math.inf, lambda: stats(now=400.0, due=3)) as show:
        for now in range(0, 1000, 10):
            show(float(now))
    assert capsys.readouterr().err.splitlines() == ["1970-01-01 00:06 0 visits, 0 changed, 0 failed, 0.0/s; 3 due"] * 3


def test_where_there_is_no_terminal_a_line_tells_the_pace_since_the_line_before(capsys):
    tally, time = RunCounts(), 0.0
    with display(tally, math.inf, lambda: stats(now=time, due=600)) as show:
        while time <= 900.0:
            show(time)
            time += 10.0
            tally.visits += 20 if time <= 300.0 else 50
    told = [line.partition("failed, ")[2] for line in capsys.readouterr().err.splitlines()]
    assert told == ["2.0/s; 600 due, done in 5 min", "5.0/s; 600 due, done in 2 min", "5.0/s; 600 due, done in 2 min"]


def test_the_pace_is_that_of_the_last_minute():
    tally = RunCounts()
    for second in range(200):
        tally.visits += 1 if second < 100 else 3
        pace = tally.rate(float(second))
    assert pace == pytest.approx(3.0)
    assert len(tally._recent) <= 62


def test_on_a_terminal_a_person_sees_what_is_waited_for(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # to rich that is a terminal
    show_progress(TerminalProgress())
    with getting_ready() as ready:
        ready.tell("reading visits")
        ready.stop()
    with bar("nights", 2) as advance:
        advance()
    with line("Estimating rates"):
        pass
    told = capsys.readouterr()
    assert all(words in told.err for words in ("Starting", "reading visits", "nights", "1/2", "Estimating rates"))
    assert not told.out


def test_where_there_is_no_terminal_the_wait_is_silent(capsys):
    with getting_ready() as ready, bar("nights", 2) as advance:
        ready.tell("reading visits")
        ready.stop()
        advance()
    assert capsys.readouterr() == ("", "")
