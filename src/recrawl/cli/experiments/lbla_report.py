"""What ``recrawl experiment lbla`` writes: means over times and draws with intervals, published values beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan
from typing import TYPE_CHECKING

from recrawl.cli.experiments.lbla_numbers import (
    BASELINES,
    CURVE,
    DATA,
    HEADS,
    IMPORTANCE,
    LBLA_ALONE,
    LEARNERS,
    ORDER,
    OURS,
    PERCENTS,
    PRESENCE,
    RATE,
)

if TYPE_CHECKING:
    from recrawl.assess.scores import Interval
    from recrawl.cli.experiments.lbla_numbers import Run
    from recrawl.show.experiments import Panel
    from recrawl.simulate.lbla_splits import Plan

PUBLISHED: dict[tuple[str, str, str], float] = {
    ("internal", "R²", "SP"): 0.50,
    ("internal", "R²", "SP+sem"): 0.65,
    ("internal", "mean error", "SP+sem"): 0.14,
    ("external", "R²", "SP"): 0.45,
    ("internal", "balanced accuracy", "all, history 1"): 0.84,
    ("external", "Spearman LCR", "LCR-ET"): 0.79,
    ("external", "Spearman LCR", "LCR-ET-LBLA"): 0.82,
}
"""What paper 004 says in words, by links, measure and method; its figures have no numbers."""
_TITLES = {
    RATE: "link change rate by features (figures 9 and 10; boosted trees)",
    PRESENCE: "presence of new links by features and history (figure 12; randomised trees)",
    LEARNERS: "learners of presence and number",
    ORDER: "rankings (figure 14; area of Precision@k% of figure 15)",
    HEADS: "laws of the number around its mean (LBLA features)",
    IMPORTANCE: "features needed to foretell presence, found by shuffling (figure 13; boosted trees, all features)",
}
_FURTHEST = 30
"""Per cent of the pages, in the picture."""
_LOOKING = ("learned", "as in the last period")
_NOTE = (
    "Learned from {learned:,.0f} examples of four times, one period of {period} apart, and judged on {judged:,.0f} "
    "pages of {sites:.0f} sites: means of {runs}, at {times} with {draws} of what is judged. In the "
    "period that followed, {internal:.1%} of the pages had new internal links and {external:.1%} new external ones; "
    "in a week of the paper it was 25 to 32 % and 6 to 9 %. Of the truly related pages {related:.1%} were found."
)


def columns(runs: Sequence[Run]) -> dict[str, list[object]]:
    """Every number of every run, for a table."""
    from recrawl.time import to_iso

    rows = [
        (
            to_iso(run.at)[:10],
            run.draw,
            run.split,
            *one[:4],
            f"{one.value:.6g}",
            PUBLISHED.get((one.links, one.measure, one.method)),
        )
        for run in runs
        for one in run.numbers
    ]
    headings = ("at", "draw", "split", "links", "table", "method", "measure", "here", "published")
    return {name: [row[place] for row in rows] for place, name in enumerate(headings)}


def report(runs: Sequence[Run], plan: Plan) -> str:
    """A section for each split, with a table for each figure and kind of links."""
    parts = []
    for split in dict.fromkeys(run.split for run in runs):
        found = _Means([run for run in runs if run.split == split])
        against = [found.against()] if found.methods("internal", ORDER) else []
        parts += [f"## {split.capitalize()}", found.note(plan), *against, *found.tables()]
    return "\n\n".join(["# New links foretold", *parts]) + "\n"


def precision_panels(runs: Sequence[Run]) -> list[Panel]:
    """Precision@k% of the rankings by number, for each split and kind of links."""
    from recrawl.show.experiments import Line, Panel

    panels = []
    for title, found, links in _each(runs):
        lines = []
        # Further down the list pages without new links tie, and every ranking is as good as chance.
        drawn = [percent for percent in PERCENTS if percent <= _FURTHEST]
        for method in found.methods(links, CURVE):
            at = [found.of(links, CURVE, method, f"{percent}%") for percent in drawn]
            means, low, high = ([one[place] for one in at] for place in range(3))
            lines.append(Line(method, drawn, means, low, high, ours=method == OURS))
        panels.append(Panel(title, lines))
    return panels


def history_panels(runs: Sequence[Run]) -> list[Panel]:
    """Balanced accuracy by history, for each split and kind of links."""
    from recrawl.show.experiments import Line, Panel

    panels = []
    for title, found, links in _each(runs):
        sizes = found.histories(links)
        learned = [found.of(links, PRESENCE, f"all, history {size}", "balanced accuracy") for size in sizes]
        before = found.of(links, PRESENCE, "as in the last period (NNL-Pr)", "balanced accuracy")
        lines = []
        for name, at in zip(_LOOKING, (learned, [before] * len(sizes)), strict=True):
            means, low, high = ([one[place] for one in at] for place in range(3))
            lines.append(Line(name, sizes, means, low, high, ours=name == _LOOKING[0]))
        panels.append(Panel(title, lines))
    return panels


def _each(runs: Sequence[Run]) -> Iterable[tuple[str, _Means, str]]:
    for split in dict.fromkeys(run.split for run in runs):
        found = _Means([run for run in runs if run.split == split])
        yield from ((f"{split}: {links}", found, links) for links in ("internal", "external"))


class _Means:
    """The numbers of one split over all runs; intervals come from resampling whole times."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self._values: dict[tuple[str, str, str, str], list[tuple[float, float]]] = {}
        for run in runs:
            for one in run.numbers:
                if not isnan(one.value):
                    self._values.setdefault(one[:4], []).append((run.at, one.value))

    def of(self, links: str, table: str, method: str, measure: str) -> Interval:
        """A mean with its interval; NaN where nothing was measured."""
        import numpy as np

        from recrawl.assess.scores import mean_with_interval

        told = self._values.get((links, table, method, measure), [])
        values, times = np.array([value for _, value in told]), np.array([time for time, _ in told])
        return mean_with_interval(values, times, np.random.default_rng(1))

    def methods(self, links: str, table: str) -> list[str]:
        """Those of a table, in its order."""
        return list(dict.fromkeys(key[2] for key in self._values if key[:2] == (links, table)))

    def histories(self, links: str) -> list[int]:
        """Sizes of history that were tried."""
        start = "all, history "
        names = {key[2] for key in self._values if key[:2] == (links, PRESENCE) and key[2].startswith(start)}
        return sorted(int(name.removeprefix(start)) for name in names)

    def note(self, plan: Plan) -> str:
        """What was learned from and judged."""
        from recrawl.model.words import counted
        from recrawl.time import format_duration

        told = {measure: self.of("internal", DATA, "all", measure).mean for measure in _MEASURED}
        share = {links: self.of(links, DATA, "all", "share with new links").mean for links in ("internal", "external")}
        times = {run.at for run in self.runs}
        return _NOTE.format(
            **{_MEASURED[measure]: value for measure, value in told.items()},
            **share,
            period=format_duration(plan.period),
            runs=counted(len(self.runs), "run"),
            times=counted(len(times), "time"),
            draws=counted(plan.draws, "draw"),
        )

    def against(self) -> str:
        """How far LBLA features alone are ahead of one feature, and in how many runs they do not lose."""
        from recrawl.show.experiments import markdown_table

        rows = []
        for links in ("internal", "external"):
            for method in [one for one in self.methods(links, ORDER) if one in LBLA_ALONE]:
                cells = []
                for baseline in BASELINES:
                    measure = f"area NNL over {baseline}"
                    told = [value for _, value in self._values[links, ORDER, method, measure]]
                    mean, low, high = self.of(links, ORDER, method, measure)
                    held = sum(value >= 0 for value in told)
                    interval = "" if len(told) == 1 else f" ({low:+.4f} to {high:+.4f})"  # one run has none
                    cells.append(f"{mean:+.4f}{interval}, {held} of {len(told)}")
                rows.append([f"{method}, {links}", *cells])
        head = ["area of Precision@k% over …", *BASELINES]
        difference = "the difference" if len(self.runs) == 1 else "the difference with its interval"
        words = f"LBLA features alone against one feature: {difference}, and the runs not lost."
        return f"{words}\n\n{markdown_table(head, rows)}"

    def tables(self) -> Iterable[str]:
        """A table for each figure and kind of links; where the paper gives a number it stands behind ours."""
        from recrawl.show.experiments import markdown_table

        for links, table in dict.fromkeys(key[:2] for key in self._values):
            if table in {DATA, CURVE}:
                continue
            here = [key for key in self._values if key[:2] == (links, table)]
            measures = [one for one in dict.fromkeys(key[3] for key in here) if one not in _LEFT_OUT]
            methods = self._needed(here) if table == IMPORTANCE else self.methods(links, table)
            rows = [[method, *(self._shown(links, table, method, one) for one in measures)] for method in methods]
            yield f"### {links.capitalize()} links: {_TITLES[table]}\n\n" + markdown_table(["method", *measures], rows)

    def _needed(self, here: list[tuple[str, str, str, str]]) -> list[str]:
        """The ten most needed features, the most needed first."""
        total = {key[2]: sum(value for _, value in self._values[key]) for key in here}
        return sorted(total, key=lambda name: -total[name])[:10]

    def _shown(self, links: str, table: str, method: str, measure: str) -> str:
        mean, low, high = self.of(links, table, method, measure)
        if isnan(mean):
            return "–"
        published = PUBLISHED.get((links, measure, method))
        shown = f"{mean:.3f}" if low == high else f"{mean:.3f} ({low:.3f}–{high:.3f})"
        return shown if published is None else f"{shown}, published {published:.2f}"


_MEASURED = {
    "examples to learn from": "learned",
    "pages judged": "judged",
    "sites judged": "sites",
    "recall of related pages": "related",
}
_LEFT_OUT = {"area LCR", "area NL", "precision", "recall", *(f"area NNL over {one}" for one in BASELINES)}
"""Measures that are only in the table of all numbers."""
