"""A space in which texts about the same things lie near to each other: the semantic vectors of paper 004 (§5.2).

Two ways to get there. A *learned* space weighs words by TF-IDF and keeps the 192 directions in which a sample of texts
differs most (latent semantic analysis). A *hashed* space learns nothing: each word falls on one of the 192 axes, up or
down, by a hash, so cosines of the counts are kept on average; texts can stream by. Both give vectors of length 1, or 0
for a text without words. Both need the extra ``predict``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from scipy import sparse

from recrawl.errors import require
from recrawl.model import AnyArray, IntArray
from recrawl.predict.related.related_pages import SingleArray

DIMENSIONS: Final = 192
REDUCED: Final = 20
"""Dimensions that are given to learners."""
FITTED: Final = 50_000
"""Texts that directions are learned from, at most."""
WORDS: Final = 1 << 16
"""Distinct words a learned space keeps, the most frequent ones."""
_HASHES: Final = 1 << 20
_COMPARED: Final = 10_000
"""Vectors that axes are compared on, at most."""


class TextSpace(Protocol):
    """What turns texts into vectors."""

    def vectors(self, texts: Sequence[str]) -> SingleArray:
        """One row of length 1 a text, or of zeros for one without known words."""
        ...


@dataclass(frozen=True, slots=True)
class LearnedSpace:
    """Words weighed by TF-IDF, then projected."""

    words: Any
    """A fitted TfidfVectorizer; ``None`` if there was no word to learn from."""
    directions: SingleArray
    """Shape (dimensions, words)."""

    def vectors(self, texts: Sequence[str]) -> SingleArray:
        """One row a text. O(words of the texts · dimensions)."""
        if self.words is None or not texts:
            return np.zeros((len(texts), len(self.directions)), np.float32)
        return _unit(self.words.transform(texts) @ self.directions.T)


@dataclass(frozen=True, slots=True)
class HashedSpace:
    """Words thrown on axes by their hash; nothing is learned."""

    fold: Any
    """Sparse, shape (hashes, dimensions): the axis and sign of each hash."""

    def vectors(self, texts: Sequence[str]) -> SingleArray:
        """One row a text. O(words of the texts)."""
        if not texts:
            return np.zeros((0, self.fold.shape[1]), np.float32)
        hashing = require("sklearn.feature_extraction.text", "predict").HashingVectorizer(
            n_features=_HASHES, alternate_sign=False, norm=None, dtype=np.float32
        )
        counts = hashing.transform(texts)
        counts.data = 1.0 + np.log(counts.data)
        return _unit((counts @ self.fold).toarray())


def learn_text_space(texts: Sequence[str], rng: np.random.Generator, *, dimensions: int = DIMENSIONS) -> LearnedSpace:
    """The space in which these texts differ most. Texts without words teach nothing.

    O(words of :data:`FITTED` texts · dimensions). With fewer words or texts than dimensions the rest stays 0.
    """
    said = [text for text in texts if text.strip()]
    if len(said) > FITTED:
        said = [said[place] for place in np.sort(rng.choice(len(said), FITTED, replace=False))]
    words = require("sklearn.feature_extraction.text", "predict").TfidfVectorizer(
        sublinear_tf=True, max_features=WORDS, dtype=np.float32
    )
    analyse = words.build_analyzer()
    if not any(analyse(text) for text in said):
        return LearnedSpace(None, np.zeros((dimensions, 0), np.float32))
    weights = words.fit_transform(said)
    directions = np.zeros((dimensions, weights.shape[1]), np.float32)
    held = min(dimensions, *weights.shape)
    svd = require("sklearn.utils.extmath", "predict").randomized_svd
    directions[:held] = svd(weights, held, random_state=int(rng.integers(2**31)))[2]
    return LearnedSpace(words, directions)


def hashed_text_space(rng: np.random.Generator, *, dimensions: int = DIMENSIONS) -> HashedSpace:
    """A space that any text can be placed in at once; the same for the same seed."""
    axis = rng.integers(0, dimensions, _HASHES)
    sign = rng.choice(np.array([-1.0, 1.0], np.float32), _HASHES)
    return HashedSpace(sparse.csr_array((sign, (np.arange(_HASHES), axis)), shape=(_HASHES, dimensions)))


@dataclass(frozen=True, slots=True)
class Semantics:
    """A space, and which of its axes learners get as one. Part of a model: texts of later times are read by it too."""

    space: TextSpace
    axes: IntArray
    """The group of each axis, 0 … groups − 1."""


def learn_semantics(texts: Sequence[str], rng: np.random.Generator, *, hashed: bool = False) -> Semantics:
    """A space for these texts, learned from them or ``hashed``, with its axes grouped by how these texts use them."""
    space: TextSpace = hashed_text_space(rng) if hashed else learn_text_space(texts, rng)
    sample = texts if len(texts) <= _COMPARED else [texts[one] for one in rng.choice(len(texts), _COMPARED, False)]
    return Semantics(space, alike_axes(space.vectors(sample)))


def alike_axes(vectors: SingleArray, groups: int = REDUCED) -> IntArray:
    """The group of each axis: axes that rise and fall together are in one (paper 004, §5.3).

    By agglomerative clustering with Ward's criterion. O(n · axes²). Needs the extra ``predict``.
    """
    axes = vectors.shape[1]
    if axes <= groups or not len(vectors):
        return np.asarray(np.arange(axes) * min(groups, axes) // axes, dtype=np.int64)
    labels: AnyArray = require("sklearn.cluster", "predict").FeatureAgglomeration(groups).fit(vectors).labels_
    return labels.astype(np.int64)


def reduced(vectors: SingleArray, group: IntArray) -> SingleArray:
    """The mean of the axes of each group. Shape (n, groups).

    >>> reduced(np.array([[1.0, 3.0, 5.0]], np.float32), np.array([0, 0, 1])).tolist()
    [[2.0, 5.0]]
    """
    count = int(group.max()) + 1
    mean = np.zeros((len(group), count), np.float32)
    mean[np.arange(len(group)), group] = 1.0 / np.bincount(group)[group]
    return vectors @ mean


def _unit(rows: AnyArray) -> SingleArray:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, length, out=np.zeros_like(rows), where=length > 0), dtype=np.float32)
