"""Train a model, judge it, and watch how it does afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recrawl.predict.prior_model import CHANGES, STEPS, train_model
from recrawl.predict.prior_splits import judge_all

if TYPE_CHECKING:
    from pathlib import Path

    from recrawl.cli.predict_lessons import Material
    from recrawl.cli.predict_models import KeptModel
    from recrawl.cli.workspace import Workspace
    from recrawl.predict.drift import Drift
    from recrawl.store.base import Store

_SPLITS = 3


def trained(name: str, taught: Material, seed: int, *, judged: bool = True) -> KeptModel:
    """A model of what was taught, with its scores on pages kept from training unless that is not asked for."""
    from recrawl.cli.predict_models import KeptModel, known_priors, note_of
    from recrawl.cli.tasks import bar

    counts = taught.lessons.counts()
    with bar("training", STEPS * len(counts) + (_SPLITS if judged else 0)) as advance:
        model = train_model(taught.lessons.table, counts, taught.lessons.site, seed=seed, progress=advance)
        scores = judge_all(taught.lessons, seed=seed, progress=advance) if judged else ()
    return KeptModel(model, note_of(name, model, taught, seed, scores), known_priors(model, taught))


def drift_of(place: Workspace, store: Store, kept: KeptModel) -> Drift:
    """What the model foretold of pages first seen after it was trained, beside what their next looks found."""
    from recrawl.cli.predict_models import ModelPriors
    from recrawl.predict.drift import Drift
    from recrawl.predict.prior_trial import judge_prior

    histories = store.histories(since=np.nextafter(kept.note.until, np.inf))
    new = ~np.isin(histories.page, kept.known.page) & (histories.counts() > 0)
    # A page may have been looked at before, once: then it has no history by which to be known.
    rows = np.flatnonzero(new)
    page = histories.page[rows]
    prior = ModelPriors(kept, CHANGES, store.urls)(page)
    return Drift(judge_prior(prior, histories.take(rows)), place.configuration.settings.predict.retrain)


def retrained(place: Workspace, store: Store) -> Path | None:
    """Train the model of the settings anew if it has lost its calibration; its folder if that was so."""
    from recrawl.cli.predict_lessons import material
    from recrawl.cli.predict_models import has_model, load_model, save_model
    from recrawl.predict.drift import Fit

    name = place.configuration.settings.predict.model
    if not has_model(place.folder, name) or place.configuration.settings.predict.retrain <= 0:
        return None
    kept = load_model(place.folder, name, store.urls)
    if drift_of(place, store, kept).fit is not Fit.LOST:
        return None
    return save_model(place.folder, trained(name, material(place, store, None), kept.note.seed))
