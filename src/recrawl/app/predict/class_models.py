"""Classes of change of a workspace, and the trees that predict them: the static classifier of paper 002, live.

The classes are the best clustering of the logarithms of the rates that pages have by their visits, or those of the
setting ``schedule.classes``. Two pruned trees predict the class of a page: one from its URL, one from its URL and its
first copy. Known pages keep what was predicted when the model was trained; others are predicted from their URLs.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recrawl.errors import InputError
from recrawl.estimate.posterior import gamma_posterior
from recrawl.model import AnyArray, FloatArray, IntArray, Pages
from recrawl.predict.class_tree import MOST_CODES, PrunedTree, TreeModel, learn_tree
from recrawl.predict.feature_extraction import first_sight, when_found
from recrawl.predict.prior_model import UNREADABLE, ClassScore, is_seen
from recrawl.schedule.policies.historic_classes import kmeans_1d

if TYPE_CHECKING:
    from recrawl.model import GammaBelief
    from recrawl.predict.prior_scores import TrainingPages
    from recrawl.predict.static_features import FeatureTable

CLUSTERS = 4
"""Classes, as many as in paper 002; fewer if pages have fewer different rates."""
_FOLDS = 4


@dataclass(frozen=True, slots=True)
class ClassModel:
    """Classes of change, and two trees for them. Immutable."""

    interval: FloatArray
    """Mean time between two changes of the pages of each class, seconds, ascending: class 0 is the most dynamic."""
    found: TreeModel
    """For pages of which only the URL is known."""
    seen: TreeModel
    """For pages that were observed."""

    def classes(self, table: FeatureTable) -> IntArray:
        """The most likely class of each page. O(pages · depth)."""
        known = is_seen(table)
        label = np.zeros(len(table), np.int64)
        for rows, tree, read in ((known, self.seen, table), (~known, self.found, when_found(table))):
            if rows.any():
                label[rows] = np.argmax(tree.chances(read.take(rows)), axis=1)
        return label


@dataclass(frozen=True, slots=True)
class StoredClasses:
    """A model of classes with what it says of the pages that were known when it was trained."""

    model: ClassModel
    known: IntArray
    """The class of each known page."""


def labels_of(rate: FloatArray, interval: FloatArray | None) -> tuple[FloatArray, IntArray]:
    """Intervals of classes, seconds, and the class of each of these rates per second.

    Without given intervals, both come from the best clustering of the logarithms of the rates. With them, a page
    belongs to the class whose interval is nearest, as a ratio.

    >>> every, label = labels_of(np.array([1.0, 1.1, 0.01]), None)
    >>> every.round(2).tolist(), label.tolist()
    ([0.91, 1.0, 100.0], [1, 0, 2])
    """
    log = np.log(rate)
    if interval is not None:
        return interval, np.argmin(np.abs(log[:, None] + np.log(interval)), axis=1)
    found = kmeans_1d(log, CLUSTERS)
    return np.exp(-found.centres[::-1]), len(found.centres) - 1 - found.labels


def train_classes(
    pages: TrainingPages, everyone: GammaBelief, rng: np.random.Generator, interval: FloatArray | None
) -> tuple[ClassModel, ClassScore] | None:
    """Trees for classes of change, and how often they are wrong; ``None`` if all pages have the same rate.

    The rate of a page is the mean of what is believed of it after its visits; ``everyone`` is the prior of all pages.
    """
    prior = everyone.take(np.zeros(len(pages), np.int64))
    rate = gamma_posterior.fit(pages.histories, prior).mean()
    every, label = labels_of(rate, interval)
    classes = len(every)
    if len(np.unique(label)) < 2:  # noqa: PLR2004 - one class is nothing to choose from
        return None
    model = trees(pages.table, label, every)
    wrong, commonest = 0, 0
    fold = rng.permutation(len(pages)) % _FOLDS
    for held in range(_FOLDS):
        out = fold == held
        said = trees(pages.table.take(~out), label[~out], every).classes(pages.table.take(out))
        wrong += int((said != label[out]).sum())
        commonest += int((label[out] != np.argmax(np.bincount(label[~out]))).sum())
    count = len(label)
    size = np.bincount(label, minlength=classes)
    return model, ClassScore(
        tuple(every.tolist()), tuple(size.tolist()), wrong / count, commonest / count, 1.0 - 1.0 / classes
    )


def trees(table: FeatureTable, label: IntArray, every: FloatArray) -> ClassModel:
    """Both trees, from pages with their classes."""
    known = is_seen(table)
    rows = known if known.any() else np.ones(len(table), np.bool_)
    classes = len(every)
    found, seen = learn_tree(when_found(table), label, classes), learn_tree(table.take(rows), label[rows], classes)
    return ClassModel(every, found, seen)


_TREES = ("found", "seen")


def classes_bytes(stored: StoredClasses) -> bytes:
    """The model as the content of a file."""
    arrays: dict[str, AnyArray] = {"interval": stored.model.interval, "known": stored.known}
    for name in _TREES:
        one: TreeModel = getattr(stored.model, name)
        arrays[f"{name}/schema"] = np.array(one.schema)
        arrays |= {f"{name}/tree/{key}": column for key, column in one.tree.arrays().items()}
        arrays |= {f"{name}/names/{place}": mean for place, mean in one.names.items()}
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def read_classes(content: bytes) -> StoredClasses:
    """The model that :func:`classes_bytes` made these bytes of.

    Raises:
        InputError: they are something else.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        interval = arrays["interval"].astype(np.float64)
        known = arrays["known"].astype(np.int64)
        rising = bool((interval > 0).all() and (np.diff(interval) > 0).all() and np.isfinite(interval).all())
        if interval.ndim != 1 or not rising or bool(((known < 0) | (known >= len(interval))).any()):
            raise ValueError(content[:0])
        both = (_tree(arrays, name, len(interval)) for name in _TREES)
        return StoredClasses(ClassModel(interval, *both), known)
    except (*UNREADABLE, OSError) as error:
        raise InputError("classes.npz of the model is damaged.", "Train it again.") from error


def _tree(arrays: Mapping[str, AnyArray], name: str, classes: int) -> TreeModel:
    empty = first_sight(np.empty(0, np.int64), ())
    width = len((empty if name == "seen" else when_found(empty)).columns)
    parts = {key.removeprefix(f"{name}/tree/"): one for key, one in arrays.items() if key.startswith(f"{name}/tree/")}
    places = {key: int(key.rpartition("/")[2]) for key in arrays if key.startswith(f"{name}/names/")}
    names = {place: arrays[key].astype(np.float64) for key, place in places.items()}
    if any(not 0 <= place < width or mean.shape != (MOST_CODES,) for place, mean in names.items()):
        raise ValueError(name)
    return TreeModel(str(arrays[f"{name}/schema"]), PrunedTree.from_arrays(parts, width, classes), names)


class FirstClasses:
    """The class that each page starts in, by the model of a workspace. It pickles, without the store."""

    def __init__(self, stored: StoredClasses, page: IntArray, urls: Callable[[IntArray], Sequence[str]]) -> None:
        """``page`` are the ascending ids of the known pages; ``urls`` gives the URLs of others."""
        self._model = stored.model
        self._page = page
        self._known = stored.known
        self._urls = urls

    @property
    def interval(self) -> FloatArray:
        """Of each class, seconds, ascending."""
        return self._model.interval

    def __call__(self, pages: Pages) -> IntArray:
        """One entry per page. The same for the same page, so that a replay after a restart gives the same schedule."""
        label = np.zeros(len(pages), np.int64)
        if not len(pages):
            return label
        rows = np.minimum(np.searchsorted(self._page, pages.id), max(len(self._page) - 1, 0))
        known = self._page[rows] == pages.id if len(self._page) else np.zeros(len(pages), np.bool_)
        label[known] = self._known[rows[known]]
        if not known.all():
            new = pages.id[~known]
            order = np.argsort(new)
            ids = new[order]
            label[np.flatnonzero(~known)[order]] = self._model.classes(first_sight(ids, self._urls(ids)))
        return label
