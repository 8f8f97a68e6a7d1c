"""How likely a page was, at the moment asked for, as it is shown.

Expected changes add up without end for a page that may change every minute; this is the bounded question beside it.
"""

from __future__ import annotations

import numpy as np

from recrawl.assess.looks import Looks
from recrawl.assess.shown import Shown
from recrawl.model import Belief, FloatArray, Verdict


def chance_unchanged(looks: Looks, seen: Shown, belief: Belief) -> FloatArray:
    """Probability that each page was as it is shown, given all looks; NaN where nothing is shown. O(m).

    It is certain inside the known validity of the version. Beyond it the version lasts d longer with probability S(d),
    if nobody looked. If a look found a change G beyond it, it lasts d < G with (S(d) − S(G))/(1 − S(G)), and no longer.

    >>> from recrawl.assess.shown import shown
    >>> from recrawl.model import GammaBelief, Visits
    >>> looks = Looks.from_visits(Visits.of([1, 1, 2], [0.0, 8.0, 0.0], verdict=[0, 2, 0]))
    >>> belief = GammaBelief(np.full(2, 1.0), np.full(2, 4.0))
    >>> chance_unchanged(looks, shown(looks, belief.mean(), 4.0), belief).tolist()
    [0.25, 0.5]
    """
    there = seen.there()
    if not bool(there.any()):
        return np.full(len(looks), np.nan)
    late = seen.at > seen.last
    beyond = np.where(late, seen.at - seen.last, np.maximum(seen.first - seen.at, 0.0))
    after, before = (gaps[seen.look] for gaps in _gaps(looks))
    gap = np.where(there, np.where(late, after, before), np.inf)
    beyond = np.where(there, beyond, 0.0)
    lasts = belief.survival(beyond)
    closed = np.isfinite(gap) & (beyond > 0)
    gap = np.where(closed, gap, 1.0)
    whole = belief.survival(gap)
    turned = 1.0 - whole
    # If no change is thinkable and there was one, it came at any time.
    within = np.where(
        turned > 0, (lasts - whole) / np.where(turned > 0, turned, 1.0), 1.0 - beyond / np.maximum(gap, beyond)
    )
    return np.where(there, np.where(closed, np.where(beyond < gap, within, 0.0), lasts), np.nan)


def _gaps(looks: Looks) -> tuple[FloatArray, FloatArray]:
    """Seconds in which the version of each look ended, and in which it began, as far as looks tell; else infinity.

    It ended between its last look and the next one, if that found a change; and began likewise.
    """
    first, last = looks.versions()
    _, until = looks.validity()
    opens, changed = looks.opens(), looks.says == Verdict.CHANGED
    following = np.minimum(last + 1, len(opens) - 1)
    ended = (following > last) & ~opens[following] & changed[following]
    after = np.where(ended, looks.time[following] - until, np.inf)
    began = changed[first] & ~opens[first]
    width = np.where(looks.exact()[first], 0.0, looks.time[first] - looks.time[np.maximum(first - 1, 0)])
    return after, np.where(began, width, np.inf)
