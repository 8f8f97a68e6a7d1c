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
    from recrawl.model import GammaBelief
    from recrawl.predict.drift import Drift
    from recrawl.predict.prior_splits import Lessons
    from recrawl.store.base import Store

_SPLITS = 3


MOST = 10_000
"""Pages that a model learns from unless more are asked for. It takes a minute or two; more of them help little."""


def trained(name: str, taught: Material, seed: int, *, most: int = MOST, judged: bool = True) -> KeptModel:
    """A model of what was taught, with its scores on pages kept from training unless that is not asked for.

    Of more pages than ``most`` so many are chosen at random; 0 for all.
    """
    from recrawl.cli.predict_models import KeptModel, known_priors, note_of
    from recrawl.cli.waiting import bar

    lessons = some_of(taught, most, seed)
    counts = lessons.counts()
    with bar("training", STEPS * len(counts) + (_SPLITS if judged else 0)) as advance:
        model = train_model(lessons.table, counts, lessons.site, seed=seed, progress=advance)
        scores = judge_all(lessons, seed=seed, progress=advance) if judged else ()
    note = note_of(name, model, lessons, taught, seed, scores)
    return KeptModel(model, note, known_priors(model, taught))


def some_of(taught: Material, most: int, seed: int) -> Lessons:
    """At most so many pages of what is taught, chosen at random; all of them for 0."""
    return taught.lessons.sample(most or len(taught.lessons), np.random.default_rng(seed))


def drifts_of(place: Workspace, store: Store, kept: KeptModel) -> dict[str, Drift]:
    """What the model foretold of pages first seen after it was trained, beside what was found, by kind of event.

    Changes by the next look at each page, and new links by all that were counted since its first, of either kind that
    the model foretells.
    """
    from recrawl.cli.predict_lessons import new_links
    from recrawl.cli.predict_models import ModelPriors
    from recrawl.predict.drift import Drift
    from recrawl.predict.prior_trial import Tallied, judge_prior, tally_counts

    histories = store.histories(since=np.nextafter(kept.note.until, np.inf))
    new = ~np.isin(histories.page, kept.known.page) & (histories.counts() > 0)
    # A page may have been looked at before, once: then it has no history by which to be known.
    histories = histories.take(np.flatnonzero(new))

    def prior(event: str) -> GammaBelief:
        return ModelPriors(kept, event, store.urls)(histories.page)

    told: dict[str, Tallied] = {CHANGES: judge_prior(prior(CHANGES), histories)}
    for event, counts in new_links(store, histories, None).items():
        if event in kept.model.events:
            told[event] = tally_counts(prior(event), counts)
    bound = place.configuration.settings.predict.retrain
    return {event: Drift(one, bound, event) for event, one in told.items()}


def retrained(place: Workspace, store: Store) -> Path | None:
    """Train the model of the settings anew if it has lost its calibration; its folder if that was so."""
    from recrawl.cli.predict_lessons import material
    from recrawl.cli.predict_models import has_model, load_model, save_model
    from recrawl.predict.drift import Fit

    name = place.configuration.settings.predict.model
    if not has_model(place.folder, name) or place.configuration.settings.predict.retrain <= 0:
        return None
    kept = load_model(place.folder, name, store.urls)
    if all(one.fit is not Fit.LOST for one in drifts_of(place, store, kept).values()):
        return None
    return save_model(place.folder, trained(name, material(place, store, None), kept.note.seed))
