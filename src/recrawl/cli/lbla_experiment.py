"""``recrawl experiment lbla``: who will have new links? Figures 9 to 15 of paper 004, on recorded pages."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

if TYPE_CHECKING:
    from recrawl.simulate.lbla_splits import Plan, Split

PUBLISHED: dict[tuple[str, str, str], float] = {
    ("internal", "R²", "SP"): 0.50,
    ("internal", "R²", "SP+sem"): 0.65,
    ("internal", "mean error", "SP+sem"): 0.14,
    ("external", "R²", "SP"): 0.45,
    ("external", "Spearman LCR", "LCR-ET"): 0.79,
    ("external", "Spearman LCR", "LCR-ET-LBLA"): 0.82,
}
"""What paper 004 says in words, by links, measure and method; its figures have no numbers."""
_NOTE = """\
Learned from {trained:,} examples of {times} times, one period of {period} apart; judged on {tested:,} pages of {sites}
sites as of {at}. In the period that followed, {internal:.1%} of them had new internal links and {external:.1%} new
external ones; in a week of the paper it was 25 to 32 % and 6 to 9 %."""
_FOREWORD = """\
The data differ: the paper has 384,323 pages of the open web, crawled weekly, and parts them at random within the week
it foretells. Here pages are sources kept in git, without menus and advertisements, and the past foretells the future;
bulk edits do not count. Compare the order of the methods, not the numbers. Rates of related pages are over the past
alone (reading 004.2), ties are resolved exactly (reading 004.5)."""


class Number(NamedTuple):
    """One result."""

    links: str
    table: str
    method: str
    measure: str
    value: float


def run(data: Path, output: Path, plan: Plan) -> None:
    """Compare learners, feature sets and baselines; write lbla.md and lbla.csv into ``output``."""
    from rich.console import Console
    from rich.progress import Progress

    from recrawl.cli.link_data import link_data
    from recrawl.errors import InputError
    from recrawl.show.experiments import write_csv
    from recrawl.simulate.lbla_splits import HISTORIES, TRAINED, splits

    output.mkdir(parents=True, exist_ok=True)
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)
        told = link_data(data)
        bar.update(task, description="features", total=len(HISTORIES) * (TRAINED + 1))
        found = splits(told, plan, progress=lambda: bar.advance(task))
        if not found:
            raise InputError("no site has pages at that time and a record of the period after it", "Give another --at.")
        bar.update(task, description="learning", total=len(found) * 2 * _STEPS, completed=0)
        numbers = [(split, _numbers(split, lambda: bar.advance(task))) for split in found]
    rows = [(split.name, *one, _published(one)) for split, several in numbers for one in several]
    headings = ("split", "links", "table", "method", "measure", "here", "published")
    write_csv(output / "lbla.csv", {name: [row[place] for row in rows] for place, name in enumerate(headings)})
    parts = [
        f"## {split.name.capitalize()}\n\n{_note(split, plan)}\n\n{_tables(several)}" for split, several in numbers
    ]
    text = "\n\n".join(["# New links foretold", _FOREWORD, *parts]) + "\n"
    (output / "lbla.md").write_text(text, encoding="utf-8")
    typer.echo(text)
    typer.echo(f"Written: {output / 'lbla.md'}, {output / 'lbla.csv'}")


def moment(date: str) -> float:
    """The begin of a day, UTC, from ``2024-01-02``.

    Raises:
        ConfigError: it is no date.
    """
    from datetime import UTC, datetime

    from recrawl.errors import ConfigError

    try:
        return datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise ConfigError(f"{date!r} is no date.", "Give it as 2024-01-02.") from None


_STEPS = 3
"""Tables for each split and kind of links."""


def _numbers(split: Split, progress: Callable[[], object]) -> list[Number]:
    from recrawl.predict.feature_sets import FeatureSet
    from recrawl.predict.link_learners import Learner
    from recrawl.simulate.lbla_trial import KINDS

    found: list[Number] = []
    whole = split.trials[max(split.trials)]
    for links in KINDS:
        for features in (FeatureSet.SP, FeatureSet.SP_SEM, FeatureSet.SP_SN, FeatureSet.STATIC):
            rate = whole.change_rate(links, features, Learner.HISTOGRAM_BOOSTING)
            shown = {"R²": rate.r2, "mean error": rate.mean_error, "median error": rate.median_error}
            found += [Number(links, _RATE, str(features), name, value) for name, value in shown.items()]
        progress()
        scores = {
            f"history {history}": trial.presence(links, FeatureSet.ALL, Learner.EXTRA_TREES)
            for history, trial in split.trials.items()
        }
        scores["LBLA alone"] = whole.presence(links, FeatureSet.LBLA, Learner.EXTRA_TREES)
        scores["as in the last period (NNL-Pr)"] = whole.presence_as_before(links)
        for method, one in scores.items():
            shown = {"balanced accuracy": one.balanced_accuracy, "F1": one.f1}
            shown |= {"precision": one.precision, "recall": one.recall}
            found += [Number(links, _PRESENCE, method, name, value) for name, value in shown.items()]
        progress()
        for ranking in whole.ranked(links):
            found.append(Number(links, _ORDER, ranking.name, f"Spearman {ranking.target}", ranking.spearman))
            found.append(Number(links, _ORDER, ranking.name, f"area {ranking.target}", ranking.area))
        progress()
    return found


_RATE = "Link change rate by features (figures 9 and 10; boosted trees)"
_PRESENCE = "Presence of new links by history (figure 12; randomised trees, all features)"
_ORDER = "Rankings (figures 14 and 15)"


def _tables(numbers: list[Number]) -> str:
    """A table for each kind of links and figure; where the paper gives a number it stands behind ours."""
    from recrawl.show.experiments import markdown_table

    parts = []
    for links, table in dict.fromkeys((one.links, one.table) for one in numbers):
        here = [one for one in numbers if (one.links, one.table) == (links, table)]
        measures = list(dict.fromkeys(one.measure for one in here))
        cells = {(one.method, one.measure): _shown(one) for one in here}
        methods = dict.fromkeys(one.method for one in here)
        rows = [[method, *(cells[method, measure] for measure in measures)] for method in methods]
        parts.append(f"### {links.capitalize()} links: {table}\n\n" + markdown_table(["method", *measures], rows))
    return "\n\n".join(parts)


def _shown(one: Number) -> str:
    published = _published(one)
    value = "–" if isnan(one.value) else f"{one.value:.3f}"
    return value if published is None else f"{value} (published {published:.2f})"


def _published(one: Number) -> float | None:
    return PUBLISHED.get((one.links, one.measure, one.method))


def _note(split: Split, plan: Plan) -> str:
    import numpy as np

    from recrawl.predict.feature_sets import Target
    from recrawl.simulate.lbla_splits import TRAINED
    from recrawl.time import format_duration, to_iso

    trial = split.trials[max(split.trials)]
    share = {kind: float(np.nanmean(trial.test.truth(kind, Target.NL))) for kind in ("internal", "external")}
    return _NOTE.format(
        trained=len(trial.train.table),
        times=TRAINED,
        period=format_duration(plan.period),
        tested=len(trial.test.table),
        sites=split.sites,
        at=to_iso(plan.at)[:10],
        **share,
    )
