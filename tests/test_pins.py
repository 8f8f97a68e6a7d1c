"""The pins: one list in two places, without a registry in either, and what is installed obeys it."""

import re
import shutil
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def pins() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def direct_dependencies(*groups: str) -> list[Requirement]:
    """Those of the project, of all its extras, and of these groups."""
    project = PYPROJECT["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    lists += [PYPROJECT["dependency-groups"][group] for group in groups]
    found = [Requirement(text) for texts in lists for text in texts]
    return [requirement for requirement in found if requirement.name != project["name"]]


def pins_of(requirement: Requirement) -> list[Requirement]:
    name = canonicalize_name(requirement.name)
    return [pin for pin in map(Requirement, pins()) if canonicalize_name(pin.name) == name and holds_here(pin)]


def holds_here(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate()


def test_constraints_file_and_uv_section_are_equal():
    assert PYPROJECT["tool"]["uv"]["constraint-dependencies"] == pins(), "run tools/pin --copy"


def test_every_pin_is_exact():
    for pin in map(Requirement, pins()):
        assert [clause.operator for clause in pin.specifier] == ["=="], pin


@pytest.mark.parametrize("name", ["constraints.txt", "pyproject.toml"])
def test_no_file_names_a_package_registry(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not re.search(r"index-url|find-links|\[\[tool\.uv\.index\]\]|@ *(https?|file|git)", text)
    assert not re.search(r"[a-z]+://", "\n".join(pins()))


def test_no_lock_file_is_tracked():
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    assert "uv.lock" not in tracked
    assert "constraints.txt" in tracked


@pytest.mark.parametrize("requirement", [one for one in direct_dependencies("bench") if holds_here(one)], ids=str)
def test_baselines_of_benchmarks_are_pinned(requirement):
    assert len(pins_of(requirement)) == 1


@pytest.mark.parametrize("requirement", direct_dependencies("dev"), ids=str)
def test_direct_dependency_is_pinned_and_installed_as_pinned(requirement):
    if not holds_here(requirement):
        pytest.skip(f"not for this platform: {requirement.marker}")
    name, here = canonicalize_name(requirement.name), pins_of(requirement)
    assert len(here) == 1, f"{name} is pinned {len(here)} times"
    try:
        installed = version(name)
    except PackageNotFoundError:
        pytest.fail(f"{name} is not installed: run the tests with `uv run pytest`")
    assert here[0].specifier.contains(installed, prereleases=True)
    assert requirement.specifier.contains(installed, prereleases=True)
