"""What is expected of pages counts for beliefs of two numbers a page as it does for those on a grid."""

import numpy as np
import pytest

from recrawl.estimate.estimator import RateEvidence
from recrawl.estimate.posterior.expected_rates import fit_sharpened_gamma, log_evidence
from recrawl.estimate.posterior.gamma_posterior import fit_group_priors, fit_prior
from recrawl.estimate.posterior.posterior_estimators import GammaPosterior
from recrawl.model import Histories, Pages
from recrawl.schedule.objectives import FreshnessObjective
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.time import DAY


def by(group):
    return lambda histories: fit_group_priors(histories, group, fit_prior(histories))


def test_what_is_said_within_a_host_foretells_better_whatever_the_level(two_hosts):
    visits, host, said, _ = two_hosts(400, 1)
    to_come, host2, said2, _ = two_hosts(400, 2)
    histories, later = Histories.from_visits(visits), Histories.from_visits(to_come)
    sharp = fit_sharpened_gamma(histories, host, said, by(host))
    again = fit_sharpened_gamma(histories, host, 1e3 * said, by(host))
    plain = by(host)(histories).of(host2)
    assert log_evidence(later, sharp.of(host2, said2)) > log_evidence(later, plain) + 20
    np.testing.assert_allclose(again.of(host2, 1e3 * said2).b, sharp.of(host2, said2).b, rtol=1e-6)


def test_hosts_nobody_has_seen_are_told_apart_by_the_model_too(two_hosts):
    visits, host, said, _ = two_hosts(400, 1)
    sharp = fit_sharpened_gamma(Histories.from_visits(visits), host, said, by(host))
    fast, slow = sharp.of(np.array([77, 77]), np.array([9.0, 1.0]) / DAY).mean()
    assert fast / slow == pytest.approx(3.0)


@pytest.mark.parametrize("seed", [4, 5, 6])
def test_a_model_that_is_wrong_does_not_count(two_hosts, seed):
    visits, host, said, _ = two_hosts(400, seed)
    histories = Histories.from_visits(visits)
    for wrong in (np.random.default_rng(seed).lognormal(0.0, 1.5, 400) / DAY, 1.0 / said):
        sharp = fit_sharpened_gamma(histories, host, wrong, by(host))
        assert sharp.power == 0.0
        np.testing.assert_array_equal(sharp.of(host, wrong).b, by(host)(histories).of(host).b)


@pytest.mark.parametrize("levels", [(), ("host",)])
def test_the_estimator_of_two_numbers_heeds_what_is_expected(two_hosts, levels):
    visits, host, said, rate = two_hosts(200, 9)
    groups = (host,) if levels else ()
    histories = Histories.from_visits(visits).latest(2)

    def error(evidence):
        return np.abs(np.log(GammaPosterior()(evidence).mean()) - np.log(rate)).mean()

    assert error(RateEvidence(histories, groups, expected=said)) < 0.9 * error(RateEvidence(histories, groups))


@pytest.mark.slow
def test_the_policy_of_two_numbers_comes_sooner_to_new_pages_that_are_expected_to_change(two_hosts):
    visits, host, said, _ = two_hosts(200, 3)
    expected = dict(enumerate(said)) | {900: 9.0 / DAY, 901: 1.0 / DAY}
    policy = ValuedPolicy(
        FreshnessObjective(),
        belief="gamma",
        expected=lambda asked: np.array([expected[one] for one in asked.id.tolist()]),
    )
    policy.add(Pages.of(np.arange(200), host=host))
    policy.tell(visits)
    now = 400 * DAY
    policy.fit(20 / DAY, now)
    policy.add(Pages.of([900, 901], host=[0, 0]))
    fast, slow = policy.belief(np.array([900, 901]), now).mean()
    assert fast / slow == pytest.approx(3.0, rel=0.01)
