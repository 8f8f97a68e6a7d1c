"""The methods that are compared: any estimator in wall time, and the default, the posterior in operational time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from recrawl.estimate.estimator import Estimator
from recrawl.estimate.operational_posterior import OperationalPosterior
from recrawl.estimate.posterior import Posterior
from recrawl.estimate.tempo import choose
from recrawl.model import Histories
from recrawl.simulate.rate_trials import Answer, Method, Population, Question


@dataclass(frozen=True, slots=True)
class InWallTime:
    """An estimator that takes every second for a second."""

    estimator: Estimator

    @property
    def name(self) -> str:
        """That of the estimator."""
        return self.estimator.name

    def prepare(self, _population: Population, _known: Histories) -> Callable[[Question], Answer]:
        """Nothing to learn beforehand."""
        return self._answer

    def _answer(self, question: Question) -> Answer:
        elapsed = question.next - question.last
        if isinstance(self.estimator, Posterior):
            learned = self.estimator.learn(question.evidence)
            asked = learned.take(question.rows)
            return Answer(asked.at(elapsed).p_change(elapsed), asked.belief.quantile(0.5))
        belief = self.estimator(question.evidence).take(question.rows)
        return Answer(belief.p_change(elapsed), belief.quantile(0.5))


@dataclass(frozen=True, slots=True)
class InOperationalTime:
    """The posterior on the clocks of the pages. Factors are chosen by the residents; births are those of the record."""

    estimator: OperationalPosterior = field(default_factory=OperationalPosterior)

    @property
    def name(self) -> str:
        """That of the estimator."""
        return self.estimator.name

    def prepare(self, population: Population, known: Histories) -> Callable[[Question], Answer]:
        """Choose the factors by the residents."""
        factors = choose(known, population.places, allowed=self.estimator.allowed).factors

        def answer(question: Question) -> Answer:
            belief = self.estimator.with_factors(question.evidence, factors, population.places).take(question.rows)
            return Answer(belief.p_change(question.next - question.last), belief.quantile(0.5))

        return answer


def method_of(estimator: Estimator) -> Method:
    """The way to try an estimator."""
    if isinstance(estimator, OperationalPosterior):
        return InOperationalTime(estimator)
    return InWallTime(estimator)
