"""Which strategies read which terms: the lists that users are told by are those of what makes a difference."""

import numpy as np
import pytest

from recrawl.capture import EXPECTING, STRATEGIES, THRESHOLDED, CaptureTerms
from recrawl.capture.strategy import LinkGraph, walk

PAGES = 60


def orders(name, terms):
    """What a strategy does on a tree of three links a page, pages found as it goes, and with all known."""
    rate = np.random.default_rng(4).lognormal(-4.0, 2.0, PAGES)
    links = [np.arange(3 * page + 1, min(3 * page + 4, PAGES)) for page in range(PAGES)]
    tree = LinkGraph(np.append(0, np.cumsum([len(row) for row in links])), np.concatenate(links))
    for seeds in (np.array([0]), np.arange(PAGES)):
        done = walk(STRATEGIES[name](terms), tree, seeds, rate)
        yield done.visited.tolist(), done.revisited.tolist()


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_terms_make_a_difference_where_they_are_said_to(name):
    usual = list(orders(name, CaptureTerms(delay=1.0, expected=PAGES)))
    expecting = [list(orders(name, CaptureTerms(delay=1.0, expected=number))) for number in (1, 10 * PAGES)]
    assert any(other != usual for other in expecting) == (name in EXPECTING)
    thresholds = [list(orders(name, CaptureTerms(delay=1.0, expected=PAGES, threshold=tau))) for tau in (0.2, 0.6)]
    assert any(other != usual for other in thresholds) == (name in THRESHOLDED)
