"""Tasks in several processes."""

import multiprocessing
import os
import subprocess
import sys
import time
from functools import partial

import pytest

from recrawl.app.compare.benchmark_runs import results, run_tasks


def test_whoever_waits_hears_of_a_task_that_is_done_before_an_earlier_one(tmp_path):
    """The first task ends only after the second was told to have ended."""
    sign = tmp_path / "told"
    wait = ["sh", "-c", 'until [ -e "$0" ]; do sleep 0.1; done; echo slow', str(sign)]
    slow = partial(subprocess.check_output, wait, timeout=60)
    assert list(results([slow, partial(str.upper, "quick")], 2, sign.touch)) == [b"slow\n", "QUICK"]


def test_every_task_is_told_of_once_in_one_process_too():
    told = []
    tasks = [partial(str.upper, letter) for letter in "abc"]
    assert list(results(tasks, 1, lambda: told.append(1))) == ["A", "B", "C"]
    assert run_tasks(tasks, what="letters", jobs=2) == ["A", "B", "C"]
    assert len(told) == 3


SCRIPT = """
import os, time
from functools import partial
from recrawl.app.compare.benchmark_runs import results
if __name__ == "__main__":
    {}
    os._exit(0)
"""


def start(folder, work):
    """A program that makes use of processes. Its pipes end when all of them have ended."""
    script = folder / "program.py"
    script.write_text(SCRIPT.format(work))
    return subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_nothing_is_left_behind_when_all_is_done(tmp_path):
    """A command may exit at once then, without the clean-up of the interpreter."""
    with start(tmp_path, "print(list(results([partial(abs, -n) for n in range(4)], 2, str)), flush=True)") as program:
        assert program.communicate(timeout=60) == ("[0, 1, 2, 3]\n", "")


def test_processes_end_with_a_parent_that_was_killed(tmp_path):
    tasks = "[partial(os.write, 1, b'begun\\n'), *[partial(time.sleep, 600)] * 2]"
    with start(tmp_path, f"list(results({tasks}, 2, str))") as program:
        assert program.stdout.readline() == "begun\n"
        program.kill()
        program.communicate(timeout=60)


def test_a_task_that_fails_ends_the_others():
    with pytest.raises(ZeroDivisionError):
        list(results([partial(divmod, 1, 0), *[partial(time.sleep, 600)] * 3], 2, os.getpid))
    assert not multiprocessing.active_children()
