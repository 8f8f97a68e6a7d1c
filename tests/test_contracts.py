"""What may import what: the contracts hold, say what the design page says, and would catch a violation."""

import ast
import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "recrawl"
VOCABULARY = ("model", "time", "urls", "errors")
PURE = ("detect", "estimate", "predict", "schedule", "capture", "assess", "plan", "simulate")


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    """lint-imports in its own process, so that it sees the tree below ``root`` and not the modules of this one."""
    command = [
        sys.executable,
        "-c",
        "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))",
    ]
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}  # noqa: TID251 - inherited
    return subprocess.run(command, cwd=root, env=environment, check=False, capture_output=True, text=True)


@pytest.fixture(scope="module")
def copied_tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("tree")
    shutil.copytree(PACKAGE, root / "src" / "recrawl", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / ".importlinter", root)
    return root


def test_contracts_hold():
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("room", "statement", "contract"),
    [
        ("estimate", "import recrawl.store", "estimate imports only the vocabulary"),
        ("store", "from recrawl.schedule import price", "store imports only the vocabulary"),
        ("fetch", "import recrawl.crawl", "The rooms form layers"),
        ("schedule", "import socket", "pure rooms do no I/O"),
        ("model", "import os", "pure rooms do no I/O"),
        ("crawl", "def late():\n    import recrawl.cli", "crawl imports everything but"),
    ],
)
def test_a_planted_violation_is_caught(copied_tree, room, statement, contract):
    planted = copied_tree / "src" / "recrawl" / room / "planted.py"
    planted.write_text(statement + "\n", encoding="utf-8")
    try:
        result = lint(copied_tree)
    finally:
        planted.unlink()
    assert result.returncode == 1
    broken = [line for line in result.stdout.splitlines() if "BROKEN" in line]
    assert any(contract in line for line in broken), result.stdout + result.stderr
    assert f"recrawl.{room}.planted" in result.stdout


def test_a_room_without_a_contract_is_caught(copied_tree):
    planted = copied_tree / "src" / "recrawl" / "annex"
    planted.mkdir()
    (planted / "__init__.py").touch()
    try:
        result = lint(copied_tree)
    finally:
        shutil.rmtree(planted)
    assert result.returncode == 1
    assert "annex" in result.stdout + result.stderr


def allowed_by_contracts() -> dict[str, set[str]]:
    """For each room, the rooms its contract does not forbid."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter", encoding="utf-8")
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    rooms -= {*VOCABULARY, "notebook"}  # nobody may import the notebook: the layers say so
    allowed = {}
    for room in rooms - {"cli"}:
        forbidden = contracts[f"importlinter:contract:{room}"]["forbidden_modules"].split()
        allowed[room] = rooms - {room} - {name.removeprefix("recrawl.") for name in forbidden}
    return allowed


def allowed_by_design_page() -> dict[str, set[str]]:
    """The same from the table of the design page."""
    text = (ROOT / "docs" / "explanation" / "design.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)/` \|[^|]*\|([^|]*)\|$", text, re.MULTILINE)
    return {room: set(re.findall(r"`(\w+)`", may)) for room, may in rows if room not in ("cli", "notebook")}


def test_contracts_and_design_page_agree():
    assert allowed_by_contracts() == allowed_by_design_page()


@pytest.mark.parametrize("room", [*VOCABULARY, *PURE])
def test_pure_code_opens_no_file(room):
    """An import contract cannot see the built-in open()."""
    files = [PACKAGE / f"{room}.py"] if (PACKAGE / f"{room}.py").exists() else sorted((PACKAGE / room).rglob("*.py"))
    assert files
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            assert called not in {"open", "input", "print", "exec", "eval", "__import__"}, f"{file}:{node.lineno}"
