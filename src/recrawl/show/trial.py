"""The picture of a trial: what recrawl believed and did, beside what was so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.errors import require
from recrawl.model import FloatArray, IntArray

OURS, OTHER, TRUE = "#1b6ca8", "#9aa5b1", "#d1495b"


@dataclass(frozen=True, slots=True)
class TrialPicture:
    """The columns behind the picture; times in days since the trial began."""

    bin_days: FloatArray
    """Middle of each time bin."""
    fresh: FloatArray
    """Share of pages whose copy was current, per bin."""
    fresh_even: FloatArray
    """The same, had every page been visited equally often."""
    edge_days: FloatArray
    """Edges of the bins: when changes are counted."""
    happened: IntArray
    """Changes that had happened by then."""
    noticed: IntArray
    """Changes that recrawl had noticed by then."""
    true_days: FloatArray
    """True mean days between changes, per page."""
    guessed_days: FloatArray
    """Days between changes that recrawl estimates, per page."""
    low_days: FloatArray
    high_days: FloatArray
    """Ends of its 90 % interval."""
    visits: IntArray
    """How often each page was visited."""
    even_visits: float
    """How often, had every page been visited equally often."""


def draw(picture: TrialPicture, path: Path, title: str) -> None:
    """Write the picture as PNG or SVG, by the ending of ``path``."""
    pyplot: Any = require("matplotlib.pyplot", "plot")
    require("matplotlib", "plot").use("Agg")
    settings = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "recrawl"}
    with pyplot.rc_context(settings):
        figure, axes = pyplot.subplots(2, 2, figsize=(10, 6.4), constrained_layout=True)
        _freshness(axes[0, 0], picture)
        _changes(axes[0, 1], picture)
        _rates(axes[1, 0], picture)
        _effort(axes[1, 1], picture)
        figure.suptitle(title, fontsize=12, fontweight="bold", x=0.01, ha="left")
        figure.savefig(path, dpi=130, metadata={"Date": None} if path.suffix == ".svg" else None)
        pyplot.close(figure)


def _freshness(axis: Any, picture: TrialPicture) -> None:  # noqa: ANN401 - matplotlib ships no types
    axis.plot(picture.bin_days, 100 * picture.fresh_even, color=OTHER, label="every page equally often")
    axis.plot(picture.bin_days, 100 * picture.fresh, color=OURS, linewidth=2, label="recrawl")
    lowest = 10 * np.floor(10 * min(np.nanmin(picture.fresh), np.nanmin(picture.fresh_even)))
    axis.set(title="Copies that are current", xlabel="day", ylabel="% of pages", ylim=(max(0, lowest - 10), 100))
    axis.legend(frameon=False, loc="lower right")


def _changes(axis: Any, picture: TrialPicture) -> None:  # noqa: ANN401 - matplotlib ships no types
    axis.fill_between(picture.edge_days, picture.happened, color=TRUE, alpha=0.25, linewidth=0, label="happened")
    axis.fill_between(
        picture.edge_days, picture.noticed, color=OURS, alpha=0.55, linewidth=0, label="noticed by recrawl"
    )
    axis.set(title="Changes", xlabel="day", ylabel="in all so far", ylim=(0, None))
    axis.legend(frameon=False, loc="upper left")


def _rates(axis: Any, picture: TrialPicture) -> None:  # noqa: ANN401 - matplotlib ships no types
    reach = np.array([picture.guessed_days - picture.low_days, picture.high_days - picture.guessed_days])
    axis.errorbar(
        picture.true_days, picture.guessed_days, yerr=reach, fmt="o", ms=3, color=OURS, ecolor=OURS + "40", elinewidth=1
    )
    ends = np.array([picture.true_days.min(), picture.true_days.max()])
    axis.plot(ends, ends, color=TRUE, linewidth=1, label="exactly right")
    axis.set(title="Days between changes", xlabel="true", ylabel="estimated, with 90 % interval")
    # The interval of a page that was never seen to change reaches beyond any scale: it is cut off.
    axis.set(xscale="log", yscale="log", ylim=(ends[0] / 5, ends[1] * 20))
    axis.legend(frameon=False, loc="upper left")


def _effort(axis: Any, picture: TrialPicture) -> None:  # noqa: ANN401 - matplotlib ships no types
    axis.scatter(picture.true_days, picture.visits, s=10, color=OURS)
    axis.axhline(picture.even_visits, color=OTHER, linewidth=1, label="every page equally often")
    axis.set(
        title="Where the visits went", xlabel="true days between changes", ylabel="visits", xscale="log", ylim=(0, None)
    )
    axis.legend(frameon=False, loc="upper right")
