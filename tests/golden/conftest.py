"""The golden harness: one test a case of a golden file, and a summary that names what is still missing."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OWN_FILE = HERE / "golden.json"
CASE_TEST = "test_golden_case["
MISSING = "missing: "


def load(name):
    """A module of this folder, which is no package: the tests run with --import-mode=importlib."""
    full_name = f"recrawl_golden_{name}"
    if full_name not in sys.modules:
        spec = importlib.util.spec_from_file_location(full_name, HERE / f"{name}.py")
        sys.modules[full_name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[full_name])
    return sys.modules[full_name]


@pytest.fixture(scope="session")
def cases():
    """How golden files are read and compared."""
    return load("cases")


@pytest.fixture(scope="session")
def functions():
    """The golden functions that exist, by name."""
    return load("adapter").FUNCTIONS


@pytest.fixture(scope="session")
def own_cases(cases):
    """The cases of the repository's own golden file."""
    return cases.read_cases(OWN_FILE)


def pytest_generate_tests(metafunc):
    """One test a case, of the file that RECRAWL_GOLDEN names or of our own."""
    if "golden_case" in metafunc.fixturenames:
        path = Path(os.environ.get("RECRAWL_GOLDEN") or OWN_FILE)  # noqa: TID251 - how a run is given another file
        reader = load("cases")
        try:
            cases = reader.read_cases(path)
        except reader.MalformedGoldenFile as problem:
            raise pytest.UsageError(str(problem)) from problem
        metafunc.parametrize("golden_case", [pytest.param(case, id=case["id"]) for case in cases])


def pytest_terminal_summary(terminalreporter):
    """Say how many cases passed and failed, and which functions nobody has written yet."""
    found = {
        outcome: [report for report in terminalreporter.stats.get(outcome, []) if _is_case(report)]
        for outcome in ("passed", "failed", "error", "skipped")
    }
    if not any(found.values()):
        return
    bad = len(found["failed"]) + len(found["error"])
    names = sorted({_reason(report).removeprefix(MISSING) for report in found["skipped"]})
    line = f"golden: {len(found['passed'])} passed, {bad} failed, {len(found['skipped'])} missing"
    terminalreporter.section("golden cases")
    terminalreporter.write_line(f"{line}: {', '.join(names)}" if names else line)


def _is_case(report):
    return CASE_TEST in getattr(report, "nodeid", "") and report.when in ("call", "setup")


def _reason(report):
    return report.longrepr[2].removeprefix("Skipped: ")
