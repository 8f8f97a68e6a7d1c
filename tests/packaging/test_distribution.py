"""What is given away: the source distribution and the wheel that is built from it, file by file."""

import os
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAME = f"{PROJECT['name']}-{PROJECT['version']}"
ABOUT = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
"""What a wheel says about itself."""


@pytest.fixture(scope="module")
def tree():
    """Files of the repository by folder, as they are before anything is built."""
    return {folder: files_below(folder) for folder in ("src", "tests", "docs")}


@pytest.fixture(scope="module")
def built(tree, tmp_path_factory):
    """Both distributions of the tree, the wheel built from the other."""
    uv = os.environ.get("UV") or shutil.which("uv")  # noqa: TID251 - uv run says where it is
    if uv is None:
        pytest.skip("uv is not here, which builds distributions")
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([uv, "build", "--quiet", "--out-dir", folder, ROOT], check=True, timeout=280)
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    with zipfile.ZipFile(built / f"{NAME}-py3-none-any.whl") as opened:
        yield opened


@pytest.fixture(scope="module")
def source(built):
    """Names in the source distribution, without the folder that all are in."""
    with tarfile.open(built / f"{NAME}.tar.gz") as opened:
        return {str(PurePosixPath(name).relative_to(NAME)) for name in opened.getnames()}


def files_below(folder):
    """Files of the tree in a folder, by their names from its root."""
    kept = (file for file in (ROOT / folder).rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return {file.relative_to(ROOT).as_posix() for file in kept if file.suffix != ".pyc"}


def test_the_wheel_holds_the_package_and_nothing_else(tree, wheel):
    about = f"{NAME}.dist-info/"
    package = {name.removeprefix("src/") for name in tree["src"]}
    assert set(wheel.namelist()) == package | {about + name for name in ABOUT}


@pytest.mark.parametrize(
    "name",
    [
        "recrawl/py.typed",
        "recrawl/web/templates/report/page.html",
        "recrawl/web/templates/dashboard/base.html",
        "recrawl/web/assets/look.css",
        "recrawl/web/assets/vendor/echarts.min.js",
        "recrawl/web/assets/vendor/LICENSE.echarts.txt",
        "recrawl/web/assets/vendor/LICENSE.htmx.txt",
    ],
)
def test_what_is_no_code_is_there_too(wheel, name):
    assert len(wheel.read(name)) > 0 or name.endswith("py.typed")


def test_migrations_of_the_store_are_there(wheel):
    assert any(name.startswith("recrawl/store/migrations/") for name in wheel.namelist())


def test_the_metadata_is_that_of_the_project(wheel):
    said = Parser().parsestr(wheel.read(f"{NAME}.dist-info/METADATA").decode())
    assert (said["Name"], said["Version"], said["Requires-Python"]) == (
        PROJECT["name"],
        PROJECT["version"],
        PROJECT["requires-python"],
    )
    assert (said["License-Expression"], said["License-File"]) == ("Apache-2.0", "LICENSE")
    assert set(said.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    always = [line for line in said.get_all("Requires-Dist") if "extra ==" not in line]
    assert sorted(always) == sorted(PROJECT["dependencies"])
    assert said.get_payload().startswith("# recrawl")


def test_the_command_is_installed(wheel):
    assert "recrawl = recrawl.cli.entry:main" in wheel.read(f"{NAME}.dist-info/entry_points.txt").decode()


def test_the_source_holds_all_that_building_and_testing_take(tree, source):
    top = {"pyproject.toml", "README.md", "LICENSE", "constraints.txt", "mkdocs.yml", ".importlinter", "Dockerfile"}
    assert top | {"compose.yaml", ".dockerignore", "tools/pin"} <= source
    for files in tree.values():
        missing = files - source
        assert not missing, sorted(missing)[:5]


def test_no_output_of_a_run_is_given_away(source):
    private = (".git/", ".venv/", "dist/", "site/", ".mypy_cache/", ".pytest_cache/", ".hypothesis/", "uv.lock")
    assert not [name for name in source if name.startswith(private) or "__pycache__" in name]
