"""Verdicts from lists against a plain reading of their rules."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.detect.digest_verdicts import classify_listed, merge_downloads, outcomes_of, versions_of
from recrawl.model import ANSWERED, ChangeKind, Outcome, Verdict

rows = st.lists(
    st.tuples(
        st.integers(0, 2), st.sampled_from(Outcome), st.booleans(), st.sampled_from([b"", b"a", b"b", b"a longer one"])
    ),
    max_size=30,
).map(lambda found: sorted(found, key=lambda row: row[0]))


@given(rows)
def test_verdicts_follow_the_rules(captures):
    columns = [[row[i] for row in captures] for i in range(4)]
    verdicts = classify_listed(
        np.array(columns[0], dtype=np.int64),
        np.array(columns[1], dtype=np.uint8),
        np.array(columns[2], dtype=bool),
        versions_of(columns[3]),
    )
    version: dict[int, bytes | str] = {}
    seen: set[int] = set()
    for i, (page, outcome, repeats, digest) in enumerate(captures):
        expected, kind = Verdict.UNKNOWN, ChangeKind.NONE
        if outcome <= ANSWERED:
            now = "gone" if outcome == Outcome.GONE else digest
            if now:
                if page in version:
                    expected = Verdict.UNCHANGED if version[page] == now else Verdict.CHANGED
                    if expected == Verdict.CHANGED:
                        kind = ChangeKind.EXISTENCE if "gone" in (now, version[page]) else ChangeKind.CONTENT
                version[page] = now
            elif repeats and page in seen:
                expected = Verdict.UNCHANGED
            seen.add(page)
        assert (verdicts.verdict[i], verdicts.kinds[i]) == (expected, kind)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.sampled_from(Outcome)), max_size=30),
    st.sampled_from([0.0, 3.0, 10.0]),
)
def test_one_capture_of_each_download_is_kept_the_best_and_last(captures, within):
    captures = sorted(captures, key=lambda row: row[:2])
    page, time, outcome = (np.array([row[i] for row in captures]) for i in range(3))
    keep = merge_downloads(page.astype(np.int64), time.astype(float), outcome.astype(np.uint8), within)
    expected = []
    start = 0
    for i in range(len(captures)):
        ends = i + 1 == len(captures) or page[i + 1] != page[i] or time[i + 1] - time[start] > within or within == 0
        if ends:
            expected.append(max(range(start, i + 1), key=lambda j: (-outcome[j], j)))
            start = i + 1
    assert np.flatnonzero(keep).tolist() == sorted(expected)


def test_every_status_has_an_outcome():
    status = np.array([200, 206, 301, 304, 403, 404, 410, 429, 500, 999, 0, -2, -9998])
    outcome = outcomes_of(status)
    assert [Outcome(code).name for code in outcome.tolist()] == [
        "FETCHED",
        "FETCHED",
        "REDIRECTED",
        "NOT_MODIFIED",
        "REJECTED",
        "GONE",
        "GONE",
        "SERVER_ERROR",
        "SERVER_ERROR",
        "UNREACHABLE",
        "FETCHED",
        "UNREACHABLE",
        "REFUSED",
    ]
    assert outcomes_of(np.array([0]), no_status=Outcome.UNREACHABLE).tolist() == [Outcome.UNREACHABLE]
