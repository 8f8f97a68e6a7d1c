"""The grand table of policy benchmarks: columns, Markdown, plot and conclusions.

Published figures are for the same simulation of the same collections (algorithms §7), at .03 visits per page and day.
The conclusions compare our policy with the baseline, the reference and every other policy, case by case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from math import isnan, nan
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, Protocol

from recrawl.app.result_tables import markdown_table
from recrawl.assess.prediction_scores import MeanInterval
from recrawl.errors import counted
from recrawl.schedule.policies.policy_registry import ORACLES
from recrawl.simulate.policy_benchmark import (
    BASELINE,
    HIGHER_IS_BETTER,
    NAMED,
    OURS,
    OURS_FOR_CHANGES,
    OWN_MEASURE,
    SAME_AT_A_BUDGET,
)

if TYPE_CHECKING:
    from recrawl.app.compare.benchmark_runs import BenchmarkRun
    from recrawl.app.result_tables import PlotLine, PlotPanel
    from recrawl.assess.prediction_scores import MeanInterval
    from recrawl.simulate.benchmark_field import BenchmarkField
    from recrawl.simulate.policy_benchmark import BenchmarkTally


BUDGET = 0.03
"""Visits a page a day for which figures are printed."""


class PublishedFreshness(NamedTuple):
    """Freshness of one collection."""

    uniform: float
    best_named: float
    reference: float
    """R, the best that was known."""


FRESHNESS: dict[str, PublishedFreshness] = {
    "mdn": PublishedFreshness(0.8822, 0.8797, 0.9043),
    "18f": PublishedFreshness(0.9928, 0.9947, 0.9954),
    "digitalgov": PublishedFreshness(0.9777, 0.9793, 0.9850),
    "freebooks": PublishedFreshness(0.9201, 0.9276, 0.9302),
    "llvm": PublishedFreshness(0.9723, 0.9840, 0.9861),
    "nodejs": PublishedFreshness(0.9780, 0.9789, 0.9833),
    "jekylldocs": PublishedFreshness(0.9772, 0.9833, 0.9839),
    "wcag": PublishedFreshness(0.9820, 0.9841, 0.9885),
    "phpnet": PublishedFreshness(0.9866, 0.9918, 0.9936),
    "til": PublishedFreshness(0.9932, 0.9970, 0.9971),
    "twir": PublishedFreshness(0.9943, 0.9980, 0.9987),
    "uvarc": PublishedFreshness(0.9617, 0.9706, 0.9745),
    "ropensci": PublishedFreshness(0.9933, 0.9946, 0.9958),
    "carpentries": PublishedFreshness(0.9984, 0.9994, 0.9997),
    "awesome": PublishedFreshness(0.5024, 0.5120, 0.5094),
    "data-sources": PublishedFreshness(0.8985, 0.9064, 0.9205),
}
"""By collection."""


_MANY = 100
"""Pages from which on a collection must not be worse off than with even visits ..."""
_SLACK = 1e-3
"""... by more than this share of its copies."""


_WORSE_HEADS = ("policy", "collection", "visits a page a day", "ours", "best other", "difference")


class VerdictNumbers(Protocol):
    """What is asked of a grand table."""

    policies: Sequence[str]
    budgets: Sequence[float]
    as_printed: bool
    """Whether whole collections were visited by the rules of the figures that are printed."""

    @property
    def fields(self) -> Mapping[str, Sized]:
        """Collections of pages by name."""
        ...

    def ratio(self, field: str, policy: str, budget: float, metric: str) -> float:
        """One number; NaN where it is not known."""
        ...

    def difference(self, field: str, policy: str, than: str, budget: float, metric: str) -> MeanInterval:
        """How far one policy is above another."""
        ...

    def median_staleness(self, policy: str, than: str, budget: float) -> float:
        """Median over collections of staleness in units of that of another policy; of the best named one if ""."""
        ...


@dataclass(frozen=True, slots=True)
class VerdictCase:
    """One of ours against the best of its rivals, by its own measure."""

    ours: str
    metric: str
    field: str
    budget: float
    rival: str
    gain: MeanInterval
    """How much better ours is, in units of the measure; below 0 where it is worse."""

    @property
    def verdict(self) -> str:
        """``better``, ``worse``, or ``level`` where the interval holds 0."""
        if self.gain.low <= 0.0 <= self.gain.high:
            return "level"
        return "better" if self.gain.low > 0.0 else "worse"


def rivals(table: VerdictNumbers, ours: str, *, own_too: bool) -> list[str]:
    """Whom one of ours is measured against: policies of others and even visits; with ``own_too``, all but oracles.

    A policy that makes the same visits as ours is none.
    """
    same = SAME_AT_A_BUDGET.get(ours, ours)
    return [
        name
        for name in table.policies
        if SAME_AT_A_BUDGET.get(name, name) != same
        and name not in ORACLES
        and (own_too or name in NAMED or name == BASELINE)
    ]


def cases(table: VerdictNumbers, *, own_too: bool = False) -> Iterator[VerdictCase]:
    """Every collection and budget at which something had to be chosen, for each of ours."""
    for ours, metric in OWN_MEASURE.items():
        others = rivals(table, ours, own_too=own_too)
        if ours not in table.policies or not others:
            continue
        sign = 1.0 if metric in HIGHER_IS_BETTER else -1.0
        for field in table.fields:
            for budget in table.budgets:
                scores = {name: sign * table.ratio(field, name, budget, metric) for name in (ours, *others)}
                scores = {name: score for name, score in scores.items() if not isnan(score)}
                if ours not in scores or len(scores) == 1 or len(set(scores.values())) == 1:
                    continue
                rival = max((name for name in others if name in scores), key=scores.__getitem__)
                apart = table.difference(field, ours, rival, budget, metric)
                low, high = sorted((sign * apart.low, sign * apart.high))
                yield VerdictCase(ours, metric, field, budget, rival, MeanInterval(sign * apart.mean, low, high))


def dashed(value: float, digits: int) -> str:
    """A number, or a dash for what is not known."""
    return "–" if isnan(value) else f"{value:.{digits}f}"


def own_measures(table: VerdictNumbers) -> str:
    """How often each of ours is better than, level with and worse than the best of its rivals; then the worse ones."""
    found, among_all = list(cases(table)), list(cases(table, own_too=True))
    rows = []
    for ours, metric in OWN_MEASURE.items():
        if any(case.ours == ours for case in found):
            rows.append([ours, metric, *_counted(found, ours), *_counted(among_all, ours)])
    if not rows:
        return ""
    words = ("better", "level", "worse")
    parts = [_OWN_NOTE, markdown_table(["policy", "measure", *words, *(f"{word}, of all" for word in words)], rows)]
    worse = [_worse(table, case) for case in found if case.verdict == "worse"]
    if worse:
        parts += [
            "Worse than one of others, with an interval that does not hold 0:",
            markdown_table(_WORSE_HEADS, worse),
        ]
    else:
        parts.append("In no case is ours worse than one of others with an interval that does not hold 0.")
    beaten = [_worse(table, case) for case in among_all if case.verdict == "worse" and case.rival in OWN_MEASURE]
    if beaten:
        parts += ["Worse than ours with another objective, likewise:", markdown_table(_WORSE_HEADS, beaten)]
    return "\n\n".join(parts)


def _counted(found: Sequence[VerdictCase], ours: str) -> list[str]:
    """How many cases of one of ours are better, level and worse."""
    verdicts = [case.verdict for case in found if case.ours == ours]
    return [str(verdicts.count(word)) for word in ("better", "level", "worse")]


def _worse(table: VerdictNumbers, case: VerdictCase) -> list[str]:
    ours, best = (table.ratio(case.field, name, case.budget, case.metric) for name in (case.ours, case.rival))
    apart = f"{case.gain.mean:+.4f} ({case.gain.low:+.4f} to {case.gain.high:+.4f})"
    return [case.ours, case.field, f"{case.budget:g}", f"{ours:.4f}", f"{best:.4f} {case.rival}", apart]


def in_short(table: VerdictNumbers) -> str:
    """Budget by budget: staleness of the default, whom it leaves worse off, and who catches most changes."""
    if not {OURS, BASELINE} <= set(table.policies) or not set(NAMED) & set(table.policies):
        return ""
    rows = []
    for budget in table.budgets:
        row = [f"{budget:g}"]
        row += [dashed(table.median_staleness(OURS, than, budget), 3) for than in (BASELINE, "")]
        row.append(", ".join(_behind(table, budget)) or "none")
        if OURS_FOR_CHANGES in table.policies:
            row += [_won(table, budget, own_too=own_too) for own_too in (False, True)]
        rows.append(row)
    heads = ["visits a page a day", "against even visits", "against the best named", "worse off than with even visits"]
    if OURS_FOR_CHANGES in table.policies:
        heads += ["most changes caught, beside those of others", "most changes caught, of all"]
    return f"{_SHORT_NOTE}\n\n{markdown_table(heads, rows)}"


def _behind(table: VerdictNumbers, budget: float) -> list[str]:
    """Collections of many pages that the default leaves worse off than even visits."""
    return [
        name
        for name, field in table.fields.items()
        if len(field) >= _MANY
        and table.ratio(name, OURS, budget, "freshness") < table.ratio(name, BASELINE, budget, "freshness") - _SLACK
    ]


def _won(table: VerdictNumbers, budget: float, *, own_too: bool) -> str:
    """On how many collections ours for changes catches no fewer than any rival, and on which it does not."""
    others = rivals(table, OURS_FOR_CHANGES, own_too=own_too)
    held = [field for field in table.fields if not isnan(table.ratio(field, OURS_FOR_CHANGES, budget, "recall"))]
    lost = [
        field
        for field in held
        if any(
            table.ratio(field, OURS_FOR_CHANGES, budget, "recall") < table.ratio(field, name, budget, "recall")
            for name in others
        )
    ]
    won = f"{len(held) - len(lost)} of {len(held)}"
    return f"{won}, not {', '.join(lost)}" if lost else won


def beside_the_reference(table: VerdictNumbers) -> str:
    """Printed and own freshness, collection by collection, where the table holds what was printed."""
    if OURS not in table.policies or BUDGET not in table.budgets or not table.as_printed:
        return ""
    rows, ratios = [], []
    for name, printed in FRESHNESS.items():
        ours = table.ratio(name, OURS, BUDGET, "freshness") if name in table.fields else float("nan")
        if isnan(ours):
            continue
        ratios.append(((1.0 - ours) / (1.0 - printed.best_named), (1.0 - ours) / (1.0 - printed.reference)))
        even = f"{table.ratio(name, BASELINE, BUDGET, 'freshness'):.4f}" if BASELINE in table.policies else "–"
        rows.append(
            [
                name,
                f"{printed.uniform:.4f}",
                even,
                f"{printed.best_named:.4f}",
                f"{printed.reference:.4f}",
                f"{ours:.4f}",
                f"{ours - printed.reference:+.4f}",
            ]
        )
    heads = ["collection", "uniform, printed", "here", "best named, printed", "R, printed", "ours", "ours − R"]
    if not rows:
        return ""
    named, best = (median(ratio) for ratio in zip(*ratios, strict=True))
    staleness = (
        f"In the median, staleness is {named:.3f} of that of the best named policy as printed, {best:.3f} of R's."
    )
    return "\n\n".join([_REFERENCE_NOTE, markdown_table(heads, rows), staleness])


_SHORT_NOTE = f"""\
Staleness of `{OURS}` as the median over collections of its ratio to that of `{BASELINE}`, and to that of the best
named policy of each collection. Worse off are collections of {_MANY} pages or more whose freshness is lower than
with even visits by more than {_SLACK:g}. Most changes caught: on how many collections none of the rivals has a higher
recall than `{OURS_FOR_CHANGES}`. Rivals are the policies of the papers and of other crawlers and even visits; then all
policies of this table, ours with other objectives among them."""
_OWN_NOTE = """\
Each of ours against the best of its rivals, by what it is after: one case for each collection and budget that leaves a
choice. Rivals are the policies of the papers and of other crawlers and even visits; in the columns "of all" also ours
with other objectives. Level means that the 95 % interval of the difference holds 0. Whole clusters of pages are
resampled, in pairs; pages where a collection has fewer than five clusters. Differences above 0 are in favour of
ours."""
_REFERENCE_NOTE = f"""\
Freshness at {BUDGET:g} visits a page a day beside the figures printed in algorithms §7, where differences below .002
count as ties. R is the reference there."""


HEADLINE_METRICS = ("freshness", "recall")
"""Metrics that get intervals and tables; the others are in the CSV file."""
_DAYS_A_YEAR = 365.0


class GrandTable:
    """All tallies, and what they say. A run that was not held is a dash in the tables."""

    def __init__(
        self,
        fields: Mapping[str, BenchmarkField],
        tallies: Mapping[BenchmarkRun, BenchmarkTally],
        seed: int,
        *,
        as_printed: bool = False,
    ) -> None:
        """``as_printed`` tells that whole collections were visited by the rules of the figures that are printed."""
        self.as_printed = as_printed
        self.fields, self._tallies, self._seed = fields, tallies, seed
        self.policies: Sequence[str] = list(dict.fromkeys(run.policy for run in tallies))
        self.budgets: Sequence[float] = sorted({run.budget for run in tallies})

    def ratio(self, field: str, policy: str, budget: float, metric: str) -> float:
        """One number of the table; NaN where the run was not held."""
        from recrawl.app.compare.benchmark_runs import BenchmarkRun

        tally = self._tallies.get(BenchmarkRun(field, policy, budget))
        return float("nan") if tally is None else tally.ratio(metric)

    def interval(self, run: BenchmarkRun, metric: str, than: str | None = None) -> MeanInterval:
        """A number with its interval; with ``than``, of the difference to that policy, in pairs."""
        import numpy as np

        from recrawl.app.compare.benchmark_runs import BenchmarkRun

        other = None if than is None else self._tallies[BenchmarkRun(run.field, than, run.budget)]
        groups, rng = self.fields[run.field].cluster, np.random.default_rng(self._seed)
        if len(np.unique(groups)) < _FEWEST:
            groups = np.arange(len(groups))
        return self._tallies[run].interval(metric, groups, rng, than=other)

    def difference(self, field: str, policy: str, than: str, budget: float, metric: str) -> MeanInterval:
        """How far one policy is above another."""
        from recrawl.app.compare.benchmark_runs import BenchmarkRun

        return self.interval(BenchmarkRun(field, policy, budget), metric, than)

    def median_staleness(self, policy: str, than: str, budget: float) -> float:
        """Median over collections of staleness in units of that of another policy; of the best named one if ""."""
        import numpy as np

        from recrawl.simulate.policy_benchmark import NAMED

        others = [than] if than else [name for name in self.policies if name in NAMED]
        ratios = []
        for field in self.fields:
            own, *stale = (1.0 - self.ratio(field, name, budget, "freshness") for name in (policy, *others))
            ratios.append(own / min(stale) if min(stale) > 0 else 1.0)
        return float(np.median(ratios))

    # -- CSV -------------------------------------------------------------------------------------

    def columns(self) -> dict[str, list[object]]:
        """Every number, one row per run."""
        rows = [self._row(run) for run in self._tallies]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def _row(self, run: BenchmarkRun) -> dict[str, object]:
        field, tally = self.fields[run.field], self._tallies[run]
        row: dict[str, object] = {
            "collection": run.field,
            "pages": len(field),
            "policy": run.policy,
            "budget": run.budget,
            "changes": int(tally.changes.sum()),
            "visits": int(tally.visits.sum()),
            "caught": int(tally.caught.sum()),
            **tally.summary(),
        }
        for metric in HEADLINE_METRICS:
            _, row[f"{metric}_low"], row[f"{metric}_high"] = self.interval(run, metric)
        return row

    # -- Markdown --------------------------------------------------------------------------------

    def report(self) -> str:
        """What it decides, the summary, ours against the best of the others, and the whole grid."""
        from recrawl.simulate.policy_benchmark import BASELINE, OURS, OURS_FOR_CHANGES

        pages = sum(len(field) for field in self.fields.values())
        budgets = ", ".join(f"{budget:g}" for budget in self.budgets)
        whole = f"{counted(len(self.fields), 'collection')} with {counted(pages, 'page')}"
        parts = [
            f"{_policies(len(self.policies))}, {whole}; budgets of\n{budgets} visits a page a day. Seed {self._seed}."
        ]
        for title, text in (
            ("In short", in_short(self)),
            ("Beside the reference", beside_the_reference(self)),
            ("Each objective by its own measure", own_measures(self)),
        ):
            parts += [f"## {title}", text] if text else []
        if BASELINE in self.policies:
            parts += ["## Staleness against even visits", _STALENESS_NOTE, self._summary("staleness")]
        parts += ["## Changes caught\n\nMedian over collections of the recall of changes.", self._summary("recall")]
        for metric, ours in (("freshness", OURS), ("recall", OURS_FOR_CHANGES)):
            if ours in self.policies:
                parts += [f"## {metric.capitalize()}, collection by collection", self._duels(metric, ours)]
        for metric in HEADLINE_METRICS:
            parts += [f"## {metric.capitalize()} of every policy", self._grids(metric)]
        return "\n\n".join(parts) + "\n"

    def _summary(self, metric: str) -> str:
        from recrawl.app.result_tables import markdown_table
        from recrawl.simulate.policy_benchmark import labelled

        rows = [
            [labelled(policy), *(dashed(self._median(policy, budget, metric), 3) for budget in self.budgets)]
            for policy in self.policies
        ]
        return markdown_table(["policy", *(f"{budget:g}" for budget in self.budgets)], rows)

    def _over_fields(self, policy: str, budget: float, metric: str) -> list[float]:
        """Of each collection: recall, or staleness over that of uniform."""
        if metric != "staleness":
            return [self.ratio(field, policy, budget, metric) for field in self.fields]
        stale = [
            [1.0 - self.ratio(field, name, budget, "freshness") for field in self.fields]
            for name in (policy, "uniform")
        ]
        return [own / even if even > 0 else 1.0 for own, even in zip(*stale, strict=True)]

    def _median(self, policy: str, budget: float, metric: str) -> float:
        """Over all collections, or NaN: over some of them it could not be compared."""
        import numpy as np

        return float(np.median(self._over_fields(policy, budget, metric)))

    def _duels(self, metric: str, ours: str) -> str:
        """For each budget: uniform, the best of the others, ours, and the difference of the last two."""
        from recrawl.app.result_tables import markdown_table

        note = (
            f"Ours is `{ours}`. The difference is to the best named policy of the row, with a 95 % interval from "
            "resampling whole clusters of pages, in pairs."
        )
        tables = [note]
        for budget in self.budgets:
            rows = [self._duel(field, budget, metric, ours) for field in self.fields]
            tables.append(f"At {budget:g} visits a page a day:")
            tables.append(markdown_table(["collection", "pages", "uniform", "best named", "ours", "difference"], rows))
        return "\n\n".join(tables)

    def _duel(self, field: str, budget: float, metric: str, ours: str) -> list[str]:
        from recrawl.app.compare.benchmark_runs import BenchmarkRun
        from recrawl.simulate.policy_benchmark import BASELINE, NAMED

        def shown(policy: str) -> str:
            return dashed(self.ratio(field, policy, budget, metric), 4)

        scores = {name: self.ratio(field, name, budget, metric) for name in self.policies if name in NAMED}
        held = {name: score for name, score in scores.items() if not isnan(score)}
        best, apart = "–", "–"
        if held and shown(ours) != "–":
            rival = max(held, key=held.__getitem__)
            best = f"{shown(rival)} {rival}"
            difference = self.interval(BenchmarkRun(field, ours, budget), metric, than=rival)
            apart = f"{difference.mean:+.4f} ({difference.low:+.4f} to {difference.high:+.4f})"
        return [field, f"{len(self.fields[field]):,}", shown(BASELINE), best, shown(ours), apart]

    def _grids(self, metric: str) -> str:
        """For each budget, a row a policy and a column a collection; the best of a column, but oracles, is bold."""
        from recrawl.app.result_tables import markdown_table
        from recrawl.schedule.policies.policy_registry import ORACLES
        from recrawl.simulate.policy_benchmark import labelled

        tables = []
        for budget in self.budgets:
            grid = {p: [self.ratio(field, p, budget, metric) for field in self.fields] for p in self.policies}
            usable = [row for name, row in grid.items() if name not in ORACLES]
            best = [max((_or_least(row[place]) for row in usable), default=nan) for place in range(len(self.fields))]
            rows = []
            for name, row in grid.items():
                tops = [nan] * len(row) if name in ORACLES else best
                cells = (f"**{v:.4f}**" if v == top else dashed(v, 4) for v, top in zip(row, tops, strict=True))
                rows.append([labelled(name), *cells])
            tables += [f"At {budget:g} visits a page a day:", markdown_table(["policy", *self.fields], rows)]
        return "\n\n".join(tables)

    # -- plots --------------------------------------------------------------------------------

    def panels(self) -> list[PlotPanel]:
        """Medians over collections against the budget, the middle half of the collections as a band."""
        from recrawl.app.result_tables import PlotPanel

        titles = {"recall": "changes caught"}
        if "uniform" in self.policies:
            titles = {"staleness": "stale copies, in units of even visits'"} | titles
        drawn = self._drawn(list(titles))
        return [PlotPanel(title, [self._line(name, metric) for name in drawn]) for metric, title in titles.items()]

    def _drawn(self, metrics: Sequence[str]) -> list[str]:
        """Ours, the baseline, and the best named policies in the middle of the budgets: more lines are unreadable.

        The same in all panels, so that each policy has one colour.
        """
        from recrawl.simulate.policy_benchmark import BASELINE, NAMED, OURS, OURS_FOR_CHANGES, SAME_AT_A_BUDGET

        middle = self.budgets[len(self.budgets) // 2]
        shown = [name for name in (BASELINE, OURS, OURS_FOR_CHANGES) if name in self.policies]
        others = [name for name in self.policies if name in NAMED and name not in SAME_AT_A_BUDGET]
        best: list[str] = []
        for metric in metrics:
            sign = 1.0 if metric == "staleness" else -1.0
            known = {name: sign * self._median(name, middle, metric) for name in others}
            best += sorted((name for name in others if not isnan(known[name])), key=known.__getitem__)[:_BEST]
        return [*dict.fromkeys(best), *shown]

    def _line(self, policy: str, metric: str) -> PlotLine:
        import numpy as np

        from recrawl.app.result_tables import PlotLine
        from recrawl.simulate.policy_benchmark import OURS

        held = [budget for budget in self.budgets if not isnan(self._median(policy, budget, metric))]
        spread = [np.quantile(self._over_fields(policy, budget, metric), [0.25, 0.5, 0.75]) for budget in held]
        low, middle, high = np.reshape(spread, (-1, 3)).T.tolist()
        return PlotLine(policy, [budget * _DAYS_A_YEAR for budget in held], middle, low, high, ours=policy == OURS)


_FEWEST = 5
"""Clusters from which on whole clusters are resampled; pages where there are fewer."""
_BEST = 4
"""Policies drawn for each metric beside ours and the baseline."""
_STALENESS_NOTE = """\
Median over collections of the share of stale copies, in units of the share that visiting every page equally often
leaves. Lower is better."""


def _policies(number: int) -> str:
    return counted(number, "policy", "policies")


def _or_least(value: float) -> float:
    """A number to compare by: what is not known is least."""
    return float("-inf") if isnan(value) else value
