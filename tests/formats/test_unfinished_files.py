"""Files appear complete or not at all; what killed processes leave is removed by the next that writes there."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from recrawl.errors import InputError
from recrawl.formats.atomic_files import PART, complete_file, remove_abandoned, scratch_folder, unfinished_file

WRITES = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where background jobs ignore it
from recrawl.formats.atomic_files import complete_file, scratch_folder
folder = Path(sys.argv[1])
with complete_file(folder / "out.wacz") as file, scratch_folder(folder) as scratch:
    file.write(b"half of it")
    file.flush()
    (scratch / "copy.warc.gz").write_bytes(b"a copy")
    print("writing", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def writing(tmp_path):
    """A process in the middle of writing into the folder."""
    command = [sys.executable, "-c", WRITES, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "writing\n"
        yield process
        if process.poll() is None:
            process.kill()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_a_killed_process_left_is_removed_and_what_another_writes_is_not(tmp_path, writing):
    """Also large copies in folders of the moment; and a file that only looks like ours stays."""
    others = [".mine.part", "out.wacz.part", f"no-dot{PART}"]
    for name in others:
        (tmp_path / name).write_bytes(b"of somebody else")
    left = [name for name in names(tmp_path) if name not in others]
    assert len(left) == 2
    assert all(name.startswith(".") and name.endswith(PART) for name in left)
    assert remove_abandoned(tmp_path) == []  # it is still at work
    assert [name for name in names(tmp_path) if name not in others] == left
    writing.send_signal(signal.SIGKILL)
    writing.wait()
    with complete_file(tmp_path / "other.csv") as file:
        file.write(b"whole")
    assert names(tmp_path) == sorted([*others, "other.csv"])


def test_an_interrupt_leaves_nothing_behind(tmp_path, writing):
    writing.send_signal(signal.SIGINT)
    writing.wait()
    assert names(tmp_path) == []


def test_what_fails_leaves_the_file_that_was_there(tmp_path):
    target = tmp_path / "a.txt"
    target.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError), complete_file(target) as file:
        file.write(b"a" * (1 // 0))
    assert (names(tmp_path), target.read_bytes()) == (["a.txt"], b"before")
    with complete_file(target) as file:
        file.write(b"after")
        assert target.read_bytes() == b"before"
    assert (names(tmp_path), target.read_bytes()) == (["a.txt"], b"after")
    with pytest.raises(InputError, match="cannot be written"), complete_file(tmp_path / "no" / "folder"):
        pass


def test_a_folder_of_the_moment_that_was_never_locked_is_removed_only_if_it_is_empty(tmp_path):
    (tmp_path / f".empty{PART}").mkdir()
    (tmp_path / f".full{PART}").mkdir()
    (tmp_path / f".full{PART}" / "something").write_bytes(b"of somebody else")
    (tmp_path / f".link{PART}").symlink_to(tmp_path / "elsewhere")
    assert remove_abandoned(tmp_path) == [f".empty{PART}"]
    assert remove_abandoned(tmp_path / "nowhere") == []
    with scratch_folder(tmp_path) as folder:
        (folder / "copy").write_bytes(b"x")
        assert remove_abandoned(tmp_path) == []
    assert not folder.exists()


def test_writers_and_cleaners_at_once_do_each_other_no_harm(tmp_path):
    """Each of many writers ends with its own file, whoever looks for abandoned ones meanwhile."""
    over = threading.Event()

    def clean():
        while not over.is_set():
            remove_abandoned(tmp_path)

    cleaner = threading.Thread(target=clean)
    cleaner.start()

    def write(number):
        for round_ in range(20):
            with complete_file(tmp_path / f"{number}.txt") as file:
                file.write(b"%d" % round_)
            with scratch_folder(tmp_path) as folder:
                (folder / "x").write_bytes(b"x")

    try:
        with ThreadPoolExecutor(8) as together:
            list(together.map(write, range(8)))
    finally:
        over.set()
        cleaner.join()
    assert names(tmp_path) == sorted(f"{number}.txt" for number in range(8))
    assert {(tmp_path / name).read_bytes() for name in names(tmp_path)} == {b"19"}


def test_an_unfinished_file_may_be_written_by_its_name_and_renamed_elsewhere(tmp_path):
    with unfinished_file(tmp_path / "a.parquet") as part:
        part.write_bytes(b"columns")
        part.replace(tmp_path / "b.parquet")
    assert names(tmp_path) == ["b.parquet"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_an_export_that_is_ended_in_the_middle_leaves_nothing_for_ever(tmp_path, number):
    """The real command, ended where all is written and nothing done; the next one removes what it left."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RECRAWL_")}  # noqa: TID251 - a child's

    def recrawl(*words):
        command = [sys.executable, "-m", "recrawl", *words]
        return subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def done(*words):
        process = recrawl(*words)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors

    done("init", "ws")
    done("add", "-w", "ws", *(f"http://example.org/{page}" for page in range(200)))
    (tmp_path / "out").mkdir()
    hook = tmp_path / "sitecustomize.py"
    hook.write_text("import os, time\nfsync = os.fsync\nos.fsync = lambda file: (time.sleep(600), fsync(file))\n")
    environment["PYTHONPATH"] = str(tmp_path)  # it stops where all is written and nothing is done
    export = ("export", "-w", "ws", "--what", "seeds", "out/{}")
    process = recrawl(*(word.format("seeds.txt") for word in export))
    end = time.monotonic() + 300  # noqa: TID251 - a real process, real time
    while not names(tmp_path / "out") and process.poll() is None:
        assert time.monotonic() < end  # noqa: TID251 - a real process, real time
        time.sleep(0.02)
    assert process.poll() is None, process.communicate()
    process.send_signal(number)
    process.communicate(timeout=300)
    assert "seeds.txt" not in names(tmp_path / "out")
    del environment["PYTHONPATH"]
    done(*(word.format("others.txt") for word in export))
    assert names(tmp_path / "out") == ["others.txt"]
