"""What a strategy may believe about the pages of a recorded site: rates learned from visits, or told by a sitemap."""

from __future__ import annotations

import numpy as np

from recrawl.estimate import sitemap
from recrawl.estimate.estimator import Evidence
from recrawl.estimate.posterior import Posterior
from recrawl.model import FloatArray, GridBelief, Histories, IntArray
from recrawl.predict.clusters import UrlClusters
from recrawl.simulate.capture_recorded import RecordedSite
from recrawl.simulate.sampling import Regular, Truth, sample
from recrawl.time import WEEK


def learned_belief(
    site: RecordedSite, page: IntArray, now: float, rng: np.random.Generator, *, interval: float = WEEK
) -> GridBelief:
    """What visits every ``interval`` seconds before ``now`` taught of these pages.

    The grid posterior with a prior for each directory. Pages too young to have been visited twice get that of their
    directory. O(visits · rates of the grid).
    """
    whole = site.collection.watched()
    seen = Truth(whole.born, whole.died, whole.changes, whole.start, now).take(page)
    histories = Histories.from_visits(sample(seen, Regular(interval), rng)).align(np.arange(len(page)))
    clusters = UrlClusters().add([site.collection.urls[one] for one in page.tolist()])
    return Posterior()(Evidence(histories, (clusters,)))


def steady_rates(belief: GridBelief, horizon: float) -> FloatArray:
    """The rates by which pages stay unchanged for ``horizon`` seconds with the believed chance: −ln E[e^{−λT}]/T.

    Expected coherence is a matter of such chances, as expected blur is one of mean rates. Never above the mean.
    """
    stays = belief.survival(np.full(len(belief), horizon))
    return np.asarray(-np.log(np.maximum(stays, np.finfo(np.float64).tiny)) / horizon)


def past_rates(site: RecordedSite, page: IntArray, now: float) -> FloatArray:
    """True changes a second of these pages before ``now``, over the time since they first came."""
    born = site.collection.watched().born[page]
    lived = now - np.maximum(born, site.collection.start)
    return np.asarray(site.events().take(page).until(np.arange(len(page)), now) / np.maximum(lived, 1.0))


def claimed_categories(rate: FloatArray) -> IntArray:
    """The changefreq that an honest owner of pages of these rates writes: the most frequent one that is not too often.

    A page that changes every three days on average is ``weekly``; one that takes more than a year is ``never``.

    >>> day = 1 / 86400.0
    >>> claimed_categories(np.array([day, day / 3, day / 400, 0.0])).tolist()
    [3, 4, 7, 7]
    """
    with np.errstate(divide="ignore"):
        between = np.where(rate > 0, 1.0 / rate, np.inf)
    # A little more than the interval is still within it: a rate and its inverse are rounded.
    return np.searchsorted(np.array(sitemap.INTERVALS) * (1.0 + 1e-9), between) + 1


def hinted_rates(rate: FloatArray, reading: sitemap.Reading) -> FloatArray:
    """The rates, per second, that readers of a sitemap make of such claims (SHARC Definition 6.1)."""
    return sitemap.rates(claimed_categories(rate), reading)
