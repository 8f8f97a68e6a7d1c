"""What is learned from and what is judged: never the same pages, and other sites at other times."""

import numpy as np
import pytest

from recrawl.app.predict.model_data import RecordedLinks
from recrawl.predict.feature_extraction import FeatureEvidence
from recrawl.predict.page_versions import PageTexts, PageVersions
from recrawl.time import DAY
from recrawl_lab.trials.lbla_trial import OTHER_SITES, SAME_SITES, LblaPlan, splits

WEEK = 7 * DAY
SITES, PAGES, WEEKS = 12, 4, 20
TIMES = (15 * WEEK, 16 * WEEK, 17 * WEEK)


@pytest.fixture(scope="module")
def recorded():
    """Twelve sites of four pages, which change every week and now and then get a link."""
    rng = np.random.default_rng(1)
    count = SITES * PAGES
    page, week = (part.ravel() for part in np.mgrid[:count, :WEEKS])
    time = (week + 0.5) * WEEK
    new = rng.poisson(0.5, page.size).astype(float)
    versions = PageVersions.of(page, time, {"new_internal": new, "new_external": new, "changed": new >= 0})
    words = [" ".join(rng.choice(["wave", "tide", "ship", "loop", "type"], 6)) for _ in range(count)]
    evidence = FeatureEvidence(
        np.arange(count),
        tuple(f"http://site{one // PAGES}.test/{one}" for one in range(count)),
        versions,
        texts=PageTexts.of(np.arange(count), np.zeros(count), words),
    )
    site = np.repeat(np.arange(SITES), PAGES)
    return RecordedLinks(
        evidence, site, tuple(f"site{one}" for one in range(SITES)), (page, time, np.zeros(page.size, bool))
    )


def judged(recorded, at, name, seed=1):
    """The pages that are judged at a time, of each draw."""
    plan = LblaPlan(at=at, period=WEEK, pages=SITES * PAGES, seed=seed, draws=2, alone=True)
    return [
        np.unique(trial.test.table.page)
        for one in splits(recorded, plan)
        if one.name == name
        for trial in one.trials.values()
    ]


def test_other_times_judge_other_sites(recorded):
    found = [recorded.site[pages].tolist() for at in TIMES for pages in judged(recorded, at, OTHER_SITES)]
    assert len({tuple(one) for one in found}) > len(TIMES)  # 6 draws of 4 of 12 sites; before, 2 in all
    assert all(len(set(one)) == SITES // 3 for one in found)


def test_other_times_judge_other_pages_of_the_same_sites(recorded):
    found = [pages.tolist() for at in TIMES for pages in judged(recorded, at, SAME_SITES)]
    assert len({tuple(one) for one in found}) > len(TIMES)


@pytest.mark.parametrize("name", [SAME_SITES, OTHER_SITES])
def test_draws_depend_on_seed_and_time_alone(recorded, name):
    once, again, other = (judged(recorded, TIMES[0], name, seed) for seed in (1, 1, 2))
    assert [one.tolist() for one in once] == [one.tolist() for one in again]
    assert [one.tolist() for one in once] != [one.tolist() for one in other]


def test_nothing_is_learned_from_and_judged(recorded):
    plan = LblaPlan(at=TIMES[0], period=WEEK, pages=SITES * PAGES, alone=True)
    found = splits(recorded, plan)
    assert {one.name for one in found} == {SAME_SITES, OTHER_SITES}
    for one in found:
        for trial in one.trials.values():
            taught, asked = trial.train.table.page, trial.test.table.page
            assert not np.intersect1d(taught, asked).size
            if one.name == OTHER_SITES:
                assert not np.intersect1d(recorded.site[taught], recorded.site[asked]).size
