"""``recrawl experiment datamonitor``: recall and precision of adaptive rescheduling, figures 4 to 6 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.errors import InputError
from recrawl.time import DAY
from recrawl_lab.experiments.report_folder import ReportFolder

if TYPE_CHECKING:
    from recrawl.app.result_tables import PlotPanel
    from recrawl_lab.trials.datamonitor_trial import StrategyOutcome

THREE_YEARS = 3 * 365
"""Days of a record in the paper."""
_SHOWN = ("all", "7d > λ > 2d", "6m > λ > 4m")
"""The classes of figures 4, 5 and 6."""


def run(data: Path, output: Path, *, seed: int, days: int) -> None:
    """Try all strategies on each data set; write datamonitor.csv, datamonitor.md and a plot a data set."""
    import numpy as np

    from recrawl.app.compare.benchmark_runs import collections, find_datasets
    from recrawl.app.progress import bars
    from recrawl.app.result_tables import draw_panels
    from recrawl_lab.trials.datamonitor_trial import STRATEGIES, documents, try_strategy

    written = ReportFolder(output)
    found: dict[str, list[StrategyOutcome]] = {}
    folders = find_datasets(data)
    with bars() as bar:
        task = bar.add_task("strategies", total=len(folders) * len(STRATEGIES))
        for folder in folders:
            rng = np.random.default_rng(seed)
            try:
                drawn = documents(collections(folder), rng, length=days * DAY)
            except ValueError as error:
                raise InputError(
                    str(error),
                    "Give a shorter time with --days, or take a data set with longer records.",
                    source=str(folder),
                ) from None
            found[folder.name] = []
            for name in STRATEGIES:
                found[folder.name] += try_strategy(drawn, name, rng)
                bar.advance(task)
    for name, outcomes in found.items():
        draw_panels(
            written.file(f"datamonitor-{name}.png"),
            _panels(outcomes),
            x_label="year of the record" if days == THREE_YEARS else "third of the record",
            y_label="share",
            title=f"Recall and precision of adaptive rescheduling: {name}",
            even=True,
        )
    written.table("datamonitor.csv", _columns(found))
    written.end("datamonitor.md", _report(found, days))


def _columns(found: dict[str, list[StrategyOutcome]]) -> dict[str, list[object]]:
    rows: list[dict[str, object]] = [
        {
            "data": data,
            "class": one.kind,
            "strategy": one.strategy,
            "year": one.year or "all",
            "documents": one.documents,
            "changes": one.changes,
            "downloads": one.downloads,
            "observed": one.observed,
            **{f"recall{end}": value for end, value in zip(("", "_low", "_high"), one.recall, strict=True)},
            **{f"precision{end}": value for end, value in zip(("", "_low", "_high"), one.precision, strict=True)},
        }
        for data, outcomes in found.items()
        for one in outcomes
    ]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _report(found: dict[str, list[StrategyOutcome]], days: int) -> str:
    """A section a data set: recall and precision by class, then what the paper says beside what is so here."""
    from recrawl.app.result_tables import markdown_table
    from recrawl_lab.trials.datamonitor_trial import ALL, CLASSES, STRATEGIES

    parts = []
    for data, outcomes in found.items():
        at = {(one.strategy, one.kind): one for one in outcomes if one.year == 0}
        kinds = [kind for kind in (ALL, *CLASSES) if at[STRATEGIES[0], kind].documents]
        counts = ["documents", *(f"{at[STRATEGIES[0], kind].documents:,}" for kind in kinds)]
        rows = [
            [name, *(f"{at[name, kind].recall.mean:.3f} / {at[name, kind].precision.mean:.3f}" for kind in kinds)]
            for name in STRATEGIES
        ]
        parts += [
            f"## {data}",
            f"Recall / precision over {_length(days)}, by mean time between changes (Table 2).",
            markdown_table(["strategy", *kinds], [*rows, counts]),
            "What the paper reads off its figures (which print no numbers), and what is so here.",
            markdown_table(["the paper", "here", "figures here"], _claims(outcomes)),
        ]
    return "\n\n".join(parts) + "\n"


def _length(days: int) -> str:
    return "three years" if days == THREE_YEARS else f"{days:,} days; the years of the paper are thirds of this time"


def _claims(outcomes: Sequence[StrategyOutcome]) -> list[list[str]]:
    """Each claim of §4.3 with a verdict and the numbers it rests on."""
    at = {(one.strategy, one.kind, one.year): one for one in outcomes}

    def recall(name: str, kind: str = "all") -> float:
        return at[name, kind, 0].recall.mean

    def precision(name: str, kind: str = "all", year: int = 0) -> float:
        return at[name, kind, year].precision.mean

    adaptive = ("fix", "dyn", "window", "state-1", "state-2")
    everyone = (*adaptive, "week")
    steps, chains = ("fix", "dyn"), ("state-1", "state-2")
    hot, cold = _SHOWN[1:]
    later = [name for name in adaptive if precision(name, year=3) > precision(name, year=1)]
    claims = [
        ("Fig. 4: week has the best recall", max(everyone, key=recall) == "week", [("week", recall("week"))]),
        ("Fig. 4: week has the worst precision", min(everyone, key=precision) == "week", [("week", precision("week"))]),
        (
            "Fig. 4: state-1 and state-2 are second in recall",
            min(map(recall, chains)) > max(map(recall, (*steps, "window"))),
            [(name, recall(name)) for name in (*chains, *steps)],
        ),
        (
            "Fig. 4: window trades recall for precision",
            min(adaptive, key=recall) == "window" and max(adaptive, key=precision) == "window",
            [("recall", recall("window")), ("precision", precision("window"))],
        ),
        (
            "Fig. 4: precision grows over the years",
            len(later) == len(adaptive),
            [(name, precision(name, year=3) - precision(name, year=1)) for name in adaptive],
        ),
        (
            "Fig. 5: state-1 and state-2 are close to gold",
            all(abs(recall(name, hot) - recall("gold", hot)) < _CLOSE for name in chains),
            [(name, recall(name, hot)) for name in (*chains, "gold")],
        ),
        (
            "Fig. 6: window is close to gold",
            abs(recall("window", cold) - recall("gold", cold)) < _CLOSE,
            [(name, recall(name, cold)) for name in ("window", "gold")],
        ),
        (
            "Fig. 6: state-1 and state-2 have better recall and worse precision than fix and dyn",
            min(recall(name, cold) for name in chains) > max(recall(name, cold) for name in steps)
            and max(precision(name, cold) for name in chains) < min(precision(name, cold) for name in steps),
            [(name, recall(name, cold)) for name in (*chains, *steps)],
        ),
    ]
    return [[claim, *_answer(holds, figures)] for claim, holds, figures in claims]


def _answer(holds: object, figures: Sequence[tuple[str, float]]) -> tuple[str, str]:
    """Whether a claim holds, and by what; neither, if no document is of that class."""
    if any(isnan(value) for _, value in figures):
        return "not known", "no such documents"
    return "yes" if holds else "no", ", ".join(f"{name} {value:.3f}" for name, value in figures)


_CLOSE = 0.1
"""What counts as close, of a share."""


def _panels(outcomes: Sequence[StrategyOutcome]) -> list[PlotPanel]:
    """Recall and precision by year, for the classes of the figures."""
    from recrawl.app.result_tables import PlotLine, PlotPanel
    from recrawl_lab.trials.datamonitor_trial import STRATEGIES, YEARS

    years = range(1, YEARS + 1)
    at = {(one.strategy, one.kind, one.year): one for one in outcomes}
    panels = []
    for kind in _SHOWN:
        for metric in ("recall", "precision"):
            lines = []
            for name in STRATEGIES:
                means, lows, highs = zip(*(getattr(at[name, kind, year], metric) for year in years), strict=True)
                lines.append(PlotLine(name, [float(year) for year in years], means, lows, highs, ours=name == "gold"))
            panels.append(PlotPanel(f"{metric}, {kind}", lines))
    return panels
