"""Objectives: the value of a visit as a function of the time t since the last one (algorithms §1).

A staleness penalty D(t) gives a visit the value U(t) = t·D(t) − ∫₀ᵗD = ∫₀ᵗ s·D'(s) ds; a reward R(t) collected at the
visit gives U = R − t·R'. Both are averaged over the belief about λ, and all of them follow from S(t) = E[e^{−λt}]:

| objective | D(t) (or R) | U(t) at a known λ | U(t) over a belief |
|---|---|---|---|
| freshness | 1 − e^{−λt} | g(λt)/λ | ∫S − t·S |
| changes | R = 1 − e^{−λt} | g(λt) | 1 − S + t·S' |
| harmonic | Ein(λt) | t − (1−e^{−λt})/λ | t − ∫S |
| age | t − (1−e^{−λt})/λ | t²/2 − g(λt)/λ² | ∫₀ᵗ s(1 − S(s)) ds |
| blur | λt | λt²/2 | E[λ]·t²/2 |

with g(x) = 1 − (1+x)e^{−x}. Every U is ≥ 0 and never falls, so a threshold turns it into one due time. Freshness and
changes are bounded at a known rate: pages that change too fast for the threshold are hopeless. The others are
unbounded: no page starves. U is a time for freshness, harmonic and blur, a time² for age, and a number for changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

from recrawl.model import Belief, FloatArray


class Objective(Protocol):
    """The value of a visit. Implementations are immutable."""

    @property
    def name(self) -> str:
        """What settings and reports call it."""
        ...

    def value(self, belief: Belief, elapsed: FloatArray) -> FloatArray:
        """U(``elapsed``) of each page: ≥ 0, never falling in ``elapsed`` (seconds), 0 at 0. O(pages)."""
        ...


Basics: TypeAlias = tuple[float, float, float, float, float]
"""How much of freshness, changes, harmonic, age and blur (in this order) an objective has."""


def basics_of(objective: Objective) -> Basics | None:
    """What an objective is a sum of, so that compiled code can value it; ``None`` if it has no such ``basics``."""
    basics: Basics | None = getattr(objective, "basics", None)
    return basics


@dataclass(frozen=True, slots=True)
class FreshnessObjective:
    """Keep copies equal to the original as much of the time as possible (Cho and Garcia-Molina)."""

    name: str = "freshness"
    basics: ClassVar[Basics] = (1.0, 0.0, 0.0, 0.0, 0.0)

    def value(self, belief: Belief, elapsed: FloatArray) -> FloatArray:
        """∫S − t·S."""
        return np.maximum(belief.unchanged_time(elapsed) - elapsed * belief.survival(elapsed), 0.0)


@dataclass(frozen=True, slots=True)
class CapturedChanges:
    """Find as many changes as possible: completeness. At equal weights HACS's ranking by probability of change."""

    name: str = "changes"
    basics: ClassVar[Basics] = (0.0, 1.0, 0.0, 0.0, 0.0)

    def value(self, belief: Belief, elapsed: FloatArray) -> FloatArray:
        """1 − S + t·S'."""
        return np.maximum(belief.p_change(elapsed) - elapsed * belief.change_density(elapsed), 0.0)


@dataclass(frozen=True, slots=True)
class HarmonicObjective:
    """Each further missed change hurts, but less than the one before it (Kolobov). Never starves a page."""

    name: str = "harmonic"
    basics: ClassVar[Basics] = (0.0, 0.0, 1.0, 0.0, 0.0)

    def value(self, belief: Belief, elapsed: FloatArray) -> FloatArray:
        """Elapsed time less ∫S."""
        return np.maximum(elapsed - belief.unchanged_time(elapsed), 0.0)


@dataclass(frozen=True, slots=True)
class AgeObjective:
    """Keep the time since a copy went out of date short (Cho and Garcia-Molina)."""

    name: str = "age"
    basics: ClassVar[Basics] = (0.0, 0.0, 0.0, 1.0, 0.0)

    def value(self, belief: Belief, elapsed: FloatArray) -> FloatArray:
        """∫₀ᵗ s(1 − S(s)) ds by Gauss-Legendre with 20 nodes, dense near 0: 20 times the work of the others.

        Positive weights on terms that never fall keep the sum from falling.
        """
        total = np.zeros_like(elapsed)
        for node, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):
            total += weight * belief.p_change(elapsed * node)
        return total * elapsed * elapsed


@dataclass(frozen=True, slots=True)
class BlurObjective:
    """Every missed change counts for as long as it is missed (SHARC). Square-root law; never starves a page.

    With a belief about the rate of *new links* in place of changes it is the delay until they are found.
    """

    name: str = "blur"
    basics: ClassVar[Basics] = (0.0, 0.0, 0.0, 0.0, 1.0)

    def value(self, belief: Belief, elapsed: FloatArray) -> FloatArray:
        """E[λ]·t²/2."""
        return 0.5 * belief.mean() * elapsed * elapsed


@dataclass(frozen=True, slots=True)
class BlendedObjective:
    """A weighted sum: U is linear in D, so objectives blend without further ado."""

    name: str
    parts: tuple[tuple[float, Objective], ...]
    """Weights ≥ 0. Parts in different units blend only as far as their weights make sense."""

    @property
    def basics(self) -> Basics | None:
        """The sum of those of its parts; ``None`` if one of them has none."""
        total = np.zeros(5)
        for weight, objective in self.parts:
            basics = basics_of(objective)
            if basics is None:
                return None
            total += weight * np.array(basics)
        freshness, changes, harmonic, age, blur = total.tolist()
        return freshness, changes, harmonic, age, blur

    def value(self, belief: Belief, elapsed: FloatArray) -> FloatArray:
        """Σ weight · U."""
        total = np.zeros_like(elapsed)
        for weight, objective in self.parts:
            total += weight * objective.value(belief, elapsed)
        return total


def _age_rule() -> tuple[FloatArray, FloatArray]:
    """Nodes u and weights for ∫₀¹ u·f(u) du, with u = v³ so that they crowd where S falls fast."""
    v, w = np.polynomial.legendre.leggauss(20)
    v, w = (v + 1.0) / 2.0, w / 2.0
    return v**3, w * 3.0 * v**5


_NODES, _WEIGHTS = _age_rule()

ARCHIVE = BlendedObjective("archive", ((0.95, FreshnessObjective()), (0.05, HarmonicObjective())))
"""The default: freshness, with 5 % harmonic so that no page is ever written off (algorithms §1, §9)."""

OBJECTIVES: dict[str, Objective] = {
    "archive": ARCHIVE,
    "freshness": FreshnessObjective(),
    "changes": CapturedChanges(),
    "harmonic": HarmonicObjective(),
    "age": AgeObjective(),
    "blur": BlurObjective(),
    "links": BlurObjective("links"),
}
"""Every objective by the name settings use."""
