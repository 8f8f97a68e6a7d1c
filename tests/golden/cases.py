"""Read a golden file and compare a result with what it expects."""

import json
import math

import numpy as np

FIELDS = {"id": str, "function": str, "inputs": dict, "tolerance": dict}


class MalformedGoldenFile(Exception):  # noqa: N818 - it is the file that is malformed
    pass


def read_cases(path):
    """The cases of a golden file; says what is wrong with one that is not of the form."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise MalformedGoldenFile(f"{path}: cannot be read: {problem.strerror}") from problem
    except ValueError as problem:
        raise MalformedGoldenFile(f"{path}: is not JSON: {problem}") from problem
    cases = content.get("cases") if isinstance(content, dict) else None
    if not isinstance(cases, list) or not cases:
        raise MalformedGoldenFile(f'{path}: has no cases; write {{"cases": [...]}} with at least one')
    for number, case in enumerate(cases):
        problem = _problem(case)
        if problem:
            raise MalformedGoldenFile(f"{path}: case {number}: {problem}")
    return cases


def _problem(case):
    if not isinstance(case, dict):
        return "is not an object"
    for field, kind in FIELDS.items():
        if not isinstance(case.get(field), kind):
            return f"{field!r} is missing or not a {kind.__name__}"
    if "expected" not in case:
        return "'expected' is missing"
    for bound in ("rel", "abs"):
        value = case["tolerance"].get(bound)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            return f"its tolerance has no {bound!r} that is a number >= 0"
    return None


def plain(value):
    """A result as JSON would hold it: arrays are lists, and what is undefined is null."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def differences(got, expected, tolerance, place="result"):
    """Where two plain values differ by more than the tolerance, in words; empty if they agree."""
    if isinstance(expected, dict) and isinstance(got, dict):
        if got.keys() != expected.keys():
            return [f"{place}: has {sorted(got)}, expected {sorted(expected)}"]
        inside = [(got[key], expected[key], f"{place}.{key}") for key in expected]
    elif isinstance(expected, list) and isinstance(got, list):
        if len(got) != len(expected):
            return [f"{place}: has {len(got)} entries, expected {len(expected)}: {got} against {expected}"]
        inside = [(g, e, f"{place}[{i}]") for i, (g, e) in enumerate(zip(got, expected, strict=True))]
    else:
        return [] if _equal(got, expected, tolerance) else [f"{place}: {got!r}, expected {expected!r}"]
    return [line for g, e, where in inside for line in differences(g, e, tolerance, where)]


def _equal(got, expected, tolerance):
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (got, expected))
    if numbers:
        return math.isclose(got, expected, rel_tol=tolerance["rel"], abs_tol=tolerance["abs"])
    return type(got) is type(expected) and got == expected
