"""The harness can fail: on tampered cases, on malformed files, and on a list of missing functions that is not true."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def run_on(path):
    """`RECRAWL_GOLDEN=path pytest tests/golden`, without this file."""
    command = [sys.executable, "-m", "pytest", "-n0", "-p", "no:cacheprovider", "tests/golden/test_golden_cases.py"]
    environment = os.environ | {"RECRAWL_GOLDEN": str(path)}  # noqa: TID251 - what a user would set
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def write(path, cases):
    path.write_text(json.dumps({"cases": cases}), encoding="utf-8")
    return path


@pytest.fixture
def good(own_cases):
    """A case whose function exists."""
    return next(case for case in own_cases if case["id"] == "ex4.2")


def test_the_adapter_names_only_golden_functions(functions, own_cases):
    assert functions.keys() <= {case["function"] for case in own_cases}


def test_the_list_of_missing_functions_is_true(functions, own_cases):
    """Whoever writes a missing function maps it in adapter.py and takes its name off missing.txt."""
    listed = (HERE / "missing.txt").read_text(encoding="utf-8").split()
    assert listed == sorted({case["function"] for case in own_cases} - functions.keys())


def test_our_copy_is_the_one_beside_the_data(data_folder):
    shared = data_folder.parent / "golden.json"
    if not shared.exists():
        pytest.skip(f"{shared} is not here")
    assert (HERE / "golden.json").read_bytes() == shared.read_bytes()


def test_a_tampered_case_fails_and_a_missing_function_is_named(tmp_path, good):
    tampered = good | {"id": "tampered", "expected": good["expected"] | {"blur": good["expected"]["blur"] * (1 + 1e-6)}}
    unwritten = good | {"id": "unwritten", "function": "sharc.nobody_wrote_this"}
    code, output = run_on(write(tmp_path / "tampered.json", [good, tampered, unwritten]))
    assert code == 1
    assert "golden: 1 passed, 1 failed, 1 missing: sharc.nobody_wrote_this" in output
    assert "result.blur" in output


def test_a_case_that_raises_fails(tmp_path, good):
    code, output = run_on(write(tmp_path / "raises.json", [good | {"inputs": {"unknown": 1}}]))
    assert code == 1
    assert "golden: 0 passed, 1 failed, 0 missing" in output


def test_a_malformed_file_stops_the_run_with_its_name_and_the_reason(tmp_path):
    path = tmp_path / "broken.json"
    path.write_text('{"cases": [', encoding="utf-8")
    code, output = run_on(path)
    assert code not in (0, 1)
    assert "broken.json: is not JSON" in output


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda case: [], "no cases"),
        (lambda case: ["text"], "case 0: is not an object"),
        (lambda case: [{k: v for k, v in case.items() if k != "expected"}], "'expected' is missing"),
        (lambda case: [case | {"inputs": [1]}], "'inputs' is missing or not a dict"),
        (lambda case: [case | {"tolerance": {"rel": 1e-9}}], "no 'abs'"),
        (lambda case: [case | {"tolerance": {"rel": -1, "abs": 0}}], "no 'rel'"),
    ],
)
def test_a_file_of_another_form_is_refused(cases, tmp_path, good, change, reason):
    path = write(tmp_path / "other.json", change(good))
    with pytest.raises(cases.MalformedGoldenFile, match=reason) as refused:
        cases.read_cases(path)
    assert "other.json" in str(refused.value)


def test_a_file_that_is_not_there_is_refused(cases, tmp_path):
    with pytest.raises(cases.MalformedGoldenFile, match="cannot be read"):
        cases.read_cases(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("got", "expected", "agree"),
    [
        (1.0, 1.0 + 1e-12, True),
        (1, 1.0, True),
        (1.0, 1.01, False),
        (0.0, 1e-10, True),
        (float("nan"), None, True),
        (None, 0.0, False),
        (0.0, None, False),
        (True, True, True),
        (True, 1, False),
        (1.0, True, False),
        ("a", "a", True),
        ("a", "b", False),
        ([1, [2.0, None]], [1, [2.0, None]], True),
        ([1, 2], [1, 2, 3], False),
        ((1, 2), [1, 2], True),
        ([1, 2], [2, 1], False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ({0: 1}, {"0": 1}, True),
        ([], {}, False),
        (float("inf"), float("inf"), True),
        (float("inf"), 1e308, False),
    ],
)
def test_comparison(cases, got, expected, agree):
    found = cases.differences(cases.plain(got), cases.plain(expected), {"rel": 1e-9, "abs": 1e-9})
    assert (not found) == agree
