"""The quality statement of a site capture: predicted and achieved blur and coherence.

Predicted figures follow from the rates and the actual visit times. Achieved figures also use the results of the
revisits. Let I be the time between visit and revisit of a page of rate λ. In between,

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

from recrawl.assess.blur_coherence import page_blur, page_coherence, penalty, total
from recrawl.assess.observations import JointValidity, joint_validity
from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray

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
