"""The policy for new links: visits by the rate of links, not of changes; prior × what was counted, in any batches."""

from dataclasses import replace

import numpy as np
import pytest

from recrawl.model import GammaBelief, Pages, Verdict, Visits
from recrawl.schedule.policies.new_links import NewLinks
from recrawl.time import DAY

N = 40


def pages():
    ids = np.arange(N)
    return Pages(ids, ids % 2, np.ones(N), np.ones(N), np.zeros(N))


def prior(rates):
    return lambda asked: GammaBelief(np.full(len(asked), 2.0), 2.0 / np.broadcast_to(rates, (N,))[asked.id])


def crawl(links, days=20, changed=True):
    """Daily visits: each finds a change; ``links[page]`` new links a visit, and 50 on the first look."""
    time = np.repeat(np.arange(days + 1.0) * DAY, N)
    page = np.tile(np.arange(N), days + 1)
    first = time == 0
    verdict = np.where(first, Verdict.UNKNOWN, Verdict.CHANGED if changed else Verdict.UNCHANGED)
    count = np.where(first, 50, links[page])
    return Visits.of(page, time, verdict=verdict, new_internal=count, new_external=np.zeros(len(page), int))


def test_pages_with_many_new_links_are_visited_more_often_though_all_change_alike():
    links = np.where(np.arange(N) < 10, 9, 1)
    policy = NewLinks({"internal": prior(1 / DAY)})
    policy.add(pages())
    policy.tell(crawl(links))
    policy.fit(N / (10 * DAY), 20 * DAY)
    wait = policy.due(np.arange(N), 20 * DAY) - 20 * DAY
    # The square-root law: nine times the links, three times the visits.
    assert wait[10:].mean() / wait[:10].mean() == pytest.approx(3.0, rel=0.15)
    assert policy.links(np.arange(N)).mean() * DAY == pytest.approx((2 + 20 * links) / 22)
    assert policy.name == "valued-links"


def test_the_model_decides_where_nothing_was_counted_yet():
    policy = NewLinks({"internal": prior(np.where(np.arange(N) < 10, 4.0, 1.0) / DAY)})
    policy.add(pages())
    policy.tell(crawl(np.zeros(N, int), days=0))
    policy.fit(N / (10 * DAY), DAY)
    wait = policy.due(np.arange(N), DAY)
    assert wait[10:].mean() / wait[:10].mean() == pytest.approx(2.0, rel=0.05)


def test_a_prior_that_has_changed_counts_from_the_next_fit_on_beside_what_was_counted():
    said = {"now": prior(1 / DAY)}

    def asked_now(asked):
        return said["now"](asked)

    policy = NewLinks({"internal": asked_now})
    policy.add(pages())
    policy.tell(crawl(np.ones(N, int)))
    policy.fit(N / (10 * DAY), 20 * DAY)
    assert policy.links(np.arange(N)).mean() * DAY == pytest.approx((2 + 20) / 22)
    said["now"] = prior(np.where(np.arange(N) < 10, 4.0, 1.0) / DAY)
    policy.fit(N / (10 * DAY), 20 * DAY)
    rate = np.where(np.arange(N) < 10, 4.0, 1.0)
    assert policy.links(np.arange(N)).mean() * DAY == pytest.approx((2 + 20) / (2 / rate + 20))
    late = replace(pages(), id=np.arange(N) + N)
    said["now"] = lambda asked: GammaBelief(np.full(len(asked), 2.0), np.full(len(asked), 2.0 * DAY))
    policy.add(late)
    policy.fit(N / (10 * DAY), 20 * DAY)
    assert policy.links(late.id).mean() * DAY == pytest.approx(1.0)
    assert policy.links(np.arange(N)).mean() * DAY == pytest.approx((2 + 20) / 22)


def test_what_is_believed_of_changes_is_told_too():
    policy = NewLinks({"internal": prior(1 / DAY)})
    policy.add(pages())
    policy.tell(crawl(np.zeros(N, int)))
    assert policy.links(np.arange(N)).mean().max() * DAY < 0.2
    assert policy.belief(np.arange(N)).mean().min() * DAY > 0.8
    policy.fit(N / (10 * DAY), 20 * DAY)
    urgent = policy.urgency(np.arange(N), 25 * DAY)
    due = policy.due(np.arange(N), 25 * DAY)
    assert ((urgent >= 1) == (due <= 25 * DAY)).all()


def test_batches_do_not_matter():
    visits = crawl(np.arange(N) % 5)
    whole, parts = NewLinks({"internal": prior(1 / DAY)}), NewLinks({"internal": prior(1 / DAY)})
    for policy in (whole, parts):
        policy.add(pages())
    whole.tell(visits)
    for day in range(21):
        parts.tell(visits.take(visits.time == day * DAY))
        parts.urgency(np.arange(N), day * DAY)
    one, two = (policy.links(np.arange(N)).mean() for policy in (whole, parts))
    np.testing.assert_allclose(one, two)


def test_visits_that_counted_nothing_found_nothing():
    policy = NewLinks({"internal": prior(1 / DAY)})
    policy.add(pages())
    quiet = crawl(np.full(N, -1), changed=False)
    policy.tell(quiet)
    assert policy.links(np.arange(N)).mean() * DAY == pytest.approx(np.full(N, 2 / 22))


def test_links_within_a_host_and_to_elsewhere_are_wanted_together_or_one_by_one():
    visits = crawl(np.where(np.arange(N) < 10, 6, 0))
    outward = np.where(np.isin(visits.page, np.arange(30, N)) & (visits.time > 0), 3, 0)
    visits = replace(visits, new_external=outward.astype(visits.new_external.dtype))
    priors = {"internal": prior(1 / DAY), "external": prior(2 / DAY)}
    held = {}
    for name, kinds in (("internal", ["internal"]), ("external", ["external"]), ("all", priors)):
        policy = NewLinks({kind: priors[kind] for kind in kinds})
        policy.add(pages())
        policy.tell(visits)
        held[name] = policy.links(np.arange(N))
    within, outside = (held[kind].mean() * DAY for kind in ("internal", "external"))
    assert within == pytest.approx(np.where(np.arange(N) < 10, (2 + 120) / 22, 2 / 22))
    assert outside == pytest.approx(np.where(np.arange(N) >= 30, (2 + 60) / 21, 2 / 21))
    assert held["all"].mean() * DAY == pytest.approx(within + outside)
    spread = [one.a / one.b**2 for one in held.values()]
    assert spread[2] == pytest.approx(spread[0] + spread[1])


@pytest.mark.parametrize("kinds", [{}, {"inward": prior(1 / DAY)}])
def test_other_kinds_of_links_are_refused(kinds):
    with pytest.raises(ValueError, match="internal or external"):
        NewLinks(kinds)
