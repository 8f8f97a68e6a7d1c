"""What the dashboard began ends with it, also if it is killed."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from recrawl.app.workspace.workspace import make_workspace

PATIENCE = 120.0

SURVEYS = """
import sys
from recrawl.web.dashboard import plan_survey
from recrawl.app.workspace.workspace import open_workspace
from pathlib import Path
plan_survey.__name__ = "hanging_survey"
plan_survey.SurveyProcess(open_workspace(Path(sys.argv[1]), {})).survey(0.0)
"""
HANGING = """
import os, sys
from pathlib import Path
from recrawl.web.dashboard import plan_survey
def hangs(*_):
    Path(sys.argv[3], "pid").write_text(str(os.getpid()))
    while True:
        sum(range(10_000))
plan_survey.survey_of = hangs
plan_survey.main(*sys.argv[1:])
"""
VERBS = """
import sys
from recrawl.web.dashboard.child_processes import CommandProcess
child = CommandProcess(["demo", "--serve", "--port=0", "--pages=6"], 0.0)
print(child._process.pid, flush=True)
sys.stdin.read()
"""


def wait_until(is_so):
    pause, waited = threading.Event(), 0.0
    while not is_so():
        assert waited < PATIENCE
        pause.wait(0.02)
        waited += 0.02


def is_over(pid):
    """Whether a process has ended; who nobody waits for may stay as a name only."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False, text=True)
    return done.stdout.strip()[:1] in {"", "Z"}


@pytest.fixture
def begun():
    """Starts Python code as a process, which is killed in the end at the latest."""
    processes = []

    def begin(code, *arguments, **options):
        command = [sys.executable, "-c", code, *map(str, arguments)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def test_a_survey_ends_with_the_dashboard_that_was_killed(begun, tmp_path):
    workspace = make_workspace(tmp_path / "w", {}).folder
    (tmp_path / "hanging_survey.py").write_text(HANGING)
    parent = begun(SURVEYS, workspace, cwd=tmp_path)
    told = workspace / "pid"
    wait_until(lambda: told.is_file() and told.read_text())
    child = int(told.read_text())
    assert not is_over(child)
    parent.send_signal(signal.SIGKILL)
    wait_until(lambda: is_over(child))


def test_a_verb_ends_with_the_dashboard_that_was_killed(begun):
    parent = begun(VERBS)
    child = int(parent.stdout.readline())
    assert not is_over(child)
    parent.send_signal(signal.SIGKILL)
    wait_until(lambda: is_over(child))
