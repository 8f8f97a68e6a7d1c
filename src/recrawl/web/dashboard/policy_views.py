"""Policies compared on the past of this workspace: what others would have made of the same visits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

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
