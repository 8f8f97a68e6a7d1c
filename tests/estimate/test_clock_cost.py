"""The default estimator costs by visits, not by days × clusters: counted in cells of the calendar, not in seconds."""

import numpy as np

from recrawl.estimate.estimator import RateEvidence
from recrawl.estimate.estimators import DEFAULT, ESTIMATORS
from recrawl.estimate.operational.cluster_intensity import ClusterIntensity
from recrawl.model import Verdict, Visits
from recrawl.model.histories import Histories
from recrawl.time import DAY

PAGES, HOSTS, VISITS = 240, 80, 20


def cells(monkeypatch, years: float) -> int:
    """Cells of the calendar computed to believe 4,800 visits that are spread over so many years."""
    rng = np.random.default_rng(4)
    time = np.sort(rng.uniform(0.0, 365.0 * years * DAY, (PAGES, VISITS)), axis=1)
    edits = np.sort(rng.uniform(0.0, 365.0 * years * DAY, (HOSTS, 6)), axis=1)
    host = np.arange(PAGES) % HOSTS
    version = np.stack([np.searchsorted(edits[host[page]], time[page]) for page in range(PAGES)])
    verdict = np.where(np.diff(version, axis=1, prepend=-1) > 0, Verdict.CHANGED, Verdict.UNCHANGED)
    verdict[:, 0] = Verdict.UNKNOWN
    visits = Visits.of(np.repeat(np.arange(PAGES), VISITS), time.ravel(), verdict=verdict.ravel())
    count = [0]
    plain = ClusterIntensity._factors

    def counted(self, changes, exposure, of):
        count[0] += changes.size
        return plain(self, changes, exposure, of)

    monkeypatch.setattr(ClusterIntensity, "_factors", counted)
    belief = ESTIMATORS[DEFAULT](RateEvidence(Histories.from_visits(visits), (host, host)))
    monkeypatch.setattr(ClusterIntensity, "_factors", plain)
    assert np.isfinite(belief.quantile(0.5)).all()
    return count[0]


def test_as_many_visits_over_sixteen_times_the_years_cost_hardly_more(monkeypatch):
    monkeypatch.setattr("recrawl.estimate.operational.cluster_intensity._FEW_CELLS", 1 << 12)
    one, many = cells(monkeypatch, 3.0), cells(monkeypatch, 48.0)
    assert 0 < many < 2 * one
