"""The public Python API is typed: a program that uses it passes mypy, and mistakes in it do not."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def checked(file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(file)]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)


@pytest.mark.slow
def test_a_typed_program_passes_and_a_wrong_type_does_not(tmp_path):
    program = Path(__file__).with_name("public_api.py")
    done = checked(program)
    assert done.returncode == 0, done.stdout + done.stderr
    changed = tmp_path / "changed.py"
    text = program.read_text(encoding="utf-8")
    changed.write_text(text.replace("(archive.plan(), recrawl.Plan)", "(archive.plan(), recrawl.Rates)"), "utf-8")
    done = checked(changed)
    assert done.returncode == 1
    assert "assert-type" in done.stdout
