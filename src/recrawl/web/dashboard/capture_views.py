"""Views of site captures: the list, one capture with its quality and course, and actions to start or stop one.

Site graphs of captures are cached as bytes and made again after newer observations.

The graph of a large site takes seconds, and later observations give the results of its pages. While a crawl is running
there is always a newer observation; then a graph is cached for a multiple of the seconds that it took.
"""

from __future__ import annotations

import json
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from recrawl.app.assess.assessment import pages_of_capture
from recrawl.assess.blur_coherence import outcome_counts
from recrawl.model import Outcome, Verdict
from recrawl.store.base import HistoryStore, Store
from recrawl.store.store_values import SiteCapture, SiteStep
from recrawl.web.dashboard.routes import (
    LARGEST,
    Action,
    ActionResult,
    Answer,
    CheckedParameters,
    Parameter,
    RefusedError,
    View,
)
from recrawl.web.dashboard.stale_cache import SHARE, StorePool
from recrawl.web.html_templates import json_of
from recrawl.web.report.report_page import Figure
from recrawl.web.report.site_graph import graph_data

MOST_KEPT = 4
"""Maximum number of cached graphs, some megabytes each."""


@dataclass(frozen=True, slots=True)
class _CachedGraph:
    text: bytes
    seen: tuple[float, float]
    """The end of the capture, and the latest observation when the graph was made."""
    until: float
    """Cached until then, despite newer observations."""


class SiteGraphs:
    """Makes graphs and caches the latest. Thread-safe; each graph is made by one thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._made: OrderedDict[int, _CachedGraph] = OrderedDict()

    def get(self, one_store: Callable[[], AbstractContextManager[Store]], capture: SiteCapture) -> bytes:
        """The graph of a capture as JSON. A waiting thread holds no store connection."""
        with self._lock, one_store() as store:
            began = self._clock()
            latest = store.latest_visits(1).time
            seen = (capture.finished, float(latest[0]) if len(latest) else float("-inf"))
            made = self._made.get(capture.id)
            ended_alike = made is not None and made.seen[0] == capture.finished
            if made is None or not ended_alike or (made.seen != seen and began >= made.until):
                text = json_of(graph_data(pages_of_capture(store, capture.id), "/pages/{id}"))
                now = self._clock()
                made = _CachedGraph(text, seen, now + SHARE * (now - began))
            self._made[capture.id] = made
            self._made.move_to_end(capture.id)
            while len(self._made) > MOST_KEPT:
                self._made.popitem(last=False)
            return made.text


MOST_ROWS = 200
MOST_CAPTURES_KEPT = 1_000
"""Maximum number of cached rows of finished captures, whose steps are then not counted again."""
MOST_STEPS = 4_000
"""Maximum number of steps in the plot of a capture; of more, every n-th is shown."""
_HERE = "/captures"


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """The options of a new capture, as entered."""

    site: str
    strategy: str
    delay: str
    """With a unit, or in seconds; empty for the politeness settings."""
    max_pages: int | None = None
    from_sitemap: bool = False


@dataclass(frozen=True, slots=True)
class CaptureJob:
    """A capture that was started or resumed from here."""

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
        """The default strategy."""
        ...

    @property
    def strategies(self) -> Sequence[str]:
        """All there are, by name."""
        ...

    @property
    def planners(self) -> Sequence[str]:
        """Those that must know all pages beforehand."""
        ...

    def begin(self, order: CaptureRequest) -> str:
        """Start a capture; returns its normalised site."""
        ...

    def resume(self, site: str) -> None:
        """Go on with the unfinished capture of a site."""
        ...

    def stop(self, site: str) -> bool:
        """Stop the capture of a site; false if none that was started here is running."""
        ...

    def works(self) -> list[CaptureJob]:
        """Captures started here, latest first."""
        ...

    def stated(self, capture: SiteCapture) -> list[str]:
        """What is said about a finished capture, in words."""
        ...


def captures_views(stores: StorePool, desk: CaptureDesk, clock: Callable[[], float]) -> list[View]:
    """The pages about captures."""
    finished = FinishedRows()
    graphs = SiteGraphs(clock)

    def all_of_them(asked: CheckedParameters) -> Answer:
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

    def one_of_them(asked: CheckedParameters) -> Answer:
        with stores.one() as store:
            capture = _find(store, asked["capture"])
            row = finished.row(store, capture, desk.works())
            answer: Answer = {"capture": row, "terms": json.loads(capture.terms)}
            if not capture.is_finished:
                return {**answer, "words": [], "statement": None, "figures": []}
            stated = json.loads(capture.statement)
            every = max(-(-stated["observations"] // MOST_STEPS), 1)
            steps = store.site_steps(capture.id, every)
        return {
            **answer,
            "words": desk.stated(capture),
            "statement": stated,
            "figures": [tree(capture.id), course(steps, capture.started, every)],
        }

    def tree_of_one(asked: CheckedParameters) -> bytes:
        with stores.one() as store:
            capture = _find(store, asked["capture"])
        return graphs.get(stores.one, capture)

    return _views(all_of_them, one_of_them, tree_of_one)


class FinishedRows:
    """Rows of captures. For finished ones the steps are counted and the statements read once.

    The rows used last are cached. Thread-safe.
    """

    def __init__(self, most: int = MOST_CAPTURES_KEPT) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, dict[str, Any]] = OrderedDict()

    def rows(self, store: Store, numbers: Sequence[int], works: Sequence[CaptureJob]) -> dict[int, dict[str, Any]]:
        """The rows of these captures, by number."""
        with self._lock:
            found = {number: self._kept[number] for number in numbers if number in self._kept}
        others = np.array([number for number in numbers if number not in found], np.int64)
        return found | {one.id: self.row(store, one, works) for one in store.site_captures(only=others)}

    def row(self, store: HistoryStore, capture: SiteCapture, works: Sequence[CaptureJob]) -> dict[str, Any]:
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
    all_of_them: Callable[[CheckedParameters], Answer],
    one_of_them: Callable[[CheckedParameters], Answer],
    tree_of_one: Callable[[CheckedParameters], bytes],
) -> list[View]:
    """What the pages and their twins are called, and what is in them."""
    number = Parameter("capture", "The number of a capture.", "integer", required=True, least=1, place="path")
    return [
        View(
            _HERE,
            "/api/captures",
            "Captures",
            "Site captures, latest first, and those started from the dashboard.",
            all_of_them,
            "dashboard/captures.html",
            parameters=(
                Parameter("before", "Only captures before this one, by its number.", "integer", least=1),
                Parameter("limit", "Rows.", "integer", default=50, least=1, most=MOST_ROWS),
            ),
            keys={
                "captures": "Captures, latest first, with their progress and results.",
                "next": "Value of before for the next page of the list; null at the end.",
                "works": "Captures started from this dashboard process.",
                "strategies": "Available strategies.",
                "planners": "Strategies that need all pages in advance.",
                "usual": "Default strategy.",
            },
            menu="Captures",
        ),
        View(
            _HERE + "/{capture}",
            "/api/captures/{capture}",
            "Capture",
            "One capture: its progress; when finished, its quality and course.",
            one_of_them,
            "dashboard/capture.html",
            parameters=(number,),
            keys={
                "capture": "Progress and result.",
                "terms": "Options of the capture.",
                "words": "Quality statement as text.",
                "statement": "Quality statement as stored and written into the archive; null until finished.",
                "figures": "Data of the figures: graph and steps; empty until finished.",
            },
        ),
        View(
            _HERE + "/{capture}/graph",
            "/api/captures/{capture}/graph",
            "Graph of a capture",
            "The pages of a capture as a tree with the result of each: the data of its graph.",
            tree_of_one,
            parameters=(number,),
            keys={
                "pages": "The pages, as columns.",
                "parent": "The page above each page, as a position in the columns; -1 for a root.",
                "drawn": "1 if a page is drawn, 0 if it is folded.",
                "folded": "Pages that hold folded ones, and how many.",
                "versions": "Link to the versions of a page, with {id} or {url} in it.",
            },
        ),
    ]


def captures_actions(stores: StorePool, desk: CaptureDesk) -> list[Action]:
    """What can be done about captures."""

    def begin(asked: CheckedParameters) -> ActionResult:
        order = CaptureRequest(
            asked["site"], asked["strategy"], asked["delay"].strip(), asked["max_pages"], bool(asked["from_sitemap"])
        )
        site = desk.begin(order)
        return ActionResult(f"The capture of {site} starts.", _HERE, {"site": site})

    def stop(asked: CheckedParameters) -> ActionResult:
        with stores.one() as store:
            capture = _find(store, asked["capture"])
        if not desk.stop(capture.site):
            raise RefusedError(
                f"No capture of {capture.site} was started here and is running.",
                "Stop a capture that was started elsewhere there, with Ctrl-C.",
                status=409,
            )
        return ActionResult(
            f"The capture of {capture.site} stops when its running requests are done.", f"{_HERE}/{capture.id}"
        )

    def resume(asked: CheckedParameters) -> ActionResult:
        with stores.one() as store:
            capture = _find(store, asked["capture"])
        if capture.is_finished:
            raise RefusedError(f"Capture {capture.id} is finished.", "Start another one.", status=409)
        desk.resume(capture.site)
        return ActionResult(f"The capture of {capture.site} continues.", f"{_HERE}/{capture.id}")

    number = Parameter("capture", "The number of a capture.", "integer", required=True, least=1, place="form")
    return [
        Action(
            "/actions/captures/begin",
            "Start a site capture. It runs in a subprocess that stops with the dashboard.",
            begin,
            (
                Parameter("site", "URL of the first page.", required=True, place="form"),
                Parameter(
                    "strategy",
                    "Order of visits and revisits.",
                    default=desk.usual,
                    choices=tuple(desk.strategies),
                    place="form",
                ),
                Parameter(
                    "delay",
                    "Time between requests, such as 2s; empty for the value of the settings.",
                    default="",
                    place="form",
                ),
                Parameter("max_pages", "Capture at most N pages.", "integer", least=1, place="form"),
                Parameter(
                    "from_sitemap",
                    "Start with all pages in the sitemaps of the site.",
                    "boolean",
                    default=False,
                    place="form",
                ),
            ),
        ),
        Action("/actions/captures/stop", "Stop a capture that was started here; it can be resumed.", stop, (number,)),
        Action("/actions/captures/resume", "Continue an unfinished capture.", resume, (number,)),
    ]


def _find(store: HistoryStore, number: int) -> SiteCapture:
    for capture in store.site_captures(only=np.array([number])):
        return capture
    raise RefusedError(f"There is no capture {number}.", "See the list of captures.", status=404)


def _row(store: HistoryStore, capture: SiteCapture, works: Sequence[CaptureJob]) -> dict[str, Any]:
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


def _work(work: CaptureJob) -> dict[str, Any]:
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
        title="Course of the capture",
        kind="chart",
        data={
            "x": {"title": "time since the start", "scale": "seconds", "min": 0},
            "y": {"title": "pages, in order of discovery", "scale": "linear"},
            "series": [one for one in series if one["x"]],
        },
        words="Each point is a request. The closer visit and revisit, the sharper the page." + thinned,
        wide=True,
    )
    return asdict(figure)


_FOUND = {
    "visit": "series-1",
    "revisit, unchanged": "unchanged",
    "revisit, changed": "changed",
    "revisit, not compared": "unseen",
    "failed or gone": "missing",
}


def _found(step: SiteStep) -> str:
    if step.outcome >= Outcome.GONE:
        return "failed or gone"
    if not step.revisit:
        return "visit"
    judged = {Verdict.UNCHANGED: "revisit, unchanged", Verdict.CHANGED: "revisit, changed"}
    return judged.get(Verdict(step.verdict), "revisit, not compared")
