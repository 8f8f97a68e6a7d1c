"""Where a model is used: for estimates, schedules and captures, and in a running crawl.

A running crawl monitors its model for drift and replaces it after a new training.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np

from recrawl.crawl.worker.event_loop import submit
from recrawl.errors import RecrawlError
from recrawl.estimate.posterior.gamma_posterior import UNKNOWN_RATE
from recrawl.model import FloatArray, IntArray
from recrawl.time import HOUR

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from recrawl.app.predict.stored_models import ModelPriors, StoredModel
    from recrawl.app.rates.belief_table import Expected, LinkBeliefs
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.model import GammaBelief
    from recrawl.store.base import HistoryStore, PageTable


def expected_changes(place: Workspace, store: PageTable, at: float | None = None) -> Expected | None:
    """How often the model of the workspace expects pages to change, beside each other; ``None`` if there is none.

    Only ratios count, not the level (``estimate.posterior.expected_rates``). Nor is there a model for a moment ``at``
    before it was trained: it has seen what came later.

    Raises:
        InputError: the model is damaged, or was trained on other features.
    """
    from recrawl.predict.prior_model import CHANGES

    priors = _priors(place, store, CHANGES, at)
    return None if priors is None else priors.compared


def predicted_changes(place: Workspace, store: PageTable, at: float | None = None) -> Expected | None:
    """How often the model expects pages to change, per second; ``None`` if there is none."""
    from recrawl.predict.prior_model import CHANGES

    priors = _priors(place, store, CHANGES, at)
    return None if priors is None else lambda page: priors(page).mean()


def live_model(place: Workspace, store: PageTable) -> LiveModel | None:
    """The model of the workspace for a run, in which it may be replaced; ``None`` if there is none."""
    expected = expected_changes(place, store)
    if expected is None:
        return None

    return LiveModel(expected, store, expected_links(place, store))


def expected_links(place: Workspace, store: PageTable, at: float | None = None) -> LinkBeliefs:
    """The rates of new links that the model of the workspace predicts, by kind; nothing if it predicts none."""
    from recrawl.predict.prior_model import LINK_EVENTS

    said = {kind: _priors(place, store, event, at) for kind, event in LINK_EVENTS.items()}
    return {kind: one for kind, one in said.items() if one is not None}


def model_name(place: Workspace, name: str | None) -> str:
    """The name of a model: ``name``, else the one in the settings, else the usual one.

    Raises:
        ConfigError: it cannot be the name of a folder.
    """
    from recrawl.app.predict.stored_models import USUAL
    from recrawl.errors import ConfigError

    chosen = name or place.configuration.settings.predict.model or USUAL
    if not chosen.replace("-", "").replace("_", "").replace(".", "").isalnum() or chosen.startswith("."):
        raise ConfigError(f"{chosen!r} cannot be the name of a model.", "Use letters, digits, - and _.")
    return chosen


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What to say of the model of a workspace."""

    name: str
    until: float
    """The last observation in its training data, seconds since the epoch."""
    pages: int
    fit: str
    """``good``, ``lost``, or ``unjudged``."""
    said: str
    """The same in a sentence."""


def model_facts(place: Workspace, store: HistoryStore) -> ModelFacts | None:
    """Whether the model of the workspace still fits; ``None`` if there is none."""
    if expected_changes(place, store) is None:
        return None
    from recrawl.app.predict.model_training import drifts_of
    from recrawl.app.predict.stored_models import load_model
    from recrawl.predict.prior_scores import worst

    kept = load_model(place.folder, place.configuration.settings.predict.model, store.urls)
    drift = worst(drifts_of(place, store, kept).values())
    return ModelFacts(kept.note.name, kept.note.until, kept.note.pages, drift.fit.value, drift.sentence())


def _priors(place: Workspace, store: PageTable, event: str, at: float | None) -> ModelPriors | None:
    name = place.configuration.settings.predict.model
    if not (name and (place.folder / "models" / name).is_dir()):
        return None  # without loading what models are made of
    from recrawl.app.predict.stored_models import ModelPriors, has_model, load_model

    if not has_model(place.folder, name):
        return None
    kept = load_model(place.folder, name, store.urls)
    later = at is not None and kept.note.source == "workspace" and at < kept.note.until
    return None if later or event not in kept.model.events else ModelPriors(kept, event, store.urls)


CHECK_EVERY = 6 * HOUR
"""Seconds between two checks of the model."""


class LiveModel:
    """How often pages are expected to change by the model there is now; without one, all alike.

    ``links`` is what the model of the beginning believes of new links, by kind.
    """

    def __init__(self, expected: Expected | None, store: PageTable, links: LinkBeliefs | None = None) -> None:
        self._expected = expected
        self._store = store
        self._scale = 1.0
        self._links = dict(links or {})
        self._trained_at: float | None = None

    def __call__(self, page: IntArray) -> FloatArray:
        """Per second. Only ratios between pages count, so the level of a model may be that of the one before it."""
        if self._expected is None:
            return np.full(len(page), UNKNOWN_RATE)
        return self._scale * self._expected(page)

    @property
    def links(self) -> LinkBeliefs:
        """Predicted rates of new links by kind, always from the current model."""
        return {kind: partial(self._of_links, kind) for kind in self._links}

    def _of_links(self, kind: str, page: IntArray) -> GammaBelief:
        return self._links[kind](page)

    def take_over_if_newer(self, place: Workspace) -> None:
        """Load the model of the workspace if a new one was trained since the last call. For a fit process."""
        from recrawl.app.predict.stored_models import has_model, load_model, trained_at

        name = place.configuration.settings.predict.model
        if not has_model(place.folder, name) or (found := trained_at(place.folder, name)) == self._trained_at:
            return
        if self._trained_at is not None:
            self.take_over(load_model(place.folder, name))
        self._trained_at = found

    def take_over(self, kept: StoredModel) -> None:
        """Switch to another model, with change rates at the level of the previous one, so that both stay comparable.

        Its rates of new links are used as they are. A kind that it does not predict keeps the previous model.
        """
        from recrawl.app.predict.stored_models import ModelPriors
        from recrawl.predict.prior_model import CHANGES, LINK_EVENTS

        for kind in self._links:
            if LINK_EVENTS[kind] in kept.model.events:
                self._links[kind] = ModelPriors(kept, LINK_EVENTS[kind], self._store.urls)
        priors = ModelPriors(kept, CHANGES, self._store.urls)
        page = kept.known.page
        before = float(np.log(self(page)).mean()) if len(page) else np.log(UNKNOWN_RATE)
        self._expected = priors.compared
        self._scale = float(np.exp(before - np.log(priors.compared(page)).mean())) if len(page) else 1.0


class ModelWatch:
    """Checks periodically whether the model still fits, and trains it again during the crawl if not.

    Training runs in a thread with its own store connection: it takes minutes and must not delay visits.
    """

    def __init__(self, place: Workspace, model: LiveModel, tell: Callable[[str], None]) -> None:
        """``tell`` receives a sentence about what happened."""
        self._place = place
        self._model = model
        self._tell = tell
        self._work: Future[Path | None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Do not wait for a running training: it may take minutes."""

    def check(self) -> None:
        """Start a check of the model, unless one is running."""
        if self._work is None:
            self._work = submit(self._observation)

    def follow_store(self) -> None:
        """Take over what has come of it."""
        if self._work is None or not self._work.done():
            return
        work, self._work = self._work, None
        try:
            folder = work.result()
        except RecrawlError as error:
            self._tell(f"The model could not be updated: {error}")
            return
        if folder is not None:
            from recrawl.app.predict.stored_models import load_model

            self._model.take_over(load_model(self._place.folder, folder.name))
            self._tell("The model no longer fitted newer pages and was trained again.")

    def _observation(self) -> Path | None:
        from recrawl.app.predict.model_training import retrained

        with self._place.open_store() as store:
            return retrained(self._place, store)
