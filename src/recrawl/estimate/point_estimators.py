r"""Point estimators that need only counts, one root, or one step an observation; maximum likelihood is in ``mle``.

**Naive** (HACS eq. 3): λ = X/T, changes found over the time observed. It counts at most one change a gap, so it can
never exceed the rate of the visits, and more visits at the same pace do not cure it: for equal gaps its expectation is
λ·(1 − e^{−r})/r with r = λ/f, f = n/T. Kept as what others must beat.

**Bias-reduced**, for regular visits (HACS eq. 4, Barbosa eq. 1, after Cho and Garcia-Molina):

    r = −ln((n − X + ½)/(n + ½)),   λ = r·f,   f = n/T

from X changes in n gaps over the time T. Natural logarithm; r is λ/f, so f must be multiplied back (readings 000.1,
002.1). Meant for gaps of equal length: at irregular ones it is biased low (algorithms §5).

**Moment** (Upadhyay et al. 2020): as many changes as expected,

    X = Σ_k (1 − e^{−λτ_k}),   X clamped to [¼, n − ¼].

The right side rises from 0 to n, so the root is unique, and the clamp keeps it finite and above 0 for pages that were
never or always found changed. It uses all gaps alike, where maximum likelihood weighs them, and needs no fallback; at
short histories it is the better of the two (algorithms §5).

In logarithms, ln(Σ e^{−λτ}/(n − X)) is convex in λ and falls: Newton climbs monotonically from the left. Jensen's
inequality gives the left start −ln(1 − X/n)·n/T, the root itself when all gaps are equal.

**Law of large numbers** (Avrachenkov, Patil, Thoppe 2020), for visits that come at random. If visits are a Poisson
process of rate p, an observation finds a change with probability λ/(λ + p), whatever the gaps were. So

    λ = p·X/(n − X + 1),   p = n/T,

the 1 keeping it finite. It needs two counts and a sum, and no logarithm. For gaps that are not exponential (regular
visits above all) it is biased high.

**Online**: one natural-gradient step of the likelihood an observation, O(1) in time and memory (algorithms §5). With θ
= ln λ an observation after a gap τ, x = λτ, has the score B(x) if it found a change and −x if not (B(x) = x/(eˣ − 1)),
and the expected information x·B(x). Each observation adds its information to I and moves θ by its score over all of I:

    I ← I + x·B(x),   θ ← θ + clip((z·B(x) − (1 − z)·x)/I, ±1.5),   I = 1 at the start.

Two floats per page, any gaps, no observation kept. As observations accumulate it comes as close to the truth as maximum
likelihood; early observations weigh on it longer. The order of the observations matters. The start counts as one unit
of information, about as much as two well-chosen observations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recrawl.estimate.gap_columns import refuse_bad_observations
from recrawl.estimate.point_evidence import MovingPages, bernoulli, climb, sound
from recrawl.model import BoolArray, FloatArray, Histories, IntArray
from recrawl.model.compiled import can_compile, compiled


def naive_rates(histories: Histories) -> FloatArray:
    """λ of each page, per second; NaN for a page without gaps, 0 for one that was never found changed. O(gaps).

    >>> from recrawl.model import Visits
    >>> naive_rates(Histories.from_visits(Visits.of([1, 1, 1], [0.0, 4.0, 10.0], verdict=[0, 2, 1]))).tolist()
    [0.1]
    """
    histories = sound(histories)
    changes, observed = histories.changes(), histories.observed()
    return np.asarray(np.divide(changes, observed, out=np.full(len(histories), np.nan), where=observed > 0))


def bias_reduced_rate(changes: npt.ArrayLike, observations: npt.ArrayLike, observed: npt.ArrayLike) -> FloatArray:
    """λ per unit of ``observed``, from X ``changes`` found in n ``observations``; NaN where nothing was observed.

    >>> bias_reduced_rate(3, 9, 170.352).round(9).tolist()
    0.020049114
    """
    x, n, t = (np.asarray(value, dtype=np.float64) for value in (changes, observations, observed))
    with np.errstate(divide="ignore", invalid="ignore"):
        frequency = np.where((n > 0) & (t > 0), n / t, np.nan)
    return np.asarray(np.log((n + 0.5) / (n - x + 0.5)) * frequency)


def bias_reduced_rates(histories: Histories) -> FloatArray:
    """λ of each page, per second; NaN for a page without gaps. O(gaps)."""
    histories = sound(histories)
    return bias_reduced_rate(histories.changes(), histories.counts(), histories.observed())


CLAMP = 0.25
"""How far X stays from 0 and from n."""


def moment_rates(histories: Histories) -> FloatArray:
    """λ of each page, per second, > 0; NaN for a page without gaps. O(gaps · steps).

    >>> from recrawl.model import Visits
    >>> one_of_two = Visits.of([1, 1, 1], [0.0, 5.0, 10.0], verdict=[0, 2, 1])
    >>> moment_rates(Histories.from_visits(one_of_two)).round(9).tolist()  # ln(2)/5
    [0.138629436]
    """
    histories = sound(histories)
    observations = histories.counts()
    out = np.full(len(histories), np.nan)
    some = np.flatnonzero(observations)
    if len(some):
        n = observations[some].astype(np.float64)
        changes = np.clip(histories.changes()[some].astype(np.float64), CLAMP, n - CLAMP)
        start = -np.log1p(-changes / n) * n / histories.observed()[some]
        offsets = np.append(0, np.cumsum(observations[some]))
        out[some] = climb(start, offsets, histories.gaps, _moment_step, changes, n - changes)
    return out


def _moment_step(now: MovingPages) -> FloatArray:
    """Newton's relative step towards ln(Σ e^{−x}/(n − X)) = 0.

    X − Σ (1 − e^{−x}), with 1 − e^{−x} from short gaps, and 1 less e^{−x} from long ones: the 1s are counted apart, so
    that nothing small is lost beside them.
    """
    changes, rest = now.columns
    stay = np.exp(-now.x)
    long = now.x > 1.0
    excess = (changes - now.sum(long.astype(np.float64))) - now.sum(np.where(long, -stay, -np.expm1(-now.x)))
    return np.asarray(np.log1p(excess / rest) * now.sum(stay) / now.sum(now.x * stay))


def lln_rates(histories: Histories) -> FloatArray:
    """λ of each page, per second; NaN for a page without gaps, 0 for one that was never found changed. O(gaps).

    >>> from recrawl.model import Visits
    >>> lln_rates(Histories.from_visits(Visits.of([1, 1, 1], [0.0, 4.0, 10.0], verdict=[0, 2, 1]))).tolist()
    [0.1]
    """
    histories = sound(histories)
    observations, changes, observed = histories.counts(), histories.changes(), histories.observed()
    pace = np.divide(observations, observed, out=np.full(len(histories), np.nan), where=observed > 0)
    return np.asarray(pace * changes / (observations - changes + 1.0))


_MOST = 1.5
_LARGEST_X = 700.0
_WORTH_COMPILING = 200_000
_FEW_PAGES = 16
"""So few pages side by side are cheaper one observation of a time."""


@dataclass(frozen=True, slots=True)
class OnlineRates:
    """The state of n pages; :func:`update_online` changes it in place."""

    log_rate: FloatArray
    """θ = ln λ, λ per second."""
    information: FloatArray
    """I, ≥ 1: how much was learned about θ."""

    @classmethod
    def starting_at(cls, rate: FloatArray) -> OnlineRates:
        """Pages nobody observed yet, each believed to change at its ``rate`` > 0."""
        return cls(np.log(rate), np.ones(len(rate)))

    def __len__(self) -> int:
        return len(self.log_rate)

    def rates(self) -> FloatArray:
        """λ of each page, per second."""
        return np.exp(self.log_rate)


def fit_online(histories: Histories, start: FloatArray) -> OnlineRates:
    """The state after all observations, from the rates ``start``, one a page.

    The same as :func:`update_online` observation by observation.

    >>> from recrawl.model import Visits
    >>> h = Histories.from_visits(Visits.of([1, 1], [0.0, 1.0], verdict=[0, 2]))
    >>> fit_online(h, np.array([1.0])).rates().round(6).tolist()
    [1.444668]
    """
    histories = sound(histories)
    state = OnlineRates.starting_at(start)
    update_online(state, histories.row_of_gap(), histories.gaps, histories.changed)
    return state


def update_online(state: OnlineRates, rows: IntArray, gap: FloatArray, changed: BoolArray) -> None:
    """Update ``state`` **in place** with new observations: O(1) per observation, for any number of pages.

    ``rows[k]`` is the row of the page observed after ``gap[k]`` seconds, > 0. A row may occur several times; its
    observations are folded in the order given.

    Raises:
        ValueError: a gap is not positive and finite (the message names the row), or a row is none of the state.
    """
    refuse_bad_observations(rows, gap, changed, len(state))
    if len(gap) >= _WORTH_COMPILING and can_compile():
        # a view with steps would be compiled for again
        rows, gap, changed = np.ascontiguousarray(rows), np.ascontiguousarray(gap), np.ascontiguousarray(changed)
        fold_online(state.log_rate, state.information, rows, gap, changed)
    else:
        fold_online_by_numpy(state.log_rate, state.information, rows, gap, changed)


def fold_online_by_numpy(
    log_rate: FloatArray, information: FloatArray, rows: IntArray, gap: FloatArray, changed: BoolArray
) -> None:
    """The k-th observations of all rows at once, for k = 0, 1, ….

    The long rest of a few rows observation by observation.
    """
    order = np.argsort(rows, kind="stable")
    heads = np.flatnonzero(np.diff(rows[order], prepend=-1))
    counts = np.diff(np.append(heads, len(rows)))
    by_length = np.argsort(-counts, kind="stable")
    heads, counts = heads[by_length], counts[by_length]
    live = np.searchsorted(-counts, -np.arange(1, counts.max(initial=0) + 1), side="right")
    wide = int((live > _FEW_PAGES).sum())
    for k, n in enumerate(live[:wide].tolist()):
        where = order[heads[:n] + k]
        row = rows[where]
        x = np.exp(log_rate[row]) * gap[where]
        pull = bernoulli(x)
        information[row] += x * pull
        log_rate[row] += np.clip(np.where(changed[where], pull, -x) / information[row], -_MOST, _MOST)
    for head, count in zip(heads[counts > wide].tolist(), counts[counts > wide].tolist(), strict=True):
        rest = order[head + wide : head + count]
        one = fold_online.__wrapped__  # type: ignore[attr-defined]  # the kernel as plain Python
        one(log_rate, information, rows[rest].tolist(), gap[rest].tolist(), changed[rest].tolist())


@compiled
def fold_online(
    log_rate: FloatArray, information: FloatArray, rows: IntArray, gap: FloatArray, changed: BoolArray
) -> None:
    """One observation after the other."""
    for k in range(len(rows)):
        row = rows[k]
        x = math.exp(log_rate[row]) * gap[k]
        pull = x / math.expm1(x) if x < _LARGEST_X else 0.0
        information[row] += x * pull
        step = (pull if changed[k] else -x) / information[row]
        log_rate[row] += min(max(step, -_MOST), _MOST)
