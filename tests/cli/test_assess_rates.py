"""What assess learns rates from: not from two downloads of one moment."""

import numpy as np

from recrawl.cli.assess_answer import without_quick_gaps
from recrawl.estimate.estimator import Evidence
from recrawl.model import Histories, Visits
from recrawl.time import DAY


def evidence(*times: float, page: int = 1) -> Evidence:
    """A page looked at at these times, of which every other look found a change."""
    verdict = [0, *([2, 1] * len(times))[: len(times) - 1]]
    return Evidence(Histories.from_visits(Visits.of([page] * len(times), times, verdict=verdict)))


def test_gaps_of_seconds_are_no_evidence_where_there_are_longer_ones():
    slow = without_quick_gaps(evidence(0.0, 1.0, DAY, DAY + 59.0, 3 * DAY)).histories
    assert slow.gaps.tolist() == [DAY - 1.0, 2 * DAY - 59.0]
    assert slow.changed.tolist() == [False, False]
    assert slow.offsets.tolist() == [0, 2]


def test_pages_keep_their_own_gaps():
    visits = Visits.of([1, 1, 2, 2, 2], [0.0, 1.0, 0.0, 1.0, DAY], verdict=[0, 2, 0, 2, 1])
    slow = without_quick_gaps(Evidence(Histories.from_visits(visits))).histories
    assert (slow.offsets.tolist(), slow.gaps.tolist()) == ([0, 0, 1], [DAY - 1.0])


def test_where_all_gaps_are_short_they_are_all_there_is():
    quick = evidence(0.0, 1.0, 2.0)
    assert np.array_equal(without_quick_gaps(quick).histories.gaps, quick.histories.gaps)
