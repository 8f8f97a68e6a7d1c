"""What ``recrawl rates`` and ``recrawl plan`` know of pages, for a server: computed in the background and cached.

*Beliefs.* A server answers for one page at a time and cannot fit all visits for each response. So beliefs are fitted as
in ``recrawl rates``, at most every ten minutes. With many pages the fit uses a sample; beliefs about the others then
come from their own observations and the priors of their hosts.

*Survey*: when each page is due and why, and what budgets buy. It is computed in a subprocess: pages of the dashboard do
not wait for it, and its memory is released. The child is this file, run as a module; it exits with its parent. Columns
come back as one NumPy archive, the rest as JSON; nothing is unpickled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
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
from recrawl.app.predict.model_use import expected_changes, expected_links, first_classes
from recrawl.app.rates.belief_table import LEVEL, BeliefTable, VisitSpan, learn, middle_of
from recrawl.crawl.control.runtime_limits import limits
from recrawl.errors import InputError, RecrawlError, StoreError
from recrawl.estimate.estimator import RateEvidence
from recrawl.estimate.estimators import DEFAULT, ESTIMATORS
from recrawl.estimate.operational.operational_posterior import ClockedBelief, OperationalPosterior
from recrawl.model import Belief, FloatArray, Histories, IntArray, Verdict, Visits
from recrawl.time import DAY
from recrawl.web.dashboard.stale_cache import StaleCache, WorkerPool
from recrawl.web.parent_watch import end_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable

    from recrawl.app.workspace.workspace import Workspace
    from recrawl.store.base import PageTable, Store

SAMPLE = 20_000
"""Pages that teach, at most."""
FRESH = 600.0
"""Seconds for which beliefs are good enough: a crawl goes on beside us."""
PATIENCE = 60.0
"""Seconds that the first request waits for them."""


@dataclass(frozen=True)
class LearnedPages:
    """What is known of the pages that teach, and how to learn about others."""

    known: BeliefTable

    @cached_property
    def _middle(self) -> FloatArray:
        return self.known.rate

    @cached_property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Of the intervals of all pages that teach, per second."""
        return self.known.interval()

    def rates(self, store: PageTable, visits: Visits) -> FloatArray:
        """Changes per second of each page that was observed in these visits, by ascending id; NaN if not known.

        O(visits + log n) for pages that teach.
        """
        pages = np.unique(visits.page[visits.answered() | (visits.verdict != Verdict.UNKNOWN)])
        at = self.known.rows(pages)
        rate = np.full(len(pages), np.nan)
        rate[at >= 0] = self._middle[at[at >= 0]]
        others = pages[at < 0]
        if len(others):
            histories = Histories.from_visits(visits.take(np.isin(visits.page, others))).align(others)
            seen = histories.counts() > 0
            if seen.any():
                some = histories.take(seen)
                found = np.full(len(others), np.nan)
                found[seen] = middle_of(self.of_others(some, store.pages(some.page).host), some)
                rate[at < 0] = found
        return rate

    def of_others(self, histories: Histories, host: IntArray) -> Belief:
        """The belief about pages that did not teach, by their own observations and the priors of their hosts."""
        belief, estimator = self.known.belief, ESTIMATORS[DEFAULT]
        if isinstance(belief, ClockedBelief) and isinstance(estimator, OperationalPosterior):
            return estimator.posterior.learn(RateEvidence(histories, (host,)), belief.learned.priors).belief
        return estimator(RateEvidence(histories, (host,)))

    def over_time(self, page: int, host: int, grown: Histories) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rate and ends of the interval of one page after each of several observations, per second.

        ``grown`` has a row for each: what was observed by then. The last is what is known of the page, if nothing was
        observed since the fit: it also uses the claims of sites.
        """
        [at] = self.known.rows(np.array([page]))
        belief, estimator = self.known.belief, ESTIMATORS[DEFAULT]
        if at >= 0 and isinstance(belief, ClockedBelief) and isinstance(estimator, OperationalPosterior):
            found: Belief = estimator.follow(belief, np.full(len(grown), at), grown)
        else:
            found = self.of_others(grown, np.full(len(grown), host))
        rate = middle_of(found, grown)
        low, high = (found.quantile(q) for q in ((1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0))
        low, high = np.minimum(low, rate), np.maximum(high, rate)
        if at >= 0 and len(grown) and grown.last_visit[-1] == self.known.histories.last_visit[at]:
            rate[-1], low[-1], high[-1] = self._middle[at], self.ends[0][at], self.ends[1][at]
        return rate, low, high


class PageBeliefs:
    """Cached beliefs about the pages of a workspace. Thread-safe."""

    def __init__(self, place: Workspace, clock: Callable[[], float]) -> None:
        self._place = place
        self._lease_pool = WorkerPool(1)
        self.kept = StaleCache(self._learn, fresh=FRESH, clock=clock, lease_pool=self._lease_pool)
        """What is known now, if anything is."""

    def rates(self, store: Store, visits: Visits) -> FloatArray:
        """Changes per second of each page that was observed in these visits, by ascending id; NaN if not known.

        Raises:
            StoreError: nothing was learned yet.
        """
        found = self.kept.get(PATIENCE)
        if found.value is None:
            raise StoreError(found.error or "Estimating change rates takes a while.", "Try again later.")
        return found.value.rates(store, visits)

    def close(self, patience: float) -> None:
        """Stop fitting, and wait a limited number of seconds for a running fit."""
        self._lease_pool.end(patience)

    def _learn(self) -> LearnedPages:
        """Takes a moment; later requests get the known beliefs while new ones are fitted."""
        with self._place.open_store() as store:
            last = store.last_page()
            chosen = None if last <= SAMPLE else np.unique(np.linspace(1, last, SAMPLE).astype(np.int64))
            return LearnedPages(learn(store, VisitSpan(pages=chosen), expected=expected_changes(self._place, store)))


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
    expected, links = expected_changes(place, store, now), expected_links(place, store, now)
    outlook = look_ahead(store, settings, now, expected, links, first_classes(place, store, now))
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
