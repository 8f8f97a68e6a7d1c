"""Priors from features: they must tell pages apart where features do, and admit it where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.errors import InputError
from recrawl.predict.count_prior import count_likelihood, train
from recrawl.predict.static_features import Feature, FeatureGroup, FeatureTable, table_of
from recrawl.time import DAY

SHAPE = 2.0


def population(
    pages: int, sites: int, seed: int, *, telling: float = 1.0
) -> tuple[FeatureTable, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pages whose size, and whose name on their own site, say how often they change; features, site, rate, looks."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, sites, pages)
    size = rng.normal(0.0, 1.0, pages)
    name = rng.integers(0, 6, pages)
    by_name = rng.normal(0.0, 1.0, (sites, 6))
    mean = np.exp(telling * (size + by_name[site, name])) / (30 * DAY)
    rate = rng.gamma(SHAPE, mean / SHAPE)
    exposure = rng.uniform(30, 300, pages) * DAY
    count = rng.poisson(rate * exposure).astype(np.float64)
    columns = [
        (Feature("size", FeatureGroup.SP), size),
        (Feature("noise", FeatureGroup.SP), rng.normal(size=pages)),
        (Feature("name", FeatureGroup.SP, categorical=True), name),
        (Feature("site", FeatureGroup.SP, categorical=True), site),
    ]
    return table_of(np.arange(pages), 0.0, columns), site, count, exposure, rate


def loss(count: np.ndarray, exposure: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    return -float(count_likelihood(count, exposure, a / b, a).mean())


def test_pages_of_known_sites_are_told_apart_with_the_right_uncertainty() -> None:
    table, site, count, exposure, rate = population(3000, 4, seed=1)
    half = np.arange(3000) < 2000
    model = train(table.take(half), count[half], exposure[half], site[half])
    plain = train(table.only([]).take(half), count[half], exposure[half], site[half])
    said, same = model.prior(table.take(~half), site[~half]), plain.prior(table.only([]).take(~half), site[~half])
    assert (
        loss(count[~half], exposure[~half], said.a, said.b) < loss(count[~half], exposure[~half], same.a, same.b) - 0.2
    )
    # Pages that look alike differ as the population was made: neither surer nor vaguer than that.
    assert 0.6 * SHAPE < np.median(said.a) < 1.2 * SHAPE
    inside = (said.quantile(0.05) <= rate[~half]) & (rate[~half] <= said.quantile(0.95))
    assert 0.84 < inside.mean() < 0.96


def test_a_page_of_an_unknown_site_is_judged_by_what_holds_everywhere() -> None:
    table, site, count, exposure, rate = population(3000, 24, seed=2)
    here = site < 18
    model = train(table.take(here), count[here], exposure[here], site[here])
    said = model.prior(table.take(~here), site[~here])
    size = table.column("size")[~here]
    assert np.corrcoef(np.log(said.a / said.b), size)[0, 1] > 0.9
    assert np.median(said.a) < np.median(model.prior(table.take(here), site[here]).a)
    inside = (said.quantile(0.05) <= rate[~here]) & (rate[~here] <= said.quantile(0.95))
    assert inside.mean() > 0.8


def test_features_that_say_nothing_change_nothing() -> None:
    table, site, count, exposure, _ = population(800, 4, seed=3, telling=0.0)
    half = np.arange(800) < 400
    model = train(table.take(half), count[half], exposure[half], site[half])
    plain = train(table.only([]).take(half), count[half], exposure[half], site[half])
    said, same = model.prior(table.take(~half), site[~half]), plain.prior(table.only([]).take(~half), site[~half])
    assert (
        loss(count[~half], exposure[~half], said.a, said.b) < loss(count[~half], exposure[~half], same.a, same.b) + 0.02
    )


def test_prior_times_history_beats_either_alone() -> None:
    table, site, count, exposure, rate = population(2000, 4, seed=4)
    half = np.arange(2000) < 1400
    model = train(table.take(half), count[half], exposure[half], site[half])
    said = model.prior(table.take(~half), site[~half])
    rng = np.random.default_rng(5)
    short = np.full((~half).sum(), 20 * DAY)
    seen = rng.poisson(rate[~half] * short)
    later = rng.poisson(rate[~half] * exposure[~half]).astype(np.float64)
    both = loss(later, exposure[~half], said.a + seen, said.b + short)
    prior_alone = loss(later, exposure[~half], said.a, said.b)
    history_alone = loss(later, exposure[~half], 0.5 + seen, 0.5 * 30 * DAY + short)
    assert both < min(prior_alone, history_alone)


def test_few_pages_no_events_and_one_site_have_a_prior_too() -> None:
    table, _, _, exposure, _ = population(3, 1, seed=6)
    site, quiet = np.zeros(3, np.int64), np.zeros(3)
    said = train(table, quiet, exposure, site).prior(table, site)
    assert np.isfinite(said.mean()).all()
    assert (said.mean() < 1.0 / (30 * DAY)).all()
    assert (said.mean() > 0).all()


def test_constant_targets_and_order_of_pages_do_not_matter_much() -> None:
    table, site, _, exposure, _ = population(300, 3, seed=7)
    same = train(table, exposure / (10 * DAY), exposure, site).prior(table, site)
    np.testing.assert_allclose(same.mean() * 10 * DAY, 1.0, rtol=0.1)


def test_it_is_the_same_for_the_same_seed_and_refuses_other_features() -> None:
    table, site, count, exposure, _ = population(300, 3, seed=8)
    one, two = (train(table, count, exposure, site, seed=4).prior(table, site) for _ in range(2))
    np.testing.assert_array_equal(one.a, two.a)
    np.testing.assert_array_equal(one.b, two.b)
    with pytest.raises(InputError, match="trained on other features"):
        train(table, count, exposure, site).prior(table.only(["size"]), site)


def test_nothing_watched_is_said_so() -> None:
    table, site, count, _, _ = population(30, 3, seed=9)
    with pytest.raises(InputError, match="nothing to learn"):
        train(table, count, np.zeros(30), site)
