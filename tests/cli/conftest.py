"""Run the command line as users do.

``spawn`` starts a process; ``run`` calls the same entry point in this one, which saves the second that importing takes.
Both give exit code, standard output and standard error, in a folder of their own.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

from recrawl.cli.main import main

Result = subprocess.CompletedProcess[str]


@pytest.fixture
def spawn(tmp_path) -> Callable[..., Result]:
    """``spawn("add", url)`` runs ``recrawl add url`` in a process; keyword ``env`` adds variables."""

    def spawn_recrawl(*arguments: object, env: dict[str, str] | None = None) -> Result:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECRAWL_")}  # noqa: TID251 - a child's environment
        return subprocess.run(
            [sys.executable, "-m", "recrawl", *map(str, arguments)],
            cwd=tmp_path,
            env=inherited | (env or {}),
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return spawn_recrawl


@pytest.fixture
def run(tmp_path, monkeypatch, capsys) -> Callable[..., Result]:
    """The same without a process."""

    def run_recrawl(*arguments: object, env: dict[str, str] | None = None) -> Result:
        command = ["recrawl", *map(str, arguments)]
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            patch.setattr(sys, "argv", command)
            for name in [name for name in os.environ if name.startswith("RECRAWL_")]:  # noqa: TID251 - cleaned
                patch.delenv(name)
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            capsys.readouterr()
            with pytest.raises(SystemExit) as done:
                main()
        said = capsys.readouterr()
        return Result(command, int(done.value.code or 0), said.out, said.err)

    return run_recrawl


@pytest.fixture(scope="session")
def new_workspace(tmp_path_factory):
    """What ``recrawl init`` makes, to be copied."""
    folder = tmp_path_factory.mktemp("new") / "ws"
    subprocess.run([sys.executable, "-m", "recrawl", "init", str(folder)], check=True, capture_output=True)
    return folder


@pytest.fixture
def workspace(new_workspace, tmp_path):
    """A new workspace named ``ws``."""
    return shutil.copytree(new_workspace, tmp_path / "ws")
