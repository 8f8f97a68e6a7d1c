"""Related pages: by their URLs, and by the cosine of their semantic vectors.

*By URL.* A cluster is the deepest directory with enough pages. Pages of one directory are often edited together, so
they share an intensity (``estimate.operational.cluster_intensity``). The pages of a small directory belong to its
parent, up to the root of the host. A large cluster is split in the order of discovery, because pages found together
were often created together.

The prior of an unvisited page comes from its section, else its host, else all pages. Each level is an empirical-Bayes
fit, shrunk towards the level above with the weight of five pages. That is "look around" (paper 004) in its simplest
form.

The class of an unvisited page comes from its siblings: each directory has class probabilities, shrunk towards its
parent in the same way. This replaces the decision tree over page features of paper 002, and needs only the URL.

*By text.* The nearest pages by cosine are those of "look around" (paper 004, §5.2). Up to :data:`EXACT` pages all pairs
are compared, in blocks. Above it the search is approximate, by nearest-neighbour descent, and every result reports its
recall on a random sample of pages. :func:`within_clusters` is the cheaper search that paper 004 suggests: k-means of
directions, learned from a sample, and comparisons only with pages of the ``probes`` nearest clusters. More probes find
more neighbours and cost more.

Semantic vectors come from one of two spaces. A *learned* space weighs words by TF-IDF and keeps the 192 directions of
largest variance in a sample of texts (latent semantic analysis). A *hashed* space needs no training: each word is added
to one of 192 axes with a sign, by a hash, which keeps cosines on average. Both give vectors of length 1, or 0 for a
text without words. Both need the extra ``predict``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from recrawl.errors import require
from recrawl.estimate.posterior.gamma_posterior import GroupPriors, fit_group_priors
from recrawl.model import AnyArray, FloatArray, GammaBelief, Histories, IntArray
from recrawl.model.arrays import offsets_of
from recrawl.urls import section

FEWEST = 10
"""Pages that make a directory a cluster."""
MOST = 300
"""Pages of a cluster, at most."""


@dataclass(slots=True)
class UrlClusters:
    """Clusters that grow with the pages: pages given together form clusters, later ones join them."""

    fewest: int = FEWEST
    most: int = MOST
    _open: dict[str, int] = field(default_factory=dict)
    """Directory to the cluster that new pages of it join."""
    _size: list[int] = field(default_factory=list)
    _host: list[int] = field(default_factory=list)
    _hosts: dict[str, int] = field(default_factory=dict)

    @property
    def host(self) -> IntArray:
        """Host of each cluster, 0 … hosts − 1, numbered as they were met."""
        return np.array(self._host, dtype=np.int64)

    def add(self, urls: Sequence[str]) -> IntArray:
        """The cluster of each page, in order of discovery. O(pages · depth), one page at a time in Python.

        A page joins the deepest directory that already is a cluster, unless enough of the pages given with it lie in
        a deeper one: then that becomes a new cluster. Numbers given out never change.

        >>> found = UrlClusters(fewest=2)
        >>> found.add(["http://a.test/x/1", "http://a.test/x/2", "http://a.test/y/1"]).tolist()
        [0, 0, 1]
        >>> found.add(["http://a.test/x/3", "http://a.test/x/deep/4"]).tolist()
        [0, 0]
        """
        chains = [directories(url) for url in urls]
        home = _settle(chains, self.fewest, self._open.keys())
        return np.fromiter((self._join(name) for name in home), np.int64, len(home))

    def _join(self, directory: str) -> int:
        cluster = self._open.get(directory)
        if cluster is None or self._size[cluster] >= self.most:
            host = directory.partition("/")[0]
            cluster = self._open[directory] = len(self._size)
            self._size.append(0)
            self._host.append(self._hosts.setdefault(host, len(self._hosts)))
        self._size[cluster] += 1
        return cluster


def _settle(chains: list[list[str]], fewest: int, known: Container[str]) -> list[str]:
    """The directory each page settles in, deepest first: one that is a cluster, or gathers enough, or the root."""
    home = [""] * len(chains)
    waiting = list(range(len(chains)))
    for depth in range(max(map(len, chains), default=0) - 1, -1, -1):
        gathered: dict[str, list[int]] = {}
        for page in waiting:
            if len(chains[page]) > depth:
                gathered.setdefault(chains[page][depth], []).append(page)
        for name, pages in gathered.items():
            if depth == 0 or len(pages) >= fewest or name in known:
                for page in pages:
                    home[page] = name
        waiting = [page for page in waiting if not home[page]]
    return home


def directories(url: str) -> list[str]:
    """The host and each directory a URL lies in, from the root down; the file name and the query do not count.

    >>> directories("http://a.test/x/y/z.html?q=/1")
    ['a.test/', 'a.test/x/', 'a.test/x/y/']
    """
    place = url.partition("://")[2] or url
    place = place.partition("?")[0].partition("#")[0]
    host, _, path = place.partition("/")
    chain = [f"{host.lower()}/"]
    for name in path.split("/")[:-1]:
        chain.append(f"{chain[-1]}{name}/")
    return chain


@dataclass(frozen=True, slots=True)
class NeighbourPrior:
    """Fitted priors of all hosts and sections; immutable."""

    hosts: GroupPriors
    sections: GroupPriors

    def of(self, host: IntArray, section: IntArray) -> GammaBelief:
        """What to believe of pages there, one row per page. O(n log groups)."""
        by_host, by_section = self.hosts.of(host), self.sections.of(section)
        known = np.isin(section, self.sections.group)
        return GammaBelief(np.where(known, by_section.a, by_host.a), np.where(known, by_section.b, by_host.b))


def fit_neighbour_prior(
    histories: Histories, host: IntArray, section: IntArray, *, strength: float = 5.0
) -> NeighbourPrior:
    """Learn from histories; ``host[i]`` and ``section[i]`` say where row i lies, a section within one host.

    O(gaps of a sample) a round of EM for each of the three levels.
    """
    hosts = fit_group_priors(histories, host, strength=strength)
    _, first = np.unique(section, return_index=True)
    parents = hosts.of(host[first])
    return NeighbourPrior(hosts, fit_group_priors(histories, section, parents, strength=strength))


def section_id(url: str, depth: int = 1) -> int:
    """A number for the section a URL lies in: the same in every run, on every machine. 63 bits of a hash.

    >>> section_id("http://example.com/news/a.html") == section_id("http://example.com/news/b.html")
    True
    """
    digest = hashlib.blake2b(section(url, depth).encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


STRENGTH = 5.0
"""Pages that the directory above counts for."""


@dataclass(frozen=True, slots=True)
class SiblingClasses:
    """Chances of the classes in every directory that holds pages of known class; immutable."""

    everywhere: FloatArray
    """Of a page about which nothing is known."""
    by_directory: Mapping[str, FloatArray]

    def chances(self, urls: Sequence[str]) -> FloatArray:
        """The probability of each class, one row per URL. O(URLs · depth), one at a time in Python."""
        found = np.empty((len(urls), len(self.everywhere)))
        for place, url in enumerate(urls):
            known = (name for name in reversed(directories(url)) if name in self.by_directory)
            deepest = next(known, None)
            found[place] = self.everywhere if deepest is None else self.by_directory[deepest]
        return found

    def classes(self, urls: Sequence[str]) -> IntArray:
        """The likeliest class of each page; of equally likely ones the most dynamic."""
        return np.asarray(np.argmax(self.chances(urls), axis=1))


def fit_sibling_classes(
    urls: Sequence[str], label: IntArray, classes: int, *, strength: float = STRENGTH
) -> SiblingClasses:
    """Learn from pages of known class, 0 … classes − 1. O(URLs · depth), one at a time in Python.

    >>> urls = ["http://a.test/x/1", "http://a.test/x/2", "http://a.test/y/3"]
    >>> known = fit_sibling_classes(urls, np.array([0, 0, 1]), 2)
    >>> known.classes(["http://a.test/x/new", "http://a.test/y/new", "http://b.test/"]).tolist()
    [0, 0, 0]
    >>> known.chances(["http://a.test/y/new"]).round(2).tolist()
    [[0.52, 0.48]]
    """
    counts: dict[str, FloatArray] = {}
    for url, kind in zip(urls, label.tolist(), strict=True):
        for name in directories(url):
            counts.setdefault(name, np.zeros(classes))[kind] += 1.0
    everywhere = (np.bincount(label, minlength=classes) + 1.0) / (len(label) + classes)
    chances: dict[str, FloatArray] = {}
    for name in sorted(counts, key=len):  # a directory has a longer name than the one above it
        parent = chances.get(name[: name.rindex("/", 0, -1) + 1], everywhere) if "/" in name[:-1] else everywhere
        chances[name] = (counts[name] + strength * parent) / (counts[name].sum() + strength)
    return SiblingClasses(everywhere, chances)


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
        from scipy import sparse

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
    """A page as near as the furthest true one counts as found: copies of one page are indistinguishable."""
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
    from scipy import sparse

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
    from scipy import sparse

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
