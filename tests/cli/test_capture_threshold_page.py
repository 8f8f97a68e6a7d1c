"""The tables of ``recrawl experiment sharc-threshold``: what is marked as least, and what shrinking does."""

import re

from recrawl_lab.experiments.sharc_published import _marked, _shrinking_grid
from recrawl_lab.trials.capture_trial import THRESHOLDS, threshold_settings


def test_numbers_that_look_alike_are_marked_alike():
    assert _marked([16.6, 16.4, 15.9, 16.2, 17.9]) == ["17", "**16**", "**16**", "**16**", "18"]


def test_coherence_is_shown_before_and_after_shrinking():
    settings = {one.skew: one.shrunk(200) for one in threshold_settings()}
    rows = _shrinking_grid(settings).splitlines()[2:]
    assert len(rows) == len(settings)
    both = [[(int(before), int(after)) for before, after in re.findall(r"(\d+) / (\d+)", row)] for row in rows]
    assert [len(row) for row in both] == [len(THRESHOLDS)] * len(rows)
    found = [pair for row in both for pair in row]
    assert all(0 <= number <= 200 for pair in found for number in pair)
    assert any(before > after for before, after in found)  # hopeful pages gain
    assert any(before < after for before, after in found)  # and hopeless ones may lose more
