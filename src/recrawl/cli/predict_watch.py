"""A model at work in a run: asked about pages, watched for drift, and replaced when it was trained anew."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

import numpy as np

from recrawl.errors import RecrawlError
from recrawl.estimate.empirical_bayes import UNKNOWN_RATE
from recrawl.model import FloatArray, IntArray
from recrawl.time import HOUR

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from recrawl.cli.knowledge import Expected
    from recrawl.cli.predict_models import KeptModel
    from recrawl.cli.workspace import Workspace
    from recrawl.store.base import Store

CHECK_EVERY = 6 * HOUR
"""Seconds between two looks at how the model does."""


class LiveModel:
    """How often pages are expected to change by the model there is now; without one, all alike."""

    def __init__(self, expected: Expected | None, store: Store) -> None:
        self._expected = expected
        self._store = store
        self._scale = 1.0

    def __call__(self, page: IntArray) -> FloatArray:
        """Per second. Only ratios between pages count, so the level of a model may be that of the one before it."""
        if self._expected is None:
            return np.full(len(page), UNKNOWN_RATE)
        return self._scale * self._expected(page)

    def take_over(self, kept: KeptModel) -> None:
        """Use another model from now on, at the level of the last: who asks may still compare with what that said."""
        from recrawl.cli.predict_models import ModelPriors
        from recrawl.predict.prior_model import CHANGES

        priors = ModelPriors(kept, CHANGES, self._store.urls)
        page = kept.known.page
        before = float(np.log(self(page)).mean()) if len(page) else np.log(UNKNOWN_RATE)
        self._expected = priors.compared
        self._scale = float(np.exp(before - np.log(priors.compared(page)).mean())) if len(page) else 1.0


class ModelWatch:
    """Looks now and then whether the model still fits; where it does not, trains it anew beside the crawl.

    That happens in a thread with a store of its own: minutes of it must not hold visits up.
    """

    def __init__(self, place: Workspace, model: LiveModel, tell: Callable[[str], None]) -> None:
        """``tell`` is told in a sentence what happened."""
        self._place = place
        self._model = model
        self._tell = tell
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._work: Future[Path | None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worker.shutdown(wait=True, cancel_futures=True)

    def check(self) -> None:
        """Begin to look after the model, unless that is under way."""
        if self._work is None:
            self._work = self._worker.submit(self._look)

    def heed(self) -> None:
        """Take over what has come of it."""
        if self._work is None or not self._work.done():
            return
        work, self._work = self._work, None
        try:
            folder = work.result()
        except RecrawlError as error:
            self._tell(f"The model could not be looked after: {error}")
            return
        if folder is not None:
            from recrawl.cli.predict_models import load_model

            self._model.take_over(load_model(self._place.folder, folder.name))
            self._tell("The model no longer fitted the pages that came since, and was trained anew.")

    def _look(self) -> Path | None:
        from recrawl.cli.predict_training import retrained

        with self._place.open_store() as store:
            return retrained(self._place, store)
