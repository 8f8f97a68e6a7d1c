"""Where a model is used: for estimates, schedules and captures, and in a running crawl.

A running crawl monitors its model for drift and replaces it after a new training.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from recrawl.crawl.worker.event_loop import submit
from recrawl.errors import RecrawlError, counted
from recrawl.estimate.posterior.gamma_posterior import UNKNOWN_RATE
from recrawl.model import FloatArray, IntArray
from recrawl.time import HOUR, to_iso

if TYPE_CHECKING:
    from collections.abc import Callable

    from recrawl.app.predict.class_models import FirstClasses
    from recrawl.app.predict.stored_models import ModelPriors, StoredModel
    from recrawl.app.rates.belief_table import Expected, LinkBeliefs
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.model import GammaBelief
    from recrawl.predict.prior_model import ModelCard
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


def first_classes(place: Workspace, store: PageTable, at: float | None = None) -> FirstClasses | None:
    """The class of change that each page starts in, if the policy has classes; ``None`` if no model tells.

    Nor does a model tell of a moment ``at`` before it was trained.
    """
    from recrawl.app.workspace.policy_parameters import CLASSES

    settings = place.configuration.settings
    if settings.schedule.policy not in CLASSES:
        return None
    from recrawl.app.predict.class_models import FirstClasses
    from recrawl.app.predict.stored_models import has_model, load_model

    if not has_model(place.folder, settings.predict.model):
        return None
    kept = load_model(place.folder, settings.predict.model, store.urls)
    later = at is not None and kept.note.source == "workspace" and at < kept.note.until
    return None if later or kept.classes is None else FirstClasses(kept.classes, kept.known.page, store.urls)


def model_version(place: Workspace) -> float | None:
    """When the model of the workspace was last written; ``None`` if there is none."""
    from recrawl.app.predict.stored_models import has_model, trained_at

    name = place.configuration.settings.predict.model
    return trained_at(place.folder, name) if has_model(place.folder, name) else None


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


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """Which model is in use, and how good it is."""

    name: str
    folder: Path
    note: ModelCard | None
    """``None`` if there is no model of this name."""
    is_used: bool
    """Whether runs of the workspace use it."""
    policy: str
    starts_pages: bool
    """Whether the policy starts pages in classes that it predicts."""
    fit: str
    """``good``, ``lost``, ``unjudged``, or empty without a model."""
    said: str
    """The same in words; without a model, when a run trains the first one."""

    def rows(self) -> list[tuple[str, str]]:
        """For people."""
        rows = [("model", f"{self.name}, {'in use' if self.is_used else 'not in use'}" if self.note else "none yet")]
        if self.note is not None:
            note = self.note
            sites = counted(note.sites, "site")
            rows += [
                ("folder", str(self.folder)),
                ("trained", f"with visits up to {to_iso(note.until)} ({note.source}, seed {note.seed})"),
                ("learned from", f"{note.pages_in_words} of {sites}, {counted(note.observations, 'observation')}"),
                ("predicts", ", ".join(note.events) + (", classes" if note.classes else "")),
            ]
            use = "prior of rates until pages have a history"
            if self.starts_pages:
                use = "pages start in the class that it predicts"
            rows.append(("policy", f"{self.policy}: {use if self.is_used else 'does not use it'}"))
        rows.append(("since then" if self.note else "training", self.said))
        return rows

    def facts(self) -> dict[str, object]:
        """For programs."""
        note = None if self.note is None else json.loads(self.note.to_json())
        return {
            "name": self.name, "in_use": self.is_used, "policy": self.policy, "starts_pages": self.starts_pages,
            "fit": self.fit or None, "said": self.said, "model": note,
        }  # fmt: skip


def model_status(place: Workspace, store: HistoryStore, name: str) -> ModelStatus:
    """The state of the model of this name.

    Raises:
        InputError: the model is damaged, or was trained on other features.
    """
    from recrawl.app.predict.model_training import FEWEST, drifts_of
    from recrawl.app.predict.stored_models import has_model, load_model, models_folder
    from recrawl.app.workspace.policy_parameters import CLASSES
    from recrawl.predict.prior_scores import worst

    settings = place.configuration.settings
    policy, used = settings.schedule.policy, settings.predict.model == name
    folder = models_folder(place.folder) / name
    if not has_model(place.folder, name):
        pages = int((store.histories().counts() > 0).sum())
        least = max(settings.predict.train_from, FEWEST)
        said = (
            f"{counted(pages, 'page')} with two or more observations; a run trains the first model from {least:,} on."
        )
        if not (settings.predict.train_from and used):
            said = "Runs train no model: predict.train_from is 0." if used else "Runs use another name: predict.model."
        elif find_spec("sklearn") is None:
            said = "Runs train no model: scikit-learn is not installed (pip install 'recrawl[predict]')."
        return ModelStatus(name, folder, None, used, policy, starts_pages=False, fit="", said=said)
    kept = load_model(place.folder, name, store.urls)
    drift = worst(drifts_of(place, store, kept).values())
    starts = used and policy in CLASSES and kept.classes is not None
    return ModelStatus(
        name, folder, kept.note, used, policy, starts_pages=starts, fit=drift.fit.value, said=drift.sentence()
    )


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


CHECK_EVERY = HOUR
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
    """Checks now and then whether there is a model and whether it still fits, and has one trained during the crawl.

    That is done in a subprocess with a low priority and its own store connection, since it takes minutes and much
    memory. It ends with its parent. Fit processes use the new model from their next fit on.
    """

    def __init__(self, place: Workspace, model: LiveModel | None, tell: Callable[[str], None]) -> None:
        """``tell`` receives a sentence about what happened."""
        self._place = place
        self._model = model
        self._tell = tell
        self._work: Future[tuple[str, StoredModel | None]] | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """End a running training: it may take minutes, and the next run starts it again."""
        self._closed = True
        if self._child is not None:
            self._child.kill()

    def check(self) -> None:
        """Start a check of the model, unless one is running."""
        if self._work is None:
            self._work = submit(self._renew)

    def follow_store(self) -> None:
        """Take over what has come of it."""
        if self._work is None or not self._work.done():
            return
        work, self._work = self._work, None
        try:
            said, kept = work.result()
        except RecrawlError as error:
            self._tell(f"The model could not be updated: {error}")
            return
        if kept is not None and self._model is not None:
            self._model.take_over(kept)
        if said:
            self._tell(said)

    def _renew(self) -> tuple[str, StoredModel | None]:
        """Run the subprocess, if there may be something to do. In a thread, which only waits."""
        from recrawl.app.predict.stored_models import load_model

        if not self._may_be_due():
            return "", None
        task = json.dumps([str(self._place.folder), dict(self._place.flags)])
        with subprocess.Popen(  # noqa: S603 - this program
            [sys.executable, "-c", _TRAIN, task], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, start_new_session=True,
        ) as self._child:  # fmt: skip
            if self._closed:
                self._child.kill()
            said = self._child.stdout.read().decode() if self._child.stdout is not None else ""
        code, self._child = self._child.returncode, None
        if self._closed:
            return "", None
        kind, _, text = said.partition(" ")
        if code or kind not in {_DONE, _FAILED}:
            raise RecrawlError(f"the process that trains it ended with {code}.", "Run recrawl predict train.")
        if kind == _FAILED:
            raise RecrawlError(text, "Run recrawl predict train.")
        return (text, load_model(self._place.folder, self._place.configuration.settings.predict.model)) if text else (
            "", None
        )  # fmt: skip

    def _may_be_due(self) -> bool:
        """Whether a subprocess is worth its start: there is a model, or there are visits enough for one."""
        if model_version(self._place) is not None:
            return True
        least = 2 * self._place.configuration.settings.predict.train_from
        with self._place.open_store() as store:
            return store.counts(0.0).visits >= least > 0


_TRAIN = "from recrawl.app.predict.model_use import train_beside; train_beside()"
_DONE, _FAILED = "done", "failed"
_NICE = 10


def train_beside() -> None:
    """Run as the subprocess of a :class:`ModelWatch`: its argument names the workspace, its output says what it did."""
    from recrawl.app.predict.model_training import renewed
    from recrawl.app.workspace.workspace import open_workspace

    folder, flags = json.loads(sys.argv[1])
    threading.Thread(target=_end_with_parent, daemon=True, name="parent").start()
    os.nice(_NICE)
    try:
        place = open_workspace(Path(folder), flags)
        with place.open_store() as store:
            answer = f"{_DONE} {renewed(place, store)}"
    except RecrawlError as error:
        answer = f"{_FAILED} {error}"
    sys.stdout.write(answer)
    sys.stdout.flush()


def _end_with_parent() -> None:
    """The standard input is open as long as the parent lives. Its buffer would be locked when the process ends."""
    while os.read(0, 1):
        pass
    os._exit(1)
