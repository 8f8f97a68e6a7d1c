"""Comparisons of policies that the dashboard asks for: ``recrawl compare`` in a process of its own, and kept."""

from __future__ import annotations

import csv
import json
import math
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from recrawl.cli.serving.children import Child, in_workspace
from recrawl.errors import ConfigError
from recrawl.show.dashboard.policies import Standing

if TYPE_CHECKING:
    from recrawl.cli.workspace import Workspace

FOLDER, KEPT, TABLE = "compare", "compare.json", "compare.csv"


class CompareProcess:
    """Compares policies on the past of a workspace, one comparison at a time. What came out is kept beside the reports.

    May be asked by many threads at once.
    """

    def __init__(self, place: Workspace, clock: Callable[[], float], options: Sequence[str] = ()) -> None:
        """``options`` are more words for ``recrawl compare``."""
        self._options = list(options)
        self._folder = place.reports / FOLDER
        self._where = in_workspace(place.folder, place.flags)
        self._clock = clock
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._error = ""

    def begin(self, budget: float | None) -> None:
        """Begin a comparison, at so many visits a day."""
        options = [f"--output={self._folder}", "--json", "--jobs=1", *self._options]
        if budget is not None:
            options.append(f"--budget={budget!r}")
        with self._lock:
            self._take_over()
            if self._child is not None:
                raise ConfigError("A comparison runs already.", "Wait for its end, or stop it.")
            self._error = ""
            self._child = Child(["compare", *self._where, *options], self._clock())

    def stop(self) -> bool:
        """End the comparison that runs; false if none does."""
        with self._lock:
            self._take_over()
            if self._child is None:
                return False
            self._child.end()
            self._child = None
            return True

    def standing(self) -> Standing:
        """What the latest comparison found, and whether another one is under way."""
        with self._lock:
            self._take_over()
            since = None if self._child is None else self._child.started
            return Standing(self._kept(), since, self._error)

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
            self._error = child.last_words() or "The comparison ended without a word."
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
