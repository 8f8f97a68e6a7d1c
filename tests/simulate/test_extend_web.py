"""What becomes of a virtual web after its end."""

import numpy as np
import pytest

from recrawl.simulate.sites import HOST_LAWS, synthetic_web
from recrawl.simulate.virtual_web import PoissonProcess
from recrawl.time import DAY
from recrawl_testweb.extend_web import prolonged, with_new_pages

START = 1.79e9
WEB = synthetic_web(pages=60, start=START, days=10, seed=5, hot=0.7)


@pytest.fixture(params=[1, 2])
def longer(request):
    return prolonged(WEB, WEB.end + 30 * DAY, list(HOST_LAWS.values()), np.random.default_rng(request.param))


def test_nothing_is_different_up_to_the_end(longer):
    before = longer.changes.times <= WEB.end
    assert longer.changes.where(before).times.tolist() == WEB.changes.times.tolist()
    assert longer.changes.where(before).offsets.tolist() == WEB.changes.offsets.tolist()
    assert longer.end == WEB.end + 30 * DAY


def test_living_pages_go_on_at_their_rate_and_the_dead_stay_so(longer):
    more = longer.changes_between(WEB.end, longer.end)
    there = WEB.alive(np.arange(len(WEB)), WEB.end)
    assert not there.all()
    assert not more[~there].any()
    expected = float((WEB.rate[there] * 30 * DAY).sum())
    assert more[there].sum() == pytest.approx(expected, rel=0.35)  # bursts vary more than chance does


def test_new_pages_come_behind_the_others_in_folders_of_the_host(longer):
    born = np.linspace(WEB.end + 1.0, WEB.end + DAY, 9)
    web = with_new_pages(longer, born, host=1, law=PoissonProcess(), rng=np.random.default_rng(3))
    new = np.arange(len(WEB), len(web))
    assert web.born[new].tolist() == born.tolist()
    assert web.unexplained_links() == WEB.unexplained_links() == 0
    assert len({web.url(page) for page in range(len(web))}) == len(web)
    assert list(web.path[: len(WEB)]) == list(WEB.path)
    for page in new.tolist():
        [folder] = web.links_at(page, web.end).tolist()
        assert web.path[page].startswith(web.path[folder])
        assert web.hosts[web.host[page]] == "office.living.test"
        assert page in web.links_at(folder, web.born[page])
        assert page not in web.links_at(folder, web.born[page] - 1.0)
        beside = [
            known for known in range(len(WEB)) if web.host[known] == 1 and web.path[known].startswith(web.path[folder])
        ]
        assert web.rate[page] in WEB.rate[beside]
        assert (web.changes.row(page) > web.born[page]).all()


def test_a_site_of_one_folder_gets_its_pages_there():
    small = synthetic_web(pages=6, start=START, days=1, seed=1)
    longer = prolonged(small, small.end + DAY, list(HOST_LAWS.values()), np.random.default_rng(0))
    web = with_new_pages(
        longer, np.array([small.end + 5.0]), host=0, law=PoissonProcess(), rng=np.random.default_rng(0)
    )
    assert web.links_at(len(web) - 1, web.end).tolist() == [0]
