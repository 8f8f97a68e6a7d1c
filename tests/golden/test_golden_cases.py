import pytest


def test_golden_case(golden_case, functions, cases):
    function = functions.get(golden_case["function"])
    if function is None:
        pytest.skip(f"missing: {golden_case['function']}")
    got = cases.plain(function(**golden_case["inputs"]))
    differing = cases.differences(got, cases.plain(golden_case["expected"]), golden_case["tolerance"])
    assert not differing, "\n".join([f"{golden_case['function']} ({golden_case.get('note', '')})", *differing])
