"""The methods that are compared: any estimator in wall time, and the posterior in operational time, which is ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from recrawl.estimate.estimator import Estimator, Evidence
from recrawl.estimate.posterior import Posterior
from recrawl.estimate.tempo import choose
from recrawl.estimate.tempo_state import Factor, fit
from recrawl.model import Histories
from recrawl.simulate.rate_trials import Answer, Population, Question


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
    """The grid posterior on the clocks of the pages: the default of recrawl."""

    name: str = "posterior, operational time"
    posterior: Posterior = field(default_factory=Posterior)
    allowed: tuple[Factor, ...] = tuple(Factor)
    """Factors that may be switched on, where they prove useful on the residents."""

    def prepare(self, population: Population, known: Histories) -> Callable[[Question], Answer]:
        """Choose the factors by the residents."""
        factors, _, _ = choose(known, population.places, allowed=self.allowed)

        def answer(question: Question) -> Answer:
            told, rows = question.evidence.histories, question.rows
            clock = fit(told, population.places, factors).time()
            stretched = Evidence(clock.stretch(told), question.evidence.levels)
            elapsed = clock.elapsed(rows, question.last, question.next, told.last_change[rows])
            asked = self.posterior.learn(stretched).take(rows)
            speed = elapsed / (question.next - question.last)
            return Answer(asked.at(elapsed).p_change(elapsed), asked.belief.quantile(0.5) * speed)

        return answer
