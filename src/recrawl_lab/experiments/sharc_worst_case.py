"""``recrawl experiment sharc-worst-case``: what pages found too late cost at worst (SHARC Theorem 4.5, Figure 4.4)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recrawl.assess.blur_coherence import capture_blur, worst_case_increase
from recrawl.capture.single_visit import organ_pipes
from recrawl.model import FloatArray
from recrawl_lab.experiments.report_folder import ReportFolder
from recrawl_lab.sharc_plots import Curve, CurvePanel, draw_curves

SKEWS = (0.0, 1.0, 2.0, 3.0)
SIZES = (10, 100, 1_000)
USUAL_SKEW, USUAL_SIZE = 1.0, 102
"""The figure has n = 101, that is 102 pages."""
SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Misplaced pages, as a share of all."""


@dataclass(frozen=True, slots=True)
class WorstCase:
    """One point of a curve."""

    skew: float
    pages: int
    misplaced: int
    best: float
    """Blur of the best order, per page."""
    increase: float
    """What the worst order of N misplaced pages adds, per page."""

    @property
    def relative(self) -> float:
        """The increase in units of the best blur."""
        return self.increase / self.best


def pair_rates(pages: int, skew: float) -> FloatArray:
    """The rates of the figure: 100/i^skew for the i-th pair of pages, i = 1, 2, … (reading 003.12).

    >>> pair_rates(4, 1.0).tolist()
    [100.0, 100.0, 50.0, 50.0]
    """
    return np.asarray(100.0 / (np.arange(pages, dtype=np.float64) // 2.0 + 1.0) ** skew, np.float64)


def worst_cases(pages: int, skew: float) -> list[WorstCase]:
    """A curve: more and more of the pages of one site are misplaced. One second between requests."""
    rate, length = pair_rates(pages, skew), float(pages - 1)
    best = capture_blur(rate, organ_pipes(rate).visit_times(0.0, 1.0), 0.0, length) / pages
    misplaced = dict.fromkeys(2 * round(share * pages / 2.0) for share in SHARES)
    return [
        WorstCase(skew, pages, count, best, worst_case_increase(rate, count, 1.0) / length / pages)
        for count in misplaced
    ]


def run(output: Path) -> None:
    """Write sharc-worst-case.csv, .md and .png into ``output``."""
    from recrawl.app.result_tables import markdown_table

    written = ReportFolder(output)
    by_skew = {skew: worst_cases(USUAL_SIZE, skew) for skew in SKEWS}
    by_size = {size: worst_cases(size, USUAL_SKEW) for size in SIZES}
    found = [one for curve in (*by_skew.values(), *by_size.values()) for one in curve]
    names = ("skew", "pages", "misplaced", "best", "increase", "relative")
    written.table("sharc-worst-case.csv", {name: [getattr(one, name) for one in found] for name in names})
    tables = []
    for title, curves in (
        (f"By skew, {USUAL_SIZE} pages (Figure 4.4a)", [(f"skew {skew:g}", curve) for skew, curve in by_skew.items()]),
        (
            f"By size, skew {USUAL_SKEW:g} (Figure 4.4b)",
            [(f"{size:,} pages", curve) for size, curve in by_size.items()],
        ),
    ):
        rows = [[name, f"{curve[0].best:.4g}", *(_cell(curve, share) for share in SHARES)] for name, curve in curves]
        head = ["", "best blur", *(f"{share:.0%}" for share in SHARES)]
        tables.append(f"## {title}\n\n{markdown_table(head, rows)}")
    panels = [
        CurvePanel(title, "misplaced pages", [_curve(name, curve) for name, curve in curves])
        for title, curves in (
            (f"by skew, {USUAL_SIZE} pages", [(f"skew {skew:g}", curve) for skew, curve in by_skew.items()]),
            (f"by size, skew {USUAL_SKEW:g}", [(f"{size:,} pages", curve) for size, curve in by_size.items()]),
        )
    ]
    draw_curves(
        written.file("sharc-worst-case.png"),
        panels,
        columns=2,
        y_label="blur per page, in units of the best order",
        title="Blur if pages are misplaced as badly as possible",
    )
    written.end("sharc-worst-case.md", "\n\n".join([_NOTE, *tables]) + "\n")


def _cell(curve: list[WorstCase], share: float) -> str:
    """The relative increase where this share of the pages is misplaced."""
    point = min(curve, key=lambda one: abs(one.misplaced - share * one.pages))
    return f"+{point.relative:.1%}"


def _curve(name: str, curve: list[WorstCase]) -> Curve:
    share = [one.misplaced / one.pages for one in curve]
    return Curve(name, share, [1.0 + one.relative for one in curve], [None] * len(curve))


_NOTE = """\
Blur a page of the best order at one second between requests, and by how much it grows at worst if a share of the pages,
the hottest, takes the outermost slots."""
