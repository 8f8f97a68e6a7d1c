"""The JSON-lines log: one valid object a line, whatever it is given."""

import io
import json
from datetime import datetime

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.time import VirtualClock

FIELDS = ["timestamp", "logLevel", "context", "message", "details"]


class Stubborn:
    def __str__(self):
        raise RuntimeError("no")

    __repr__ = __str__


odd_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.complex_numbers()
    | st.builds(Stubborn)
    | st.builds(np.float32, st.floats(width=32)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.integers() | st.none(), inner, max_size=3)
        | st.tuples(inner)
    ),
    max_leaves=8,
)


def written(details, *, now=0.0, message="It happened", level="info"):
    stream = io.StringIO()
    JsonLinesLog(stream, VirtualClock(now)).event("fetch", message, level=level, details=details)
    return stream.getvalue()


@given(st.dictionaries(st.text(), odd_values, max_size=4), st.text())
def test_any_event_is_one_line_of_strict_json(details, message):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    text = written(details, message=message)
    assert text.endswith("\n")
    assert len(text.splitlines()) == 1
    record = json.loads(text, parse_constant=refuse)
    assert list(record) == FIELDS
    assert record["message"] == message


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.booleans() | st.none()))
def test_ordinary_details_come_back_as_they_were(details):
    assert json.loads(written(details))["details"] == details


def test_the_timestamp_is_utc_with_milliseconds():
    record = json.loads(written({}, now=1_700_000_000.25))
    assert record["timestamp"] == "2023-11-14T22:13:20.250Z"
    assert datetime.fromisoformat(record["timestamp"]).timestamp() == 1_700_000_000.25


def test_numpy_values_are_numbers_and_lists():
    details = json.loads(written({"n": np.int64(3), "x": np.array([1.5, 2.5]), "nan": np.float64("nan")}))["details"]
    assert details == {"n": 3, "x": [1.5, 2.5], "nan": "nan"}


def test_a_value_that_contains_itself_ends():
    loop = {"long": 10**5000}
    loop["me"] = loop
    assert json.loads(written(loop))["details"]["me"]


def test_every_event_is_on_disk_when_the_call_returns(tmp_path):
    path = tmp_path / "crawl.jsonl"
    with path.open("w", encoding="utf-8") as stream:
        log = JsonLinesLog(stream, VirtualClock())
        for count in range(1, 4):
            log.event("store", "Recorded", level="warn", details={"count": count})
            lines = path.read_text(encoding="utf-8").splitlines()
            assert [json.loads(line)["details"]["count"] for line in lines] == list(range(1, count + 1))
