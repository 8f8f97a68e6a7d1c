"""``recrawl experiment rates``: estimators compared on real histories, as tables and a plot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl_lab.experiments.report_folder import ReportFolder

if TYPE_CHECKING:
    import numpy as np

    from recrawl.app.result_tables import PlotPanel
    from recrawl.assess.prediction_scores import MeanInterval
    from recrawl.simulate.sampling import PageTruth, VisitSchedule
    from recrawl_lab.trials.rate_trials import RateMethod, RateOutcomes, RatePopulation, RateScore


def run(data: Path, output: Path, *, seed: int, repeats: int, most_pages: int) -> None:
    """Try all estimators on each data set; write scores.csv, rates.md and rates.png into ``output``."""
    import numpy as np

    from recrawl.app.compare.benchmark_runs import collections, find_datasets
    from recrawl.app.progress import bars
    from recrawl.app.result_tables import draw_panels
    from recrawl_lab.trials.rate_trials import CUTS, LENGTHS, populations, score

    folders = find_datasets(data)
    written = ReportFolder(output)
    methods = _methods()
    rng = np.random.default_rng(seed)
    scores: dict[str, dict[str, list[RateScore]]] = {}
    with bars() as bar:
        for folder in folders:
            found = populations(collections(folder), most_pages)
            steps = len(found) * len(_schedules()) * repeats * len(CUTS) * len(LENGTHS) * len(methods)
            task = bar.add_task(folder.name, total=steps)
            outcomes: dict[str, list[RateOutcomes]] = {}
            for _ in range(repeats):
                for number, (population, truths) in enumerate(found):
                    for name, schedule in _schedules().items():
                        trial = _trial(population, truths, schedule, methods, rng, lambda task=task: bar.advance(task))  # type: ignore[misc]
                        outcomes.setdefault(name, []).extend(_apart(trial, number))
            together = [one for trial in outcomes.values() for one in trial]
            scores[folder.name] = {"all": score(together, rng)} | {
                name: score(trial, rng) for name, trial in outcomes.items()
            }
    written.table("scores.csv", _columns(scores))
    text = _report({name: by_schedule["all"] for name, by_schedule in scores.items()}) + "\n" + _bias(written)
    draw_panels(
        written.file("rates.png"),
        [_panel(name, by_schedule["all"]) for name, by_schedule in scores.items()],
        x_label="gaps between visits known of a page",
        y_label="log loss of the next visit",
        title="Will the next visit find a change?",
    )
    written.end("rates.md", text)


_LOSS_NOTE = """\
Log loss of the next visit, with 95 % intervals from resampling whole clusters. **Bold**: the lowest, and what ties with
it (the interval of the difference holds 0). No probability is taken for surer than 1 in 1,000."""


def _methods() -> list[RateMethod]:
    from recrawl.estimate.estimators import ESTIMATORS
    from recrawl_lab.trials.rate_trials import method_of

    return [method_of(estimator) for estimator in ESTIMATORS.values()]


def _schedules() -> dict[str, VisitSchedule]:
    from recrawl.simulate.sampling import AdaptiveVisits, IrregularVisits, RegularVisits

    return {"regular": RegularVisits(), "irregular": IrregularVisits(), "adaptive": AdaptiveVisits()}


def _trial(  # noqa: PLR0913, PLR0917 - the parts of a trial
    population: RatePopulation,
    truths: Sequence[PageTruth],
    schedule: VisitSchedule,
    methods: Sequence[RateMethod],
    rng: np.random.Generator,
    progress: Callable[[], None],
) -> list[RateOutcomes]:
    """Visit the pages of a population by one schedule, and ask every method."""
    from dataclasses import replace

    from recrawl.model import Visits
    from recrawl.simulate.sampling import sample
    from recrawl_lab.trials.rate_trials import run_trial

    parts, before = [], 0
    for truth in truths:
        visits = sample(truth, schedule, rng)
        parts.append(replace(visits, page=visits.page + before))
        before += len(truth)
    return run_trial(population, Visits.concatenate(parts), methods, rng, progress=progress)


def _apart(outcomes: Sequence[RateOutcomes], population: int) -> list[RateOutcomes]:
    """The outcomes with clusters that no other population has."""
    from dataclasses import replace

    return [replace(one, cluster=one.cluster + population * _CLUSTERS) for one in outcomes]


_CLUSTERS = 1 << 32
"""More than any population has."""


def _columns(scores: dict[str, dict[str, list[RateScore]]]) -> dict[str, list[object]]:
    """Every score, one row each."""
    rows: list[dict[str, object]] = [
        {
            "data": data,
            "schedule": schedule,
            "gaps": one.length,
            "method": one.method,
            "predictions": one.predictions,
            **_ends("log_loss", one.log_loss),
            **_ends("brier", one.brier),
            "calibration_error": one.calibration_error,
            "rank_correlation": one.rank_correlation,
            **_ends("behind_best", one.behind_best),
        }
        for data, by_schedule in scores.items()
        for schedule, found in by_schedule.items()
        for one in found
    ]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _ends(name: str, interval: MeanInterval) -> dict[str, object]:
    return {name: interval.mean, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _report(scores: dict[str, list[RateScore]]) -> str:
    """One section a data set: the losses with intervals, then the other measures."""
    parts = []
    for data, found in scores.items():
        parts += [
            f"## {data}",
            _LOSS_NOTE,
            _grid(found, "method", _loss_cell),
            "Mean distance between predicted and observed share of changes, over ten bins of predictions.",
            _grid(found, "method", lambda one: f"{one.calibration_error:.3f}"),
            "Rank correlation of the estimated rate with the true rate to come.",
            _grid(found, "method", lambda one: f"{one.rank_correlation:.2f}"),
            "Brier score.",
            _grid(found, "method", lambda one: f"{one.brier.mean:.4f}"),
        ]
    return "\n\n".join(parts) + "\n"


def _bias(written: ReportFolder) -> str:
    """Bias of HACS eq. 3 and eq. 4 against the number of visits, on synthetic pages; bias.csv too."""
    from recrawl.app.result_tables import markdown_table
    from recrawl.assess.rate_errors import bias_curve
    from recrawl.estimate.point_estimators import bias_reduced_rates, naive_rates

    observations, ratios = (1, 2, 5, 10, 20, 50), (0.1, 0.5, 1.0, 2.0)
    formulas = {"X/T (eq. 3)": naive_rates, "bias-reduced (eq. 4)": bias_reduced_rates}
    rows: list[list[str]] = []
    columns: dict[str, list[object]] = {"formula": [], "observations": [], "changes_a_gap": [], "mean_over_truth": []}
    for name, formula in formulas.items():
        for ratio in ratios:
            curve = bias_curve(formula, observations, ratio)
            rows.append([f"{name}, {ratio:g} changes a gap", *(f"{mean:.3f}" for mean in curve.mean)])
            columns["formula"] += [name] * len(observations)
            columns["observations"] += list(observations)
            columns["changes_a_gap"] += [ratio] * len(observations)
            columns["mean_over_truth"] += curve.mean.tolist()
    written.table("bias.csv", columns)
    table = markdown_table(["mean estimate over true rate", *(f"{count} gaps" for count in observations)], rows)
    return f"## Bias on synthetic pages\n\n{_BIAS_NOTE}\n\n{table}\n"


_BIAS_NOTE = """\
Exact, at equal gaps. X/T is short by (1 − e⁻ʳ)/r however often one looks; eq. 4 comes close to 1 from about ten looks
on, unless the page changes much faster than it is observed (Cho and Garcia-Molina 2003)."""


def _grid(scores: Sequence[RateScore], corner: str, cell: Callable[[RateScore], str]) -> str:
    """A row a method, a column a length; under the lengths how many predictions there were."""
    from recrawl.app.result_tables import markdown_table

    lengths = sorted({one.length for one in scores})
    at = {(one.method, one.length): one for one in scores}
    names = list(dict.fromkeys(one.method for one in scores))
    count = ["predictions", *(f"{at[names[0], length].predictions:,}" for length in lengths)]
    rows = [[name, *(cell(at[name, length]) for length in lengths)] for name in names]
    return markdown_table([corner, *(f"{length} gaps" for length in lengths)], [*rows, count])


def _loss_cell(one: RateScore) -> str:
    text = f"{one.log_loss.mean:.4f} ({one.log_loss.low:.3f}–{one.log_loss.high:.3f})"
    return f"**{text}**" if one.behind_best.low <= 0 else text


def _panel(title: str, scores: Sequence[RateScore]) -> PlotPanel:
    from recrawl.app.result_tables import PlotLine, PlotPanel
    from recrawl.estimate.estimators import DEFAULT

    lines = []
    for name in dict.fromkeys(one.method for one in scores):
        own = [one for one in scores if one.method == name]
        x, y = [float(one.length) for one in own], [one.log_loss.mean for one in own]
        low, high = [one.log_loss.low for one in own], [one.log_loss.high for one in own]
        lines.append(PlotLine(name, x, y, low, high, ours=name == DEFAULT))
    return PlotPanel(title, lines)
