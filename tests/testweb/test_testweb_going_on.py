"""A test web whose story goes on after the end that it had."""

import numpy as np

from recrawl.simulate.sites import HOST_LAWS, synthetic_web
from recrawl.time import DAY
from recrawl_testweb import FaultProfile
from recrawl_testweb.extend_web import prolonged, with_new_pages

START = 1_700_000_000.0


def test_known_pages_stay_as_they_are_and_new_ones_are_served(run):
    web = synthetic_web(pages=24, start=START, days=3, seed=2, hot=1.0)
    rng = np.random.default_rng(1)
    longer = prolonged(web, web.end + DAY, list(HOST_LAWS.values()), rng)
    longer = with_new_pages(longer, web.end + np.array([60.0, 120.0]), host=0, law=HOST_LAWS["news"], rng=rng)
    running = run(web, FaultProfile(charsets=0.5, gzip=0.5, no_validators=0.4, stuck_validators=0.3))
    running.clock.advance_to(web.end)
    before = [running.client.get(url) for url in running.urls]
    traits = [running.living.faults_of(page) for page in range(len(web))]
    running.living.go_on(longer)
    assert [running.client.get(url) for url in running.urls] == before
    assert [running.living.faults_of(page) for page in range(len(web))] == traits
    new = running.living.urls()[len(web) :]
    assert [running.client.get(url).status for url in new] == [404, 404]
    running.clock.advance_to(web.end + DAY)
    assert [running.client.get(url).status for url in new] == [200, 200]
    assert [running.client.get(url) for url in running.urls] != before
    assert running.living.truth().web is longer
