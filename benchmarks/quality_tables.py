"""The tables of quality in short: estimators, policies, captures, prediction. Every number is read off a kept table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isnan
from statistics import mean, median

from quality import LBLA, ONE_FEATURE, Row, contest, lbla_areas, rows_of

from recrawl.simulate.policy_benchmark import BASELINE, OURS

GAPS = ("0", "5", "50")
"""Lengths of history, in known gaps."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table for people."""

    words: str
    """What it shows, and in which direction it is better."""
    heads: tuple[str, ...]
    rows: list[list[str]]


def estimators() -> list[Table]:
    """Log loss by data set and length of history."""
    loss = {
        (row["method"], row["data"], row["gaps"]): float(row["log_loss"])
        for row in rows_of("rates-scores.csv")
        if row["schedule"] == "all"
    }
    sets = list(dict.fromkeys(data for _, data, _ in loss))
    methods = sorted({name for name, _, _ in loss}, key=lambda name: mean(loss[name, s, g] for s in sets for g in GAPS))
    rows = [[name, *(f"{loss[name, data, gaps]:.3f}" for data in sets for gaps in GAPS)] for name in methods]
    heads = ("estimator", *(f"{data}, {gaps} gaps" for data in sets for gaps in GAPS))
    words = "Log loss of the next visit by how many gaps are known; less is better. `operational` is the default."
    return [Table(words, heads, rows)]


def policies() -> list[Table]:
    """Staleness and recall of every policy of the grand table."""
    table = contest()
    stale = {name: table.staleness(name, [BASELINE]) for name in table.policies}
    caught = {name: median(table.recall[place, name] for place in table.pages) for name in table.policies}
    rows = [[name, f"{stale[name]:.3f}", f"{caught[name]:.3f}"] for name in sorted(stale, key=stale.__getitem__)]
    words = (
        "At .03 visits a page a day, medians over the collections: staleness in units of even visits' (less is "
        f"better), and the share of changes caught (more is better). `{OURS}` is the default."
    )
    return [Table(words, ("policy", "staleness", "changes caught"), rows)]


def captures() -> list[Table]:
    """Blur and incoherence on real sites, and how well published tables are met."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows_of("sharc-real.csv"):
        found[row["strategy"], row["source"]].append(row)
    single: list[list[str]] = []
    double: list[list[str]] = []
    for name in dict.fromkeys(strategy for strategy, _ in found):
        twice = any(float(row["expected_incoherence"]) for row in found[name, "oracle"])
        metric, digits = ("incoherence", 1) if twice else ("blur", 3)
        cells = [
            f"{_share(found[name, source], f'{kind}{metric}'):.{digits}f}"
            for source in ("oracle", "learned")
            for kind in ("expected_", "" if twice else "actual_")
        ]
        (double if twice else single).append([name, *cells])
    heads = ("expected, true rates", "actual, true rates", "expected, learned rates", "actual, learned rates")
    words = "On the recorded sites, captures slowed down, means over sites; less is better."
    return [
        Table(f"Blur a page. {words}", ("visited once", *heads), sorted(single, key=_second)),
        Table(f"Incoherent pages, per cent. {words}", ("visited twice", *heads), sorted(double, key=_second)),
        _published(),
    ]


def _second(row: list[str]) -> float:
    return float(row[1])


def _share(rows: list[Row], column: str) -> float:
    """Mean over sites of a measure a page; of incoherent pages in per cent."""
    per_page = "incoherence" in column
    return mean(100 * float(row[column]) / float(row["pages"]) if per_page else float(row[column]) for row in rows)


def _published() -> Table:
    rows = []
    for file, law, rounded in (("sharc-blur.csv", "expected_whole", 0.005), ("sharc-coherence.csv", "expected", 0.5)):
        printed = [row for row in rows_of(file) if row["published"]]
        for name in dict.fromkeys(row["strategy"] for row in printed):
            own = [row for row in printed if row["strategy"] == name]
            close = sum(_distance(row, law) <= 2.0 * float(row["deviation"]) + rounded for row in own)
            off = median(_distance(row, law) / float(row["published"]) for row in own)
            kind = file.removesuffix(".csv").removeprefix("sharc-")
            rows.append([name, kind, f"{off:.1%}", f"{close} of {len(own)}"])
    words = "How far the numbers of the thesis are from what is expected of one run."
    return Table(words, ("strategy", "tables of", "median distance", "within two standard deviations"), rows)


def _distance(row: Row, law: str) -> float:
    """How far a published number is from the range of what is expected."""
    printed = float(row["published"])
    return max(printed - float(row[f"{law}_greatest"]), float(row[f"{law}_least"]) - printed, 0.0)


def prediction() -> list[Table]:
    """New links, classes and bins predicted, and crawl times."""
    areas = lbla_areas()
    links = [
        [f"{split}, {kind} links", *(f"{methods[name]:.4f}" for name in (LBLA, *ONE_FEATURE))]
        for (split, kind), methods in areas.items()
    ]
    classes = [
        [row["data"], row["method"], _percent(row["error"]), _percent(row["published"]) or "not published"]
        for row in rows_of("classes.csv")
        if row["classes"] == "logarithms of rates" and row["days"] in {"0", "1000"} and _last(row)
    ]
    bins = [
        [row["data"], row["reading"], row["features"], row["learner"], _percent(row["right"]), _rank(row)]
        for row in rows_of("sharc-prediction.csv")
        if row["site"] == "all sites"
    ]
    return [
        Table(
            "New links: area of Precision@k% for their number; more is better, a ranking by chance has 0.505. The "
            "first is ours, which looks back and around; the others know one feature.",
            ("judged on", LBLA, *ONE_FEATURE),
            links,
        ),
        Table(
            "Classes of change: pages in a wrong class, at first for static classifiers, after 1,000 days for those "
            "that visit; less is better.",
            ("data", "method", "wrong", "published"),
            classes,
        ),
        Table(
            "Bins of change rates predicted, all sites together; more is better.",
            ("data", "reading", "features", "learner", "right", "rank correlation"),
            bins,
        ),
        _crawl_times(),
    ]


def _last(row: Row) -> bool:
    """Whether it is what a method ends with: static ones visit nothing."""
    visits = "+" in row["method"]
    return (row["days"] == "1000") == visits


def _percent(text: str) -> str:
    return f"{100 * float(text):.1f} %" if text else ""


def _rank(row: Row) -> str:
    value = float(row["rank_correlation"])
    return "not defined" if isnan(value) else f"{value:.2f}"


def _crawl_times() -> Table:
    rows = []
    for kind in dict.fromkeys(row["kind"] for row in rows_of("crawl-time.csv")):
        some = [row for row in rows_of("crawl-time.csv") if row["kind"] == kind]
        errors = (_error(some, name) for name in ("printed", "corrected", "recrawl"))
        rows.append([kind, str(len(some)), *errors, f"{mean(row['covered'] == 'True' for row in some):.0%}"])
    heads = ("crawls", "number", "printed heuristic", "corrected", "recrawl", "within the 90 % interval")
    return Table(
        "Crawl times: median distance from what the crawl took, as a share of it; less is better.", heads, rows
    )


def _error(rows: Iterable[Row], name: str) -> str:
    return f"{median(abs(float(row[name]) / float(row['actual']) - 1.0) for row in rows):.1%}"


TABLES: dict[str, tuple[Callable[[], list[Table]], tuple[str, ...]]] = {
    "Estimators": (estimators, ("rates",)),
    "Policies": (policies, ("policies",)),
    "Captures": (captures, ("sharc-real", "sharc-blur", "sharc-coherence")),
    "Prediction": (prediction, ("lbla", "classes", "sharc-prediction", "crawl-time")),
}
"""By heading: what makes the tables, and the experiments they are read from."""
