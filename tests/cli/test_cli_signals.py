"""A first SIGTERM or Ctrl-C ends every command cleanly, while it loads, gets ready, compiles kernels or waits."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from subprocess import PIPE

import pytest

from recrawl.errors import ExitCode
from recrawl.store.open import open_store
from recrawl.time import to_iso

PATIENCE = 150.0
"""Seconds until a test gives up on a process."""
MANY = 2_500
"""Pages for which a fit process is started."""
SETTINGS = ("--set", "fetch.contact=me@example.org", "--set", "fetch.allow_networks=127.0.0.1")
CHILDREN = Path("/proc/self/task") / str(os.getpid()) / "children"


def interrupted_at(module, number, arguments):
    """What comes of a command that gets a signal when it begins to import a module."""
    code = f"""
        import builtins, os, sys
        load = builtins.__import__
        def hooked(name, *rest, **more):
            if name.partition(".")[0] == {module!r} and not sent:
                sent.append(name)
                os.kill(os.getpid(), {int(number)})
            return load(name, *rest, **more)
        sent = []
        builtins.__import__ = hooked
        sys.argv = {["recrawl", *map(str, arguments)]!r}
        from recrawl.cli.entry import main
        main()
    """
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=False, capture_output=True, text=True, timeout=PATIENCE
    )


@pytest.fixture
def pages(workspace):
    """A workspace with pages that nobody answers for."""
    with open_store(workspace / "recrawl.db", durable=False) as store:
        store.discover([f"http://127.0.0.1:9/{number}" for number in range(MANY)], 1.79e9)
    return workspace


@pytest.mark.parametrize(
    ("module", "number"),
    [
        ("typer", signal.SIGTERM),
        ("typer", signal.SIGINT),
        ("numpy", signal.SIGTERM),
        ("apsw", signal.SIGTERM),
        ("pycurl", signal.SIGTERM),
        ("numba", signal.SIGTERM),
    ],
)
def test_a_run_that_is_loading_ends_as_interrupted(pages, module, number):
    done = interrupted_at(module, number, ["run", "-w", pages, *SETTINGS])
    assert done.returncode == ExitCode.INTERRUPTED, done.stderr
    assert "Traceback" not in done.stderr
    [last] = done.stdout.splitlines()
    known, unknown = f", {MANY:,} pages due.", "; how many pages are due is not known."
    assert last.startswith("Ended before the first visit because it was told to stop")
    assert last.endswith((known, unknown))


@pytest.mark.parametrize(
    "command",
    [
        ["serve", "--port", "0"],
        ["export", "out.parquet"],
        ["import", __file__],
        ["capture", "http://127.0.0.1:9/"],
        ["status"],
    ],
    ids=lambda command: command[0],
)
def test_other_commands_that_are_loading_end_as_interrupted(workspace, command):
    done = interrupted_at("apsw", signal.SIGTERM, [command[0], "-w", workspace, *command[1:]])
    assert done.returncode == ExitCode.INTERRUPTED, done.stderr
    assert "Traceback" not in done.stderr
    assert "Ended before" not in done.stdout


def events(workspace, message):
    log = workspace / "recrawl.log"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [event for event in map(json.loads, lines) if event["message"] == message]


def eventually(condition, process):
    """What a condition gives once it gives something; the process must not end before."""
    for _ in range(int(PATIENCE / 0.01)):
        if found := condition():
            return found
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    pytest.fail("waited in vain")


def fit_process_of(process):
    """The number of the fit process of a run, if it has one."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
    for child in children:
        if b"fit_process" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    return None


def started(workspace, *options, **environment):
    command = [sys.executable, "-m", "recrawl", "run", "-w", str(workspace), *SETTINGS, *options]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECRAWL_")}  # noqa: TID251 - a child's
    return subprocess.Popen(command, env=inherited | environment, stdout=PIPE, stderr=PIPE, text=True)


@pytest.mark.skipif(not CHILDREN.exists(), reason="this system does not tell the children of a process")
def test_a_run_whose_first_fit_takes_for_ever_stops_when_it_is_told_to(pages):
    with started(pages) as process:
        fit = eventually(lambda: fit_process_of(process), process)
        os.kill(fit, signal.SIGSTOP)
        process.send_signal(signal.SIGTERM)
        told, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == ExitCode.INTERRUPTED, said
    assert told.endswith(f"Ended before the first visit because it was told to stop, {MANY:,} pages due.\n")
    assert not events(pages, "policy fitted")
    assert not Path(f"/proc/{fit}").exists()


@pytest.mark.skipif(not CHILDREN.exists(), reason="this system does not tell the children of a process")
@pytest.mark.parametrize("option", ["--until", "--for"])
def test_a_run_whose_first_fit_takes_for_ever_ends_when_it_was_to_end(pages, option):
    end = to_iso(time.time() + 6.0) if option == "--until" else "6s"  # noqa: TID251 - as people would
    with started(pages, option, end) as process:
        while process.poll() is None and not (fit := fit_process_of(process)):
            time.sleep(0.01)
        if process.poll() is None:
            os.kill(fit, signal.SIGSTOP)
        told, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == ExitCode.OK, said
    assert "Ended before the first visit because its time is over" in told.splitlines()[-1]
    assert not events(pages, "policy fitted")


def test_the_time_of_a_run_counts_while_it_loads_and_compiles(pages, tmp_path):
    """Nobody loads and compiles everything in a quarter of a second."""
    cache = tmp_path / "cache"
    cache.mkdir()
    with started(pages, "--for", "250ms", NUMBA_CACHE_DIR=str(cache)) as process:
        told, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == ExitCode.OK, said
    [last] = told.splitlines()
    assert last.startswith("Ended before the first visit because its time is over")
    assert not any(cache.rglob("*.nbi")), "it compiled all the same"
    assert not events(pages, "policy fitted")


def test_a_run_that_compiles_its_kernels_stops_when_it_is_told_to(pages, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    with started(pages, NUMBA_CACHE_DIR=str(cache)) as process:
        eventually(lambda: any(cache.rglob("*.nbi")), process)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == ExitCode.INTERRUPTED, said
    assert not events(pages, "policy fitted")


def test_a_command_does_not_wait_for_threads_that_nobody_needs_any_more():
    code = """
        import sys, time
        from concurrent.futures import ThreadPoolExecutor
        ThreadPoolExecutor(1).submit(time.sleep, 100_000)  # as a name server that never answers
        sys.argv = ["recrawl", "--version"]
        from recrawl.cli.entry import main
        main()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False, timeout=PATIENCE)
    assert done.returncode == 0


def test_a_run_stops_though_nobody_reads_what_it_says(pages):
    with started(pages) as process:
        eventually(lambda: events(pages, "policy fitted"), process)
        process.stderr.close()
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
    assert process.returncode == ExitCode.INTERRUPTED
