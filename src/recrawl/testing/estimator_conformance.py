"""The rules of :class:`recrawl.estimate.estimator.Estimator` as tests."""

from __future__ import annotations

import numpy as np

from recrawl.estimate.estimator import Estimator, RateEvidence
from recrawl.model import AnyArray, Belief, BoolArray, FloatArray, Histories, IntArray, Verdict, Visits
from recrawl.testing.checks import pickled
from recrawl.time import DAY

_HORIZONS = (0.0, 1.0, 3600.0, DAY, 30 * DAY, 1e9)
"""Seconds ahead at which beliefs are asked."""


def some_evidence(n: int = 30, most: int = 12, seed: int = 5, order: IntArray | None = None) -> RateEvidence:
    """Pages of three hosts with zero to ``most`` gaps of minutes to months; page k changes about every k days.

    With ``order``, a permutation, row ``i`` is what row ``order[i]`` is without.
    """
    rng = np.random.default_rng(seed)
    page = np.repeat(np.arange(n), rng.integers(1, most + 2, n))
    gap = np.exp(rng.uniform(np.log(60.0), np.log(90 * DAY), len(page)))
    first = np.append(True, np.diff(page) > 0)
    changed = rng.random(len(page)) < -np.expm1(-gap / (DAY * (page + 1)))
    order = np.arange(n) if order is None else order
    return _evidence(np.argsort(order)[page], gap, changed, first, order)


def uniform_evidence(n: int, observations: int, *, changed: bool) -> RateEvidence:
    """Pages seen every day, all of which changed at every observation, or never."""
    page = np.repeat(np.arange(n), observations)
    first = np.append(True, np.diff(page) > 0)[: len(page)]
    return _evidence(page, np.full(len(page), DAY), np.full(len(page), changed), first, np.arange(n))


def _evidence(page: IntArray, gap: FloatArray, changed: BoolArray, first: BoolArray, order: IntArray) -> RateEvidence:
    verdict = np.where(first, Verdict.UNKNOWN, np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED))
    histories = Histories.from_visits(Visits.of(page, 1.7e9 + np.cumsum(gap), verdict=verdict))
    return RateEvidence(histories, (order % 3, order % 6))


def _arrays(evidence: RateEvidence) -> list[AnyArray]:
    histories = evidence.histories
    return [histories.page, histories.offsets, histories.gaps, histories.changed, *evidence.levels]


def answers(belief: Belief) -> FloatArray:
    """What a belief says, one column a question."""
    n = len(belief)
    columns = [belief.mean(), *(belief.quantile(q) for q in (0.05, 0.5, 0.95))]
    for horizon in _HORIZONS:
        t = np.full(n, horizon)
        columns += [belief.survival(t), belief.p_change(t), belief.unchanged_time(t)]
    return np.stack(columns, axis=1)


class EstimatorConformance:
    """Tests for one estimator. Override :meth:`make`."""

    def make(self) -> Estimator:
        """The estimator."""
        raise NotImplementedError

    def test_it_is_an_estimator_with_a_name(self) -> None:
        """Members of the protocol."""
        assert isinstance(self.make(), Estimator)
        assert self.make().name

    def test_a_belief_has_one_row_a_page_and_is_never_nan(self) -> None:
        """Rule 1, also for pages without gaps and for no pages."""
        for evidence in (
            some_evidence(),
            some_evidence(1),
            some_evidence(5, most=0),
            uniform_evidence(0, 1, changed=True),
        ):
            belief = self.make()(evidence)
            assert len(belief) == len(evidence)
            assert not np.isnan(answers(belief)).any()

    def test_rates_and_probabilities_are_in_range(self) -> None:
        """Rates are ≥ 0 per second; survival falls from 1 to at least 0, and is 1 − p_change."""
        belief = self.make()(some_evidence())
        n = len(belief)
        assert (belief.mean() >= 0).all()
        low, middle, high = (belief.quantile(q) for q in (0.05, 0.5, 0.95))
        assert (low >= 0).all()
        assert (low <= middle * (1 + 1e-9)).all()
        assert (middle <= high * (1 + 1e-9)).all()
        before = np.ones(n)
        for horizon in _HORIZONS:
            t = np.full(n, horizon)
            survival = belief.survival(t)
            assert ((survival >= 0) & (survival <= before + 1e-9)).all()
            np.testing.assert_allclose(survival + belief.p_change(t), 1.0, atol=1e-6)
            before = survival
        np.testing.assert_allclose(belief.survival(np.zeros(n)), 1.0, atol=1e-6)

    def test_pages_that_always_change_are_faster_than_pages_that_never_do(self) -> None:
        """The least that evidence must say."""
        always, never = (
            self.make()(uniform_evidence(8, 10, changed=changed)).quantile(0.5) for changed in (True, False)
        )
        assert (always > never).all()

    def test_same_evidence_same_answer_and_arguments_are_unchanged(self) -> None:
        """Rule 2: an estimator is a function."""
        estimator, evidence = self.make(), some_evidence()
        before = [column.copy() for column in _arrays(evidence)]
        first, second = (answers(estimator(evidence)) for _ in range(2))
        np.testing.assert_array_equal(first, second)
        for column, saved in zip(_arrays(evidence), before, strict=True):
            np.testing.assert_array_equal(column, saved)

    def test_order_of_the_pages_does_not_matter(self) -> None:
        """Rule 3: rows are independent of their position."""
        order = np.random.default_rng(6).permutation(30)
        straight, other = (answers(self.make()(some_evidence(order=one))) for one in (None, order))
        np.testing.assert_allclose(other, straight[order], rtol=1e-4, atol=1e-9)

    def test_it_needs_no_groups(self) -> None:
        """Evidence may come without levels."""
        evidence = RateEvidence(some_evidence().histories)
        assert not np.isnan(answers(self.make()(evidence))).any()

    def test_rows_of_a_belief_can_be_taken(self) -> None:
        """``take`` keeps the answers of the rows."""
        belief = self.make()(some_evidence())
        rows = np.array([4, 0, 7])
        np.testing.assert_allclose(answers(belief.take(rows)), answers(belief)[rows], rtol=1e-9)

    def test_estimator_and_belief_pickle_with_the_same_answers(self) -> None:
        """Rule 4: both are sent to other processes."""
        estimator, evidence = self.make(), some_evidence()
        belief = estimator(evidence)
        np.testing.assert_array_equal(answers(pickled(estimator)(evidence)), answers(belief))
        np.testing.assert_array_equal(answers(pickled(belief)), answers(belief))
