"""Related pages the cheaper way that paper 004 suggests: look for them only in the nearest clusters of content.

The vectors are parted into clusters by k-means of directions, learned from a sample; a page is compared with the pages
of the ``probes`` clusters whose centres are nearest to that of its own. More probes find more of the true neighbours
and cost more.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import sparse

from recrawl.model import AnyArray, IntArray
from recrawl.model.arrays import offsets_of
from recrawl.predict.related_pages import NEIGHBOURS, RelatedPages, SingleArray, measured

PROBES: Final = 8
_TAUGHT: Final = 64
"""Vectors a cluster that its centre is learned from, on average: more of them hardly move it."""
_ROUNDS: Final = 8
_CELLS: Final = 1 << 24
"""Cosines held at a time: 64 MB."""


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
        # All pages of a cluster look in the clusters near to its centre: one product of matrices serves them all.
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
