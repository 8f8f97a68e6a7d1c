"""``recrawl experiment crawl-time``: Table 3 of paper 001 again, on simulated and on recorded crawls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.time import MINUTE
from recrawl_lab.experiments.report_folder import ReportFolder

if TYPE_CHECKING:
    from recrawl.app.result_tables import PlotPanel
    from recrawl_lab.trials.crawl_time_trial import TimedCrawl

EDGES = (0.0, 30.0, 60.0, 120.0, 180.0, 240.0, float("inf"))
"""Minutes that crawls took, as Table 3 groups them."""
GROUPS = ("t < 30 min", "30–60 min", "60–120 min", "120–180 min", "180–240 min", "t > 240 min")
PUBLISHED = (
    ("78 % (202)", "−16 % (154)"),
    ("134 % (25)", "−18 % (46)"),
    ("638 % (19)", "−11 % (51)"),
    ("1.3 % (15)", "−1 % (215)"),
    ("– (0)", "−36 % (4)"),
    ("– (0)", "−44 % (28)"),
)
"""Over- and underestimates of Table 3; they add up to 759 of the 1,388 crawls that the paper speaks of."""
NAMES = {"printed": "001 as printed", "corrected": "001 corrected", "recrawl": "recrawl"}
RECORDED = "recorded crawls"


def run(output: Path, logs: Sequence[Path], *, seed: int, crawls: int) -> None:
    """Evaluate all estimates; write crawl-time.csv, crawl-time.md and crawl-time.png into ``output``."""
    import numpy as np

    from recrawl.app.progress import bars
    from recrawl.app.result_tables import draw_panels
    from recrawl_lab.experiments.crawl_time_logs import evaluate_logs
    from recrawl_lab.trials.crawl_time_trial import evaluate_kind
    from recrawl_lab.trials.simulated_crawls import KINDS

    rng = np.random.default_rng(seed)
    recorded = evaluate_logs(logs, RECORDED, rng) if logs else []
    written = ReportFolder(output)
    judged: list[TimedCrawl] = []
    with bars() as bar:
        for kind in KINDS:
            task = bar.add_task(kind.name, total=crawls)
            judged += evaluate_kind(kind, crawls, rng, progress=lambda task=task: bar.advance(task))  # type: ignore[misc]
    judged += recorded
    written.table("crawl-time.csv", _columns(judged))
    draw_panels(
        written.file("crawl-time.png"),
        [_panel(kind, [one for one in judged if one.kind == kind]) for kind in kinds_of(judged)],
        x_label="minutes that the crawl took, middle of group",
        y_label="error of the estimate, middle half of crawls, %",
        title="How long will a crawl take?",
    )
    written.end("crawl-time.md", report(judged))


def kinds_of(judged: Sequence[TimedCrawl]) -> list[str]:
    """Kinds of crawls in the order of their first crawl."""
    return list(dict.fromkeys(one.kind for one in judged))


def report(judged: Sequence[TimedCrawl]) -> str:
    """How far off each method was and whether the interval held; then Table 3, published and own."""
    from recrawl.app.result_tables import markdown_table
    from recrawl_lab.trials.crawl_time_trial import median_error

    rows = []
    for kind in [*kinds_of(judged), "all"]:
        own = [one for one in judged if kind in (one.kind, "all")]
        errors = [median_error(own, method) for method in NAMES]
        covered = sum(one.covered for one in own) / len(own)
        shares = [f"{errors[2] / error:.2f}" if error else "–" for error in errors[:2]]
        rows.append([kind, f"{len(own)}", *(f"{error:.1%}" for error in errors), *shares, f"{covered:.0%}"])
    headings = ["crawls", "n", *NAMES.values(), "ours / printed", "ours / corrected", "in 90 % interval"]
    parts = [
        "Median distance of the estimate from what the crawl took, as a share of that.",
        markdown_table(headings, rows),
        "Table 3 of paper 001: mean over- and underestimate (number of crawls) by what crawls took.",
        markdown_table(
            [
                "crawl took",
                "published +",
                "published −",
                *(f"{name} {sign}" for name in NAMES.values() for sign in "+−"),
            ],
            [
                [group, *published, *(cell for method in NAMES for cell in _cells(_within(judged, number), method))]
                for number, (group, published) in enumerate(zip(GROUPS, PUBLISHED, strict=True))
            ],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _within(judged: Sequence[TimedCrawl], number: int) -> list[TimedCrawl]:
    return [one for one in judged if EDGES[number] <= one.actual / MINUTE < EDGES[number + 1]]


def _cells(judged: Sequence[TimedCrawl], method: str) -> tuple[str, str]:
    """Mean over- and underestimate, and how many there were."""
    errors = [one.error(method) for one in judged]
    over, under = [error for error in errors if error > 0], [error for error in errors if error <= 0]
    shown = [
        f"{100 * sum(part) / len(part):.1f} % ({len(part)})".replace("-", "−") if part else "– (0)"
        for part in (over, under)
    ]
    return shown[0], shown[1]


def _columns(judged: Sequence[TimedCrawl]) -> dict[str, list[object]]:
    names = ("kind", "actual", *NAMES, "low", "high", "covered")
    return {name: [getattr(one, name) for one in judged] for name in names}


def _panel(kind: str, judged: Sequence[TimedCrawl]) -> PlotPanel:
    import numpy as np

    from recrawl.app.result_tables import PlotLine, PlotPanel

    middles = (15.0, 45.0, 90.0, 150.0, 210.0, 300.0)
    groups = [(middle, _within(judged, number)) for number, middle in enumerate(middles)]
    groups = [(middle, own) for middle, own in groups if own]
    lines = []
    for method, name in NAMES.items():
        quartiles = [100 * np.quantile([abs(one.error(method)) for one in own], [0.25, 0.5, 0.75]) for _, own in groups]
        low, middle, high = np.array(quartiles).T.tolist()
        lines.append(PlotLine(name, [x for x, _ in groups], middle, low, high, ours=method == "recrawl"))
    return PlotPanel(kind, lines)
