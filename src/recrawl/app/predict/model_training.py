"""Train a model, evaluate it, and monitor it afterwards.

The training data are the histories of a workspace or of a recorded data set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recrawl.errors import InputError, counted
from recrawl.estimate.posterior.gamma_posterior import fit_prior
from recrawl.model import Histories, IntArray, Verdict, Visits
from recrawl.predict.feature_extraction import ObservationCounts, first_sight, site_ids
from recrawl.predict.prior_model import CHANGES, LINK_EVENTS, STEPS, event_counts, train_model
from recrawl.predict.prior_scores import ModelFit, TrainingPages, evaluate_splits
from recrawl.time import DAY

if TYPE_CHECKING:
    from pathlib import Path

    from recrawl.app.predict.stored_models import StoredModel
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.model import FloatArray, GammaBelief
    from recrawl.predict.prior_scores import ModelDrift, TrainingPages
    from recrawl.predict.static_features import FeatureTable
    from recrawl.store.base import HistoryStore, Store


_LOOK_EVERY = 30 * DAY
_LOOKS = 12
"""The observed time of pages of a data set: one year. Young pages change more often, and a prior is about these."""
FEWEST = 40
"""Minimum number of pages with a second observation for training."""


@dataclass(frozen=True, slots=True)
class TrainingMaterial:
    """Lessons, and where they are from."""

    training_pages: TrainingPages
    source: str
    urls: Sequence[str]
    """Of the pages of the lessons."""

    def __post_init__(self) -> None:
        if (count := len(self.training_pages)) < FEWEST:
            pages = f"{counted(count, 'page')} {'was' if count == 1 else 'were'}"
            raise InputError(
                f"Only {pages} observed more than once; a model needs {FEWEST}.",
                "Crawl longer, import histories, or learn from a data set with --data.",
            )


def material(place: Workspace, store: Store, data: Path | None, until: float | None = None) -> TrainingMaterial:
    """What can be learned from a workspace, up to a time if one is given, or from a data set.

    Raises:
        InputError: there is too little.
    """
    training_pages, urls = _recorded(data) if data is not None else _own(place, store, until)
    return TrainingMaterial(training_pages, "workspace" if data is None else data.name, urls)


def sights(place: Workspace, store: Store, page: IntArray, first: FloatArray, urls: Sequence[str]) -> FeatureTable:
    """The features of pages at their first visit, from the archive of the workspace; with a progress bar."""
    from recrawl.app.predict.model_data import content_reader
    from recrawl.app.progress import bars
    from recrawl.formats.warc.archived_bytes import ArchivedBytes
    from recrawl.transfer.page_contents import first_observations

    with bars() as bar:
        task = bar.add_task("first copies of pages", total=len(page))
        archived = ArchivedBytes.of(place.archive, store)
        with content_reader(place) as content_of:
            observations = first_observations(
                store, archived.read, page, first, lambda done: bar.advance(task, done), content_of=content_of
            )
    return first_sight(page, urls, observations)


def _own(place: Workspace, store: Store, until: float | None) -> tuple[TrainingPages, list[str]]:
    from recrawl.app.rates.belief_table import VisitSpan, training_of

    training = training_of(store, VisitSpan(until=until))
    told = training.evidence.histories
    rows = np.flatnonzero(told.counts())
    page, histories = told.page[rows], told.take(rows)
    urls = store.urls(page)
    table = sights(place, store, page, training.histories.first_visit[rows], urls)
    return TrainingPages(table, site_ids(urls), histories, new_links(store, histories, until)), urls


def new_links(store: HistoryStore, histories: Histories, until: float | None) -> dict[str, ObservationCounts]:
    """New links counted by visits after the first on each page, by event; none if never counted."""
    visits = store.visits(pages=histories.page, until=until)
    told = np.flatnonzero(visits.new_internal >= 0)
    row = np.searchsorted(histories.page, visits.page[told])
    later = visits.time[told] > histories.first_visit[row]
    told, row = told[later], row[later]
    if not len(told):
        return {}
    found = {"internal": visits.new_internal[told], "external": np.maximum(visits.new_external[told], 0)}
    return {LINK_EVENTS[kind]: event_counts(row, links, histories.observed()) for kind, links in found.items()}


def _recorded(folder: Path) -> tuple[TrainingPages, list[str]]:
    """Pages of a data set, observed every month of their first year."""
    from recrawl.app.predict.model_data import link_data
    from recrawl.app.progress import bar

    with bar("reading the data set", 1) as advance:
        record = link_data(folder, texts=(folder / "texts.parquet").is_file())
        advance()
    evidence, versions = record.evidence, record.evidence.versions
    starts = versions.offsets(evidence.page)
    there = np.flatnonzero(starts[1:] > starts[:-1])
    born = versions.time[starts[there]]
    page, when, gone = record.events
    ends = np.full(len(record.sites), -np.inf)
    np.maximum.at(ends, record.site[page], when)
    end = ends[record.site]
    end[page[gone]] = np.minimum(end[page[gone]], when[gone])
    observations = born[:, None] + _LOOK_EVERY * np.arange(1, _LOOKS + 1)
    made = observations <= end[there][:, None]
    changes = _until(
        versions.page[versions.changed], versions.time[versions.changed], there, np.column_stack([born, observations])
    )
    changed = np.diff(changes, axis=1) > 0
    ids = np.broadcast_to(there[:, None], observations.shape)
    verdict = np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED)
    visits = Visits.of(
        np.concatenate([there, ids[made]]),
        np.concatenate([born, observations[made]]),
        verdict=np.concatenate([np.full(len(there), Verdict.UNKNOWN), verdict[made]]),
    )
    histories = Histories.from_visits(visits)
    histories = histories.take(np.flatnonzero(histories.counts()))
    watched = np.isin(versions.page, histories.page)
    urls = [evidence.urls[one] for one in histories.page.tolist()]
    table = first_sight(histories.page, urls, versions.take(watched))
    row = np.searchsorted(histories.page, versions.page[watched])
    in_time = versions.time[watched] <= histories.last_visit[row]
    new = {"internal": versions.new_internal[watched], "external": versions.new_external[watched]}
    links = {
        LINK_EVENTS[kind]: event_counts(row, np.where(in_time, np.nan_to_num(one), 0.0), histories.observed())
        for kind, one in new.items()
    }
    return TrainingPages(table, site_ids(urls), histories, links), urls


def _until(page: IntArray, time: FloatArray, asked: IntArray, moments: FloatArray) -> IntArray:
    """How many events each page had by each of its moments; events by page and time."""
    scale = max(float(time.max(initial=0.0)), float(moments.max(initial=0.0))) + 1.0
    key = page * scale + time
    return np.searchsorted(key, asked[:, None] * scale + moments, side="right")


_SPLITS = 3


MOST = 10_000
"""Default maximum of training pages. Training takes a minute or two; more pages help little."""


def trained(  # noqa: PLR0913 - what to learn from, and how
    name: str,
    taught: TrainingMaterial,
    seed: int,
    *,
    most: int = MOST,
    judged: bool = True,
    classes: FloatArray | None = None,
) -> StoredModel:
    """A trained model, with its scores on pages kept from training if requested.

    ``classes`` are the intervals of the classes of change, seconds, if they are not to be found by clustering.

    At most ``most`` pages are used, chosen at random; 0 for all.
    """
    from recrawl.app.predict.class_models import StoredClasses, train_classes
    from recrawl.app.predict.stored_models import StoredModel, known_priors, note_of
    from recrawl.app.progress import bar

    training_pages = some_of(taught, most, seed)
    counts = training_pages.counts()
    everyone = fit_prior(training_pages.histories)
    with bar("training", STEPS * len(counts) + (_SPLITS if judged else 0)) as advance:
        model = train_model(
            training_pages.table,
            counts,
            training_pages.site,
            seed=seed,
            everyone=everyone,
            progress=advance,
        )
        classified = train_classes(training_pages, everyone, np.random.default_rng(seed), classes)
        scores = evaluate_splits(training_pages, seed=seed, progress=advance) if judged else ()
    note = note_of(name, model, training_pages, taught, seed, scores)
    known = known_priors(model, taught)
    if classified is None:
        return StoredModel(model, note, known)
    tree, score = classified
    of_known = tree.classes(taught.training_pages.table)[: len(known.page)]
    return StoredModel(model, replace(note, classes=score), known, StoredClasses(tree, of_known))


def some_of(taught: TrainingMaterial, most: int, seed: int) -> TrainingPages:
    """At most ``most`` pages of the training data, chosen at random; all for 0."""
    return taught.training_pages.sample(most or len(taught.training_pages), np.random.default_rng(seed))


def drifts_of(place: Workspace, store: HistoryStore, kept: StoredModel) -> dict[str, ModelDrift]:
    """Predictions for pages first visited after the training, with the observed values, by kind of event.

    Changes by the next observation of each page, and new links by all counted since the first visit, for each kind that
    the model predicts.
    """
    from recrawl.app.predict.stored_models import ModelPriors
    from recrawl.predict.prior_scores import ModelDrift, PriorTally, evaluate_prior, tally_counts

    histories = store.histories(since=np.nextafter(kept.note.until, np.inf))
    new = ~np.isin(histories.page, kept.known.page) & (histories.counts() > 0)
    # A page may have been observed once before: then it has no history.
    histories = histories.take(np.flatnonzero(new))

    def prior(event: str) -> GammaBelief:
        return ModelPriors(kept, event, store.urls)(histories.page)

    told: dict[str, PriorTally] = {CHANGES: evaluate_prior(prior(CHANGES), histories)}
    for event, counts in new_links(store, histories, None).items():
        if event in kept.model.events:
            told[event] = tally_counts(prior(event), counts)
    bound = place.configuration.settings.predict.retrain
    return {event: ModelDrift(one, bound, event) for event, one in told.items()}


def class_intervals(place: Workspace) -> FloatArray | None:
    """The intervals of the classes of change that the settings give, seconds; ``None`` if they are to be learned."""
    from recrawl.app.workspace.settings import DEFAULT
    from recrawl.time import parse_duration

    text = place.configuration.settings.schedule.classes
    return None if text == DEFAULT else np.array([parse_duration(one) for one in text.split()])


def retrained(place: Workspace, store: Store) -> Path | None:
    """Train the model of the settings again if it no longer fits; returns its folder in that case."""
    from recrawl.app.predict.stored_models import has_model, load_model

    name = place.configuration.settings.predict.model
    if not has_model(place.folder, name) or place.configuration.settings.predict.retrain <= 0:
        return None
    kept = load_model(place.folder, name, store.urls)
    if all(one.fit is not ModelFit.LOST for one in drifts_of(place, store, kept).values()):
        return None
    return _train_again(place, store, kept.note.seed)


def _train_again(place: Workspace, store: Store, seed: int) -> Path:
    from recrawl.app.predict.stored_models import save_model

    name = place.configuration.settings.predict.model
    return save_model(place.folder, trained(name, material(place, store, None), seed, classes=class_intervals(place)))


_GROWN = 4
"""Times as many pages as a model learned from, from which it is trained again."""


def renewed(place: Workspace, store: Store) -> str:
    """Train the first model if there are observations enough, or a better one; says what was done, or nothing.

    Only one process of a workspace trains at a time: another one does nothing.
    """
    from recrawl.app.predict.stored_models import has_model, load_model, models_folder
    from recrawl.formats.atomic_files import lock

    settings = place.configuration.settings.predict
    folder = models_folder(place.folder)
    folder.mkdir(exist_ok=True)
    with (folder / ".training").open("ab") as file:
        if not settings.model or not lock(file):
            return ""
        first = not has_model(place.folder, settings.model)
        if not first and retrained(place, store) is not None:
            return "The model no longer fitted newer pages and was trained again."
        if not settings.train_from:
            return ""
        kept = None if first else load_model(place.folder, settings.model, store.urls)
        before = 0 if kept is None else kept.note.out_of
        if kept is not None and (kept.note.source != "workspace" or kept.note.pages < before):
            return ""  # it is of other data, or learned from a sample: more pages help little
        pages = int((store.histories().counts() > 0).sum())
        if pages < max(settings.train_from, FEWEST, _GROWN * before):
            return ""
        _train_again(place, store, 1 if kept is None else kept.note.seed)
        return (
            f"The {'first ' if first else ''}model of changes was trained{'' if first else ' again'}, "
            f"from {counted(pages, 'page')}."
        )
