"""Tasks in several processes."""

import subprocess
from functools import partial

from recrawl.cli.tasks import results, run_tasks


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
