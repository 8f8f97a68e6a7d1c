"""What ``recrawl plan`` knows of all pages at once: when each is due and why, and what budgets buy.

It is computed in a subprocess: pages of the dashboard do not wait for it, and its memory is released. The child is this
file, run as a module; it exits with its parent. Columns come back as one NumPy archive, the rest as JSON; nothing is
unpickled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from recrawl.app.display import rows_of
from recrawl.app.plan import (
    PlanOutlook,
    cannot_be_met,
    changed_since,
    look_ahead,
    next_pages,
    reasons,
    shown_price,
    what_if,
    what_if_rows,
)
from recrawl.app.predict.model_use import expected_changes, expected_links
from recrawl.app.rates.belief_table import BeliefTable, VisitSpan, learn
from recrawl.crawl.control.runtime_limits import limits
from recrawl.errors import InputError, RecrawlError
from recrawl.model import FloatArray, IntArray
from recrawl.time import DAY
from recrawl.web.parent_watch import end_with_parent

if TYPE_CHECKING:
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.store.base import PageTable, Store


@dataclass(frozen=True, slots=True)
class PlanSurvey:
    """What is expected of every page that is ever to be visited, as columns by ascending id, and of the whole."""

    facts: Mapping[str, Any]
    """Threshold, budgets and unmet requests, as in ``recrawl plan --json``."""
    page: IntArray
    due: FloatArray
    """When a fit to all that is known wants the page, seconds since the epoch."""
    why: IntArray
    """The reason for that, as a number into ``reasons``."""
    reasons: tuple[str, ...]
    worth: FloatArray
    """Value of a visit now over its price; infinite for what was never seen."""
    p_changed: FloatArray
    """Probability that the page has changed since it was last seen; NaN if it never was."""
    every: FloatArray
    """Seconds between two changes: the middle of the belief, and the ends of its 90 % interval."""
    shortest: FloatArray
    longest: FloatArray
    last_observed: FloatArray
    orders: Mapping[str, IntArray] = field(default_factory=dict)
    """Ids by name of an order: who changes most often, who is worth a visit most."""

    def rows(self, pages: IntArray) -> IntArray:
        """The row of each page; -1 where it is not there."""
        if not len(self.page):
            return np.full(len(pages), -1, np.int64)
        at = np.minimum(np.searchsorted(self.page, pages), len(self.page) - 1)
        return np.where(self.page[at] == pages, at, -1)


class DashboardPort(Protocol):
    """The results of ``recrawl status``, ``plan``, ``rates`` and ``explain``. Thread-safe."""

    def counts(self) -> dict[str, Any]:
        """How much there is. May take seconds."""
        ...

    def work(self) -> dict[str, Any]:
        """Who is at work, how fast, what is due and late, what the budget leaves. Quick if little was done lately."""
        ...

    def survey(self) -> PlanSurvey:
        """What is expected of all pages. May take minutes."""
        ...

    def belief(self, page: int) -> dict[str, list[float]] | None:
        """The belief about a page after each observation: columns ``time``, ``every``, ``shortest``, ``longest``.

        ``None`` while beliefs are being computed.
        """
        ...

    def explanation(self, page: int, at: float | None, *, changed: bool) -> dict[str, Any]:
        """Why the last visit up to a time (that found a change) counted as it did, with both versions side by side."""
        ...

    def in_words(self, every: float, shortest: float, longest: float) -> str:
        """How often something changes, as people say it."""
        ...

    def failure(self, status: int) -> str:
        """What the status of a failed visit means."""
        ...


NEXT = 10
"""Pages named that come next."""


def survey_of(place: Workspace, store: Store, now: float) -> PlanSurvey:
    """A fit to all that is known now. O(visits + pages · steps), as ``recrawl plan``."""
    settings = place.limited(limits(store.controls())).configuration.settings
    outlook = look_ahead(store, settings, now, expected_changes(place, store, now), expected_links(place, store, now))
    rows = np.arange(len(outlook.pages))
    ids = outlook.pages.id
    known = learn(store, VisitSpan(until=now), expected=outlook.expected)
    with np.errstate(divide="ignore"):
        every, longest, shortest = (1.0 / known.at(ids, rate) for rate in (known.rate, *known.interval()))
    worth = outlook.policy.urgency(ids, now)
    p_changed = changed_since(outlook, ids, known)
    words, why = np.unique(np.array(reasons(outlook, rows), dtype=np.str_), return_inverse=True)
    return PlanSurvey(
        facts=_facts(store, outlook, known, p_changed),
        page=ids,
        due=outlook.due,
        why=why.astype(np.int64),
        reasons=tuple(words.tolist()),
        worth=worth,
        p_changed=p_changed,
        every=every,
        shortest=shortest,
        longest=longest,
        last_observed=outlook.last_observed,
        orders={
            "rate": ids[np.argsort(every, kind="stable")],  # pages of which nothing is known come last
            "-rate": ids[np.argsort(-every, kind="stable")],
            "worth": ids[np.argsort(-np.nan_to_num(worth, nan=-np.inf), kind="stable")],
            "changed": ids[np.argsort(-np.nan_to_num(p_changed, nan=-np.inf), kind="stable")],
        },
    )


def _facts(store: PageTable, outlook: PlanOutlook, known: BeliefTable, p_changed: FloatArray) -> dict[str, Any]:
    """The overall plan: the threshold, three budgets, unmet requests, upcoming fetches."""
    objective = outlook.settings.schedule.objective
    buys = what_if(outlook, known)
    unmet = cannot_be_met(outlook, buys)
    seen, told = ~np.isnan(outlook.last_observed), ~np.isnan(p_changed)
    first: IntArray = np.lexsort((outlook.pages.id, outlook.due))[:NEXT]
    coming = rows_of({"id": outlook.pages.id[first].tolist(), **next_pages(store, outlook, first, known)})
    return {
        "policy": outlook.policy.name,
        "objective": objective,
        "budget_per_day": outlook.budget * DAY,
        "price": outlook.policy.price,
        "price_words": "" if outlook.policy.price is None else shown_price(outlook.policy.price, objective),
        "pages": len(outlook.pages),
        "seen": int(seen.sum()),
        "known": int(told.sum()),
        "fresh": float(1.0 - p_changed[told].mean()) if told.any() else None,
        "late": int((outlook.due < outlook.now).sum()),
        "hopeless": int(buys.now.hopeless),
        "budgets": {name: asdict(getattr(buys, name)) for name in ("less", "now", "more")},
        "budget_rows": [list(row) for row in what_if_rows(buys, outlook.budget, objective)],
        "unmet": [asdict(one) for one in unmet],
        "next": coming,
    }


_ORDER = "order "
_USER_ERROR = 3
_NICE = 10
"""Crawls and page requests have priority."""


class SurveyProcess:
    """Makes surveys in processes of their own, one after the other."""

    def __init__(self, place: Workspace) -> None:
        self._place = place
        self._child: subprocess.Popen[bytes] | None = None

    def survey(self, now: float) -> PlanSurvey:
        """A survey as of now.

        Raises:
            InputError: there is nothing to plan for, or a model cannot be used.
        """
        with TemporaryDirectory(prefix="recrawl-") as folder:
            place = [str(self._place.folder), json.dumps(dict(self._place.flags))]
            command = [sys.executable, "-m", __name__, folder, repr(now), *place]
            with subprocess.Popen(  # noqa: S603 - our own program, and no shell
                command,
                stdin=subprocess.PIPE,  # nothing is written: end of file tells the child that we have exited
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C in our terminal is for us
            ) as self._child:
                said = self._child.stderr.read() if self._child.stderr else b""
                code = self._child.wait()
            if code == _USER_ERROR:
                what, remedy = json.loads(said)
                raise InputError(what, remedy)
            if code:
                raise RuntimeError(said.decode("utf-8", "replace"))
            return _read(Path(folder))

    def close(self) -> None:
        """End the one that is under way."""
        if self._child is not None and self._child.poll() is None:
            self._child.kill()
            self._child.wait()


def _write(survey: PlanSurvey, folder: Path) -> None:
    columns = {one.name: getattr(survey, one.name) for one in fields(PlanSurvey)}
    facts = {name: columns.pop(name) for name in ("facts", "reasons")}
    orders = {_ORDER + name: ids for name, ids in columns.pop("orders").items()}
    np.savez(folder / "columns.npz", allow_pickle=False, **columns, **orders)
    (folder / "facts.json").write_text(json.dumps(facts, default=lambda number: number.item()), "utf-8")


def _read(folder: Path) -> PlanSurvey:
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    with np.load(folder / "columns.npz", allow_pickle=False) as kept:
        found: dict[str, Any] = {name: kept[name] for name in kept.files}
    orders = {name.removeprefix(_ORDER): found.pop(name) for name in list(found) if name.startswith(_ORDER)}
    return PlanSurvey(facts=facts["facts"], reasons=tuple(facts["reasons"]), orders=orders, **found)


def main(folder: str, now: str, workspace: str, flags: str) -> None:
    """Make a survey of a workspace and leave it in a folder."""
    end_with_parent()
    from recrawl.app.workspace.workspace import open_workspace
    from recrawl.web.dashboard.plan_survey import survey_of

    if hasattr(os, "SCHED_BATCH"):  # a parent with high priority starts us with its own priority
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    os.nice(_NICE)
    place = open_workspace(Path(workspace), json.loads(flags))
    try:
        with place.open_store() as store:
            _write(survey_of(place, store, float(now)), Path(folder))
    except RecrawlError as error:
        sys.stderr.write(json.dumps([error.what, error.remedy]))
        sys.exit(_USER_ERROR)


if __name__ == "__main__":
    main(*sys.argv[1:])
