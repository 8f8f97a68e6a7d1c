"""``recrawl experiment hacs``: Table I and figures 8 to 11 of HACS, on scholarly sites.

Updates are new links on home pages, and on pages near them, read from a data set.
"""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.app.rates.rates_table import ChangeAspect
from recrawl.errors import InputError, require
from recrawl.formats.columnar.dataset import OBSERVATIONS
from recrawl.model import ChangeKind, Histories, Visits
from recrawl_lab.experiments.report_folder import ReportFolder

if TYPE_CHECKING:
    from recrawl.app.result_tables import PlotPanel
    from recrawl.simulate.sampling import PageTruth
    from recrawl_lab.trials.hacs_trial import Average, HacsEvaluation


LEVELS = ("home page", "web site")


def updates(folder: Path) -> dict[str, PageTruth]:
    """For each level the sites as rows, and as changes the times at which a link within the site was new.

    A home page updates when it gets a link it never had; a site when one of its pages within two clicks gets a link
    that no page of the site ever had (HACS l*). Bulk edits count too: new links are new however they came. Chains
    closer than an hour are one update.

    Raises:
        InputError: the data set does not tell home pages and new links.
    """
    pq: Any = require("pyarrow.parquet", "columns")
    pages = _columns(pq, folder / "pages.parquet", ("site", "page_id", "is_home", "in_d2"))
    events = _columns(pq, folder / "events.parquet", ("site", "page_id", "t", "kind", "new_int", "site_new_int"))
    sites, site = np.unique(events["site"].astype(str), return_inverse=True)
    keys = zip(pages["site"], pages["page_id"], strict=True)
    near = dict(zip(keys, zip(pages["is_home"], pages["in_d2"], strict=True), strict=True))
    flags = np.array(
        [near.get(page, (False, False)) for page in zip(events["site"], events["page_id"], strict=True)], dtype=np.bool_
    )
    time = events["t"].astype(np.float64)
    born = np.full(len(sites), np.inf)
    np.minimum.at(born, site, time)
    died = np.full(len(sites), -np.inf)
    np.maximum.at(died, site, time)
    changed = events["kind"].astype(str) == "mod"
    new = [np.nan_to_num(events[name].astype(np.float64)) > 0 for name in ("new_int", "site_new_int")]
    found = {}
    for level, name in enumerate(LEVELS):
        happened = new[level] & flags[:, level] & (changed if level == 0 else True)
        found[name] = _truth(site[happened], time[happened], born, died)
    return found


def has_observations(folder: Path) -> bool:
    """Whether a data set has the times of observations."""
    return (folder / f"{OBSERVATIONS}.parquet").is_file()


def captured(folder: Path, kind: ChangeKind) -> dict[str, Histories]:
    """For each level the sites as rows, and their real captures as observations of one kind of update.

    A home page is captured when it is; a site when one of its pages within two clicks of the home page is, and it
    updates when one of them does.

    Raises:
        InputError: no page was captured twice, no home page was, or nobody read what this kind of update is told by.
    """
    pq: Any = require("pyarrow.parquet", "columns")
    pages = _columns(pq, folder / "pages.parquet", ("site", "page_id", "is_home", "in_d2"))
    told = _columns(
        pq,
        folder / f"{OBSERVATIONS}.parquet",
        ("site", "page_id", "t", "outcome", "verdict", "kinds", "new_int", "new_ext"),
    )
    sites = {name: number for number, name in enumerate(sorted(set(pages["site"].tolist())))}
    site = np.array([sites[name] for name in pages["site"]], np.int64)
    keys = {key: row for row, key in enumerate(zip(site.tolist(), pages["page_id"].tolist(), strict=True))}
    named = zip((sites[name] for name in told["site"]), told["page_id"].tolist(), strict=True)
    page = np.fromiter((keys[one] for one in named), np.int64, len(told["t"]))
    visits = Visits.of(
        page, told["t"], outcome=told["outcome"], verdict=told["verdict"], kinds=told["kinds"],
        new_internal=told["new_int"], new_external=told["new_ext"],
    )  # fmt: skip
    histories = Histories.from_visits(visits, kind)
    if not len(Histories.from_visits(visits).gaps):
        raise InputError("no page was captured twice", "Import more captures.", source=str(folder))
    if not len(histories.gaps):
        wanted = (kind.name or "").lower().replace("_", " ")
        remedy = "Read the bytes (recrawl import --bytes, or import the WARC files), or ask for --kind content."
        raise InputError(f"{wanted} are not known: the captures of this archive have no readable bytes", remedy)
    found = {}
    for level, name in zip(LEVELS, ("is_home", "in_d2"), strict=True):
        some = histories.take(pages[name].astype(np.bool_)[histories.page])
        if not len(some.gaps):
            raise InputError(
                "no home page was captured twice: a site is a user's directory (/~user/) or a host, and HACS asks "
                "when its home page and the pages near it get updates",
                "Take an archive that holds home pages.",
            )
        found[level] = some.group(site[some.page]).align(np.unique(site[some.page]))
    return found


def _truth(site: Any, time: Any, born: Any, died: Any) -> PageTruth:  # noqa: ANN401 - columns as they come
    from recrawl.simulate.sampling import PageTruth
    from recrawl.simulate.virtual_web import EventTimes
    from recrawl.time import HOUR

    later = time > born[site]
    changes = EventTimes.of(site[later], time[later], len(born))
    return PageTruth(born, died, changes, float(born.min()), float(died.max())).merged(HOUR)


def _columns(pq: Any, file: Path, names: tuple[str, ...]) -> dict[str, Any]:  # noqa: ANN401 - pyarrow ships no types
    if not file.is_file():
        raise InputError(
            f"{file.name} is missing", "Name the folder of the scholarly data set.", source=str(file.parent)
        )
    lacking = [name for name in names if name not in pq.read_schema(file).names]
    if lacking:
        remedy = "Take the scholarly data set: it must have home pages and new links."
        raise InputError(f"{file.name} has no column {lacking[0]!r}", remedy, source=str(file))
    table = pq.read_table(file, columns=list(names))
    return {name: table.column(name).to_numpy(zero_copy_only=False) for name in names}


PUBLISHED: dict[tuple[str, str, str], tuple[float, ...]] = {
    ("home page", "micro", "theta"): (0.8, 0.7, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.7, 0.7, 0.7, 0.7),
    ("home page", "micro", "precision"): (
        *(0.759, 0.367, 0.267, 0.175, 0.178, 0.155),
        *(0.134, 0.124, 0.134, 0.127, 0.121, 0.114),
    ),
    ("home page", "micro", "recall"): (
        *(0.500, 0.332, 0.291, 0.426, 0.445, 0.445),
        *(0.448, 0.454, 0.335, 0.342, 0.348, 0.349),
    ),
    ("home page", "micro", "f1"): (
        *(0.603, 0.349, 0.279, 0.248, 0.254, 0.230),
        *(0.206, 0.194, 0.191, 0.186, 0.180, 0.172),
    ),
    ("home page", "macro", "theta"): (0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.6, 0.7, 0.7, 0.7, 0.7),
    ("home page", "macro", "precision"): (
        *(0.919, 0.647, 0.305, 0.243, 0.220, 0.186),
        *(0.136, 0.125, 0.139, 0.132, 0.125, 0.118),
    ),
    ("home page", "macro", "recall"): (
        *(0.556, 0.321, 0.346, 0.299, 0.322, 0.325),
        *(0.459, 0.466, 0.342, 0.351, 0.356, 0.358),
    ),
    ("home page", "macro", "f1"): (
        *(0.750, 0.420, 0.306, 0.255, 0.253, 0.228),
        *(0.205, 0.194, 0.192, 0.187, 0.181, 0.173),
    ),
    ("web site", "micro", "theta"): (0.5,) * 12,
    ("web site", "micro", "precision"): (
        *(0.195, 0.185, 0.164, 0.158, 0.150, 0.139),
        *(0.130, 0.123, 0.118, 0.113, 0.108, 0.104),
    ),
    ("web site", "micro", "recall"): (
        *(0.435, 0.447, 0.460, 0.475, 0.482, 0.488),
        *(0.492, 0.494, 0.497, 0.501, 0.505, 0.507),
    ),
    ("web site", "micro", "f1"): (
        *(0.269, 0.261, 0.242, 0.237, 0.229, 0.216),
        *(0.206, 0.197, 0.191, 0.184, 0.178, 0.173),
    ),
    ("web site", "macro", "theta"): (0.5,) * 12,
    ("web site", "macro", "precision"): (
        *(0.191, 0.181, 0.162, 0.157, 0.150, 0.139),
        *(0.131, 0.124, 0.120, 0.115, 0.110, 0.106),
    ),
    ("web site", "macro", "recall"): (
        *(0.444, 0.457, 0.471, 0.486, 0.493, 0.498),
        *(0.502, 0.504, 0.507, 0.510, 0.512, 0.514),
    ),
    ("web site", "macro", "f1"): (
        *(0.262, 0.256, 0.238, 0.234, 0.227, 0.215),
        *(0.206, 0.197, 0.192, 0.186, 0.180, 0.175),
    ),
}
"""HACS in Table I, by history size from 1 to 12 weeks."""
_DRAWN = """\
Pages are captured at irregular times (log-normal gaps, median {median:g} days), as no web archive of these sites is at
hand; the paper has the captures of the Internet Archive, of 19,977 authors, three years of them."""
_REAL = """\
The captures are those of the archive; updates ({kind}) are judged as these captures tell them, each in the middle of
the time in which it happened. A site is not evaluated after its last capture, because later updates are not known."""
_NOTE = """\
{captures} Compare the order of
the models and the run of the numbers over w, not the numbers. Macro averages leave out reference points at which a
score is undefined (reading 000.6), but for one: F1 is 0 where a model found none of the updates that came. The paper
seems to leave these points out too; with few sites they are most, and the rest are lucky weeks. Beside a macro F1
stands at how many points an update came. Each average has the threshold θ̂ with the highest F1 of its own."""


def run(  # noqa: PLR0913 - one argument an option
    data: Path, output: Path, *, seed: int, repeats: int, median: float, kind: ChangeAspect = ChangeAspect.NEW_LINKS
) -> None:
    """Evaluate both levels; write hacs.csv, hacs.md and hacs.png into ``output``. ``median`` is in days.

    A data set that tells when its pages were observed is evaluated by these observations; updates are of one ``kind``.
    """
    from recrawl.app.progress import bars, line

    with line("Reading the data"):
        import numpy as np

        from recrawl.app.result_tables import draw_panels
        from recrawl.simulate.sampling import IrregularVisits
        from recrawl.time import DAY, WEEK
        from recrawl_lab.trials.hacs_trial import WINDOWS, evaluate, judge, observed_updates

        real = has_observations(data)
        if not real and kind is not ChangeAspect.NEW_LINKS:
            raise InputError(
                f"{kind.value} are not known of this data set: it tells new links",
                "Leave out --kind.",
                source=str(data),
            )
        observations = captured(data, ChangeKind[kind.name]) if real else {}
        levels = {name: observed_updates(one) for name, one in observations.items()} if real else updates(data)
        if real and all(truth.end - truth.start <= 2 * WEEK for truth in levels.values()):
            raise InputError(
                "who updates in a week to come is not known: the captures span less than two weeks",
                "Import more captures.",
            )
        written = ReportFolder(output)
    found: dict[str, list[HacsEvaluation]] = {}
    with bars() as bar:
        task = bar.add_task("history sizes", total=len(levels) * repeats * len(WINDOWS))
        for level, truth in levels.items():
            rng = np.random.default_rng(seed)
            schedule = IrregularVisits(median * DAY, 1.5)
            found[level] = [
                judge(observations[level], truth, rng, progress=lambda: bar.advance(task))
                if real
                else evaluate(truth, schedule, rng, progress=lambda: bar.advance(task))
                for _ in range(repeats)
            ]
    pooled = {level: _pool(parts) for level, parts in found.items()}
    written.table("hacs.csv", _score_columns(pooled))
    draw_panels(
        written.file("hacs.png"),
        [_ranked(level, one) for level, one in pooled.items()],
        x_label="history size w, weeks",
        y_label="mean weighted P@K",
        title="Rankings of sites (figure 11)",
        even=True,
    )
    draw_panels(
        written.file("hacs-thresholds.png"),
        [_chosen(level, one, score) for level, one in pooled.items() for score in ("f1", "precision", "recall")],
        x_label="threshold θ",
        y_label="micro average",
        title=f"Choices of scholarly sites, w = {_FIGURE_WEEKS} weeks (figures 8 to 10)",
        even=True,
    )
    said = _REAL.format(kind=kind.value) if real else _DRAWN.format(median=median)
    written.end("hacs.md", report(pooled, said, {level: len(truth) for level, truth in levels.items()}))


def _pool(parts: list[HacsEvaluation]) -> HacsEvaluation:
    """Repeats as one: reference points side by side, P@K averaged."""
    import numpy as np

    from recrawl_lab.trials.hacs_trial import MODELS, HacsChoices, HacsEvaluation

    choices = [
        HacsChoices(same[0].weeks, same[0].theta, {m: np.concatenate([one.counts[m] for one in same]) for m in MODELS})
        for same in zip(*(part.choices for part in parts), strict=True)
    ]
    ranked = {key: float(np.mean([part.precision_at_k[key] for part in parts])) for key in parts[0].precision_at_k}
    return HacsEvaluation(choices, ranked)


def _score_columns(found: dict[str, HacsEvaluation]) -> dict[str, list[object]]:
    """Every number of figures 8 to 10, one row a level, history size, threshold and model."""
    from recrawl_lab.trials.hacs_trial import MODELS

    rows: list[dict[str, object]] = [
        {
            "level": level,
            "weeks": one.weeks,
            "theta": one.theta,
            "model": model,
            **{f"micro_{name}": getattr(one.micro(model), name) for name in ("precision", "recall", "f1")},
            **{f"macro_{name}": getattr(one.macro(model), name) for name in ("precision", "recall", "f1")},
        }
        for level, evaluation in found.items()
        for one in evaluation.choices
        for model in MODELS
    ]
    return {name: [row[name] for row in rows] for name in rows[0]}


def report(found: dict[str, HacsEvaluation], captures: str, sites: dict[str, int]) -> str:
    """Table I and figure 11 of each level in Markdown; the ``captures`` they rest on, the ``sites`` of each."""
    from recrawl.app.result_tables import markdown_table
    from recrawl_lab.trials.hacs_trial import RANKINGS, WINDOWS

    parts = [_NOTE.format(captures=captures)]
    for level, evaluation in found.items():
        averages: tuple[Average, ...] = ("micro", "macro")
        for kind in averages:
            rows = [_row(evaluation, level, kind, weeks) for weeks in WINDOWS]
            head = ["w", "θ̂", "P", "R", "F1", "F1 random", "F1 brute force"]
            head += ["points with updates"] if kind == "macro" else []
            parts += [
                f"## Table I, {level}, {kind} average ({sites[level]} sites): published / here",
                markdown_table(head, rows),
            ]
        rows = [
            [str(weeks), *(_shown(evaluation.precision_at_k[name, weeks]) for name in RANKINGS)] for weeks in WINDOWS
        ]
        parts += [f"## Figure 11, {level}: mean weighted P@K", markdown_table(["w", *RANKINGS], rows)]
    return "\n\n".join(parts) + "\n"


def _row(evaluation: HacsEvaluation, level: str, kind: Average, weeks: int) -> list[str]:
    """One line of Table I; the paper's numbers come first. Macro averages also say at how many points updates came."""
    best = evaluation.best(weeks, kind)
    scores = {model: getattr(best, kind)(model) for model in best.counts}
    theta = "–" if isnan(scores["hacs"].f1) else f"{best.theta:g}"
    cells = [str(weeks), f"{PUBLISHED[level, kind, 'theta'][weeks - 1]:g} / {theta}"]
    cells += [
        f"{PUBLISHED[level, kind, name][weeks - 1]:.3f} / {_shown(getattr(scores['hacs'], name))}"
        for name in ("precision", "recall", "f1")
    ]
    cells += [_shown(scores[model].f1) for model in ("random", "brute force")]
    if kind == "macro":
        cells.append(f"{best.points('hacs')} of {len(best.counts['hacs'])}")
    return cells


def _shown(score: float) -> str:
    """A score; a dash where nothing was hit and there is none."""
    return "–" if isnan(score) else f"{score:.3f}"


def _ranked(level: str, evaluation: HacsEvaluation) -> PlotPanel:
    """Figure 11 of one level."""
    from recrawl.app.result_tables import PlotLine, PlotPanel
    from recrawl_lab.trials.hacs_trial import RANKINGS, WINDOWS

    lines = []
    for name in RANKINGS:
        values = [evaluation.precision_at_k[name, one] for one in WINDOWS]
        lines.append(PlotLine(name, [float(one) for one in WINDOWS], values, values, values, ours=name == "hacs"))
    return PlotPanel(level, lines)


def _chosen(level: str, evaluation: HacsEvaluation, score: str) -> PlotPanel:
    """Figure 8, 9 or 10 of one level."""
    from recrawl.app.result_tables import PlotLine, PlotPanel
    from recrawl_lab.trials.hacs_trial import MODELS

    lines = []
    at = [one for one in evaluation.choices if one.weeks == _FIGURE_WEEKS]
    for name in MODELS:
        values = [getattr(one.micro(name), score) for one in at]
        lines.append(PlotLine(name, [one.theta for one in at], values, values, values, ours=name == "hacs"))
    return PlotPanel(f"{level}: {score}", lines)


_FIGURE_WEEKS = 2
