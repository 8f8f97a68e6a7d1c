"""Priors for unseen pages: section before host before everything."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.estimate.posterior.gamma_posterior import UNKNOWN_RATE
from recrawl.model import Histories
from recrawl.model.arrays import offsets_of
from recrawl.predict import related_pages
from recrawl.predict.related_pages import section_id


def population(rates, observations=10):
    rng = np.random.default_rng(0)
    row = np.repeat(np.arange(len(rates)), observations)
    gaps = rng.exponential(10.0, len(row))
    changed = rng.random(len(row)) < -np.expm1(-rates[row] * gaps)
    nothing = np.full(len(rates), np.nan)
    return Histories(np.arange(len(rates)), offsets_of(row, len(rates)), gaps, changed, nothing, nothing, nothing)


def three_sections():
    """Host 1: a hot section 11 and a cold section 12. Host 2: one cold section 21."""
    section = np.repeat([11, 12, 21], 60)
    host = section // 10
    rates = np.where(section == 11, 0.1, 0.002)
    return related_pages.fit_neighbour_prior(population(rates), host, section)


def test_a_section_says_more_than_its_host():
    found = three_sections().of(np.array([1, 1, 2]), np.array([11, 12, 21])).mean()
    assert found[0] == pytest.approx(0.1, rel=0.3)
    assert found[0] > 10 * found[1]
    assert found[2] < 0.01


def test_a_small_section_leans_on_its_host():
    """One page in a section of its own, the same looks: on a hot host it is thought hotter than on a cold one."""
    section = np.repeat([11, 12, 21, 22], [60, 1, 60, 1])
    one_page = population(np.array([0.01]), observations=3)
    many = population(np.repeat([0.1, 0.002], 60))
    parts = [many.take(slice(0, 60)), one_page, many.take(slice(60, 120)), one_page]
    gaps, changed = (np.concatenate([getattr(part, name) for part in parts]) for name in ("gaps", "changed"))
    counts = np.concatenate([part.counts() for part in parts])
    nothing = np.full(122, np.nan)
    joined = Histories(np.arange(122), np.append(0, np.cumsum(counts)), gaps, changed, nothing, nothing, nothing)
    found = (
        related_pages.fit_neighbour_prior(joined, section // 10, section)
        .of(np.array([1, 2]), np.array([12, 22]))
        .mean()
    )
    assert found[0] > 4 * found[1]


def test_a_new_section_is_believed_of_as_its_host_and_a_new_host_as_everything():
    model = three_sections()
    found = model.of(np.array([1, 2, 3]), np.array([99, 99, 99]))
    np.testing.assert_array_equal(found.a[:2], model.hosts.prior.a)
    np.testing.assert_array_equal(found.b[:2], model.hosts.prior.b)
    assert found.mean()[2] == model.hosts.overall.mean()[0]
    assert found.mean()[0] > found.mean()[2] > found.mean()[1]


def test_without_history_it_is_the_default():
    nobody = np.empty(0, np.int64)
    model = related_pages.fit_neighbour_prior(Histories.concatenate([]), nobody, nobody)
    assert model.of(np.array([4]), np.array([5])).mean()[0] == pytest.approx(UNKNOWN_RATE)


def test_section_ids_are_stable_and_tell_sections_apart():
    assert section_id("http://example.com/news/a.html") == 4_245_543_091_969_936_559
    assert section_id("http://example.com/news/a.html") != section_id("http://example.com/about/a.html")
    assert section_id("http://example.com/a/b/c.html", depth=2) != section_id("http://example.com/a/d/c.html", depth=2)
