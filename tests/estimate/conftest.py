"""Pages that several tests of estimators learn from."""

from collections.abc import Callable

import numpy as np
import pytest

from recrawl.model import FloatArray, IntArray, Verdict, Visits
from recrawl.time import DAY

TwoHosts = tuple[Visits, IntArray, FloatArray, FloatArray]


@pytest.fixture(scope="session")
def two_hosts() -> Callable[[int, int], TwoHosts]:
    """``two_hosts(n, seed)``: visits, and the host of each page, what is said of it and its rate per second.

    One host is ten times as fast as the other; within both some pages are nine times as fast as others. What is said
    tells these apart, but not the hosts.
    """
    return _two_hosts


def _two_hosts(n: int, seed: int, observations: int = 8) -> TwoHosts:
    rng = np.random.default_rng(seed)
    host, fast = np.arange(n) % 2, rng.integers(0, 2, n)
    rate = np.where(host, 1 / 10, 1 / 100) * np.where(fast, 3.0, 1 / 3) / DAY
    gaps = rng.uniform(3, 30, (n, observations)) * DAY
    changed = rng.random((n, observations)) < -np.expm1(-rate[:, None] * gaps)
    time = np.concatenate([np.zeros((n, 1)), np.cumsum(gaps, axis=1)], axis=1)
    verdict = np.concatenate([np.zeros((n, 1)), np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)], axis=1)
    visits = Visits.of(np.repeat(np.arange(n), observations + 1), time.ravel(), verdict=verdict.ravel().astype(int))
    return visits, host, np.where(fast, 9.0, 1.0) / DAY, rate
