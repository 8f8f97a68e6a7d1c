"""A prior for the rate of a page from its features, and the boosted trees that compute it.

Boosted trees are plain arrays: trained by scikit-learn, evaluated without it, stored in files without code. A
scikit-learn model can only be stored as a pickle, and loading a pickle can run code. So the trees are copied out of the
trained model, node by node, into arrays. Their predictions are compared with scikit-learn's after training, so a
different tree layout in another version is noticed at once.

The prior is learned from event counts. A page with features x has rate λ ~ Gamma(a(x), a(x)/μ(x)): mean μ; a says how
much pages of equal features differ. In exposure T it shows X ~ NegativeBinomial(mean μT, shape a) events, and its
belief becomes Gamma(a + X, a/μ + T). So cold start, static and historic phase (paper 002) are one formula.

Learning has two steps. Boosted trees fit the mean of X/T with weight T by Poisson deviance. Their out-of-fold
predictions m are then recalibrated, together with the remaining spread, by maximum likelihood of the counts:

    ln μ = c₀ + c₁ · ln m,    ln a = d₀ + d₁ · ln m.

Pages of unknown sites need a second ensemble with its own calibration: path names mean nothing on another site, and
sites differ more than pages of one site. It uses no names, its folds leave out whole sites, and all sites have equal
weight. What it learned is discounted by what it was worth on the sites that were left out. With the prior of all pages
Gamma(a₀, a₀/μ₀), the prior of a page on an unknown site has

    ln μ = (1 − d) · ln μ₀ + d · ln μ(x),    ln a = (1 − d) · ln a₀ + d · ln a(x).

The discount d, from 0 to 1, is the one whose gain on left-out sites, less one standard error of it between sites, is
largest; it is 0, one prior for all pages, if no gain is larger than that. So on an unknown site features help a cold
start only as far as they did elsewhere, and history decides the sooner the less they are worth. The same model serves
for changes (λ) and new links (ν).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from recrawl.errors import InputError, require
from recrawl.model import AnyArray, BoolArray, FloatArray, GammaBelief, IntArray
from recrawl.model.compiled import can_compile, compiled
from recrawl.predict.static_features import FeatureArray, FeatureTable

NAMES = 256
"""Categories that a column may have: whole numbers below this."""
_LEARNING_RATE, _LEAVES, _TREE_RIDGE = 0.08, 15, 1.0
_STOP_EARLY = 200
"""Pages from which a tenth is held out, so that growing stops when it no longer gains."""
_FEW = 20_000
"""Pages below which one processor grows the trees faster than several."""
_CHECKED = 200
_KNOWN = 10
"""Pages that a feature must be known of to be learned from; where it is known of none, growing would even fail."""


_OF_NODES = ("column", "threshold", "left", "right", "unknown_left", "names", "value")
"""Columns with a row for each node."""
_KINDS: dict[str, type[np.generic]] = {
    **dict.fromkeys(("root", "column", "left", "right", "names"), np.int32),
    **dict.fromkeys(("threshold", "value"), np.float64),
    **dict.fromkeys(("unknown_left", "goes_left", "known"), np.bool_),
}


@dataclass(frozen=True, slots=True)
class BoostedTrees:
    """Regression trees whose answers add up. Nodes of all trees lie in one table."""

    root: npt.NDArray[np.int32]
    """The first node of each tree."""
    column: npt.NDArray[np.int32]
    """What a node asks for."""
    threshold: FloatArray
    """Up to it a number goes left."""
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    """The same as ``left`` in a leaf, and the node itself."""
    unknown_left: BoolArray
    """Where a page goes whose feature is unknown."""
    names: npt.NDArray[np.int32]
    """The row of ``goes_left`` that a node asks; −1 where it asks for a number."""
    value: FloatArray
    """What a leaf adds."""
    goes_left: BoolArray
    """Names that go left. Shape (questions, :data:`NAMES`)."""
    known: BoolArray
    """Names that the trees have seen, by column; others are unknown. Shape (columns, :data:`NAMES`)."""
    start: float
    """The sum starts with it."""

    def log_mean(self, values: FeatureArray) -> FloatArray:
        """What trees grown by :func:`grow` add up to: the logarithm of the mean."""
        return self.total(values)

    def total(self, values: FeatureArray) -> FloatArray:
        """The sum over all trees, for each row. O(rows · trees · depth)."""
        if values.shape[1] != len(self.known):
            msg = f"the trees read {len(self.known)} features, not {values.shape[1]}"
            raise ValueError(msg)
        found = np.full(len(values), self.start)
        if can_compile():
            _add_leaves(found, np.ascontiguousarray(values.T, np.float32), *self._questions())
        else:
            self._add_numpy(values.astype(np.float32, copy=False), found)
        return found

    def arrays(self) -> dict[str, AnyArray]:
        """Everything, by name: for a file."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, AnyArray]) -> BoostedTrees:
        """The reverse of :meth:`arrays`.

        Raises:
            ValueError: they lead nowhere: a node outside the table, columns of other lengths or kinds, or trees
                without end. Compiled code observes no bounds, so nothing else does later.
        """
        given = {name: _of_kind(arrays[name], kind) for name, kind in _KINDS.items()}
        trees = cls(**given, start=float(arrays["start"]))
        nodes = np.arange(len(trees.value))
        if any(given[name].shape != nodes.shape for name in _OF_NODES) or trees.root.ndim != 1:
            msg = "these columns have different lengths"
            raise ValueError(msg)
        leaf = trees.left == nodes
        # Children lie behind their parents, so every way ends.
        onwards = leaf | ((trees.left > nodes) & (trees.right > nodes) & (trees.right < len(nodes)))
        asks = (trees.column >= 0) & (trees.column < len(trees.known)) & (trees.names < len(trees.goes_left))
        roots = (trees.root >= 0) & (trees.root < len(nodes))
        fits = bool((onwards & (trees.left < len(nodes)) & asks).all() and roots.all())
        if not fits or trees.known.shape[1:] != (NAMES,) or trees.goes_left.shape[1:] != (NAMES,):
            msg = "these numbers are no trees"
            raise ValueError(msg)
        return trees

    def _questions(self) -> tuple[AnyArray, ...]:
        """What the kernel reads. Of node ``n`` the right child is at ``2 n`` and the left one at ``2 n + 1``."""
        child = np.stack([self.right, self.left], axis=1).ravel()
        asked = (self.unknown_left, self.names, self.value, self.goes_left, self.known)
        return (self.root, self.column, self.threshold, child, *asked)

    def _add_numpy(self, values: FeatureArray, found: FloatArray) -> None:
        """Tree by tree, all rows per step down at once."""
        row = np.arange(len(values))
        for root in self.root.tolist():
            node = np.full(len(values), root)
            while not bool((self.left[node] == node).all()):
                asked = values[row, self.column[node]]
                name = self.names[node]
                is_name = (name >= 0) & (asked >= 0) & (asked < NAMES)
                code = np.where(is_name, asked, 0).astype(np.int64)
                unknown = np.isnan(asked) | ((name >= 0) & ~(is_name & self.known[self.column[node], code]))
                by_name = self.goes_left[name, code] if len(self.goes_left) else np.zeros(len(node), np.bool_)
                goes = np.where(name >= 0, by_name, asked <= self.threshold[node])
                node = np.where(np.where(unknown, self.unknown_left[node], goes), self.left[node], self.right[node])
            found += self.value[node]


def _of_kind(column: AnyArray, kind: type[np.generic]) -> AnyArray:
    if column.dtype != kind:
        msg = f"these are no numbers of the kind {kind.__name__}"
        raise ValueError(msg)
    return np.ascontiguousarray(column)


@compiled
def _add_leaves(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    found: FloatArray,
    columns: FeatureArray,
    root: AnyArray,
    column: AnyArray,
    threshold: AnyArray,
    child: AnyArray,
    unknown_left: AnyArray,
    names: AnyArray,
    value: AnyArray,
    goes_left: AnyArray,
    known: AnyArray,
) -> None:
    # Some rows at a time go through one tree after the other, all a step down at once: so both the tree and the rows
    # stay in the cache, and no step waits for the one before to tell left from right. Rows at a leaf drop out.
    node, rows = np.empty(256, np.int32), np.empty(256, np.int32)
    for first in range(0, len(found), 256):
        many = min(256, len(found) - first)
        for tree in range(len(root)):
            node[:many] = root[tree]
            for row in range(many):
                rows[row] = row
            going = many if child[2 * root[tree]] != root[tree] else 0
            while going:
                kept = 0
                for index in range(going):
                    this = np.uint32(rows[index])
                    at = np.uint32(node[this])
                    asked = columns[np.uint32(column[at]), np.uint32(first) + this]
                    is_unknown = np.uint32(asked != asked)  # noqa: PLR0124 - only NaN differs from itself
                    goes = np.uint32(asked <= threshold[at]) | (is_unknown & np.uint32(unknown_left[at]))
                    if names[at] >= 0:
                        goes = np.uint32(unknown_left[at])
                        if 0.0 <= asked < 256.0:  # noqa: PLR2004 - NAMES; a kernel reads no globals that may change
                            code = int(asked)
                            if known[column[at], code]:
                                goes = np.uint32(goes_left[names[at], code])
                    new = np.uint32(child[np.uint32(2) * at + goes])
                    node[this] = new
                    rows[kept] = this
                    kept += int(child[np.uint32(2) * new] != new)
                going = kept
            for row in range(many):
                found[first + row] += value[node[row]]


def grow(  # noqa: PLR0913 - what to learn from, and how
    table: FeatureTable, rate: FloatArray, weight: FloatArray, *, rounds: int, smallest_leaf: int, seed: int
) -> BoostedTrees:
    """Trees for the mean of ``rate``, by Poisson deviance; ``weight`` is how much each page counts.

    O(rounds · pages · columns). Needs the extra ``predict``.
    """
    told = (~np.isnan(table.values)).sum(axis=0) >= _KNOWN
    values = np.where(told, table.values, np.float32(0.0))
    named = np.array([column.categorical for column in table.columns], np.bool_) & told
    learner = require("sklearn.ensemble", "predict").HistGradientBoostingRegressor(
        loss="poisson",
        learning_rate=_LEARNING_RATE,
        max_iter=rounds,
        max_leaf_nodes=_LEAVES,
        min_samples_leaf=smallest_leaf,
        l2_regularization=_TREE_RIDGE,
        categorical_features=named,
        early_stopping=len(table) >= _STOP_EARLY,
        random_state=seed,
    )
    # Threads that wait for each other at every node of a small tree cost more than they save.
    threads = 1 if len(table) < _FEW else None
    with require("threadpoolctl", "predict").threadpool_limits(threads):
        learner.fit(values, rate, sample_weight=weight)
        return taken_out(learner, values, named)


def taken_out(learner: Any, values: FeatureArray, named: BoolArray) -> BoostedTrees:  # noqa: ANN401 - scikit-learn's
    """The trees of a fitted learner of one output, checked to say what it says of the pages it was fitted to.

    ``learner`` is one of scikit-learn's for histogram-based boosting; ``named`` marks its columns of names.

    Raises:
        ValueError: there are names other than whole numbers below :data:`NAMES`.
    """
    trees = _nodes(learner, values, named)
    some = values[:: max(len(values) // _CHECKED, 1)]
    said = learner._raw_predict(some).ravel()  # noqa: SLF001 - classes, means and rates alike: before any link function
    if not np.allclose(trees.total(some), said, atol=1e-9):
        msg = "this version of scikit-learn lays its trees out in another way"
        raise AssertionError(msg)
    return trees


def _nodes(learner: Any, values: FeatureArray, named: BoolArray) -> BoostedTrees:  # noqa: ANN401 - scikit-learn's
    """The nodes of a learner. It puts columns of names first, and numbers the names it saw again."""
    predictors = [tree for (tree,) in learner._predictors]  # noqa: SLF001 - there is no public way to them
    sizes = np.array([len(tree.nodes) for tree in predictors])
    root = np.cumsum(sizes) - sizes
    nodes = np.concatenate([tree.nodes for tree in predictors])
    base = np.repeat(root, sizes)
    leaf = nodes["is_leaf"].astype(np.bool_)
    own = np.arange(len(nodes))
    places = np.concatenate([np.flatnonzero(named), np.flatnonzero(~named)])
    column = np.where(leaf, 0, places[np.where(leaf, 0, nodes["feature_idx"])])
    by_name = nodes["is_categorical"].astype(np.bool_) & ~leaf
    bits = np.concatenate([tree.raw_left_cat_bitsets for tree in predictors])
    first_bits = np.cumsum([0, *(len(tree.raw_left_cat_bitsets) for tree in predictors[:-1])])
    asked = np.where(by_name, nodes["bitset_idx"] + np.repeat(first_bits, sizes), -1)
    known, goes_left = np.zeros((len(named), NAMES), np.bool_), np.zeros((len(bits), NAMES), np.bool_)
    ranked = np.unpackbits(bits.astype("<u4").view(np.uint8), axis=1, bitorder="little").astype(np.bool_)
    for place in np.flatnonzero(named).tolist():
        codes = np.unique(values[:, place][~np.isnan(values[:, place])])
        whole = codes.astype(np.int64)
        if len(codes) and (codes[0] < 0 or codes[-1] >= NAMES or bool((codes != whole).any())):
            msg = f"the names of column {place} are no whole numbers below {NAMES}"
            raise ValueError(msg)
        known[place, whole] = True
        questions = asked[by_name & (column == place)]
        goes_left[np.ix_(questions, whole)] = ranked[questions, : len(whole)]
    return BoostedTrees(
        root=root.astype(np.int32),
        column=column.astype(np.int32),
        threshold=nodes["num_threshold"].astype(np.float64),
        left=np.where(leaf, own, nodes["left"] + base).astype(np.int32),
        right=np.where(leaf, own, nodes["right"] + base).astype(np.int32),
        unknown_left=nodes["missing_go_to_left"].astype(np.bool_),
        names=asked.astype(np.int32),
        value=nodes["value"].astype(np.float64),
        goes_left=goes_left,
        known=known,
        start=float(learner._baseline_prediction.item()),  # noqa: SLF001 - there is no public way to it
    )


FOLDS = 4
ROUNDS = 100
"""Trees of the ensemble, at most; growing stops when a held-out tenth no longer gains."""
FEWEST = 20
"""Pages below which there is nothing to learn from features: the prior is then the same for all."""
_LEAF = 20
_SHAPES = (0.02, 50.0)
"""Between them lies a(x): wider than 0.02 says nothing, narrower than 50 trusts features more than data allow."""
_RIDGE = 1.0
"""Draws the four numbers of a head towards "as the trees say, shape 1", as one more page would."""


@dataclass(frozen=True, slots=True)
class PriorHead:
    """From the mean that the trees say to a Gamma prior."""

    scale: float
    slope: float
    """ln μ = scale + slope · (ln m − centre)."""
    log_shape: float
    shape_slope: float
    centre: float

    def prior(self, log_mean: FloatArray) -> GammaBelief:
        """The belief about pages of which the trees say these means, per second."""
        mean, shape = self.terms(log_mean)
        return GammaBelief(shape, shape / mean)

    def usual(self, log_mean: FloatArray) -> float:
        """The mean of ln μ."""
        return float(np.log(self.terms(log_mean)[0]).mean())

    def towards(self, other: PriorHead, share: float) -> PriorHead:
        """The head whose ln μ and ln a are those of this one, moved by a share of the way to another one.

        This one must give all pages the same prior.
        """
        own = 1.0 - share
        return PriorHead(
            own * self.scale + share * other.scale,
            share * other.slope,
            own * self.log_shape + share * other.log_shape,
            share * other.shape_slope,
            other.centre,
        )

    def terms(self, log_mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        """μ and a."""
        off = log_mean - self.centre
        mean = np.exp(self.scale + self.slope * off)
        return mean, np.clip(np.exp(self.log_shape + self.shape_slope * off), *_SHAPES)


@dataclass(frozen=True, slots=True)
class TreePrior:
    """Trees, and what to make of their answers."""

    trees: BoostedTrees | None
    """``None`` where there were too few pages, or nothing to tell them apart."""
    everywhere: float
    """The logarithm of the mean rate of all training pages."""
    usual: float
    """The mean of ln μ over pages of the training, each predicted by those trained without it."""
    head: PriorHead

    def prior(self, table: FeatureTable) -> GammaBelief:
        """What to believe of the rates of these pages, per second."""
        return self.head.prior(_log_mean(self.trees, table, self.everywhere))


@dataclass(frozen=True, slots=True)
class CountPrior:
    """A model that was trained; immutable."""

    schema: str
    known_site: TreePrior
    other_site: TreePrior
    sites: IntArray
    """Sites it was trained on, ascending."""

    def prior(self, table: FeatureTable, site: IntArray) -> GammaBelief:
        """What to believe of the rates of these pages, per second; ``site[i]`` is the site of row i. O(n · trees)."""
        asked, known = table.fitting(self.schema), np.isin(site, self.sites)
        return chosen(
            known,
            lambda: self.known_site.prior(asked.take(known)),
            lambda: self.other_site.prior(without_names(asked.take(~known))),
        )

    def usual(self, site: IntArray) -> FloatArray:
        """The usual ln μ of the models that predict pages of these sites."""
        return np.where(np.isin(site, self.sites), self.known_site.usual, self.other_site.usual)


def chosen(which: BoolArray, these: Callable[[], GammaBelief], others: Callable[[], GammaBelief]) -> GammaBelief:
    """Beliefs from two sources: rows where ``which`` is true, and the others. A source without rows is not asked."""
    a, b = np.empty(len(which)), np.empty(len(which))
    for rows, source in ((which, these), (~which, others)):
        if rows.any():
            said = source()
            a[rows], b[rows] = said.a, said.b
    return GammaBelief(a, b)


def train(  # noqa: PLR0913 - what to learn from, and how
    table: FeatureTable,
    count: FloatArray,
    exposure: FloatArray,
    site: IntArray,
    *,
    seed: int = 0,
    usual_of: BoolArray | None = None,
    everyone: GammaBelief | None = None,
) -> CountPrior:
    """Learn from pages that showed ``count`` events in ``exposure`` seconds, and whose features were known before.

    ``usual_of`` are the pages over which it is taken what is usual, all if not given: answers of two models can only be
    compared by what each says of the same pages.

    ``everyone`` is the prior of all pages, one row, where it is known better than from these counts: features that are
    worth nothing on other sites leave exactly this.

    Where observations only tell that something changed, not how often, take the exposure that gives the page its
    estimated rate. O(n · columns · trees) for each of the 2 · FOLDS + 1 ensembles.

    Raises:
        InputError: no page was watched at all.
    """
    seen = np.flatnonzero(exposure > 0)
    if not len(seen):
        raise InputError("No page was watched for any time, so there is nothing to learn from.", "Import histories.")
    table, count, exposure, site = table.take(seen), count[seen], exposure[seen], site[seen]
    usual_of = np.ones(len(seen), np.bool_) if usual_of is None else usual_of[seen]
    sites, number = np.unique(site, return_inverse=True)
    rng = np.random.default_rng(seed)
    seen_before = CountTraining(table, count, exposure, np.ones(len(table)), usual_of)
    alike = CountTraining(without_names(table), count, exposure, 1.0 / np.bincount(number)[number], usual_of)
    by_page, by_site = rng.permutation(len(table)) % FOLDS, (rng.permutation(len(sites)) % FOLDS)[number]
    known, other = _learn(seen_before, by_page, seed), _learn_elsewhere(alike, number, by_site, seed, everyone)
    return CountPrior(table.schema, known, other, sites)


def without_names(table: FeatureTable) -> FeatureTable:
    """Only the columns that hold numbers: names mean something on their own site alone."""
    return table.only([column.name for column in table.columns if not column.categorical])


@dataclass(frozen=True, slots=True)
class CountTraining:
    """Pages to learn from."""

    table: FeatureTable
    count: FloatArray
    exposure: FloatArray
    weight: FloatArray
    """How much each page counts."""
    usual_of: BoolArray
    """Pages over which it is taken what is usual."""

    def take(self, rows: BoolArray) -> CountTraining:
        """Some of them."""
        count, exposure, weight = (one[rows] for one in (self.count, self.exposure, self.weight))
        return CountTraining(self.table.take(rows), count, exposure, weight, self.usual_of[rows])

    def log_rate(self) -> float:
        """Of all of them together; half an event more keeps the rate of a population without events above 0."""
        seen = (self.weight * self.count).sum() / self.weight.mean() + 0.5
        return float(np.log(seen * self.weight.mean() / (self.weight * self.exposure).sum()))


def _learn(training: CountTraining, fold: IntArray, seed: int) -> TreePrior:
    """Trees and their head; without trees if they do not help on the folds left out."""
    everywhere = training.log_rate()
    said = _out_of_fold(training, fold, everywhere, seed)
    with _one_thread():
        plain, clever = (_fit_head(what, training) for what in (np.full(len(fold), everywhere), said))
    if _log_likelihood(clever, said, training) <= _log_likelihood(plain, np.full(len(fold), everywhere), training):
        return TreePrior(None, everywhere, plain.usual(np.array([everywhere])), plain)
    compared = said[training.usual_of] if training.usual_of.any() else said
    return TreePrior(_grow(training, everywhere, seed), everywhere, clever.usual(compared), clever)


def _out_of_fold(training: CountTraining, fold: IntArray, everywhere: float, seed: int) -> FloatArray:
    """What trees say of each page that were grown without the pages of its fold."""
    said = np.full(len(fold), everywhere)
    for held in np.unique(fold):
        out = fold == held
        trees = _grow(training.take(~out), everywhere, seed) if not out.all() else None
        said[out] = _log_mean(trees, training.table.take(out), everywhere)
    return said


_DISCOUNTS = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
"""What is tried for d beside 0."""


def _learn_elsewhere(
    alike: CountTraining, site: IntArray, fold: IntArray, seed: int, everyone: GammaBelief | None
) -> TreePrior:
    """The prior of pages on unknown sites: what features tell, discounted by what they told on sites left out.

    Beside the trees, a constant that gives all sites equal weight is a candidate: sites of many pages may be unusual.
    """
    everywhere = alike.log_rate()
    same, said = np.full(len(fold), everywhere), _out_of_fold(alike, fold, everywhere, seed)
    pages = replace(alike, weight=np.ones(len(fold)))
    with _one_thread():
        plain = _fit_head(same, pages) if everyone is None else _same_for_all(everyone)
        head, chosen_said, most = plain.towards(plain, 0.0), same, 0.0
        for candidate in (said, same):
            gains = _gains_elsewhere(candidate, same, alike, pages, fold)
            worth = [_sure_gain(np.bincount(site, gain).astype(np.float64)) for gain in gains]
            best = int(np.argmax(worth))
            if worth[best] > most:
                most, chosen_said = worth[best], candidate
                head = plain.towards(_fit_head(candidate, alike), _DISCOUNTS[best])
    compared = chosen_said[alike.usual_of] if alike.usual_of.any() else chosen_said
    trees = _grow(alike, everywhere, seed) if chosen_said is said else None
    return TreePrior(trees, everywhere, head.usual(compared), head)


def _same_for_all(prior: GammaBelief) -> PriorHead:
    """The head that gives this prior, one row, to every page."""
    return PriorHead(float(np.log(prior.mean()[0])), 0.0, float(np.log(prior.a[0])), 0.0, 0.0)


def _gains_elsewhere(
    candidate: FloatArray, same: FloatArray, alike: CountTraining, pages: CountTraining, fold: IntArray
) -> FloatArray:
    """By how much a candidate, discounted in each way, predicts each page better than one prior for all, in nats.

    Shape (discounts, pages). Heads of both are fitted without the fold of the page.
    """
    gains = np.zeros((len(_DISCOUNTS), len(fold)))
    for held in np.unique(fold):
        out = fold == held
        if out.all():
            break
        plain, target = _fit_head(same[~out], pages.take(~out)), _fit_head(candidate[~out], alike.take(~out))
        found = [
            count_likelihood(alike.count[out], alike.exposure[out], *plain.towards(target, share).terms(candidate[out]))
            for share in (0.0, *_DISCOUNTS)
        ]
        gains[:, out] = np.array(found[1:]) - found[0]
    return gains


def _sure_gain(gain: FloatArray) -> float:
    """The gain on all sites, less one standard error of it; from one site nothing is sure."""
    return float(gain.sum() - np.sqrt(len(gain) * gain.var(ddof=1))) if len(gain) > 1 else -np.inf


def _one_thread() -> AbstractContextManager[object]:
    """For steps in four numbers: threads that wait for each other there take ten times as long as one alone."""
    if find_spec("threadpoolctl") is None:  # comes with the extra; without it there are no trees, and few pages
        return nullcontext()
    limits: AbstractContextManager[object] = require("threadpoolctl", "predict").threadpool_limits(1)
    return limits


def _log_mean(trees: BoostedTrees | None, table: FeatureTable, everywhere: float) -> FloatArray:
    """What the trees say before recalibration: the logarithm of events per second."""
    if trees is None:
        return np.full(len(table), everywhere)
    return np.asarray(everywhere + trees.log_mean(table.values))


def _grow(training: CountTraining, everywhere: float, seed: int) -> BoostedTrees | None:
    """Boosted trees for the rate as a multiple of the mean of all, or None where they cannot be grown."""
    table = training.table
    if len(table) < FEWEST or not len(table.columns) or not training.count.any():
        return None
    expected = training.exposure * np.exp(everywhere)
    weight = training.weight * expected
    leaf = min(_LEAF, max(len(table) // 10, 2))
    return grow(table, training.count / expected, weight / weight.mean(), rounds=ROUNDS, smallest_leaf=leaf, seed=seed)


def _fit_head(log_mean: FloatArray, training: CountTraining) -> PriorHead:
    """The calibration under which the counts are likeliest. O(n) for each of some dozen steps."""
    from scipy import optimize

    centre = float(np.average(log_mean, weights=training.weight * training.exposure))
    usual = np.array([0.0, 1.0, 0.0, 0.0])

    def head(numbers: FloatArray) -> PriorHead:
        return PriorHead(centre + float(numbers[0]), float(numbers[1]), float(numbers[2]), float(numbers[3]), centre)

    def loss(numbers: FloatArray) -> float:
        off = numbers - usual
        return 0.5 * _RIDGE * float(off @ off) - _log_likelihood(head(numbers), log_mean, training)

    bounds = [(-5.0, 5.0), (0.0, 2.0), (-4.0, 4.0), (-1.0, 1.0)]
    return head(optimize.minimize(loss, usual, method="L-BFGS-B", bounds=bounds).x)


def _log_likelihood(head: PriorHead, log_mean: FloatArray, training: CountTraining) -> float:
    """Of the counts; each page by its weight, in units of whole pages."""
    found = count_likelihood(training.count, training.exposure, *head.terms(log_mean))
    return float((training.weight * found).sum() / training.weight.mean())


def count_likelihood(count: FloatArray, exposure: FloatArray, mean: FloatArray, shape: FloatArray) -> FloatArray:
    """The logarithm of P(count | exposure), where the rate is Gamma with this mean and shape: a negative binomial law.

    >>> count_likelihood(np.array([0.0]), np.array([2.0]), np.array([0.5]), np.array([1.0])).round(4).tolist()
    [-0.6931]
    """
    from scipy import special

    expected = mean * exposure
    return np.asarray(
        special.gammaln(shape + count)
        - special.gammaln(shape)
        - special.gammaln(count + 1.0)
        - shape * np.log1p(expected / shape)
        + special.xlogy(count, expected / (shape + expected))
    )
