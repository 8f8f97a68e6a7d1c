"""What may import what: the contracts hold, say what the design page says, and would catch a violation."""

import ast
import configparser
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
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
    for name in ("recrawl", "recrawl_lab", "recrawl_testweb"):
        source = PACKAGE.parent / name
        shutil.copytree(source, root / "src" / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / ".importlinter", root)
    return root


def test_contracts_hold():
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("package", "statement", "contract"),
    [
        ("estimate", "import recrawl.store", "estimate imports only the model"),
        ("store", "from recrawl.schedule import price", "store imports only the model"),
        ("fetch", "import recrawl.crawl", "The packages form layers"),
        ("schedule", "import socket", "pure packages do no I/O"),
        ("model", "import os", "pure packages do no I/O"),
        ("crawl", "def late():\n    import recrawl.cli", "crawl imports everything below it"),
        ("crawl", "import recrawl_testweb", "The product imports neither laboratory nor test web"),
        ("app", "import typer", "Use cases do not print"),
        ("app", "import recrawl.testing", "The packages form layers"),
        ("testing", "import pytest", "testing imports everything but"),
        ("schedule", "import recrawl.plugins", "pure packages do no I/O"),
    ],
)
def test_a_planted_violation_is_caught(copied_tree, package, statement, contract):
    planted = copied_tree / "src" / "recrawl" / package / "planted.py"
    planted.write_text(statement + "\n", encoding="utf-8")
    try:
        result = lint(copied_tree)
    finally:
        planted.unlink()
    assert result.returncode == 1
    broken = [line for line in result.stdout.splitlines() if "BROKEN" in line]
    assert any(contract in line for line in broken), result.stdout + result.stderr
    assert f"recrawl.{package}.planted" in result.stdout


def test_a_package_without_a_contract_is_caught(copied_tree):
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
    """For each package, the packages its contract does not forbid."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter", encoding="utf-8")
    packages = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    packages -= {*VOCABULARY, "api"}  # nobody may import it: the layers say so
    targets = packages - {"testing", "integrations"}  # likewise
    allowed = {}
    for package in packages - {"cli"}:
        name = "imports-app" if package == "app" else package
        forbidden = contracts[f"importlinter:contract:{name}"]["forbidden_modules"].split()
        allowed[package] = targets - {package} - {name.removeprefix("recrawl.") for name in forbidden}
    return allowed


def allowed_by_design_page() -> dict[str, set[str]]:
    """The same from the table of the design page."""
    text = (ROOT / "docs" / "explanation" / "design.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)/` \|[^|]*\|([^|]*)\|$", text, re.MULTILINE)
    return {package: set(re.findall(r"`(\w+)`", may)) for package, may in rows if package not in ("cli", "api")}


LATE_PAIRS = {
    ("recrawl.app.predict.model_training", "recrawl.app.predict.stored_models"),
    ("recrawl.app.status", "recrawl.app.visit_explanation"),
    ("recrawl.detect.text.shingle_scan", "recrawl.detect.text.shingles"),
    ("recrawl.schedule.frontier.frontier_columns", "recrawl.schedule.frontier.host_frontier"),
}
"""Modules of which one imports the other only inside a function: two of them are compiled kernels, loaded late."""


def test_no_modules_import_each_other_in_a_circle():
    import grimp

    graph = grimp.build_graph("recrawl", cache_dir=None)
    modules = graph.modules - {"recrawl"}  # it names its public parts, and loads them when they are used
    assert len(modules) > 100
    imports = {module: graph.find_modules_directly_imported_by(module) & modules for module in modules}
    for pair in LATE_PAIRS:
        for one, other in (pair, pair[::-1]):
            imports[one] -= {other}
    left = set(imports)
    while left:
        edge = {module for module in left if not imports[module] & left}
        assert edge, sorted(left)
        left -= edge  # a module that imports nothing that is left is on no circle


def test_contracts_and_design_page_agree():
    assert allowed_by_contracts() == allowed_by_design_page()


@pytest.mark.parametrize("package", [*VOCABULARY, *PURE])
def test_pure_code_opens_no_file(package):
    """An import contract cannot see the built-in open()."""
    files = (
        [PACKAGE / f"{package}.py"]
        if (PACKAGE / f"{package}.py").exists()
        else sorted((PACKAGE / package).rglob("*.py"))
    )
    assert files
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            assert called not in {"open", "input", "print", "exec", "eval", "__import__"}, f"{file}:{node.lineno}"


def constants_of(path):
    """The names that a module assigns at its top level, each as often as it does."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            yield from (name.id for name in names if isinstance(name, ast.Name) and name.id != "_")


def test_no_module_assigns_a_constant_twice():
    """The later value would silently hold for the code above it, too."""
    twice = {
        f"{path.relative_to(PACKAGE.parent)}: {name}"
        for path in sorted(PACKAGE.parent.rglob("*.py"))
        for name, count in Counter(constants_of(path)).items()
        if count > 1
    }
    assert not twice
