"""Run the command line as users do: in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

Result = subprocess.CompletedProcess[str]


@pytest.fixture
def run(tmp_path) -> Callable[..., Result]:
    """``run("add", url)`` runs ``recrawl add url`` in a folder of its own; keyword ``env`` adds variables."""

    def run_recrawl(*arguments: object, env: dict[str, str] | None = None) -> Result:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECRAWL_")}  # noqa: TID251 - a child's environment
        return subprocess.run(
            [sys.executable, "-m", "recrawl", *map(str, arguments)],
            cwd=tmp_path,
            env=inherited | {"COLUMNS": "120"} | (env or {}),
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run_recrawl


@pytest.fixture
def workspace(run, tmp_path):
    """A new workspace."""
    assert run("init", "ws").returncode == 0
    return tmp_path / "ws"
