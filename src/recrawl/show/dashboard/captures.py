"""The captures of whole sites: all of them, one with its quality and its course, and orders to begin or end one."""

from __future__ import annotations

import json
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from recrawl.assess.statement_json import outcome_counts
from recrawl.model import Outcome, Verdict
from recrawl.show.dashboard.graphs import Graphs
from recrawl.show.dashboard.routes import LARGEST, Action, Answer, Asked, Done, Parameter, RefusedError, View
from recrawl.show.dashboard.stores import Stores
from recrawl.show.report.section import Figure
from recrawl.store.base import Store
from recrawl.store.site_values import SiteCapture, SiteStep

MOST_ROWS = 200
MOST_KEPT = 1_000
"""Rows of finished captures that are kept, so that nobody counts their steps again."""
MOST_STEPS = 4_000
"""Steps that the picture of a capture shows; of longer ones it shows every so many."""
_HERE = "/captures"


@dataclass(frozen=True, slots=True)
class Order:
    """A capture to begin, as people say it."""

    site: str
    strategy: str
    delay: str
    """With a unit, or seconds; empty for what politeness asks for."""
    max_pages: int | None = None
    from_sitemap: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """A capture that was begun or resumed from here."""

    site: str
    started: float
    state: str
    """``running``, ``stopping``, ``done``, ``stopped`` or ``failed``."""
    said: str
    """The last it said, for people; empty if nothing."""


class CaptureDesk(Protocol):
    """Who carries captures out."""

    @property
    def usual(self) -> str:
        """The strategy that is taken if nobody names one."""
        ...

    @property
    def strategies(self) -> Sequence[str]:
        """All there are, by name."""
        ...

    @property
    def planners(self) -> Sequence[str]:
        """Those that must know all pages beforehand."""
        ...

    def begin(self, order: Order) -> str:
        """Begin a capture; returns its site as it is written."""
        ...

    def resume(self, site: str) -> None:
        """Go on with the unfinished capture of a site."""
        ...

    def stop(self, site: str) -> bool:
        """Ask the capture of a site to end; false if none runs that was begun here."""
        ...

    def works(self) -> list[Work]:
        """What was begun here, latest first."""
        ...

    def stated(self, capture: SiteCapture) -> list[str]:
        """What is said about a finished capture, in words."""
        ...


def captures_views(stores: Stores, desk: CaptureDesk, clock: Callable[[], float]) -> list[View]:
    """The pages about captures."""
    finished = FinishedRows()
    graphs = Graphs(clock)

    def all_of_them(asked: Asked) -> Answer:
        with stores.one() as store:
            works = desk.works()
            numbers = store.latest_site_captures(asked["before"] or LARGEST, asked["limit"] + 1)
            shown = numbers[: asked["limit"]]
            rows = finished.rows(store, shown, works)
        return {
            "captures": [rows[number] for number in shown],
            "next": shown[-1] if len(numbers) > len(shown) else None,
            "works": [_work(work) for work in works],
            "strategies": list(desk.strategies),
            "planners": list(desk.planners),
            "usual": desk.usual,
        }

    def one_of_them(asked: Asked) -> Answer:
        with stores.one() as store:
            capture = _find(store, asked["capture"])
            row = finished.row(store, capture, desk.works())
            answer: Answer = {"capture": row, "terms": json.loads(capture.terms)}
            if not capture.is_finished:
                return {**answer, "words": [], "statement": None, "figures": []}
            stated = json.loads(capture.statement)
            every = max(-(-stated["looks"] // MOST_STEPS), 1)
            steps = store.site_steps(capture.id, every)
        return {
            **answer,
            "words": desk.stated(capture),
            "statement": stated,
            "figures": [tree(capture.id), course(steps, capture.started, every)],
        }

    def tree_of_one(asked: Asked) -> bytes:
        with stores.one() as store:
            capture = _find(store, asked["capture"])
        return graphs.get(stores.one, capture)

    return _views(all_of_them, one_of_them, tree_of_one)


class FinishedRows:
    """Rows of captures. Those that are finished stay as they are: their steps are counted, their statements read, once.

    The rows used last are kept. May be asked by many threads at once.
    """

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, dict[str, Any]] = OrderedDict()

    def rows(self, store: Store, numbers: Sequence[int], works: Sequence[Work]) -> dict[int, dict[str, Any]]:
        """The rows of these captures, by number."""
        with self._lock:
            found = {number: self._kept[number] for number in numbers if number in self._kept}
        others = np.array([number for number in numbers if number not in found], np.int64)
        return found | {one.id: self.row(store, one, works) for one in store.site_captures(only=others)}

    def row(self, store: Store, capture: SiteCapture, works: Sequence[Work]) -> dict[str, Any]:
        """The row of one capture."""
        with self._lock:
            kept = self._kept.get(capture.id)
        row = kept or _row(store, capture, works)
        if capture.is_finished:
            with self._lock:
                self._kept[capture.id] = row
                self._kept.move_to_end(capture.id)
                while len(self._kept) > self._most:
                    self._kept.popitem(last=False)
        return row


def _views(
    all_of_them: Callable[[Asked], Answer],
    one_of_them: Callable[[Asked], Answer],
    tree_of_one: Callable[[Asked], bytes],
) -> list[View]:
    """What the pages and their twins are called, and what is in them."""
    number = Parameter("capture", "The number of a capture.", "integer", required=True, least=1, place="path")
    return [
        View(
            _HERE,
            "/api/captures",
            "Captures",
            "Every capture of a whole site, latest first, and those that were begun from the dashboard.",
            all_of_them,
            "dashboard/captures.html",
            parameters=(
                Parameter("before", "Only captures before this one, by its number.", "integer", least=1),
                Parameter("limit", "Rows.", "integer", default=50, least=1, most=MOST_ROWS),
            ),
            keys={
                "captures": "Captures, latest first: how far they are, and how they came out.",
                "next": "What to give as before for the next ones; null at the end.",
                "works": "What was begun from the dashboard since it was started.",
                "strategies": "The strategies that a capture can follow.",
                "planners": "Those of them that must know all pages beforehand.",
                "usual": "The strategy that is taken if none is named.",
            },
            menu="Captures",
        ),
        View(
            _HERE + "/{capture}",
            "/api/captures/{capture}",
            "Capture",
            "One capture: how far it is; once it is finished, how good it is and which course it took.",
            one_of_them,
            "dashboard/capture.html",
            parameters=(number,),
            keys={
                "capture": "How far it is, and how it came out.",
                "terms": "What was asked for.",
                "words": "How good it is, in words.",
                "statement": "The same as it is stored and written into the archive; null until it is finished.",
                "figures": "What is drawn: its graph and its steps; empty until it is finished.",
            },
        ),
        View(
            _HERE + "/{capture}/graph",
            "/api/captures/{capture}/graph",
            "Graph of a capture",
            "The pages of a capture as a tree, with what became of each: what the graph in its page is drawn from.",
            tree_of_one,
            parameters=(number,),
            keys={},
        ),
    ]


def captures_actions(stores: Stores, desk: CaptureDesk) -> list[Action]:
    """What can be done about captures."""

    def begin(asked: Asked) -> Done:
        order = Order(
            asked["site"], asked["strategy"], asked["delay"].strip(), asked["max_pages"], bool(asked["from_sitemap"])
        )
        site = desk.begin(order)
        return Done(f"The capture of {site} begins.", _HERE, {"site": site})

    def stop(asked: Asked) -> Done:
        with stores.one() as store:
            capture = _find(store, asked["capture"])
        if not desk.stop(capture.site):
            raise RefusedError(
                f"No capture of {capture.site} runs that was begun here.",
                "One that was begun elsewhere is stopped there, with Ctrl-C.",
                status=409,
            )
        return Done(f"The capture of {capture.site} ends when what is under way is done.", f"{_HERE}/{capture.id}")

    def resume(asked: Asked) -> Done:
        with stores.one() as store:
            capture = _find(store, asked["capture"])
        if capture.is_finished:
            raise RefusedError(f"Capture {capture.id} is finished.", "Begin another one.", status=409)
        desk.resume(capture.site)
        return Done(f"The capture of {capture.site} goes on.", f"{_HERE}/{capture.id}")

    number = Parameter("capture", "The number of a capture.", "integer", required=True, least=1, place="form")
    return [
        Action(
            "/actions/captures/begin",
            "Begin a capture of a whole site. It runs in a process of its own, which ends with the dashboard.",
            begin,
            (
                Parameter("site", "Where to begin: the URL of a page.", required=True, place="form"),
                Parameter(
                    "strategy",
                    "The order of visits and revisits.",
                    default=desk.usual,
                    choices=tuple(desk.strategies),
                    place="form",
                ),
                Parameter(
                    "delay", "From one request to the next, like 2s; empty for the settings'.", default="", place="form"
                ),
                Parameter("max_pages", "Take in at most so many pages.", "integer", least=1, place="form"),
                Parameter(
                    "from_sitemap",
                    "Begin with all pages that the site's sitemaps name.",
                    "boolean",
                    default=False,
                    place="form",
                ),
            ),
        ),
        Action("/actions/captures/stop", "Stop a capture that was begun here; it can be resumed.", stop, (number,)),
        Action("/actions/captures/resume", "Go on with a capture that is not finished.", resume, (number,)),
    ]


def _find(store: Store, number: int) -> SiteCapture:
    for capture in store.site_captures(only=np.array([number])):
        return capture
    raise RefusedError(f"There is no capture {number}.", "The list of captures names all.", status=404)


def _row(store: Store, capture: SiteCapture, works: Sequence[Work]) -> dict[str, Any]:
    """One capture: how far it is, and how it came out."""
    counts = store.site_counts(capture.id)
    at_work = next((work.state for work in works if work.site == capture.site), "")
    unfinished = at_work if at_work in {"running", "stopping"} else "unfinished"
    return {
        "id": capture.id,
        "site": capture.site,
        "strategy": json.loads(capture.terms)["strategy"],
        "delay": capture.delay,
        "started": capture.started,
        "finished": capture.finished if capture.is_finished else None,
        "state": "finished" if capture.is_finished else unfinished,
        "found": counts.pages,
        "visited": counts.visited,
        "seen_again": counts.seen_again,
        "last": counts.last if math.isfinite(counts.last) else None,
        **_outcome(capture),
    }


def _outcome(capture: SiteCapture) -> dict[str, Any]:
    if not capture.statement:
        return dict.fromkeys(("pages", "coherent", "changed", "missing", "unknown", "blur"))
    quality = json.loads(capture.statement)["quality"]
    coherence = quality["coherence"]
    blur = quality["blur"]["achieved"] or quality["blur"]["predicted"]
    told = {**outcome_counts(coherence), "unknown": coherence["unknown"]}
    return {"pages": quality["pages"], **told, "blur": blur["average"]}


def _work(work: Work) -> dict[str, Any]:
    return {"site": work.site, "started": work.started, "state": work.state, "said": work.said}


def tree(capture: int) -> dict[str, Any]:
    """A figure of the pages of a capture as a tree, which is fetched when it is drawn."""
    figure = Figure(
        name="site-graph",
        title="The site as it was captured",
        kind="site-graph",
        data={"src": f"/api/captures/{capture}/graph"},
        height=520,
        wide=True,
    )
    return asdict(figure)


def course(steps: Sequence[SiteStep], started: float, every: int) -> dict[str, Any]:
    """A figure of the steps of a capture, one of ``every``: which page was visited when, and what it found."""
    columns = [(step.time - started, step.number, _found(step)) for step in steps]
    series = [
        {
            "name": name,
            "draw": "points",
            "x": [time for time, _, found in columns if found == name],
            "y": [number for _, number, found in columns if found == name],
            "colour": colour,
        }
        for name, colour in _FOUND.items()
    ]
    thinned = f" One of {every} steps is shown." if every > 1 else ""
    figure = Figure(
        name="course",
        title="The course it took",
        kind="chart",
        data={
            "x": {"title": "seconds since it began", "scale": "linear"},
            "y": {"title": "pages, in the order found", "scale": "linear"},
            "series": [one for one in series if one["x"]],
        },
        words="Each point is a request. A page is sharp where visit and revisit are near each other." + thinned,
        wide=True,
    )
    return asdict(figure)


_FOUND = {
    "visit": "series-1",
    "revisit, unchanged": "unchanged",
    "revisit, changed": "changed",
    "revisit, not judged": "unseen",
    "failed or gone": "missing",
}


def _found(step: SiteStep) -> str:
    if step.outcome >= Outcome.GONE:
        return "failed or gone"
    if not step.revisit:
        return "visit"
    judged = {Verdict.UNCHANGED: "revisit, unchanged", Verdict.CHANGED: "revisit, changed"}
    return judged.get(Verdict(step.verdict), "revisit, not judged")
