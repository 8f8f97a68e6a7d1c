"""Policies compared on the past of this workspace: what others would have made of the same visits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from recrawl.show.dashboard.routes import Action, Answer, Asked, Done, Parameter, RefusedError, View
from recrawl.show.report.section import Figure

_HERE = "/policies"
_PANELS = {"recall": "Changes caught", "freshness": "Copies that are current"}


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known about policies, and whether more is being found out."""

    found: Mapping[str, Any] | None
    """What ``recrawl compare --json`` said, with ``budgets``: a row for each policy and budget; and ``made``: when."""
    running_since: float | None
    """When the comparison began that is under way, seconds since the epoch; ``None`` if none is."""
    error: str = ""
    """Why the last one found nothing."""


class Comparisons(Protocol):
    """Who compares policies."""

    def begin(self, budget: float | None) -> None:
        """Begin a comparison, at so many visits a day; as many as were made if that is ``None``."""
        ...

    def stop(self) -> bool:
        """End the comparison that runs; false if none does."""
        ...

    def standing(self) -> Standing:
        """What is known, and whether a comparison is under way."""
        ...


def policies_views(comparisons: Comparisons) -> list[View]:
    """The page about policies."""

    def compared(_asked: Asked) -> Answer:
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
            "What other policies would have made of the same visits, on this workspace's own past.",
            compared,
            "dashboard/policies.html",
            keys={
                "running_since": "When the comparison began that is under way, seconds since the epoch, or null.",
                "error": "Why the last comparison found nothing; empty if it did.",
                "found": "What the latest comparison found, as recrawl compare --json says it; null if there was none.",
                "figures": "What is drawn of it.",
            },
            menu="Policies",
        )
    ]


def policies_actions(comparisons: Comparisons) -> list[Action]:
    """What can be done about policies."""

    def begin(asked: Asked) -> Done:
        comparisons.begin(asked["budget"])
        return Done("The comparison begins.", _HERE)

    def stop(_asked: Asked) -> Done:
        if not comparisons.stop():
            raise RefusedError("No comparison runs.", "Begin one.", status=409)
        return Done("The comparison was stopped.", _HERE)

    budget = Parameter(
        "budget", "Visits a day; as many as were made if left out.", "number", least=0.001, most=1e12, place="form"
    )
    return [
        Action("/actions/policies/compare", "Compare policies on the past of this workspace.", begin, (budget,)),
        Action("/actions/policies/stop", "Stop the comparison that runs.", stop),
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
