"""The texts themselves, without a server."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl_testweb import FaultProfile
from recrawl_testweb.fault_injection import CHARSETS, AssignedFaults
from recrawl_testweb.page_render import (
    PLAIN,
    TONGUES,
    PageLink,
    PageSubject,
    article,
    csv_text,
    html,
    json_text,
    n_triples,
    turtle,
)
from recrawl_testweb.seeded_rng import SeededRng, mix

QUIET = AssignedFaults.deal(FaultProfile.none(), 1, 0).of(0)


def subject(page, version):
    changes = np.arange(1.0, version + 1)
    return PageSubject(3, page, version, "http://a.test/x", "A title", changes, float(version), [], QUIET)


@given(st.integers(0, 50))
@settings(max_examples=10, deadline=None)
def test_no_two_versions_in_a_row_say_the_same(page):
    for write in (html, turtle, n_triples, json_text, csv_text):
        # Same times throughout: the words must differ, not only the dates.
        texts = [write(subject(page, v)._replace(changes=np.ones(v), modified=0.0)) for v in range(60)]
        assert all(before != after for before, after in pairwise(texts))


def test_readings_never_repeat_their_last_value():
    texts = [csv_text(subject(1, version)) for version in range(15_000)]
    assert all(before != after for before, after in pairwise(texts))


@pytest.mark.parametrize("charset", CHARSETS)
def test_each_charset_can_write_its_names(charset):
    for name in (*TONGUES[charset].people, *TONGUES[charset].places):
        assert name.encode(charset).decode(charset) == name


def test_a_version_is_the_same_however_it_is_reached():
    changes = np.arange(1.0, 41.0)
    later = article(1, 2, 30, changes, PLAIN)
    assert article(1, 2, 30, changes[:30], PLAIN) == later
    assert article(1, 2, 31, changes, PLAIN) != later


def test_titles_and_links_are_escaped():
    odd = subject(0, 0)._replace(title='<b>"&', links=[PageLink("/a?b=1&c=2", "<i>")])
    text = html(odd)
    assert "<b>" not in text
    assert 'href="/a?b=1&amp;c=2"' in text
    assert "&lt;i&gt;" in text


def test_dice_are_fair_and_depend_on_the_whole_key():
    draws = np.bincount([SeededRng(1, number).below(6) for number in range(12_000)]) / 12_000
    assert np.allclose(draws, 1 / 6, atol=0.015)
    stream = SeededRng(5)
    values = np.array([stream.share() for _ in range(5_000)])
    assert values.mean() == pytest.approx(0.5, abs=0.02)
    assert np.corrcoef(values[1:], values[:-1])[0, 1] == pytest.approx(0.0, abs=0.05)
    assert len({mix(a, b) for a in range(50) for b in range(-25, 25)}) == 2_500


def test_dealt_traits_have_their_shares_and_repeat_with_the_seed():
    fault_profile = replace(FaultProfile.none(), noise=0.2, gzip=0.7, redirects=0.1)
    dealt, again, other = (AssignedFaults.deal(fault_profile, 20_000, seed) for seed in (1, 1, 2))
    assert np.mean(dealt.noise > 0) == pytest.approx(0.2, abs=0.02)
    assert np.mean(dealt.gzip) == pytest.approx(0.7, abs=0.02)
    assert np.mean(dealt.redirect > 0) == pytest.approx(0.1, abs=0.02)
    assert not dealt.chunked.any()
    assert np.array_equal(dealt.gzip, again.gzip)
    assert not np.array_equal(dealt.gzip, other.gzip)
