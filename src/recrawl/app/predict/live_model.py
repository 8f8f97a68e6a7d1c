"""The model of a running crawl: predicts rates, is monitored for drift, and is replaced after a new training."""

from __future__ import annotations

from concurrent.futures import Future
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

    from recrawl.app.predict.stored_models import StoredModel
    from recrawl.app.rates.belief_table import Expected, LinkBeliefs
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.model import GammaBelief
    from recrawl.store.base import PageTable

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
