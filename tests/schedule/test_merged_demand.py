"""One price from the demand curves of several units: the same as one search over all pages."""

from __future__ import annotations

import math

import numpy as np
import pytest

from recrawl.errors import ConfigError
from recrawl.model import GammaBelief
from recrawl.schedule.objectives import FreshnessObjective
from recrawl.schedule.price.budget_price import allocate_by_host
from recrawl.schedule.price.due_times import VisitDemand
from recrawl.schedule.price.price_roots import DemandCurve, demand_curve, merged_price, prices_around, wide_prices
from recrawl.time import DAY

UNITS, HOSTS = 4, 40


def unequal_pages(rng: np.random.Generator) -> tuple[VisitDemand, np.ndarray, np.ndarray]:
    """3,000 pages on 40 hosts; importance and rates differ between the units that own the hosts."""
    n = 3_000
    host = rng.integers(0, HOSTS, n)
    unit = host % UNITS
    shape = np.exp(rng.normal(0.0, 0.5, n))
    belief = GammaBelief(shape, shape * DAY * 10.0 ** rng.uniform(-1, 2, n) * 2.0**unit)
    asking = VisitDemand(FreshnessObjective(), belief, 4.0**unit, np.ones(n), 60.0, 365 * DAY)
    limit = np.where(rng.random(HOSTS) < 0.3, 20.0 / DAY, np.inf)
    return asking, host, limit


def curves_of(asking: VisitDemand, host: np.ndarray, limit: np.ndarray, price: np.ndarray) -> list[DemandCurve]:
    """The curve of each unit, which knows only its own hosts."""
    return [
        demand_curve(asking.take(rows), host[rows], limit, price)
        for rows in (np.flatnonzero(host % UNITS == unit) for unit in range(UNITS))
    ]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [0.02, 0.3, 3.0])
def test_units_find_the_price_of_one_search_over_all_pages(seed: int, share: float) -> None:
    asking, host, limit = unequal_pages(np.random.default_rng(seed))
    budget = share * len(asking) / DAY
    truth = allocate_by_host(asking, host, limit, budget)
    highest = float(asking.extremes().limit.max())
    price = merged_price(curves_of(asking, host, limit, wide_prices(highest)), budget)
    assert price == pytest.approx(truth.price, rel=0.02)
    for _ in range(2):
        price = merged_price(curves_of(asking, host, limit, prices_around(price)), budget)
    assert price == pytest.approx(truth.price, rel=1e-5)


def test_the_sum_of_the_units_is_the_demand_of_all() -> None:
    asking, host, limit = unequal_pages(np.random.default_rng(5))
    price = np.geomspace(1.0, 1e6, 20)
    whole = demand_curve(asking, host, limit, price)
    parts = curves_of(asking, host, limit, price)
    np.testing.assert_allclose(sum(part.asked for part in parts), whole.asked, rtol=1e-9)
    assert sum(part.least for part in parts) == pytest.approx(whole.least)
    assert sum(part.most for part in parts) == pytest.approx(whole.most)
    assert (np.diff(whole.asked) <= 1e-12).all()


def test_a_budget_that_covers_all_or_nothing_has_no_price_between() -> None:
    asking, host, limit = unequal_pages(np.random.default_rng(6))
    curves = curves_of(asking, host, limit, np.geomspace(1.0, 1e6, 20))
    assert merged_price(curves, sum(curve.most for curve in curves)) == 0.0
    assert merged_price(curves, sum(curve.least for curve in curves)) == math.inf


def test_a_unit_that_stopped_reporting_counts_less() -> None:
    asking, host, limit = unequal_pages(np.random.default_rng(7))
    curves = curves_of(asking, host, limit, np.geomspace(1e-2, 1e7, 64))
    budget = 0.3 * len(asking) / DAY
    all_of_them = merged_price(curves, budget)
    half = merged_price([*curves[1:], curves[0].scaled(0.5)], budget)
    without = merged_price(curves[1:], budget)
    assert without < half < all_of_them


def test_a_unit_without_pages_changes_nothing() -> None:
    asking, host, limit = unequal_pages(np.random.default_rng(8))
    curves = curves_of(asking, host, limit, np.geomspace(1e-2, 1e7, 64))
    nothing = demand_curve(asking.take(np.empty(0, np.int64)), host[:0], limit, np.array([1.0]))
    budget = 0.3 * len(asking) / DAY
    assert merged_price([*curves, nothing], budget) == pytest.approx(merged_price(curves, budget))


@pytest.mark.parametrize("price", [[2.0, 1.0], [0.0, 1.0]])
def test_prices_must_ascend(price: list[float]) -> None:
    asking, host, limit = unequal_pages(np.random.default_rng(9))
    with pytest.raises(ConfigError, match="ascending"):
        demand_curve(asking, host, limit, np.array(price))


def test_a_negative_budget_is_refused() -> None:
    with pytest.raises(ConfigError, match="not possible"):
        merged_price([], -1.0)
