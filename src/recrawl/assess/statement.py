r"""The statement about a capture: how sharp and how coherent it was meant to be, and how it came out.

Predicted figures follow from the rates alone and the times at which the pages were really visited. Achieved ones also
use what the revisits found. Let I be the time between visit and revisit of a page of rate λ, then between the two

- a page found *unchanged* is coherent: whatever is asked in between is answered exactly, the blur there is 0;
- a page found *changed* or *missing* had at least one change, and its expected changes grow from λ a second to
  λ/(1 − e^{−λI}), spread evenly as before;
- without a word at the revisit nothing is known beyond λ.

Outside of [visit, revisit] the prediction stands. If the rates are right, the mean of the achieved blur over many such
captures is the predicted one, since the chance of a change is 1 − e^{−λI}; in one capture the two differ by luck.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from recrawl.assess.blur import page_blur, penalty, total
from recrawl.assess.coherence import page_coherence
from recrawl.assess.joint_validity import JointValidity, joint_validity
from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray

LIKELY = 0.5
"""A page less likely than this to be the same at its revisit is hopeless, where no strategy said which are."""


class Found(enum.IntEnum):
    """What the revisit of a page found. The first three are those of :class:`recrawl.model.Verdict`."""

    UNKNOWN = 0
    """There was no revisit, it failed, or nobody could judge."""
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
    """Changes per second (mean of the belief); NaN where nobody knows."""
    weight: FloatArray
    revisit: FloatArray
    """When it was looked at again; the visit itself if the strategy needed no second one; NaN if there was none."""
    found: AnyArray
    """:class:`Found` at the revisit."""
    hopeless: BoolArray | None = None
    """Which pages the strategy gave up; ``None`` if it said nothing."""

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
        found: npt.ArrayLike = Found.UNKNOWN,
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
class Blur:
    """Expected changes between what is asked for and what is shown, over the pages whose rate is known."""

    total: float
    """Sum over the pages, each times its weight."""
    average: float
    """Per page, by weight; NaN if no rate is known."""


@dataclass(frozen=True, slots=True)
class Statement:
    """How good a capture is. Pages are named by id; figures are weighted where they say so."""

    pages: int
    weight: float
    """Sum of the weights of all pages."""
    rated: int
    """Pages whose rate is known: predictions are about these."""
    start: float
    """The observation interval, seconds since the epoch: queries are thought to fall evenly in it."""
    end: float
    predicted_blur: Blur
    achieved_blur: Blur | None
    """``None`` if no page with a rate was judged: then nothing is known beyond the prediction."""
    expected_coherence: float
    """Expected number of coherent pages, of those that have a rate and were judged (SHARC Definition 5.6)."""
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
    """Coherent pages whose visit is their revisit: the strategy needed no second look."""
    joint: JointValidity
    """Of the coherent pages, in their order: when they were valid together."""
    hopeless: IntArray
    """Pages that had no good chance to be coherent, least likely first."""
    hopeless_named: bool
    """Whether the strategy named them; else they are those less likely than ``LIKELY`` to stay unchanged."""

    def apart(self) -> IntArray:
        """Coherent pages that were not valid together with most of the others."""
        return self.coherent[~self.joint.inside]


def statement(pages: CapturedPages, start: float | None = None, end: float | None = None) -> Statement:
    """The statement about a capture, for queries in [start, end]; by default from its first look to its last.

    O(n log n).

    >>> pages = CapturedPages.of([1, 2, 3], [0.0, 1.0, 2.0], rate=0.1, revisit=[5.0, 4.0, 3.0], found=[2, 1, 1])
    >>> said = statement(pages)
    >>> said.changed.tolist(), said.joint.start, said.joint.end, round(said.expected_coherence, 2)
    ([1], 2.0, 3.0, 2.25)
    """
    start, end = _observed(pages, start, end)
    found = np.where(np.isnan(pages.revisit), Found.UNKNOWN, pages.found)
    coherent = found == Found.UNCHANGED
    chance = page_coherence(pages.rate, pages.intervals())
    expected = np.isfinite(chance) & (found != Found.UNKNOWN)
    hopeless = _hopeless(pages, chance)
    return Statement(
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
        changed=pages.page[found == Found.CHANGED],
        missing=pages.page[found == Found.MISSING],
        unknown=pages.page[found == Found.UNKNOWN],
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
    told = np.isfinite(length) & (length > 0) & (pages.found != Found.UNKNOWN)
    last = np.where(told, pages.revisit, pages.visit)
    whole = page_blur(pages.rate, pages.visit, start, end, pages.revisit)
    # λ/(1 − e^{−λI}) = 1/(I·exprel(−λI)), which holds at λ = 0 too: one change, somewhere.
    within = 1.0 / np.where(told, length * special.exprel(-pages.rate * np.where(told, length, 1.0)), np.inf)
    within = np.where(np.isnan(pages.rate), np.nan, np.where(pages.found == Found.UNCHANGED, 0.0, within))
    if end > start:
        between = penalty(pages.visit, np.clip(pages.visit, start, end), np.clip(last, start, end), last) / (
            end - start
        )
    else:
        nearest = np.fmin(np.abs(pages.visit - start), np.abs(last - start))
        between = np.where((pages.visit <= start) & (start <= last), nearest, 0.0)
    return whole + np.where(told, (within - pages.rate) * between, 0.0)


def _observed(pages: CapturedPages, start: float | None, end: float | None) -> tuple[float, float]:
    """The interval asked for, or from the first look to the last."""
    if not len(pages):
        return float("nan") if start is None else start, float("nan") if end is None else end
    first = float(pages.visit.min()) if start is None else start
    last = float(np.fmax(pages.visit, pages.revisit).max()) if end is None else end
    return first, last


def _summed(blur: FloatArray, pages: CapturedPages) -> Blur:
    """Over the pages that have a rate."""
    rated = np.isfinite(blur)
    heavy = float(pages.weight[rated].sum())
    value = total(blur[rated], pages.weight[rated])
    return Blur(value, value / heavy if heavy else float("nan"))


def _hopeless(pages: CapturedPages, chance: FloatArray) -> IntArray:
    """Rows of the hopeless pages, least likely first; those of unknown chance, which a strategy may name, last."""
    rows = np.flatnonzero(chance < LIKELY if pages.hopeless is None else pages.hopeless)
    return rows[np.argsort(chance[rows], kind="stable")]
