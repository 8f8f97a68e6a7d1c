"""Vectors of texts: alike texts are near, nothing is random but by seed, and odd texts do no harm."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.predict.page_versions import PageTexts
from recrawl.predict.related_pages import (
    DIMENSIONS,
    REDUCED,
    alike_axes,
    hashed_text_space,
    learn_semantics,
    learn_text_space,
    reduced,
)
from recrawl.predict.static_features import text_qualities, text_quality

SUBJECTS = {
    "sea": "wave tide ship harbour sail anchor gull salt coast reef",
    "code": "function loop compiler variable type pointer thread module test array",
    "food": "bread butter oven flour yeast salt sugar dough crust bake",
}


def texts_about(rng, count=40):
    """(texts, subject of each)."""
    subject = [list(SUBJECTS)[place % 3] for place in range(count)]
    return [" ".join(rng.choice(SUBJECTS[one].split(), 12)) for one in subject], np.array(subject)


@pytest.fixture(params=["learned", "hashed"])
def space(request):
    rng = np.random.default_rng(3)
    return learn_text_space(texts_about(rng)[0], rng) if request.param == "learned" else hashed_text_space(rng)


def test_texts_about_the_same_are_nearer(space):
    texts, subject = texts_about(np.random.default_rng(9), 60)
    vectors = space.vectors(texts)
    cosine = vectors @ vectors.T
    np.fill_diagonal(cosine, -1.0)
    assert (subject[cosine.argmax(axis=1)] == subject).mean() > 0.95


def test_vectors_have_length_one_or_none(space):
    vectors = space.vectors(["wave tide", "", "   ", "wave"])
    assert vectors.shape == (4, DIMENSIONS)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 0, 0, 1], abs=1e-5)
    assert len(space.vectors([])) == 0


@pytest.mark.parametrize("learn", [lambda rng: learn_text_space(texts_about(rng)[0], rng), hashed_text_space])
def test_the_seed_decides_all(learn):
    one, same, other = (learn(np.random.default_rng(seed)).vectors(["wave tide bread"]) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("texts", [[], [""], ["?!", " "], ["a"], ["word"], ["one two", "one two"]])
def test_hardly_any_text_to_learn_from(texts):
    rng = np.random.default_rng(0)
    semantics = learn_semantics(texts, rng)
    vectors = semantics.space.vectors([*texts, "word and one"])
    assert vectors.shape == (len(texts) + 1, DIMENSIONS)
    assert np.isfinite(vectors).all()
    assert reduced(vectors, semantics.axes).shape == (len(texts) + 1, REDUCED)


def test_axes_that_move_together_are_one_group():
    rng = np.random.default_rng(2)
    base = rng.normal(size=(200, 3))
    group = alike_axes(np.column_stack([base, base]).astype(np.float32), 3)
    assert group[:3].tolist() == group[3:].tolist()
    assert sorted(group[:3].tolist()) == [0, 1, 2]


def test_semantics_group_all_axes():
    rng = np.random.default_rng(2)
    axes = learn_semantics(texts_about(rng, 300)[0], rng, hashed=True).axes
    assert len(axes) == DIMENSIONS
    assert sorted(set(axes.tolist())) == list(range(REDUCED))


@given(st.text(max_size=200))
def test_quality_is_a_share(text):
    assert 0.0 <= text_quality(text) <= 1.0
    assert text_quality(text) == text_quality(text.casefold())


def test_repetition_lowers_quality():
    prose = "the tide came in over the reef while we slept and took the small boat out to sea again"
    stuffed = "cheap boat cheap boat buy cheap boat boat cheap buy boat cheap boat buy cheap boat buy cheap"
    said = text_qualities([prose, stuffed, prose + " " + stuffed])
    assert said[0] > said[2] > said[1]
    assert said[0] == pytest.approx(np.log(len(set(prose.split()))) / np.log(len(prose.split())))


def test_texts_are_those_read_before():
    texts = PageTexts.of([3, 1, 3], [9.0, 2.0, 4.0], ["late", "one", "early"])
    page = np.array([1, 2, 3])
    assert texts.last_of(page) == ["one", "", "late"]
    assert texts.before(9.0).last_of(page) == ["one", "", "early"]
    assert texts.before(2.0).last_of(page) == ["", "", ""]
