r"""Last-Modified, and a sitemap's lastmod, as the time of the last change (algorithms §5).

If a page changed in the gap that a look closed, and a statement made at c dates that change at L, then what was
observed is: a change at L, and none from L to the look (or to c, if that came first). Its likelihood is λ·e^{−λs},
s = min(c, look) − L, where the look alone has 1 − e^{−λτ}. A gap without change still has e^{−λτ}. So a page's
likelihood becomes λ^m·e^{−λE}, **exactly conjugate** to a Gamma, and even looks that always find a change tell how
fast the page is. The first look already gives one: s₀ = look − L.

**Weighting.** A source is trusted with the weight w of ``estimate.trust``. A dated gap counts as a power of both:

    (λ·e^{−λs})^w · (1 − e^{−λτ})^{1−w},   i.e. m ← m + w, E ← E + w·s, and the gap keeps the weight 1 − w;

a first look counts (λ·e^{−λs₀})^w. Statements that the looks contradict date nothing. Where w = 0 all is as without.

**In Gamma form.** What the gaps keep can be put into the same form around a rate λ₀, with score and curvature in ln λ
equal there: a changed gap of weight v gives m = v·B(x + B), E = v·B(x + B − 1)/λ₀, x = λ₀τ, B = x/(eˣ − 1). For short
gaps that is a change in the middle of the gap (E = τ/2); for long ones nothing. An unchanged gap gives E = v·τ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recrawl.estimate import trust
from recrawl.estimate.estimator import Evidence
from recrawl.estimate.oracle import DatedEvidence, vague
from recrawl.estimate.point_evidence import pooled_rate, sound
from recrawl.estimate.point_newton import bernoulli
from recrawl.estimate.trust import Statements, Trust
from recrawl.model import FloatArray, GammaBelief, Histories, IntArray

_ROUNDS = 12


class Dated(NamedTuple):
    """What statements add to histories."""

    evidence: DatedEvidence
    """m and E of each page, from dated changes alone, weighted by trust."""
    gap_weight: FloatArray
    """What each gap still counts for: 1 − w where its change was dated, else 1. Shape (m,)."""

    def gamma_form(self, histories: Histories, rate: FloatArray) -> DatedEvidence:
        """Everything known as λ^m·e^{−λE}, matched at ``rate`` (> 0, one a page). O(gaps)."""
        row = histories.row_of_gap()
        x = rate[row] * histories.gaps
        pull = bernoulli(x)
        curvature = pull * (x + pull - 1.0)
        changes = np.where(histories.changed, pull + curvature, 0.0) * self.gap_weight
        exposure = np.where(histories.changed, curvature, x) * self.gap_weight / rate[row]
        return self.evidence.plus(_per_page(row, changes, exposure, len(histories)))


def date(histories: Histories, statements: Statements, group: IntArray, told: Trust | None = None) -> Dated:
    """Date changes by what a source says, as far as it is trusted. O(m + s log s).

    ``group[i]`` is the group of row i whose trust is counted together, usually its host. ``told`` are counters from
    elsewhere; without them they are counted here, from the same statements.
    """
    histories = sound(histories)
    weight = (trust.count(trust.check(histories, statements), group) if told is None else told).of(group)
    found = dates(histories, statements, weight)
    w = weight[found.row]
    left = np.ones(len(histories.gaps))
    left[found.gap[found.gap >= 0]] = 1.0 - w[found.gap >= 0]
    return Dated(_per_page(found.row, w, w * found.age, len(histories)), left)


class Dates(NamedTuple):
    """Dated changes, at most one a gap and one before each first look."""

    row: IntArray
    gap: IntArray
    """The gap the change happened in; ``trust.BEFORE_ALL_LOOKS`` for one before the first look."""
    age: FloatArray
    """Seconds from the change to the look that closed the gap, or to the statement if that came first."""


def dates(histories: Histories, statements: Statements, weight: FloatArray) -> Dates:
    """The changes that statements date and no look contradicts; ``weight[i]`` > 0 where row i is heard. O(m + s log s).

    Of statements about one gap the one with the latest change counts, and of those the last.
    """
    checked = trust.check(histories, statements)
    usable = np.flatnonzero(checked.true & (checked.gap != trust.AFTER_ALL_LOOKS) & (weight[checked.row] > 0.0))
    gap, row = checked.gap[usable], checked.row[usable]
    slot = np.where(gap >= 0, gap, len(histories.gaps) + row)
    for column in (checked.changed_at, checked.time):
        best = np.full(len(histories.gaps) + len(histories), -np.inf)
        np.maximum.at(best, slot, column[usable])
        stays = column[usable] == best[slot]
        usable, slot = usable[stays], slot[stays]
    chosen = usable[np.unique(slot, return_index=True)[1]]
    row, gap = checked.row[chosen], checked.gap[chosen]
    look = np.where(gap >= 0, np.append(histories.look_times(), np.nan)[gap], histories.first_visit[row])
    return Dates(row, gap, np.minimum(checked.time[chosen], look) - checked.changed_at[chosen])


def _per_page(row: IntArray, changes: FloatArray, exposure: FloatArray, pages: int) -> DatedEvidence:
    sums = (np.bincount(row, values, pages).astype(np.float64) for values in (changes, exposure))
    return DatedEvidence(*sums)


@dataclass(frozen=True, slots=True)
class LastModified:
    """The looks, and what one source says of the last changes, as a Gamma belief from Gamma(½, ½/λ₀), λ₀ pooled.

    Trust is counted by the widest level of the evidence (hosts), or over all pages if there is none.
    """

    statements: Statements
    name: str = "last-modified"

    def __call__(self, evidence: Evidence) -> GammaBelief:
        """The belief about each page; the prior for pages nothing is known of."""
        histories = sound(evidence.histories)
        group = evidence.levels[0] if evidence.levels else np.zeros(len(histories), dtype=np.int64)
        dated = date(histories, self.statements, group)
        prior = vague(pooled_rate(histories), len(histories))
        belief = prior
        for _ in range(_ROUNDS):  # the Gamma form is matched where the belief is
            belief = dated.gamma_form(histories, belief.mean()).fold_into_gamma(prior)
        return belief
