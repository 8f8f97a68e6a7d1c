"""Subprocesses of the dashboard: ``recrawl compare`` and ``recrawl capture``, and the comparison of policies."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

from recrawl.capture import OFFLINE, STRATEGIES
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.crawl.site_capture.capture_terms import DEFAULT_STRATEGY
from recrawl.errors import ConfigError, ExitCode, meant
from recrawl.formats.seeds import parse_seed
from recrawl.plugins import installed
from recrawl.time import DAY, parse_duration
from recrawl.web.dashboard.capture_views import CaptureJob, CaptureRequest
from recrawl.web.dashboard.routes import Action, ActionResult, Answer, CheckedParameters, Parameter, RefusedError, View
from recrawl.web.report.report_page import Figure

_HERE = "/policies"
_PANELS = {"recall": "Changes found", "freshness": "Current copies"}


@dataclass(frozen=True, slots=True)
class ComparisonState:
    """What is known about policies, and whether more is being found out."""

    found: Mapping[str, Any] | None
    """What ``recrawl compare --json`` said, with ``budgets``: a row for each policy and budget; and ``made``: when."""
    running_since: float | None
    """The start of the running comparison, seconds since the epoch; ``None`` if none is running."""
    error: str = ""
    """Why the last one found nothing."""


class PolicyComparisons(Protocol):
    """Who compares policies."""

    def begin(self, budget: float | None) -> None:
        """Start a comparison with this many visits per day; ``None`` for as many as were made."""
        ...

    def stop(self) -> bool:
        """End the comparison that runs; false if none does."""
        ...

    def standing(self) -> ComparisonState:
        """What is known, and whether a comparison is under way."""
        ...


def policies_views(comparisons: PolicyComparisons) -> list[View]:
    """The page about policies."""

    def compared(_asked: CheckedParameters) -> Answer:
        standing = comparisons.standing()
        return {
            "running_since": standing.running_since,
            "error": standing.error,
            "found": standing.found,
            "figures": [] if standing.found is None else panels(standing.found["budgets"]),
        }

    return [
        View(
            _HERE,
            "/api/policies",
            "Policies",
            "Back-test of policies on the history of the workspace, with the same number of visits.",
            compared,
            "dashboard/policies.html",
            keys={
                "running_since": "Start of the running comparison, seconds since the epoch, or null.",
                "error": "Error of the last comparison; empty if it succeeded.",
                "found": "Result of the latest comparison, as in recrawl compare --json; null if there was none.",
                "figures": "Data of the figures.",
            },
            menu="Policies",
        )
    ]


def policies_actions(comparisons: PolicyComparisons) -> list[Action]:
    """What can be done about policies."""

    def begin(asked: CheckedParameters) -> ActionResult:
        comparisons.begin(asked["budget"])
        return ActionResult("The comparison starts.", _HERE)

    def stop(_asked: CheckedParameters) -> ActionResult:
        if not comparisons.stop():
            raise RefusedError("No comparison runs.", "Start one.", status=409)
        return ActionResult("The comparison was stopped.", _HERE)

    budget = Parameter(
        "budget", "Visits per day. Default: as many as were made.", "number", least=0.001, most=1e12, place="form"
    )
    return [
        Action("/actions/policies/compare", "Compare policies on the history of the workspace.", begin, (budget,)),
        Action("/actions/policies/stop", "Stop the running comparison.", stop),
    ]


def panels(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A figure for each measure: a line for each policy, over the budget."""
    names = list(dict.fromkeys(row["policy"] for row in rows))
    return [asdict(_panel(measure, title, names, rows)) for measure, title in _PANELS.items()]


def _panel(measure: str, title: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Figure:
    series = []
    for name in names:
        mine = sorted(
            (row["visits_a_day"], row[measure]) for row in rows if row["policy"] == name and _known(row, measure)
        )
        series.append({"name": name, "draw": "line", "x": [x for x, _ in mine], "y": [y for _, y in mine]})
    return Figure(
        name=f"policies-{measure}",
        title=title,
        kind="chart",
        data={
            "x": {"title": "visits a day", "scale": "log"},
            "y": {"title": title.lower(), "scale": "share"},
            "series": series,
        },
    )


def _known(row: Mapping[str, Any], measure: str) -> bool:
    return row[measure] is not None and row["visits_a_day"] is not None


if TYPE_CHECKING:
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.store.store_values import SiteCapture


LAST_WORDS = 2_000
"""Bytes of what a child said that are shown."""
PATIENCE = 10.0
"""Seconds that a child may take to stop."""


def end_process(process: subprocess.Popen[Any]) -> None:
    """Wait for a process that should stop, and kill it if it does not."""
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class CommandProcess:
    """A recrawl command in a subprocess that exits with the dashboard, even if that is killed."""

    def __init__(self, arguments: list[str], now: float) -> None:
        """Start. The arguments pass through no shell."""
        self.started = now
        self.stopping = False
        self._folder = TemporaryDirectory(prefix="recrawl-")
        self._out, self._err = (Path(self._folder.name) / name for name in ("out", "err"))
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, and no shell
                [sys.executable, "-m", "recrawl.cli.child_entry", *arguments],
                stdin=subprocess.PIPE,  # nothing is written: end of file tells the child that we have exited
                stdout=out,
                stderr=err,
                start_new_session=True,  # Ctrl-C in our terminal is for us; we stop the child
            )

    @property
    def code(self) -> int | None:
        """The exit code; ``None`` while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Stop after the running requests; a second call stops at once."""
        self.stopping = True
        if self.code is None:
            self._process.terminate()

    def end(self) -> None:
        """See to it that it has ended, and forget what it said."""
        if self.code is None:
            self.stop()
            end_process(self._process)
        if self._process.stdin:
            self._process.stdin.close()
        self._folder.cleanup()

    def output(self) -> str:
        """All that it printed."""
        return self._out.read_text("utf-8", "replace")

    def last_words(self) -> str:
        """The end of what it said beside its output, for people."""
        with self._err.open("rb") as said:
            said.seek(max(self._err.stat().st_size - LAST_WORDS, 0))
            text = said.read().decode("utf-8", "replace")
        return "".join(sign for sign in text if sign.isprintable() or sign == "\n").strip()


def in_workspace(folder: Path, flags: Mapping[str, object]) -> list[str]:
    """Options by which a child works in the same workspace, with the same flags."""
    return [f"--workspace={folder}", *(f"--set={key}={value}" for key, value in flags.items())]


MOST_AT_ONCE = 4
"""Captures that run at once."""


class CaptureProcesses:
    """Starts, monitors and stops captures. Thread-safe."""

    def __init__(self, place: Workspace, clock: Callable[[], float]) -> None:
        self.usual = DEFAULT_STRATEGY
        self.strategies = (*STRATEGIES, *(entry.name for entry in installed("strategy")))
        self.planners = tuple(sorted(OFFLINE))
        self._where = in_workspace(place.folder, place.flags)
        self._clock = clock
        self._lock = threading.Lock()
        self._children: dict[str, CommandProcess] = {}
        """The latest of each site."""

    def begin(self, order: CaptureRequest) -> str:
        """Start a capture; returns its normalised site."""
        if order.strategy not in self.strategies:  # a visitor names no module of this machine
            raise ConfigError(
                f"There is no capture strategy {order.strategy!r}.", meant(order.strategy, self.strategies)
            )
        site = parse_seed(order.site.strip(), "").url
        delay = None if not order.delay else _seconds(order.delay)
        CaptureOrder(site=site, strategy=order.strategy, delay=delay, max_pages=order.max_pages)  # makes sense
        options = [f"--strategy={order.strategy}"]
        if delay is not None:
            options.append(f"--delay={delay:.6f}")
        if order.max_pages is not None:
            options.append(f"--max-pages={order.max_pages}")
        if order.from_sitemap:
            options.append("--from-sitemap")
        self._spawn(site, options)
        return site

    def resume(self, site: str) -> None:
        """Go on with the unfinished capture of a site."""
        self._spawn(site, ["--resume"])

    def stop(self, site: str) -> bool:
        """Stop the capture of a site; false if none that was started here is running."""
        with self._lock:
            child = self._children.get(site)
            if child is None or child.code is not None:
                return False
            child.stop()
            return True

    def works(self) -> list[CaptureJob]:
        """Captures started here, latest first."""
        with self._lock:
            known = list(self._children.items())
            return [
                CaptureJob(site, child.started, _state(child), child.last_words()) for site, child in reversed(known)
            ]

    def stated(self, capture: SiteCapture) -> list[str]:
        """What is said about a finished capture, in words."""
        from recrawl.app.site_capture import stored_lines

        return stored_lines(capture, json.loads(capture.statement))

    def close(self) -> None:
        """Stop all running captures. Each can be resumed."""
        with self._lock:
            for child in self._children.values():
                child.stop()
            for child in self._children.values():
                child.end()
            self._children.clear()

    def _spawn(self, site: str, options: list[str]) -> None:
        with self._lock:
            running = [known for known, child in self._children.items() if child.code is None]
            if site in running:
                raise ConfigError(f"A capture of {site} runs already.", "Wait until it ends, or stop it.")
            if len(running) >= MOST_AT_ONCE:
                raise ConfigError(f"{len(running)} captures run already.", "Wait until one of them is done.")
            before = self._children.pop(site, None)
            if before is not None:
                before.end()
            self._children[site] = CommandProcess(
                ["capture", *self._where, *options, "--json", "--", site], self._clock()
            )


def _seconds(text: str) -> float:
    """A duration; a bare number is seconds."""
    try:
        seconds = float(text)
    except ValueError:
        return parse_duration(text)
    if not 0 <= seconds <= DAY:
        raise ConfigError(f"A delay of {text} seconds is out of range.", "Give a number from 0 to 86,400, or like 2s.")
    return seconds


def _state(child: CommandProcess) -> str:
    match child.code:
        case None:
            return "stopping" if child.stopping else "running"
        case ExitCode.OK:
            return "done"
        case ExitCode.INTERRUPTED | ExitCode.FORCED:
            return "stopped"
        case _:  # a child that is stopped before it handles signals has no exit code of ours
            return "stopped" if child.stopping else "failed"


FOLDER, KEPT, TABLE = "compare", "compare.json", "compare.csv"


class CompareProcess:
    """Compares policies on the history of a workspace, one comparison at a time. Results are stored beside the reports.

    Thread-safe.
    """

    def __init__(self, place: Workspace, clock: Callable[[], float], options: Sequence[str] = ()) -> None:
        """``options`` are more words for ``recrawl compare``."""
        self._options = list(options)
        self._folder = place.reports / FOLDER
        self._where = in_workspace(place.folder, place.flags)
        self._clock = clock
        self._lock = threading.Lock()
        self._child: CommandProcess | None = None
        self._error = ""

    def begin(self, budget: float | None) -> None:
        """Start a comparison with this many visits per day."""
        options = [f"--output={self._folder}", "--json", "--jobs=1", *self._options]
        if budget is not None:
            options.append(f"--budget={budget!r}")
        with self._lock:
            self._take_over()
            if self._child is not None:
                raise ConfigError("A comparison runs already.", "Wait until it ends, or stop it.")
            self._error = ""
            self._child = CommandProcess(["compare", *self._where, *options], self._clock())

    def stop(self) -> bool:
        """End the comparison that runs; false if none does."""
        with self._lock:
            self._take_over()
            if self._child is None:
                return False
            self._child.end()
            self._child = None
            return True

    def standing(self) -> ComparisonState:
        """What the latest comparison found, and whether another one is under way."""
        with self._lock:
            self._take_over()
            since = None if self._child is None else self._child.started
            return ComparisonState(self._kept(), since, self._error)

    def close(self) -> None:
        """End what runs."""
        self.stop()

    def _take_over(self) -> None:
        """Keep what a comparison said that has ended."""
        child = self._child
        if child is None or child.code is None:
            return
        if child.code == 0:
            facts = json.loads(child.output())
            with (self._folder / TABLE).open(encoding="utf-8", newline="") as table:
                facts["budgets"] = [_numbers(row) for row in csv.DictReader(table)]
            facts["made"] = child.started
            (self._folder / KEPT).write_text(json.dumps(facts), encoding="utf-8")
        else:
            self._error = child.last_words() or "The comparison ended without a message."
        child.end()
        self._child = None

    def _kept(self) -> dict[str, Any] | None:
        try:
            kept: dict[str, Any] = json.loads((self._folder / KEPT).read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return kept


def _numbers(row: dict[str, str]) -> dict[str, Any]:
    return {name: row[name] if name == "policy" else _number(row[name]) for name in _CURVE}


_CURVE = ("policy", "visits_a_day", "recall", "recall_low", "recall_high", "freshness")


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
