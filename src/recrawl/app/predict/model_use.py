"""Where a model is used: what it expects of pages, for estimates, schedules and captures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recrawl.app.predict.live_model import LiveModel
    from recrawl.app.predict.stored_models import ModelPriors
    from recrawl.app.rates.belief_table import Expected, LinkBeliefs
    from recrawl.app.workspace.workspace import Workspace
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
    from recrawl.app.predict.live_model import LiveModel

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
