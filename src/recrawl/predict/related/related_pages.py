"""The pages most like a page in what they say, by the cosine of their vectors: where LBLA looks around.

Below :data:`EXACT` pages all pairs are compared, in blocks. Above it neighbours are searched approximately; every
result then says what share of the true neighbours it found, measured on a random sample of pages.

Related pages the cheaper way that paper 004 suggests: look for them only in the nearest clusters of content.

The vectors are parted into clusters by k-means of directions, learned from a sample; a page is compared with the pages
of the ``probes`` clusters whose centres are nearest to that of its own. More probes find more of the true neighbours
and cost more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from recrawl.errors import require
from recrawl.model import AnyArray, FloatArray, IntArray
from recrawl.model.arrays import offsets_of

SingleArray: TypeAlias = npt.NDArray[np.float32]

NEIGHBOURS: Final = 30
"""k of paper 004."""
EXACT: Final = 40_000
"""Pages up to which comparing all pairs costs less than searching cleverly."""
SAMPLE: Final = 1_000
"""Pages on which recall is measured."""
_CELLS: Final = 1 << 24
"""Numbers held at a time: 64 MB."""
_ROUNDING: Final = np.float32(1e-5)
"""By how much two ways to compute a cosine may differ in single precision."""


@dataclass(frozen=True, slots=True)
class RelatedPages:
    """The k nearest pages of each of n pages, nearest first."""

    row: npt.NDArray[np.int32]
    """Rows of the neighbours, shape (n, k); −1 where there are fewer. A page without text has none."""
    similarity: npt.NDArray[np.float32]
    """Their cosines; 0 where there is none."""
    recall: float
    """Share of the true k nearest found, on a random sample; 1 where all pairs were compared."""
    sampled: int
    """Pages of that sample; 0 where all pairs were compared."""

    def __len__(self) -> int:
        return len(self.row)

    def weights(self) -> FloatArray:
        """How much each neighbour counts: its cosine, not below 0; all alike where none is positive (reading 004.4).

        Rows sum up to 1, or to 0 without neighbours. Shape (n, k).
        """
        there = self.row >= 0
        weight = np.where(there, np.maximum(self.similarity.astype(np.float64), 0.0), 0.0)
        none = weight.sum(axis=1) <= 0
        weight[none] = there[none]
        whole = weight.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(weight, whole, out=np.zeros_like(weight), where=whole > 0))

    def mean_of(self, values: FloatArray) -> FloatArray:
        """The weighted mean of each column of ``values`` over the related pages of each page that have a value.

        Shape (n, columns); NaN where no related page has one, or only such of weight 0. O(n k columns), as a product of
        a sparse matrix.
        """
        n, k = self.row.shape
        ends = np.arange(0, n * k + 1, k)
        near = sparse.csr_array((self.weights().ravel(), np.maximum(self.row, 0).ravel(), ends), shape=(n, n))
        known = ~np.isnan(values)
        total, whole = near @ np.where(known, values, 0.0), near @ known.astype(np.float64)
        return np.asarray(np.divide(total, whole, out=np.full(values.shape, np.nan), where=whole > 0))


def related_pages(vectors: AnyArray, rng: np.random.Generator, *, k: int = NEIGHBOURS) -> RelatedPages:
    """The ``k`` nearest pages of each row of ``vectors``, itself left out.

    Vectors have length 1, or 0 for a page without text. Up to :data:`EXACT` pages in O(n²), beyond by
    nearest-neighbour descent (:func:`descend`).
    """
    if int(vectors.any(axis=1).sum()) <= EXACT:
        return compare_all(vectors, k=k)
    return descend(vectors, rng, k=k)


def compare_all(vectors: AnyArray, *, k: int = NEIGHBOURS) -> RelatedPages:
    """The true nearest pages, all pairs compared in blocks. O(n² d) time, O(n k) memory.

    >>> found = compare_all(np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.0, 0.0]]), k=2)
    >>> found.row.tolist()
    [[1, 2], [0, 2], [1, 0], [-1, -1]]
    """
    unit = np.ascontiguousarray(vectors, dtype=np.float32)
    row, similarity = nearest(unit, np.arange(len(unit)), k)
    return RelatedPages(row, similarity, recall=1.0, sampled=0)


def descend(vectors: AnyArray, rng: np.random.Generator, *, k: int = NEIGHBOURS) -> RelatedPages:
    """Nearly the nearest pages, by nearest-neighbour descent (Dong, Moses and Li 2011), in about O(n^1.14 d).

    Needs the extra ``predict``, and more than k pages with text.
    """
    unit = np.ascontiguousarray(vectors, dtype=np.float32)
    some = np.flatnonzero(unit.any(axis=1))
    index = require("pynndescent", "predict").NNDescent(
        unit[some], metric="dot", n_neighbors=k + 1, random_state=int(rng.integers(2**31))
    )
    found = index.neighbor_graph[0]
    candidates = np.full((len(unit), k + 1), -1, np.int32)
    candidates[some] = np.where(found >= 0, some[found], -1)
    return measured(unit, candidates, rng, k)


def measured(
    unit: SingleArray, candidates: npt.NDArray[np.int32], rng: np.random.Generator, k: int = NEIGHBOURS
) -> RelatedPages:
    """The nearest among the candidates of each page, and how many of the true nearest they are.

    Candidates are rows, −1 for none, each at most once. O(candidates · d), and O(:data:`SAMPLE` n d) for the recall.
    """
    n = len(unit)
    row = np.full((n, k), -1, np.int32)
    similarity = np.zeros((n, k), np.float32)
    block = max(1, _CELLS // max(candidates.shape[1] * unit.shape[1], 1))
    for start in range(0, n, block):
        rows = candidates[start : start + block]
        own = np.arange(start, start + len(rows))
        cosine = np.einsum("ncd,nd->nc", unit[rows], unit[own])
        cosine[(rows < 0) | (rows == own[:, None])] = -np.inf
        row[own], similarity[own] = _sorted(rows, cosine, k)
    with_text = np.flatnonzero(unit.any(axis=1))
    sample = rng.choice(with_text, min(SAMPLE, len(with_text)), replace=False)
    true_row, true = nearest(unit, sample, k)
    return RelatedPages(row, similarity, _recall(row[sample], similarity[sample], true_row, true), len(sample))


def nearest(unit: SingleArray, of: IntArray, k: int) -> tuple[npt.NDArray[np.int32], SingleArray]:
    """Rows and cosines of the true nearest pages of the rows ``of``, nearest first. O(|of| n d)."""
    silent = np.logical_not(unit.any(axis=1))
    row = np.full((len(of), k), -1, np.int32)
    similarity = np.zeros((len(of), k), np.float32)
    block = max(1, _CELLS // max(len(unit), 1))
    for start in range(0, len(of), block):
        asked = of[start : start + block]
        cosine = unit[asked] @ unit.T
        cosine[:, silent] = -np.inf
        cosine[silent[asked]] = -np.inf
        cosine[np.arange(len(asked)), asked] = -np.inf
        top = np.argpartition(-cosine, min(k, len(unit)) - 1, axis=1)[:, :k]
        top.sort(axis=1)  # of equally near pages the one with the lower id comes first
        here = slice(start, start + len(asked))
        row[here], similarity[here] = _sorted(top, np.take_along_axis(cosine, top, axis=1), k)
    return row, similarity


def _sorted(row: AnyArray, cosine: SingleArray, k: int) -> tuple[npt.NDArray[np.int32], SingleArray]:
    """The k best, best first; what has cosine −∞ is none."""
    order = np.argsort(-cosine, axis=1, kind="stable")[:, :k]
    row, cosine = np.take_along_axis(row, order, axis=1), np.take_along_axis(cosine, order, axis=1)
    there = np.isfinite(cosine)
    lacking = ((0, 0), (0, k - row.shape[1]))
    return (
        np.pad(np.where(there, row, -1), lacking, constant_values=-1).astype(np.int32),
        np.pad(np.where(there, cosine, 0.0), lacking).astype(np.float32),
    )


def _recall(row: AnyArray, similarity: SingleArray, true_row: AnyArray, true: SingleArray) -> float:
    """A page as near as the furthest true one counts as found: copies of one page cannot be told apart."""
    wanted = true_row >= 0
    if not wanted.any():
        return 1.0
    furthest = np.min(true, axis=1, where=wanted, initial=np.inf, keepdims=True)
    found = ((row >= 0) & (similarity >= furthest - _ROUNDING)).sum(axis=1)
    return float(np.minimum(found, wanted.sum(axis=1)).sum() / wanted.sum())


PROBES: Final = 8
_TAUGHT: Final = 64
"""Vectors a cluster that its centre is learned from, on average: more of them hardly move it."""
_ROUNDS: Final = 8


def within_clusters(
    vectors: AnyArray,
    rng: np.random.Generator,
    *,
    k: int = NEIGHBOURS,
    clusters: int | None = None,
    probes: int = PROBES,
) -> RelatedPages:
    """The nearest pages of each page among those of the ``probes`` clusters nearest to its own.

    With √n clusters (the default) O(probes · n^1.5 d). There may be fewer: of centres that coincide one is left.
    """
    unit = np.ascontiguousarray(vectors, dtype=np.float32)
    some = np.flatnonzero(unit.any(axis=1))
    candidates = np.full((len(unit), k + 1), -1, np.int32)
    if len(some) > 1:
        count = min(clusters or round(len(some) ** 0.5), len(some))
        found = _search(unit[some], rng, k + 1, count, min(probes, count))
        candidates[some] = np.where(found >= 0, some[found], -1)
    return measured(unit, candidates, rng, k)


def _search(
    unit: SingleArray, rng: np.random.Generator, most: int, clusters: int, probes: int
) -> npt.NDArray[np.int32]:
    """Rows of the nearest pages, the page itself among them; −1 where there are fewer than ``most``."""
    centre, label = _parted(unit, rng, clusters)
    member = np.argsort(label, kind="stable")
    offsets = offsets_of(np.sort(label), len(centre))
    row = np.full((len(unit), most), -1, np.int32)
    for cluster in range(len(centre)):
        asked = member[offsets[cluster] : offsets[cluster + 1]]
        if not len(asked):
            continue
        # All pages of a cluster observation in the clusters near to its centre: one product of matrices serves them
        # all.
        near = np.argsort(-(centre @ centre[cluster]), kind="stable")[:probes]
        among = np.sort(np.concatenate([member[offsets[one] : offsets[one + 1]] for one in near]))
        held = min(most, len(among))
        block = max(1, _CELLS // len(among))
        for start in range(0, len(asked), block):
            rows = asked[start : start + block]
            cosine = unit[rows] @ unit[among].T
            top = np.argpartition(cosine, len(among) - held, axis=1)[:, len(among) - held :]
            row[rows, :held] = among[top]
    return row


def _parted(unit: SingleArray, rng: np.random.Generator, clusters: int) -> tuple[SingleArray, IntArray]:
    """Centres, of length 1, and the cluster of each vector; none is empty.

    Learned from a sample and by products of matrices alone, in O(clusters² d) a round: learning from all vectors took
    most of the time. To find each vector's own takes O(n clusters d).
    """
    taught = unit[np.sort(rng.choice(len(unit), min(len(unit), _TAUGHT * clusters), replace=False))]
    centre = taught[np.sort(rng.choice(len(taught), clusters, replace=False))]
    for _ in range(_ROUNDS):
        label = _nearest_centre(taught, centre)
        ones = np.ones(len(taught), np.float32)
        total = sparse.csr_array((ones, (label, np.arange(len(taught)))), shape=(clusters, len(taught))) @ taught
        length = np.linalg.norm(total, axis=1, keepdims=True)
        centre = np.where(length > 0, total / np.where(length > 0, length, 1.0), centre)
    used, label = np.unique(_nearest_centre(unit, centre), return_inverse=True)
    return centre[used], label


def _nearest_centre(unit: SingleArray, centre: SingleArray) -> IntArray:
    """Of equally near ones the first."""
    block = max(1, _CELLS // len(centre))
    found = [np.argmax(unit[start : start + block] @ centre.T, axis=1) for start in range(0, len(unit), block)]
    return np.concatenate(found)
