"""Shingles: numbers that depend on words alone, and the share that two texts have in common."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.detect.text.shingles import MOST, WIDTH, shingles, similarity

WORDS = st.lists(st.sampled_from(["red", "green", "blue", "größe", "the", "a", "x" * 200]), max_size=60)


def exact(one: list[str], other: list[str]) -> float:
    """Jaccard of the sets of tuples, as the thesis defines it."""

    def cut(words):
        width = min(WIDTH, len(words))
        return {tuple(words[at : at + width]) for at in range(len(words) - width + 1)} if words else set()

    mine, theirs = cut(one), cut(other)
    return len(mine & theirs) / len(mine | theirs) if mine | theirs else 1.0


@settings(max_examples=60)
@given(WORDS, WORDS)
def test_small_texts_are_compared_exactly(one, other):
    found = similarity(shingles(" ".join(one)), shingles(" ".join(other)))
    assert found == pytest.approx(exact(one, other))


@settings(max_examples=40)
@given(WORDS, st.sampled_from([" ", "\n", "\t  ", " \r\n"]))
def test_spaces_between_words_do_not_count(words, space):
    assert shingles(space.join(words)).tolist() == shingles(" ".join(words)).tolist()


def test_numbers_stay_the_same_for_ever():
    """Stored shingles are compared years later, by another version and on another machine."""
    assert shingles("one two three").tolist() == [3421490471]


def test_long_texts_are_compared_by_a_fair_sample():
    rng = np.random.default_rng(1)
    words = rng.integers(0, 5_000, 30_000).astype(str)
    edited = words.copy()
    edited[rng.choice(len(words), 300, replace=False)] = "new"
    sample = shingles(" ".join(words)), shingles(" ".join(edited))
    assert max(map(len, sample)) == MOST
    assert similarity(*sample) == pytest.approx(exact(words.tolist(), edited.tolist()), abs=0.05)


def test_nothing_is_like_nothing_and_unlike_something():
    nothing, something = shingles(" \n"), shingles("word")
    assert similarity(nothing, nothing) == 1.0
    assert similarity(nothing, something) == 0.0


def test_texts_shorter_than_the_sample_are_compared_exactly_although_both_together_are_longer():
    one, other = [str(word) for word in range(240)], [str(word) for word in range(100, 340)]
    found = similarity(shingles(" ".join(one), 256), shingles(" ".join(other), 256), 256)
    assert found == pytest.approx(exact(one, other))


TEXTS = st.lists(st.sampled_from(["a", "ab", "größe", "x" * 63, "y" * 64, "z" * 65, "w" * 129]), max_size=40).flatmap(
    lambda words: st.lists(st.sampled_from([" ", "  ", "\n", "\t "]), min_size=len(words), max_size=len(words)).map(
        lambda spaces: "".join(word + space for word, space in zip(words, spaces, strict=True))
    )
)


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.integers(0, 400), st.sampled_from([1, 16, 256]))
def test_numbers_are_the_same_with_kernels(text, more, most):
    pytest.importorskip("numba", reason="numba is not installed")
    for longer in (text, text * 5, f" {text}{' '.join(map(str, range(more)))}"):
        quick = shingles(longer, most, use_kernels=True)
        assert quick.tolist() == shingles(longer, most).tolist()
