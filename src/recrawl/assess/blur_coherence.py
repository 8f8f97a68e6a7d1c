r"""Blur and coherence of a site capture, and its quality statement.

Both are stochastic, from the rates, or actual, from the times of all changes.

*Stochastic blur.* A query for time t is answered with the version captured nearest to t. The blur of a page of rate λ
is the expected number of changes in between, averaged over all t of an observation interval [o_s, o_e] (SHARC 4.1;
4.3.3 for other intervals than the capture's own; 5.1 with a revisit):

.. math:: B(p) = \frac{λ}{o_e - o_s} \int_{o_s}^{o_e} \min(|t - t^v|, |t - t^r|)\,dt = \frac{λ\,ω}{o_e - o_s}

ω is the *penalty* of the schedule. Times in seconds and rates per second, or any other unit. A revisit of NaN did not
happen. Weights are factors: a page of weight 2 counts as two pages. O(n).

*Coherence.* A page is coherent if it did not change between its visit and its revisit (SHARC 5.1, 5.6).

*Actual blur* counts the true changes between t and the shown version. Over [o_s, o_e] a change at time h counts h − o_s
if the version is later, and o_e − h if it is earlier (SHARC 4.19). With a revisit, the visit is shown up to the
midpoint between both, and the revisit from there (SHARC 4.20, reading 003.13). Its mean over many histories is the
stochastic blur. Changes are ragged: page i changed at ``times[offsets[i]:offsets[i+1]]``, ascending. An observation at
the time of a change saw it. O(pages + changes), or with a logarithm.

*Expected changes* (:class:`ExpectedChanges`) are the count N(t) given the rate and the observations. Between two
observations G apart the pace is constant: 0 if the later one found no change, and λ/(1 − e^{−λG}) if it found one (1/G
for λ = 0). It is λ before the first observation and after the last, where nothing is known, and 0 after a page is gone.
A log of changes has a step at each change. N is piecewise linear and monotone; the changes between t and the shown
version are |N(t) − N(version)|. Without evidence the pace is λ everywhere.

:func:`worst_case_increase` bounds the blur of a single-visit capture with k misplaced downloads.

*The quality statement* of a site capture has predicted and achieved blur and coherence. Predicted figures follow from
the rates and the actual visit times. Achieved figures also use the results of the revisits. Let I be the time between
visit and revisit of a page of rate λ. In between,

- a page found *unchanged* is coherent, and its blur is 0;
- a page found *changed* or *missing* had at least one change, so its expected changes grow from λ per second to
  λ/(1 − e^{−λI}), evenly spread;
- for a page without a verdict at the revisit, λ stays.

Outside [visit, revisit] the prediction stays. If the rates are right, the mean achieved blur over many captures equals
the predicted blur, because the probability of a change is 1 − e^{−λI}.

:func:`statement_json` gives the statement as JSON values: for the store, a WARC record, a WACZ and the terminal. Fields
of a schema version are stable. New fields may be added without a new version; none is removed.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from recrawl.assess.observations import JointValidity, Observations, joint_validity
from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray, Verdict
from recrawl.model.arrays import ends_of_runs, ragged_search


@dataclass(frozen=True, slots=True)
class ExpectedChanges:
    """N(t) of every page, counted from its first observation. Times in seconds since the epoch."""

    observations: Observations
    rate: FloatArray
    """λ of each page, per second; 0 where it is not known."""
    level: FloatArray
    """N at each observation."""
    pace: FloatArray
    """Expected changes per second from each observation to the next of its page."""
    area: FloatArray
    """∫ N from the first observation of the page to each observation, in seconds."""

    @classmethod
    def of(cls, observations: Observations, rate: FloatArray, *, evidence: bool = True) -> ExpectedChanges:
        """N from rates, one a page. O(m)."""
        rate = np.where(np.isnan(rate), 0.0, rate)
        row = observations.row_of_observation()
        pace, step = rate[row], np.zeros(len(row))
        opens, gap = observations.opens(), np.full(len(row), np.nan)
        np.subtract(observations.time[1:], observations.time[:-1], out=gap[1:])
        if evidence and len(row):
            found = ~opens & (observations.says == Verdict.CHANGED)
            exact = found & observations.exact()
            paced = pace.copy()  # of the gap that ends at each observation
            paced[~opens & (observations.says == Verdict.UNCHANGED)] = 0.0
            seen = found & ~exact
            paced[seen] = 1.0 / (gap[seen] * special.exprel(-pace[seen] * gap[seen]))
            paced[exact], step[exact] = 0.0, 1.0
            pace[:-1] = np.where(opens[1:], pace[:-1], paced[1:])
            pace[ends_of_runs(row) & observations.gone] = 0.0
        before = np.where(opens, 0.0, np.append(0.0, pace[:-1]))  # pace of the gap that ends here
        gap = np.where(opens, 0.0, gap)
        level = _running(before * gap + step, observations)
        start = np.where(opens, 0.0, np.append(0.0, level[:-1]))
        return cls(observations, rate, level, pace, _running((start + before * gap / 2.0) * gap, observations))

    def count(self, row: IntArray, time: FloatArray) -> FloatArray:
        """N of these pages (rows that have an observation) at these times; negative before the first observation.

        O(k log m).
        """
        observation, since, first = self._place(row, time)
        return np.where(first, self.rate[row] * since, self.level[observation] + self.pace[observation] * since)

    def integral(self, row: IntArray, time: FloatArray) -> FloatArray:
        """∫ N from the first observation of the page to these times, in seconds. O(k log m)."""
        observation, since, first = self._place(row, time)
        inside = self.area[observation] + (self.level[observation] + self.pace[observation] * since / 2.0) * since
        return np.where(first, self.rate[row] * since * since / 2.0, inside)

    def _place(self, row: IntArray, time: FloatArray) -> tuple[IntArray, FloatArray, BoolArray]:
        """The last observation up to each time, the seconds since it, and where there is none (then the first)."""
        observation = ragged_search(self.observations.offsets, self.observations.time, row, time, after_equal=True) - 1
        first = observation < self.observations.offsets[row]
        observation = np.where(first, self.observations.offsets[row], observation)
        return observation, time - self.observations.time[observation], first


def _running(values: FloatArray, observations: Observations) -> FloatArray:
    """Running sums of the values of each page. O(m)."""
    total = np.cumsum(values)
    if len(observations) == 1:
        return total
    before = np.concatenate([[0.0], total])[observations.offsets[:-1]]
    return np.asarray(total - np.repeat(before, np.diff(observations.offsets)))


def penalty(
    visit: FloatArray, start: FloatArray | float, end: FloatArray | float, revisit: FloatArray | None = None
) -> FloatArray:
    """ω of each page (SHARC 4.2; 5.2 with revisits), for the observation interval [start, end], one or one a page.

    The closed forms of the thesis hold for visits inside the interval; this one also for visits outside, where
    |t − visit| does not turn.

    >>> penalty(np.array([1.0, 5.0]), 0.0, 5.0).tolist()
    [8.5, 12.5]
    """
    if revisit is None:
        return _distance(visit, start, end)
    revisit = np.where(np.isnan(revisit), visit, revisit)
    # From the middle between the two on, the revisit is nearer.
    middle = np.clip((visit + revisit) / 2.0, start, end)
    return _distance(visit, start, middle) + _distance(revisit, middle, end)


def page_blur(
    rate: FloatArray, visit: FloatArray, start: float, end: float, revisit: FloatArray | None = None
) -> FloatArray:
    """Blur of each page (SHARC 4.1, 5.1). An interval of one instant gives the expected changes up to it.

    >>> page_blur(np.array([1.0, 5.0]), np.array([1.0, 5.0]), 0.0, 5.0).tolist()
    [1.7, 12.5]
    """
    if end > start:
        return rate * penalty(visit, start, end, revisit) / (end - start)
    away = np.abs(visit - start)
    return rate * (away if revisit is None else np.fmin(away, np.abs(revisit - start)))


def capture_blur(  # noqa: PLR0913, PLR0917 - the letters of the formula
    rate: FloatArray,
    visit: FloatArray,
    start: float,
    end: float,
    revisit: FloatArray | None = None,
    weight: FloatArray | None = None,
) -> float:
    """Blur of a capture: the sum over its pages (SHARC 4.3, 5.3), each times its weight.

    >>> rates = np.arange(6.0)
    >>> capture_blur(rates, np.arange(6.0), 0.0, 5.0)
    27.5
    """
    return total(page_blur(rate, visit, start, end, revisit), weight)


def average_blur(  # noqa: PLR0913, PLR0917 - the letters of the formula
    rate: FloatArray,
    visit: FloatArray,
    start: float,
    end: float,
    revisit: FloatArray | None = None,
    weight: FloatArray | None = None,
) -> float:
    """Blur per page (SHARC 4.4): over the number of pages, with revisits too (reading 003.1), or their weight.

    NaN without pages.
    """
    pages = float(len(rate) if weight is None else weight.sum())
    return capture_blur(rate, visit, start, end, revisit, weight) / pages if pages else float("nan")


def blur_bounds(rate: FloatArray, start: float, end: float, weight: FloatArray | None = None) -> tuple[float, float]:
    """Least and greatest blur any single-visit schedule inside [start, end] can have (SHARC Theorem 4.1).

    Both can be reached (reading 003.2): every page visited in the middle, or at the ends.

    >>> blur_bounds(np.arange(6.0), 0.0, 5.0)
    (18.75, 37.5)
    """
    heat = total(rate, weight) * (end - start)
    return heat / 4.0, heat / 2.0


def total(value: FloatArray, weight: FloatArray | None = None) -> float:
    """Sum over pages, each value times the weight of its page.

    >>> total(np.array([1.0, 2.0])), total(np.array([1.0, 2.0]), np.array([3.0, 0.5]))
    (3.0, 4.0)
    """
    return float(value.sum() if weight is None else value @ weight)


def _distance(point: FloatArray, start: FloatArray | float, end: FloatArray | float) -> FloatArray:
    """∫ |t − point| dt from start to end, the point being anywhere; no cancellation at epoch times."""
    before, after = point - start, end - point
    return (before * np.abs(before) + after * np.abs(after)) / 2.0


def page_coherence(rate: FloatArray, length: FloatArray) -> FloatArray:
    """Probability e^{−λI} that each page stays unchanged over its visit–revisit interval of ``length``. O(n).

    >>> page_coherence(np.array([0.5, 0.0]), np.array([0.0, 9.0])).tolist()
    [1.0, 1.0]
    """
    return np.exp(-rate * length)


def expected_coherence(rate: FloatArray, length: FloatArray, weight: FloatArray | None = None) -> float:
    """Expected number of coherent pages of a capture (SHARC Definition 5.6), each counted by its weight. O(n).

    >>> round(expected_coherence(np.array([0.4, 0.35, 0.3, 0.25, 0.2]), np.array([0.0, 2.0, 4.0, 6.0, 8.0])), 4)
    2.2228
    """
    return total(page_coherence(rate, length), weight)


def worst_case_increase(rate: FloatArray, misplaced: int, delay: float, weight: FloatArray | None = None) -> float:
    """What the blur of the best order grows by, at worst, if ``misplaced`` pages are out of place. O(n log n).

    At worst the hottest pages take the outermost slots, the hottest first, and the rest keeps the best order in what
    is left (SHARC Theorem 4.5, readings 003.10 and 003.11). The theorem is stated for pairs of equal rates; this is
    the same difference for any rates, times weights. Like in the thesis it is not divided by the length of the capture:
    divide by (n − 1)·delay for the blur of the other functions here.

    >>> worst_case_increase(np.array([1.0, 1, 2, 2, 3, 3, 4, 4, 5, 5]), 4, 1.0)
    176.0
    """
    heat = np.sort(rate if weight is None else rate * weight)
    pages = len(heat)
    slot = np.arange(pages, dtype=np.float64) * delay
    # The coldest page has the largest penalty in the best order.
    outermost_first = np.sort(penalty(slot, 0.0, max(pages - 1, 0) * delay))[::-1]
    worst = np.concatenate([heat[pages - misplaced :][::-1], heat[: pages - misplaced]])
    return float((worst - heat) @ outermost_first)


def actual_blur(  # noqa: PLR0913, PLR0917 - the letters of the formula
    offsets: IntArray,
    times: FloatArray,
    visit: FloatArray,
    start: float,
    end: float,
    revisit: FloatArray | None = None,
) -> FloatArray:
    """Blur of each page over [start, end], start < end. A revisit that is NaN never happened.

    >>> actual_blur(np.array([0, 2]), np.array([1.0, 7.0]), np.array([4.0]), 0.0, 10.0).tolist()
    [0.4]
    """
    row = np.repeat(np.arange(len(visit)), np.diff(offsets))
    if revisit is None:
        return _changes_met(row, times, visit, start, end) / (end - start)
    last = np.where(np.isnan(revisit), visit, revisit)
    middle = np.clip((visit + last) / 2.0, start, end)
    met = _changes_met(row, times, visit, start, middle) + _changes_met(row, times, last, middle, end)
    return met / (end - start)


def changes_between(offsets: IntArray, times: FloatArray, after: FloatArray, until: FloatArray) -> IntArray:
    """How often each page changed in (after, until].

    >>> changes_between(np.array([0, 2]), np.array([1.0, 7.0]), np.array([1.0]), np.array([7.0])).tolist()
    [1]
    """
    row = np.arange(len(after))
    first, behind = (ragged_search(offsets, times, row, at, after_equal=True) for at in (after, until))
    return behind - first


def incoherent(offsets: IntArray, times: FloatArray, visit: FloatArray, revisit: FloatArray) -> BoolArray:
    """Which pages changed between visit and revisit: the truth that a revisit finds (SHARC 5.1).

    >>> incoherent(np.array([0, 1, 2]), np.array([3.0, 3.0]), np.array([1.0, 1.0]), np.array([2.0, 3.0])).tolist()
    [False, True]
    """
    return changes_between(offsets, times, visit, revisit) > 0


def actual_incoherence(
    offsets: IntArray, times: FloatArray, visit: FloatArray, revisit: FloatArray, weight: FloatArray | None = None
) -> float:
    """Number of pages that changed between visit and revisit, each counted by its weight."""
    found = incoherent(offsets, times, visit, revisit)
    return float(found.sum() if weight is None else weight[found].sum())


def _changes_met(
    row: IntArray, times: FloatArray, observation: FloatArray, start: FloatArray | float, end: FloatArray | float
) -> FloatArray:
    """∫ over t from start to end of the changes between t and the observation, for each page."""
    low, high = (np.broadcast_to(side, observation.shape)[row] for side in (start, end))
    inside = np.clip(times, low, high)
    met = np.zeros(len(observation))
    np.add.at(met, row, np.where(times <= observation[row], inside - low, high - inside))
    return met


LIKELY = 0.5
"""A page less likely than this to be the same at its revisit is hopeless, where no strategy said which are."""


class RevisitResult(enum.IntEnum):
    """What the revisit of a page found. The first three are those of :class:`recrawl.model.Verdict`."""

    UNKNOWN = 0
    """There was no revisit, it failed, or no detector could compare."""
    UNCHANGED = 1
    CHANGED = 2
    MISSING = 3
    """The page was gone."""


@dataclass(frozen=True, slots=True)
class CapturedPages:
    """The pages of a capture as columns of equal length, each page once."""

    page: IntArray
    visit: FloatArray
    """When the version in the archive was fetched, seconds since the epoch."""
    rate: FloatArray
    """Changes per second (mean of the belief); NaN if not known."""
    weight: FloatArray
    revisit: FloatArray
    """When it was observed again; the visit itself if the strategy needed no second one; NaN if there was none."""
    found: AnyArray
    """:class:`RevisitResult` of each page."""
    hopeless: BoolArray | None = None
    """Which pages the strategy gave up; ``None`` if the strategy does not report it."""

    def __len__(self) -> int:
        return len(self.page)

    @classmethod
    def of(  # noqa: PLR0913 - one argument a column
        cls,
        page: npt.ArrayLike,
        visit: npt.ArrayLike,
        *,
        rate: npt.ArrayLike = float("nan"),
        weight: npt.ArrayLike = 1.0,
        revisit: npt.ArrayLike = float("nan"),
        found: npt.ArrayLike = RevisitResult.UNKNOWN,
        hopeless: BoolArray | None = None,
    ) -> CapturedPages:
        """Columns from anything array-like; a single value fills its column."""
        ids = np.asarray(page, dtype=np.int64)
        visit, rate, weight, revisit = (
            np.broadcast_to(np.asarray(column, np.float64), ids.shape) for column in (visit, rate, weight, revisit)
        )
        return cls(ids, visit, rate, weight, revisit, np.broadcast_to(np.asarray(found, np.uint8), ids.shape), hopeless)

    def intervals(self) -> FloatArray:
        """Seconds between visit and revisit; NaN where there was none."""
        return self.revisit - self.visit


@dataclass(frozen=True, slots=True)
class BlurStatement:
    """Expected changes between what is asked for and what is shown, over the pages whose rate is known."""

    total: float
    """Sum over the pages, each times its weight."""
    average: float
    """Per page, by weight; NaN if no rate is known."""


@dataclass(frozen=True, slots=True)
class CaptureStatement:
    """How good a capture is. Pages are named by id; figures are weighted where they say so."""

    pages: int
    weight: float
    """Sum of the weights of all pages."""
    rated: int
    """Pages whose rate is known: predictions are about these."""
    start: float
    """The observation interval, seconds since the epoch: queries are thought to fall evenly in it."""
    end: float
    predicted_blur: BlurStatement
    achieved_blur: BlurStatement | None
    """``None`` if no page with a rate was compared at its revisit."""
    expected_coherence: float
    """Expected number of coherent pages, of those that have a rate and a verdict (SHARC Definition 5.6)."""
    expected_of: int
    """How many those are."""
    coherent_of_them: int
    """And how many of them were coherent: the figure to compare the expectation with."""
    expected_coherent_weight: float
    coherent_weight: float
    """Weight of all coherent pages."""
    coherent: IntArray
    changed: IntArray
    missing: IntArray
    unknown: IntArray
    """Pages without a revisit, or whose revisit said nothing."""
    seen_once: int
    """Coherent pages whose visit is their revisit: the strategy needed no confirmation."""
    joint: JointValidity
    """Of the coherent pages, in their order: when they were valid together."""
    hopeless: IntArray
    """Pages that had no good chance to be coherent, least likely first."""
    hopeless_named: bool
    """Whether the strategy named them; else they are those less likely than ``LIKELY`` to stay unchanged."""

    def apart(self) -> IntArray:
        """Coherent pages that were not valid together with most of the others."""
        return self.coherent[~self.joint.inside]


def statement(pages: CapturedPages, start: float | None = None, end: float | None = None) -> CaptureStatement:
    """The statement about a capture, for queries in [start, end]; by default from its first observation to its last.

    O(n log n).

    >>> pages = CapturedPages.of([1, 2, 3], [0.0, 1.0, 2.0], rate=0.1, revisit=[5.0, 4.0, 3.0], found=[2, 1, 1])
    >>> said = statement(pages)
    >>> said.changed.tolist(), said.joint.start, said.joint.end, round(said.expected_coherence, 2)
    ([1], 2.0, 3.0, 2.25)
    """
    start, end = _observed(pages, start, end)
    found = np.where(np.isnan(pages.revisit), RevisitResult.UNKNOWN, pages.found)
    coherent = found == RevisitResult.UNCHANGED
    chance = page_coherence(pages.rate, pages.intervals())
    expected = np.isfinite(chance) & (found != RevisitResult.UNKNOWN)
    hopeless = _hopeless(pages, chance)
    return CaptureStatement(
        pages=len(pages),
        weight=float(pages.weight.sum()),
        rated=int(np.isfinite(pages.rate).sum()),
        start=start,
        end=end,
        predicted_blur=_summed(page_blur(pages.rate, pages.visit, start, end, pages.revisit), pages),
        achieved_blur=_summed(achieved_blur(pages, start, end), pages) if bool(expected.any()) else None,
        expected_coherence=total(chance[expected]),
        expected_of=int(expected.sum()),
        coherent_of_them=int((coherent & expected).sum()),
        expected_coherent_weight=total(chance[expected], pages.weight[expected]),
        coherent_weight=float(pages.weight[coherent].sum()),
        coherent=pages.page[coherent],
        changed=pages.page[found == RevisitResult.CHANGED],
        missing=pages.page[found == RevisitResult.MISSING],
        unknown=pages.page[found == RevisitResult.UNKNOWN],
        seen_once=int((coherent & (pages.revisit == pages.visit)).sum()),
        joint=joint_validity(pages.visit[coherent], pages.revisit[coherent], pages.weight[coherent]),
        hopeless=pages.page[hopeless],
        hopeless_named=pages.hopeless is not None,
    )


def achieved_blur(pages: CapturedPages, start: float, end: float) -> FloatArray:
    """Blur of each page, given what its revisit found (see the head of this file). NaN without a rate. O(n).

    >>> pages = CapturedPages.of([1, 2], [0.0, 0.0], rate=0.5, revisit=4.0, found=[1, 2])
    >>> achieved_blur(pages, 0.0, 4.0).round(4).tolist()
    [0.0, 0.5783]
    """
    length = pages.intervals()
    told = np.isfinite(length) & (length > 0) & (pages.found != RevisitResult.UNKNOWN)
    last = np.where(told, pages.revisit, pages.visit)
    whole = page_blur(pages.rate, pages.visit, start, end, pages.revisit)
    # λ/(1 − e^{−λI}) = 1/(I·exprel(−λI)), which holds at λ = 0 too: one change, somewhere.
    within = 1.0 / np.where(told, length * special.exprel(-pages.rate * np.where(told, length, 1.0)), np.inf)
    within = np.where(np.isnan(pages.rate), np.nan, np.where(pages.found == RevisitResult.UNCHANGED, 0.0, within))
    if end > start:
        between = penalty(pages.visit, np.clip(pages.visit, start, end), np.clip(last, start, end), last) / (
            end - start
        )
    else:
        nearest = np.fmin(np.abs(pages.visit - start), np.abs(last - start))
        between = np.where((pages.visit <= start) & (start <= last), nearest, 0.0)
    return whole + np.where(told, (within - pages.rate) * between, 0.0)


def _observed(pages: CapturedPages, start: float | None, end: float | None) -> tuple[float, float]:
    """The interval asked for, or from the first observation to the last."""
    if not len(pages):
        return float("nan") if start is None else start, float("nan") if end is None else end
    first = float(pages.visit.min()) if start is None else start
    last = float(np.fmax(pages.visit, pages.revisit).max()) if end is None else end
    return first, last


def _summed(blur: FloatArray, pages: CapturedPages) -> BlurStatement:
    """Over the pages that have a rate."""
    rated = np.isfinite(blur)
    heavy = float(pages.weight[rated].sum())
    value = total(blur[rated], pages.weight[rated])
    return BlurStatement(value, value / heavy if heavy else float("nan"))


def _hopeless(pages: CapturedPages, chance: FloatArray) -> IntArray:
    """Rows of the hopeless pages, least likely first; those of unknown chance, which a strategy may name, last."""
    rows = np.flatnonzero(chance < LIKELY if pages.hopeless is None else pages.hopeless)
    return rows[np.argsort(chance[rows], kind="stable")]


SCHEMA = "recrawl-capture-quality/1"

Names = Callable[[IntArray], Sequence[str]]
"""URLs of page ids, in the same order."""


def statement_json(said: CaptureStatement, names: Names, most: int | None = None) -> dict[str, Any]:
    """The statement with pages by URL, times in ISO 8601 UTC and ``None`` for what is not known.

    At most ``most`` pages are named in each list, all without it; the counts are always of all.
    """
    joint = said.joint if len(said.joint.inside) else None
    judged = said.pages == 0 or len(said.unknown) < said.pages  # else all is not known: no page was seen again
    return {
        "schema": SCHEMA,
        "pages": said.pages,
        "weight": said.weight,
        "pagesWithRate": said.rated,
        "from": iso(said.start),
        "until": iso(said.end),
        "blur": {
            "predicted": _blur(said.predicted_blur),
            "achieved": None if said.achieved_blur is None else _blur(said.achieved_blur),
        },
        "coherence": {
            "expected": _number(said.expected_coherence) if said.expected_of else None,
            "expectedOf": said.expected_of,
            "coherentOfThem": said.coherent_of_them,
            "expectedWeight": _number(said.expected_coherent_weight) if said.expected_of else None,
            "coherentWeight": said.coherent_weight if judged else None,
            "coherent": len(said.coherent) if judged else None,
            "changed": len(said.changed) if judged else None,
            "missing": len(said.missing) if judged else None,
            "unknown": len(said.unknown),
            "seenOnce": said.seen_once,
        },
        "validTogether": None
        if joint is None
        else {
            "from": iso(joint.start),
            "until": iso(joint.end),
            "pages": int(joint.inside.sum()),
            "allCoherentPages": joint.complete,
            "apart": list(names(said.apart()[:most])),
        },
        "hopeless": {
            "count": len(said.hopeless),
            "by": "strategy" if said.hopeless_named else f"chance below {LIKELY}",
            "pages": list(names(said.hopeless[:most])),
        },
        "changedPages": list(names(said.changed[:most])),
        "missingPages": list(names(said.missing[:most])),
    }


def outcome_counts(coherence: Mapping[str, Any]) -> dict[str, int | None]:
    """How many pages a stored statement calls coherent, changed and missing; ``None`` if no page was seen again.

    Statements that were stored before they said so have zeros in place of ``None``.

    >>> outcome_counts({"coherent": 0, "changed": 0, "missing": 0, "unknown": 7})
    {'coherent': None, 'changed': None, 'missing': None}
    """
    counts = {name: coherence[name] for name in ("coherent", "changed", "missing")}
    return dict.fromkeys(counts) if coherence["unknown"] and not any(counts.values()) else counts


def iso(when: float) -> str | None:
    """ISO 8601 in UTC with microseconds, so that an instant stays inside its interval; ``None`` for NaN.

    >>> iso(0.5), iso(float("nan"))
    ('1970-01-01T00:00:00.500000Z', None)
    """
    if math.isnan(when):
        return None
    return datetime.fromtimestamp(when, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _blur(blur: BlurStatement) -> dict[str, float | None]:
    return {"total": _number(blur.total), "average": _number(blur.average)}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
