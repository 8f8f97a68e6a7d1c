"""The result of ``recrawl demo`` as tables and a plot: what recrawl did and estimated, compared with the truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.errors import require
from recrawl.model import FloatArray, IntArray

if TYPE_CHECKING:
    from rich.console import Console

    from recrawl.model import Belief, FloatArray, IntArray
    from recrawl_testweb.demo.demo_capture import DemoCapture
    from recrawl_testweb.virtual_trial import TrialResult


OURS, OTHER, TRUE = "#1b6ca8", "#9aa5b1", "#d1495b"


@dataclass(frozen=True, slots=True)
class TrialPlot:
    """The columns behind the plot; times in days since the trial started."""

    bin_days: FloatArray
    """Middle of each time bin."""
    fresh: FloatArray
    """Share of pages whose copy was current, per bin."""
    fresh_even: FloatArray
    """The same with uniform revisits."""
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
    """Ends of its 90% interval."""
    visits: IntArray
    """How often each page was visited."""
    even_visits: float
    """Visits per page with uniform revisits."""


def draw(plot: TrialPlot, path: Path, title: str) -> None:
    """Write the plot as PNG or SVG, by the ending of ``path``."""
    pyplot: Any = require("matplotlib.pyplot", "plot")
    require("matplotlib", "plot").use("Agg")
    settings = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "recrawl"}
    with pyplot.rc_context(settings):
        figure, axes = pyplot.subplots(2, 2, figsize=(10, 6.4), constrained_layout=True)
        _freshness(axes[0, 0], plot)
        _changes(axes[0, 1], plot)
        _rates(axes[1, 0], plot)
        _effort(axes[1, 1], plot)
        figure.suptitle(title, fontsize=12, fontweight="bold", x=0.01, ha="left")
        figure.savefig(path, dpi=130, metadata={"Date": None} if path.suffix == ".svg" else None)
        pyplot.close(figure)


def _freshness(axis: Any, plot: TrialPlot) -> None:  # noqa: ANN401 - matplotlib ships no types
    axis.plot(plot.bin_days, 100 * plot.fresh_even, color=OTHER, label="uniform revisits")
    axis.plot(plot.bin_days, 100 * plot.fresh, color=OURS, linewidth=2, label="recrawl")
    lowest = 10 * np.floor(10 * min(np.nanmin(plot.fresh), np.nanmin(plot.fresh_even)))
    axis.set(title="Freshness: current copies", xlabel="day", ylabel="% of pages", ylim=(max(0, lowest - 10), 100))
    axis.legend(frameon=False, loc="lower right")


def _changes(axis: Any, plot: TrialPlot) -> None:  # noqa: ANN401 - matplotlib ships no types
    axis.fill_between(plot.edge_days, plot.happened, color=TRUE, alpha=0.25, linewidth=0, label="happened")
    axis.fill_between(plot.edge_days, plot.noticed, color=OURS, alpha=0.55, linewidth=0, label="found by recrawl")
    axis.set(title="Changes", xlabel="day", ylabel="total so far", ylim=(0, None))
    axis.legend(frameon=False, loc="upper left")


def _rates(axis: Any, plot: TrialPlot) -> None:  # noqa: ANN401 - matplotlib ships no types
    reach = np.array([plot.guessed_days - plot.low_days, plot.high_days - plot.guessed_days])
    axis.errorbar(
        plot.true_days, plot.guessed_days, yerr=reach, fmt="o", ms=3, color=OURS, ecolor=OURS + "40", elinewidth=1
    )
    ends = np.array([plot.true_days.min(), plot.true_days.max()])
    axis.plot(ends, ends, color=TRUE, linewidth=1, label="estimated = true")
    axis.set(title="Days between changes", xlabel="true", ylabel="estimated, 90% interval")
    # The interval of a page that was never seen to change reaches beyond any scale: it is cut off.
    axis.set(xscale="log", yscale="log", ylim=(ends[0] / 5, ends[1] * 20))
    axis.legend(frameon=False, loc="upper left")


def _effort(axis: Any, plot: TrialPlot) -> None:  # noqa: ANN401 - matplotlib ships no types
    axis.scatter(plot.true_days, plot.visits, s=10, color=OURS)
    axis.axhline(plot.even_visits, color=OTHER, linewidth=1, label="uniform revisits")
    axis.set(title="Visits per page", xlabel="true days between changes", ylabel="visits", xscale="log", ylim=(0, None))
    axis.legend(frameon=False, loc="upper right")


LAWS = {
    "data": "changes at random (Poisson)",
    "office": "changes in working hours",
    "news": "changes in bursts",
}
"""How the hosts of the test web change."""
PAGES_SHOWN = 8


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What was asked for, and what came of it."""

    ours: TrialResult
    even: TrialResult
    """The same web crawled with as many visits, but uniform revisits."""
    page: IntArray
    """Pages of ``ours`` that were seen twice: robots.txt forbids some."""
    url: list[str]
    """Of these pages."""
    rate: FloatArray
    """Their true rates, changes per second."""
    belief: Belief
    """What recrawl believes of them in the end."""
    told: tuple[FloatArray, FloatArray, FloatArray]
    """The rate that recrawl rates says of each, and the ends of its 90% interval, changes per second."""
    price: float | None
    """Seconds of freshness that a visit had to gain at the end: the threshold."""
    capture: DemoCapture
    """One of its sites, captured whole afterwards."""


def plot_of(result: DemoResult) -> TrialPlot:
    """What is drawn of it."""
    import numpy as np

    from recrawl.time import DAY

    ours, (middle, low, high) = result.ours, result.told
    edges = (ours.edges - ours.start) / DAY
    first, behind = (np.searchsorted(ours.visits.page, result.page, side) for side in ("left", "right"))
    return TrialPlot(
        bin_days=(edges[1:] + edges[:-1]) / 2,
        fresh=ours.fresh.fresh,
        fresh_even=result.even.fresh.fresh,
        edge_days=edges,
        happened=ours.happened,
        noticed=ours.noticed,
        true_days=1 / (result.rate * DAY),
        guessed_days=1 / (middle * DAY),
        low_days=1 / (high * DAY),
        high_days=1 / (low * DAY),
        visits=behind - first,
        even_visits=len(result.even.visits) / max(len(result.even.page), 1),
    )


def print_table(result: DemoResult, console: Console) -> None:
    """Print the results, one figure per line."""
    from rich.table import Table

    table = Table(title="Results, compared with the truth", title_justify="left", box=None, show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right", style="cyan")
    table.add_column()
    for row in _rows(result):
        table.add_row(*row)
    console.print()
    console.print(table)


def _rows(result: DemoResult) -> list[tuple[str, str, str]]:
    """Name, figure and explanation of everything worth knowing."""
    import numpy as np

    from recrawl.assess.rate_errors import coverage, rate_error
    from recrawl.model import ANSWERED, Outcome
    from recrawl.time import DAY, format_duration

    ours, even, changes = result.ours, result.even, result.ours.changes
    visits, days = ours.visits, (ours.end - ours.start) / DAY
    error = rate_error(result.told[0], result.rate)
    covered = coverage(result.belief, result.rate, np.array([0.9]))[0]
    alarms = changes.detections - changes.true_detections
    seen, even_seen = changes.alone + changes.merged, even.changes.true_detections
    return [
        ("pages found", f"{len(ours.page):,}", f"of {ours.pages_there:,} on the test web"),
        ("visits", f"{len(visits):,}", f"{len(visits) / days:.0f} a day; {len(ours.requests):,} requests in total"),
        ("  not modified (304)", f"{(visits.outcome == Outcome.NOT_MODIFIED).sum():,}", "no content transferred"),
        ("  failed or refused", f"{(visits.outcome > ANSWERED).sum():,}", "errors, truncated responses, robots.txt"),
        ("changes of the pages", f"{changes.total:,}", ""),
        ("  found", f"{seen:,}", f"{changes.alone:,} one by one, {changes.merged:,} together with others"),
        ("  missed", f"{changes.overlooked:,}", "mostly due to wrong server validators"),
        ("  not observable", f"{changes.before + changes.pending:,}", "before the first visit or after the last"),
        ("visits that found a change", f"{changes.true_detections:,}", f"{even_seen:,} with uniform revisits"),
        ("false positives", f"{alarms:,}", "noise classified as a change"),
        (
            "freshness",
            _percent(ours.fresh.mean_fresh),
            f"{_percent(even.fresh.mean_fresh)} with uniform revisits",
        ),
        ("error of estimated rates", f"× {error.median_factor:.1f}", "median factor between estimate and truth"),
        ("true rate in 90% interval", _percent(covered), "of pages"),
        *_coverage_by_host(result),
        (
            "threshold (shadow price)",
            format_duration(result.price or float("nan")),
            "of freshness per visit at the end",
        ),
    ]


def _coverage_by_host(result: DemoResult) -> list[tuple[str, str, str]]:
    """The same for each host: intervals promise to cover where changes come by chance, and bursts break the promise."""
    import numpy as np

    from recrawl.assess.rate_errors import coverage

    host = np.array([url.partition("://")[2].partition(".")[0] for url in result.url])
    rows = []
    for name, law in LAWS.items():
        pages = np.flatnonzero(host == name)
        covered = coverage(result.belief.take(pages), result.rate[pages], np.array([0.9]))[0]
        rows.append((f"  {name}", _percent(covered), law))
    return rows


def print_rates(result: DemoResult, console: Console) -> None:
    """Some pages, from the one that changes most often to the one that changes least: the truth and the estimate."""
    import numpy as np
    from rich.table import Table

    from recrawl.app.rates.rates_table import in_words
    from recrawl.time import format_duration

    order = np.argsort(-result.rate, kind="stable")
    chosen = order[np.linspace(0, len(order) - 1, min(PAGES_SHOWN, len(order))).astype(int)]
    middle, low, high = (column[chosen] for column in result.told)
    rows = []
    for row, times in zip(chosen.tolist(), np.stack([1 / middle, 1 / high, 1 / low]).T.tolist(), strict=True):
        true = 1 / float(result.rate[row])
        host, _, path = result.url[row].partition("://")[2].partition("/")
        mark = "" if times[1] <= true <= times[2] else " ×"
        rows.append((f"{host.partition('.')[0]}/{path}", format_duration(true), in_words(*times) + mark))
    title = "\nTime between changes of some pages (×: the true value is outside the interval)"
    table = Table(title=title, title_justify="left", box=None)
    _, true_column, words_column = zip(*rows, strict=True)
    others = [("true", max(map(len, true_column))), ("estimated, 90% interval", max(map(len, words_column)))]
    room = console.width - sum(width for _, width in others) - 2 * (len(others) + 1)
    table.add_column("page", no_wrap=True, overflow="ellipsis", max_width=max(room, 12))
    for heading, width in others:
        table.add_column(heading, no_wrap=True, min_width=width)
    for cells in rows:
        table.add_row(*cells)
    console.print(table)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"
