"""How pages change: how often, by chance or not, in what rhythm, and whether predictions came true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recrawl.assess.poisson_test import (
    DAY_NAMES,
    FEWEST_INTERVALS,
    HOURS,
    CycleProfile,
    Diagnosis,
    IntervalSpread,
    LogNormalFit,
    WeeklyRhythm,
    rhythm_words,
    sentences,
)
from recrawl.assess.prediction_scores import Calibration
from recrawl.errors import counted
from recrawl.model import FloatArray, IntArray
from recrawl.time import DAY, format_duration
from recrawl.web.report.report_page import (
    Column,
    ColumnKind,
    Figure,
    ReportTable,
    Section,
    axis,
    chart,
    histogram,
    series,
)

FEWEST_BARS = 8
"""Things below which a histogram shows nothing: each is drawn by itself instead."""
MOST_WHISKERS = 300
_FINE = 200


@dataclass(frozen=True, slots=True)
class ChangeLevel:
    """How often things of one level change: pages, homepages, or sites as wholes. Row by row, in seconds."""

    name: str
    """In the singular."""
    things: int
    """How many there are, those never seen to change included."""
    again: int
    """The number with two comparable observations."""
    spread: IntervalSpread | None
    names: Sequence[str]
    """Of those that changed, in the order of the columns."""
    every: FloatArray
    """1/λ, the middle of what is believed."""
    low: FloatArray
    high: FloatArray
    """Ends of the 90 % interval."""
    median: FloatArray
    """Median interval between detected changes; NaN for fewer than two."""
    changes: IntArray
    fit: LogNormalFit


@dataclass(frozen=True, slots=True)
class ChangeBehaviour:
    """All that the sections are made from."""

    levels: Sequence[ChangeLevel]
    """Pages first."""
    diagnosis: Diagnosis
    rhythm: WeeklyRhythm
    calibration: Calibration | None
    """``None`` if there were too few observations to predict."""
    predicted: int
    """Predictions it rests on."""
    log_loss: float
    flat_loss: float
    """Of predicting the overall share for every observation."""
    estimator: str


def behaviour_sections(found: ChangeBehaviour) -> list[Section]:
    """Four sections, of which each says so if too little is known."""
    return [_how_often(found), _by_chance(found.diagnosis), _in_rhythm(found.rhythm), _came_true(found)]


def _how_often(found: ChangeBehaviour) -> Section:
    levels = [level for level in found.levels if level.things]
    figures = [*_spread(levels), *_compared(levels)]
    figures += [figure for level in levels for figure in _whiskers(level)]
    return Section(
        "How pages change",
        "behaviour",
        words=[_often_words(level) for level in levels],
        figures=figures,
        tables=[_often_table(level) for level in levels if len(level.every)],
        notes=[
            (
                f"Rates are estimated by “{found.estimator}” from all visits, unchanged ones included. 1/λ is the mean "
                "time between changes."
            ),
            (
                "A homepage is the page / of a host. A site is a host treated as one page that changes when any of "
                "its pages does, observed at most once a day."
            ),
        ],
    )


def _often_words(level: ChangeLevel) -> str:
    if not level.again:
        when = " on different days" if level.name == "site" else ""
        return f"No {level.name} was observed twice{when}: change rates are not known."
    still = level.again - len(level.every)
    never = f" {counted(still, level.name)} did not change during the observation." if still else ""
    if not len(level.every):
        return f"None of {counted(level.again, level.name)} with two observations or more changed."
    middle = format_duration(float(np.median(level.every)))
    line = f"The median {level.name} of the {len(level.every):,} that changed does so every {middle}"
    if np.isnan(level.fit.mu):
        return f"{line}.{never}"
    fits = "is approximately log-normal" if level.fit.p >= 0.05 else "is not quite log-normal"  # noqa: PLR2004 - the usual level
    return f"{line}; the distribution of 1/λ {fits} (σ = {level.fit.sigma:.2g}).{never}"


def _spread(levels: Sequence[ChangeLevel]) -> list[Figure]:
    """1/λ of all pages: the median estimates, and the whole beliefs."""
    if not levels or levels[0].spread is None or levels[0].things < FEWEST_BARS:
        return []
    spread = levels[0].spread
    parts = [
        histogram("median estimates", spread.edges / DAY, spread.middle, colour="series-1"),
        histogram("whole beliefs", spread.edges / DAY, spread.believed, colour="series-4", faint=True),
    ]
    data = chart(axis("days between changes (1/λ)", "log"), axis("share of pages", "share", min=0), parts)
    words = (
        "All pages, including those without an observed change. The lighter bars spread each page over its whole "
        "belief: "
        "where they reach further, the visits do not determine the rate yet."
    )
    return [Figure("interval-spread", "Days between changes, with uncertainty", "chart", data, words)]


def _compared(levels: Sequence[ChangeLevel]) -> list[Figure]:
    """HACS figure 4: pages, homepages and sites on one scale, with fitted curves."""
    drawn = [level for level in levels if len(level.every) >= FEWEST_BARS]
    if len(drawn) < 1:
        return []
    logs = np.log(np.concatenate([level.every for level in drawn]) / DAY)
    edges = np.linspace(logs.min() - 0.05, logs.max() + 0.05, 31)
    parts = []
    for place, level in enumerate(drawn):
        share, _ = np.histogram(np.log(level.every / DAY), edges, density=True)
        colour = f"series-{place + 1}"
        parts.append(histogram(f"{level.name}s", np.exp(edges), share, colour=colour, faint=place > 0))
        if not np.isnan(level.fit.mu):
            days = np.exp(np.linspace(edges[0], edges[-1], _FINE))
            parts.append(
                series(f"{level.name}s, log-normal", "line", days, level.fit.density(days * DAY), colour=colour)
            )
    data = chart(axis("days between changes (1/λ)", "log"), axis("density over ln(days)", min=0), parts)
    words = "Those with an observed change, by the median of the belief."
    return [Figure("interval-levels", "Pages, homepages and sites", "chart", data, words)]


def _whiskers(level: ChangeLevel) -> list[Figure]:
    """HACS figure 5: in the order of 1/λ, with its interval and the median interval between changes."""
    if not len(level.every):
        return []
    order = np.argsort(level.every, kind="stable")
    if len(order) > MOST_WHISKERS:
        order = order[np.linspace(0, len(order) - 1, MOST_WHISKERS).astype(np.int64)]
    label = [level.names[row] for row in order.tolist()]
    few = len(order) < FEWEST_BARS
    place = np.arange(len(order)) + (0 if few else 1)
    days = [values[order] / DAY for values in (level.every, level.low, level.high)]
    parts = [series("1/λ with 90% interval", "whiskers", place, days[0], low=days[1], high=days[2], label=label)]
    median = level.median[order] / DAY
    known = np.isfinite(median)
    if bool(known.any()):
        some = [label[row] for row in np.flatnonzero(known).tolist()]
        parts.append(
            series("median interval", "points", place[known], median[known], colour="series-2", size=4, label=some)
        )
    across = axis("", "names", names=label) if few else axis(f"{level.name}s, by 1/λ")
    data = chart(across, axis("days", "log"), parts)
    some_of = f" {len(order):,} of {len(level.every):,}, evenly spread." if len(order) < len(level.every) else ""
    words = f"Estimates with 90% intervals.{some_of}"
    return [Figure(f"intervals-{level.name}s", f"1/λ of each {level.name}", "chart", data, words)]


def _often_table(level: ChangeLevel) -> ReportTable:
    order = np.argsort(level.every, kind="stable")
    more = "" if len(order) <= _MOST_ROWS else f"The {_MOST_ROWS:,} fastest of {len(order):,}; recrawl rates shows all."
    order = order[:_MOST_ROWS]
    kind = ColumnKind.TEXT if level.name == "site" else ColumnKind.URL
    columns = [
        Column(level.name, kind, [level.names[row] for row in order.tolist()]),
        Column("changes every", ColumnKind.SECONDS, level.every[order]),
        Column("at least", ColumnKind.SECONDS, level.low[order]),
        Column("at most", ColumnKind.SECONDS, level.high[order]),
        Column("median interval", ColumnKind.SECONDS, level.median[order]),
        Column("observed changes", ColumnKind.COUNT, level.changes[order]),
    ]
    return ReportTable(f"rates-{level.name}s", f"How often {level.name}s change, fastest first", columns, more)


_MOST_ROWS = 1_000


def _by_chance(found: Diagnosis) -> Section:
    """HACS figure 6, and the verdict."""
    figures = []
    if found.intervals >= FEWEST_INTERVALS:
        figures = [_survival(found), _quantiles(found)]
    return Section(
        "Poisson, bursts, or regular?",
        "poisson",
        words=sentences(found),
        figures=figures,
        level=3,
        notes=[
            (
                "Intervals between changes are measured in units of 1/λ of their page, so that those of all pages "
                "can be compared with one exponential. The grey line shows simulated Poisson pages at the same "
                "observation times, "
                f"from {found.repeats} simulations."
            ),
        ],
    )


def _survival(found: Diagnosis) -> Figure:
    seen, reference = _thinned(found.rescaled), found.reference
    share = 1.0 - np.linspace(0.0, 1.0, len(seen), endpoint=False)
    expected = 1.0 - (np.arange(len(reference)) + 0.5) / max(len(reference), 1)
    line = np.linspace(0.0, max(5.0, float(seen[-1])), 50)
    floor = max(0.5 / found.intervals, 1e-4)
    line = line[np.exp(-line) >= floor]
    parts = [
        series("seen", "line", seen, share),
        series("Poisson, same observations", "line", reference, expected, colour="series-8"),
        series("exponential", "line", line, np.exp(-line), colour="series-2", dashed=True),
    ]
    data = chart(
        axis("interval, in units of 1/λ", min=0),
        axis("share of longer intervals", "share", log=True, min=floor, max=1),
        parts,
    )
    return Figure("intervals-exponential", "Intervals between changes against an exponential", "chart", data)


def _quantiles(found: Diagnosis) -> Figure:
    q = (np.arange(len(found.reference)) + 0.5) / len(found.reference)
    seen = np.quantile(found.rescaled, q)
    top = float(max(seen[-1], found.reference[-1]))
    parts = [
        series("intervals", "points", found.reference, seen, size=5),
        series("Poisson", "line", [0.0, top], [0.0, top], colour="series-8", dashed=True),
    ]
    data = chart(axis("Poisson, same observations"), axis("observed, in units of 1/λ"), parts)
    words = "On the line if changes are Poisson; below it at the left if they come in bursts."
    return Figure("interval-quantiles", "Quantiles of intervals", "chart", data, words)


def _thinned(ascending: FloatArray, most: int = 400) -> FloatArray:
    if len(ascending) <= most:
        return ascending
    return ascending[np.linspace(0, len(ascending) - 1, most).astype(np.int64)]


def _in_rhythm(found: WeeklyRhythm) -> Section:
    figures = []
    words = rhythm_words(found)
    if bool(np.isfinite(found.week).any()) and len(words) > 1:
        names = {"x": {"names": [f"{hour:02}" for hour in range(HOURS)]}, "y": {"names": list(DAY_NAMES)}}
        heat = {**names, "value": found.week, "title": "times the mean"}
        figures = [
            Figure("week", "The week, hour by hour (UTC)", "heat", heat, wide=True, height=300),
            _profile("days", "By day of the week", list(DAY_NAMES), found.days),
            _profile("hours", "By hour of the day (UTC)", [f"{hour:02}" for hour in range(HOURS)], found.hours),
        ]
    return Section(
        "Weekly and daily rhythm",
        "rhythm",
        words=words,
        figures=figures,
        level=3,
        notes=[
            (
                "Only pages of hosts with observations at most three days apart are used. A change between two "
                "observations is "
                "spread over the hours in between according to the profile itself; the profile of a page with a "
                "constant rate "
                "under the same observations is divided out."
            ),
        ],
    )


def _profile(name: str, title: str, names: list[str], found: CycleProfile) -> Figure:
    place = np.arange(len(names))
    parts = [
        series("times the mean", "whiskers", place, found.factor, low=found.low, high=found.high),
        series("steady", "line", place, np.ones(len(names)), colour="series-8", dashed=True),
    ]
    data = chart(axis("", "names", names=names), axis("times the mean", min=0), parts)
    return Figure(f"rhythm-{name}", title, "chart", data, "With 90% intervals.", height=260)


def _came_true(found: ChangeBehaviour) -> Section:
    title, anchor = "Were predictions correct?", "calibration"
    scores = found.calibration
    if scores is None or not len(scores.count):
        return Section(title, anchor, level=3, words=[
            f"Only {counted(found.predicted, 'observation')} could be predicted from earlier ones: too few for a score."
        ])  # fmt: skip
    gain = 1.0 - found.log_loss / found.flat_loss if found.flat_loss > 0 else float("nan")
    better = (
        f"{gain:.0%} better than the same prediction for every page"
        if gain > 0
        else "no better than the same prediction for every page"
    )
    words = [
        (
            "At several past times the next observation of each page was predicted from the earlier ones: "
            f"{found.predicted:,} predictions. Predicted and observed shares of change differ by {scores.error:.3f} on "
            f"average, and by log loss the predictions were {better}."
        )
    ]
    low, high = scores.interval()
    label = [counted(count, "observation") for count in scores.count.tolist()]
    parts = [
        series("pages", "whiskers", scores.predicted, scores.observed, low=low, high=high, label=label),
        series("ideal", "line", [0.0, 1.0], [0.0, 1.0], colour="series-8", dashed=True),
    ]
    data = chart(
        axis("predicted probability of change", "share", min=0, max=1),
        axis("share that changed", "share", min=0, max=1),
        parts,
    )
    figure = Figure(
        "calibration",
        "Predicted against observed",
        "chart",
        data,
        "Groups with equal numbers of observations, with 90% intervals.",
    )
    notes = [f"By the estimator “{found.estimator}”, with the data of each time only."]
    return Section(title, anchor, words, [figure], level=3, notes=notes)
