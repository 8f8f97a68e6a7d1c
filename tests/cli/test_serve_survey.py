"""A survey made by a child says what one made here says."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.app.workspace.workspace import make_workspace
from recrawl.errors import InputError
from recrawl.model import Verdict, Visits
from recrawl.web.dashboard.plan_survey import SurveyProcess, survey_of

NOW = 1_790_000_000.0


def test_a_child_says_the_same(tmp_path):
    place = make_workspace(tmp_path / "w", {"schedule.budget": 20.0})
    with place.open_store() as store:
        pages = store.discover([f"http://{host}.example/{n}" for host in "ab" for n in range(15)], NOW - 9e6)
        page, observation = np.repeat(pages[:-2], 5), np.tile(np.arange(5), len(pages) - 2)
        verdict = np.where(
            observation == 0,
            Verdict.UNKNOWN,
            np.where((page + observation) % 3 == 0, Verdict.CHANGED, Verdict.UNCHANGED),
        )
        store.record(Visits.of(page, NOW - 1e6 + 1e5 * observation, verdict=verdict, status=200, cost=0.1))
        here = survey_of(place, store, NOW)
    there = SurveyProcess(place).survey(NOW)
    for name in ("page", "due", "why", "worth", "p_changed", "every", "shortest", "longest", "last_observed"):
        np.testing.assert_allclose(getattr(there, name), getattr(here, name), rtol=1e-9, equal_nan=True)
    assert there.reasons == here.reasons
    assert "never seen" in there.reasons
    assert {name: ids.tolist() for name, ids in there.orders.items()} == {
        name: ids.tolist() for name, ids in here.orders.items()
    }
    assert there.facts["pages"] == here.facts["pages"] == len(pages)
    assert there.facts["budget_rows"] == here.facts["budget_rows"]
    assert there.rows(np.array([0, pages[3], 999])).tolist() == [-1, 3, -1]


def test_what_a_user_can_mend_is_told(tmp_path):
    child = SurveyProcess(make_workspace(tmp_path / "w", {}))
    with pytest.raises(InputError, match="no page to plan for"):
        child.survey(NOW)
    child.close()
