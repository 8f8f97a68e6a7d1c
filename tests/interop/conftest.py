"""Outside programs that check our archives, as real processes on loopback."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recrawl.cli.main import main

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
"""Benchmarks are commands, and import each other by name as Python does for scripts."""
sys.path.append(str(Path(__file__).resolve().parent))
"""Tests of a shared server use the same site and starter."""
BIN = Path(sys.executable).parent
COLLECTION = "judged"
_START_TRIES = 600
"""A tenth of a second each."""


def run_tool(name: str, *arguments: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of an outside program to its end."""
    command = [str(BIN / name), *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


def run_verb(*arguments: object) -> None:
    """Run a verb to its good end; in this process, where the libraries are loaded already."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["recrawl", *map(str, arguments)])
        with pytest.raises(SystemExit) as done:
            main()
    assert done.value.code == 0


@pytest.fixture(scope="session")
def recrawl() -> Callable[..., None]:
    """``recrawl("verb", …)`` runs a verb."""
    return run_verb


@pytest.fixture(scope="session")
def tool() -> Callable[..., subprocess.CompletedProcess[str]]:
    """``tool(name, *arguments, folder=None)`` runs a command of an outside program, such as ``warcio`` or ``wacz``."""
    return run_tool


@pytest.fixture(scope="session")
def pywb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], str]]:
    """``pywb(folder)`` starts a real pywb on all WARC and ARC files below a folder; the base URL of the collection.

    The index is pywb's own. Below the base URL are ``/20240101000000id_/URL``, ``/cdx?url=URL`` and
    ``/timemap/link/URL``. The same folder is served by the same process; all end with the session.
    """
    with contextlib.ExitStack() as servers:
        started: dict[Path, str] = {}

        def serve(folder: Path) -> str:
            if folder not in started:
                root = tmp_path_factory.mktemp("pywb")
                _collect(root, folder)
                started[folder] = servers.enter_context(_wayback(root))
            return started[folder]

        yield serve


@pytest.fixture(scope="session")
def wayback() -> Callable[[Path], contextlib.AbstractContextManager[str]]:
    """``with wayback(root) as base`` runs pywb in a folder that holds its settings or a collection named ``judged``."""
    return _wayback


def _collect(root: Path, folder: Path) -> None:
    """Let pywb make a collection of the files, with the index it makes itself."""
    files = sorted(path for path in folder.rglob("*") if ".warc" in path.name or ".arc" in path.name)
    assert files, f"no archive files in {folder}"
    for arguments in (("init", COLLECTION), ("add", COLLECTION, *files)):
        done = run_tool("wb-manager", *arguments, folder=root)
        assert done.returncode == 0, done.stdout + done.stderr


@contextlib.contextmanager
def _wayback(root: Path) -> Iterator[str]:
    """A pywb process on a free port, ready to answer."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = root / "wayback.log"
    with log.open("wb") as output:
        command = [str(BIN / "wayback"), "-b", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(command, cwd=root, stdout=output, stderr=output)
        try:
            _await(process, f"http://127.0.0.1:{port}/", log)
            yield f"http://127.0.0.1:{port}/{COLLECTION}"
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    for _ in range(_START_TRIES):
        assert process.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(url, timeout=60).close()
        except urllib.error.HTTPError as answer:
            answer.close()
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"pywb does not answer:\n{log.read_text()}")
