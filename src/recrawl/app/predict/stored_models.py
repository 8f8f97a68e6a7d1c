"""The models of a workspace: a folder each, with its description, its predictions for pages, and their reasons."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl import __version__
from recrawl.app.display import command_in
from recrawl.app.predict.class_models import StoredClasses, classes_bytes, read_classes
from recrawl.app.predict.model_training import sights
from recrawl.app.rates.rates_table import in_words
from recrawl.errors import ConfigError, InputError
from recrawl.estimate.posterior.gamma_posterior import sum_of
from recrawl.formats.atomic_files import complete_file
from recrawl.model import FloatArray, GammaBelief, IntArray
from recrawl.predict.feature_extraction import first_sight, site_ids, when_found
from recrawl.predict.prior_model import (
    UNREADABLE,
    ModelCard,
    ModelScore,
    PriorModel,
    contributions,
    is_seen,
    model_bytes,
    model_card,
    read_model,
)
from recrawl.time import DAY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recrawl.app.predict.model_training import TrainingMaterial
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.predict.prior_scores import TrainingPages
    from recrawl.predict.static_features import FeatureTable
    from recrawl.store.base import PageTable, Store


MODEL, NOTE, CARD, PRIORS = "model.npz", "model.json", "card.md", "priors.npz"
CLASSES = "classes.npz"
USUAL = "default"
"""The default name of a model."""
_LIBRARIES = ("numpy", "scikit-learn")
_COMPARED = 50
"""The number of pages that are checked to see whether a model belongs to this store."""


@dataclass(frozen=True, slots=True)
class KnownPriors:
    """What a model said of pages that were seen when it was trained: one prior a page and kind of event."""

    page: IntArray
    """Ascending ids."""
    key: IntArray
    """A digest of the URL of each: ids mean something in their own store alone."""
    beliefs: dict[str, GammaBelief]
    levels: dict[str, FloatArray]
    """By what to multiply means to compare them."""

    def are_of(self, urls: Callable[[IntArray], Sequence[str]]) -> bool:
        """Whether these are pages of the store with these URLs; a sample is checked."""
        some = np.linspace(0, len(self.page) - 1, min(len(self.page), _COMPARED)).astype(np.int64)
        try:
            found = url_keys(urls(self.page[some]))
        except LookupError:
            return False
        return np.array_equal(found, self.key[some])

    def none(self) -> KnownPriors:
        """The same of no page."""
        return KnownPriors(
            self.page[:0],
            self.key[:0],
            {event: one.take(slice(0)) for event, one in self.beliefs.items()},
            {event: one[:0] for event, one in self.levels.items()},
        )


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model with all data stored beside it."""

    model: PriorModel
    note: ModelCard
    known: KnownPriors
    classes: StoredClasses | None = None


def models_folder(workspace: Path) -> Path:
    """Where the models of a workspace lie."""
    return workspace / "models"


def has_model(workspace: Path, name: str) -> bool:
    """Whether there is a model of this name."""
    return bool(name) and (models_folder(workspace) / name / NOTE).is_file()


def trained_at(workspace: Path, name: str) -> float:
    """When the model of this name, which must exist, was last written; seconds since the epoch."""
    return (models_folder(workspace) / name / NOTE).stat().st_mtime


def load_model(workspace: Path, name: str, urls: Callable[[IntArray], Sequence[str]] | None = None) -> StoredModel:
    """The model of this name.

    ``urls`` gives the URLs of pages in the store it is used with: what a model from elsewhere said of its pages is left
    out, since ids mean others here.

    Raises:
        InputError: there is none, it is damaged, or this version cannot use it.
    """
    folder = models_folder(workspace) / name
    if not has_model(workspace, name):
        remedy = f"Train one with: {command_in(workspace, 'predict train')}"
        raise InputError(f"There is no model {name!r} in this workspace.", remedy)
    try:
        note = ModelCard.from_json((folder / NOTE).read_text(encoding="utf-8"))
        model = read_model((folder / MODEL).read_bytes())
        known = _read_priors(folder / PRIORS)
        classes = read_classes((folder / CLASSES).read_bytes()) if note.classes is not None else None
    except OSError as error:
        raise InputError(f"The model {name!r} cannot be read: {error.strerror}.", "Train it again.") from error
    empty = first_sight(np.empty(0, np.int64), ()).fitting(model.schema)
    if classes is not None:
        if len(classes.known) != len(known.page):
            raise InputError(f"{CLASSES} of the model is damaged.", "Train it again.")
        empty.fitting(classes.model.seen.schema)
        when_found(empty).fitting(classes.model.found.schema)
    if urls is not None and not known.are_of(urls):
        known = known.none()
        classes = None if classes is None else replace(classes, known=classes.known[:0])
    return StoredModel(model, note, known, classes)


def save_model(workspace: Path, kept: StoredModel) -> Path:
    """Put a model into its folder, and return that. Each file appears whole; the note, which makes it a model, last."""
    folder = models_folder(workspace) / kept.note.name
    folder.mkdir(parents=True, exist_ok=True)
    columns = {f"{event}/{name}": getattr(prior, name) for event, prior in kept.known.beliefs.items() for name in "ab"}
    columns |= {f"{event}/level": level for event, level in kept.known.levels.items()}
    priors = io.BytesIO()
    np.savez_compressed(priors, allow_pickle=False, page=kept.known.page, key=kept.known.key, **columns)
    contents = {
        MODEL: model_bytes(kept.model),
        PRIORS: priors.getvalue(),
        **({} if kept.classes is None else {CLASSES: classes_bytes(kept.classes)}),
        CARD: model_card(kept.note).encode(),
        NOTE: kept.note.to_json().encode(),
    }
    for name, content in contents.items():
        with complete_file(folder / name) as file:
            file.write(content)
    return folder


def _read_priors(file: Path) -> KnownPriors:
    try:
        with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as columns:
            events = dict.fromkeys(name.split("/")[0] for name in columns.files if "/" in name)
            beliefs = {event: GammaBelief(columns[f"{event}/a"], columns[f"{event}/b"]) for event in events}
            levels = {event: columns[f"{event}/level"] for event in events}
            known = KnownPriors(columns["page"], columns["key"], beliefs, levels)
            if any(len(column) != len(known.page) for column in (known.key, *levels.values())):
                raise ValueError(file.name)
            return known
    except UNREADABLE as error:
        raise InputError(f"{file.name} of the model is damaged.", "Train it again.") from error


def url_keys(urls: Sequence[str]) -> IntArray:
    """A digest of each URL: 63 bits."""
    digests = (hashlib.blake2b(url.encode(), digest_size=8).digest() for url in urls)
    return np.fromiter((int.from_bytes(one) >> 1 for one in digests), np.int64, len(urls))


def note_of(  # noqa: PLR0913, PLR0917 - the model, and all that it came about by
    name: str,
    model: PriorModel,
    training_pages: TrainingPages,
    taught: TrainingMaterial,
    seed: int,
    scores: tuple[ModelScore, ...],
) -> ModelCard:
    """What to know of a model that was just trained on these lessons, some of what was taught or all of it."""
    return ModelCard(
        name=name,
        schema=model.schema,
        features=training_pages.table.names,
        events=model.predicted,
        since=float(training_pages.histories.first_visit.min()),
        until=float(training_pages.histories.last_visit.max()),
        pages=len(training_pages),
        out_of=len(taught.training_pages),
        looked_into=int(is_seen(training_pages.table).sum()),
        observations=len(training_pages.histories.gaps),
        sites=len(np.unique(training_pages.site)),
        source=taught.source,
        seed=seed,
        versions={"recrawl": __version__} | {name: _version(name) for name in _LIBRARIES},
        scores=scores,
    )


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "unknown"


def known_priors(model: PriorModel, taught: TrainingMaterial) -> KnownPriors:
    """What a model says of all pages that could teach it, if they are pages of the workspace."""
    training_pages = taught.training_pages
    beliefs = {event: model.prior(event, training_pages.table, training_pages.site) for event in model.events}
    levels = {event: model.level(event, training_pages.table, training_pages.site) for event in model.events}
    found = KnownPriors(training_pages.table.page, url_keys(taught.urls), beliefs, levels)
    return found if taught.source == "workspace" else found.none()


class ModelPriors:
    """Predictions by page id: stored ones for known pages, predictions from the URL for others.

    Every page is predicted once. Memory: 32 bytes per page.
    """

    def __init__(self, kept: StoredModel, event: str, urls: Callable[[IntArray], Sequence[str]]) -> None:
        self._model = kept.model
        self._event = event
        self._urls = urls
        self._page = kept.known.page
        self._belief = kept.known.beliefs[event]
        self._level = kept.known.levels[event]

    def __call__(self, page: IntArray) -> GammaBelief:
        """One row for each of these pages, in any order. O(new pages · trees), then O(pages log n)."""
        rows = self._rows(page)
        return self._belief.take(rows)

    def compared(self, page: IntArray) -> FloatArray:
        """Rates that are comparable between the parts of the model; their level has no meaning."""
        rows = self._rows(page)
        return self._belief.take(rows).mean() * self._level[rows]

    def _rows(self, page: IntArray) -> IntArray:
        rows = np.searchsorted(self._page, page)
        known = rows < len(self._page)
        known[known] = self._page[rows[known]] == page[known]
        if not known.all():
            new = np.unique(page[~known])
            urls = self._urls(new)
            table, site = first_sight(new, urls), site_ids(urls)
            said, level = self._model.prior(self._event, table, site), self._model.level(self._event, table, site)
            ids = np.concatenate([self._page, new])
            order = np.argsort(ids, kind="stable")
            self._page, self._level = ids[order], np.concatenate([self._level, level])[order]
            a, b = (np.concatenate(pair)[order] for pair in ((self._belief.a, said.a), (self._belief.b, said.b)))
            self._belief = GammaBelief(a, b)
            rows = np.searchsorted(self._page, page)
        return rows


_MIDDLE = 0.5
_INTERVAL = (0.05, 0.95)


def chosen_model(place: Workspace, store: PageTable, name: str, event: str) -> StoredModel:
    """The model of this name, which predicts this kind of event.

    Raises:
        InputError: there is none, or it does not.
    """
    kept = load_model(place.folder, name, store.urls)
    if event not in kept.model.predicted:
        known = ", ".join(kept.model.predicted)
        raise InputError(f"The model {name!r} does not predict {event!r}.", f"It predicts: {known}.")
    return kept


def expected(  # noqa: PLR0913, PLR0917 - where, which, and how many
    place: Workspace, store: Store, name: str, event: str, host: str | None, most: int | None
) -> tuple[dict[str, list[Any]], int]:
    """Columns of all pages, of a host if one is named, by falling rate; and how many there are.

    The rate is the middle of what is expected, as in the tables of ``recrawl rates``.
    """
    from recrawl.app.rates.belief_table import host_id

    kept = chosen_model(place, store, name, event)
    number = host_id(store, host)
    pages = store.pages()
    page = np.sort(pages.id if number is None else pages.id[pages.host == number])
    urls = store.urls(page)
    table = _sights(place, store, page, urls)
    belief = kept.model.prior(event, table, site_ids(urls))
    order = np.argsort(-belief.quantile(_MIDDLE), kind="stable")[:most]
    middle, low, high = (belief.take(order).quantile(q) for q in (_MIDDLE, *_INTERVAL))
    seen = is_seen(table)[order].tolist()
    return {
        "url": [urls[row] for row in order.tolist()],
        "per_day": (middle * DAY).tolist(),
        "low": (low * DAY).tolist(),
        "high": (high * DAY).tolist(),
        "shape": belief.a[order].tolist(),
        "in_words": [_words(*three) for three in zip(middle.tolist(), low.tolist(), high.tolist(), strict=True)],
        "known_by": ["its first copy" if looked else "its URL" for looked in seen],
    }, len(page)


@dataclass(frozen=True, slots=True)
class PredictionReasons:
    """What is expected of one page, and why."""

    url: str
    event: str
    belief: GammaBelief
    seen: bool
    known_site: bool
    rows: list[tuple[str, str, float]]
    """Feature, its value for this page, and its factor; those that matter most first."""

    def sentence(self) -> str:
        """What is expected."""
        middle, low, high = (float(self.belief.quantile(q)[0]) for q in (_MIDDLE, *_INTERVAL))
        by = "its URL and its first copy" if self.seen else "its URL alone"
        site = "a site the model knows" if self.known_site else "a site the model has not seen"
        what = {"changes": "change", "new-links": "get a new link"}.get(self.event)
        what = what or f"get a {self.event.removesuffix('s').replace('-', ' ')}"
        return f"Expected to {what} {_words(middle, low, high)}; from {by}, on {site}."

    def facts(self) -> dict[str, object]:
        """The same for programs; rates are per day."""
        middle, low, high = (float(self.belief.quantile(q)[0]) * DAY for q in (_MIDDLE, *_INTERVAL))
        features = [{"feature": name, "value": shown, "factor": factor} for name, shown, factor in self.rows]
        about = {"url": self.url, "event": self.event, "seen": self.seen, "known_site": self.known_site}
        return {
            **about,
            "median": middle,
            "low": low,
            "high": high,
            "features": features,
        }


def reasons(place: Workspace, store: Store, name: str, event: str, url: str) -> PredictionReasons:
    """Why the model says what it says of a page.

    Raises:
        ConfigError: it is no URL.
    """
    from recrawl.urls import address

    kept = chosen_model(place, store, name, event)
    found = address(url)
    if found is None:
        raise ConfigError(f"{url!r} is not a URL.", "Give it as http://host/path.")
    known = store.find(found.url)
    page = np.array([0 if known is None else known.id])
    table = _sights(place, store, page, [found.url]) if known is not None else first_sight(page, [found.url])
    seen = bool(is_seen(table)[0])
    others = kept.known.page[:: max(len(kept.known.page) // 200, 1)]
    urls = store.urls(others) if len(others) else []
    lent = _sights(place, store, others, urls) if len(others) else table
    table, lent = (table, lent.take(is_seen(lent))) if seen else (when_found(table), when_found(lent))
    site = int(site_ids([found.url])[0])
    parts = [one.seen if seen else one.found for one in kept.model.parts(event)]

    def ask(asked: FeatureTable) -> GammaBelief:
        return sum_of([one.prior(asked, np.full(len(asked), site)) for one in parts])

    factor = contributions(ask, table, lent) if len(lent) else np.ones(len(table.columns))
    order = np.argsort(-np.abs(np.log(factor)), kind="stable").tolist()
    rows = [(table.names[place_], _shown(table, place_, found.url), float(factor[place_])) for place_ in order]
    return PredictionReasons(found.url, event, ask(table), seen, site in kept.model.sites.tolist(), rows)


def _sights(place: Workspace, store: Store, page: IntArray, urls: list[str]) -> FeatureTable:
    """What was known of pages at first sight; those never visited by their URLs alone."""
    histories = store.histories(pages=page)
    first = np.full(len(page), -np.inf)
    first[np.searchsorted(page, histories.page)] = histories.first_visit
    return sights(place, store, page, np.nan_to_num(first, nan=-np.inf), urls)


def _words(middle: float, low: float, high: float) -> str:
    with np.errstate(divide="ignore"):
        every, shortest, longest = (float(np.divide(1.0, rate)) for rate in (middle, high, low))
    return in_words(every, shortest, longest)


def _shown(table: FeatureTable, place: int, url: str) -> str:
    """A feature of the page as people read it: names as they are written."""
    from recrawl.predict.static_features import online_features

    column, value = table.columns[place], float(table.values[0, place])
    if np.isnan(value):
        return "–"
    if not column.categorical:
        return f"{value:,.6g}"
    parts = online_features(url, "")
    if column.name == "top_level_domain":
        return parts.domain.rpartition(".")[2]
    return str(getattr(parts, column.name, "as it is"))
