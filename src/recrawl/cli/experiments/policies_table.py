"""What the contests of the grand table say: as columns, in Markdown, and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import TYPE_CHECKING

from recrawl.cli.experiments.policies_verdicts import beside_the_reference, dashed, in_short, own_measures
from recrawl.model.words import counted

if TYPE_CHECKING:
    from recrawl.assess.scores import Interval
    from recrawl.cli.contest_runs import Run
    from recrawl.show.experiments import Line, Panel
    from recrawl.simulate.contest_field import Field
    from recrawl.simulate.contest_tally import Tally

JUDGED = ("freshness", "recall")
"""Metrics that get intervals and tables; the others are in the CSV file."""
_DAYS_A_YEAR = 365.0


class GrandTable:
    """All tallies, and what they say. A run that was not held is a dash in the tables."""

    def __init__(
        self, fields: Mapping[str, Field], tallies: Mapping[Run, Tally], seed: int, *, as_printed: bool = False
    ) -> None:
        """``as_printed`` tells that whole collections were visited by the rules of the figures that are printed."""
        self.as_printed = as_printed
        self.fields, self._tallies, self._seed = fields, tallies, seed
        self.policies: Sequence[str] = list(dict.fromkeys(run.policy for run in tallies))
        self.budgets: Sequence[float] = sorted({run.budget for run in tallies})

    def ratio(self, field: str, policy: str, budget: float, metric: str) -> float:
        """One number of the table; NaN where the run was not held."""
        from recrawl.cli.contest_runs import Run

        tally = self._tallies.get(Run(field, policy, budget))
        return float("nan") if tally is None else tally.ratio(metric)

    def interval(self, run: Run, metric: str, than: str | None = None) -> Interval:
        """A number with its interval; with ``than``, of the difference to that policy, in pairs."""
        import numpy as np

        from recrawl.cli.contest_runs import Run

        other = None if than is None else self._tallies[Run(run.field, than, run.budget)]
        groups, rng = self.fields[run.field].cluster, np.random.default_rng(self._seed)
        if len(np.unique(groups)) < _FEWEST:
            groups = np.arange(len(groups))
        return self._tallies[run].interval(metric, groups, rng, than=other)

    def difference(self, field: str, policy: str, than: str, budget: float, metric: str) -> Interval:
        """How far one policy is above another."""
        from recrawl.cli.contest_runs import Run

        return self.interval(Run(field, policy, budget), metric, than)

    def median_staleness(self, policy: str, than: str, budget: float) -> float:
        """Median over collections of staleness in units of that of another policy; of the best named one if ""."""
        import numpy as np

        from recrawl.simulate.contest_entries import NAMED

        others = [than] if than else [name for name in self.policies if name in NAMED]
        ratios = []
        for field in self.fields:
            own, *stale = (1.0 - self.ratio(field, name, budget, "freshness") for name in (policy, *others))
            ratios.append(own / min(stale) if min(stale) > 0 else 1.0)
        return float(np.median(ratios))

    # -- CSV -------------------------------------------------------------------------------------

    def columns(self) -> dict[str, list[object]]:
        """Every number, one row a run."""
        rows = [self._row(run) for run in self._tallies]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def _row(self, run: Run) -> dict[str, object]:
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
        for metric in JUDGED:
            _, row[f"{metric}_low"], row[f"{metric}_high"] = self.interval(run, metric)
        return row

    # -- Markdown --------------------------------------------------------------------------------

    def report(self) -> str:
        """What it decides, the summary, ours against the best of the others, and the whole grid."""
        from recrawl.simulate.contest_entries import OURS, OURS_FOR_CHANGES, YARDSTICK

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
        if YARDSTICK in self.policies:
            parts += ["## Staleness against even visits", _STALENESS_NOTE, self._summary("staleness")]
        parts += ["## Changes caught\n\nMedian over collections of the recall of changes.", self._summary("recall")]
        for metric, ours in (("freshness", OURS), ("recall", OURS_FOR_CHANGES)):
            if ours in self.policies:
                parts += [f"## {metric.capitalize()}, collection by collection", self._duels(metric, ours)]
        for metric in JUDGED:
            parts += [f"## {metric.capitalize()} of every policy", self._grids(metric)]
        return "\n\n".join(parts) + "\n"

    def _summary(self, metric: str) -> str:
        from recrawl.show.experiments import markdown_table
        from recrawl.simulate.contest_entries import labelled

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
        from recrawl.show.experiments import markdown_table

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
        from recrawl.cli.contest_runs import Run
        from recrawl.simulate.contest_entries import NAMED, YARDSTICK

        def shown(policy: str) -> str:
            return dashed(self.ratio(field, policy, budget, metric), 4)

        scores = {name: self.ratio(field, name, budget, metric) for name in self.policies if name in NAMED}
        held = {name: score for name, score in scores.items() if not isnan(score)}
        best, apart = "–", "–"
        if held and shown(ours) != "–":
            rival = max(held, key=held.__getitem__)
            best = f"{shown(rival)} {rival}"
            difference = self.interval(Run(field, ours, budget), metric, than=rival)
            apart = f"{difference.mean:+.4f} ({difference.low:+.4f} to {difference.high:+.4f})"
        return [field, f"{len(self.fields[field]):,}", shown(YARDSTICK), best, shown(ours), apart]

    def _grids(self, metric: str) -> str:
        """For each budget, a row a policy and a column a collection; the best of a column, but oracles, is bold."""
        from recrawl.schedule.policies import ORACLES
        from recrawl.show.experiments import markdown_table
        from recrawl.simulate.contest_entries import labelled

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

    # -- pictures --------------------------------------------------------------------------------

    def panels(self) -> list[Panel]:
        """Medians over collections against the budget, the middle half of the collections as a band."""
        from recrawl.show.experiments import Panel

        titles = {"recall": "changes caught"}
        if "uniform" in self.policies:
            titles = {"staleness": "stale copies, in units of even visits'"} | titles
        drawn = self._drawn(list(titles))
        return [Panel(title, [self._line(name, metric) for name in drawn]) for metric, title in titles.items()]

    def _drawn(self, metrics: Sequence[str]) -> list[str]:
        """Ours, the yardstick, and the best named policies in the middle of the budgets: more lines nobody can read.

        The same in all panels, so that each policy has one colour.
        """
        from recrawl.simulate.contest_entries import NAMED, OURS, OURS_FOR_CHANGES, SAME_AT_A_BUDGET, YARDSTICK

        middle = self.budgets[len(self.budgets) // 2]
        shown = [name for name in (YARDSTICK, OURS, OURS_FOR_CHANGES) if name in self.policies]
        others = [name for name in self.policies if name in NAMED and name not in SAME_AT_A_BUDGET]
        best: list[str] = []
        for metric in metrics:
            sign = 1.0 if metric == "staleness" else -1.0
            known = {name: sign * self._median(name, middle, metric) for name in others}
            best += sorted((name for name in others if not isnan(known[name])), key=known.__getitem__)[:_BEST]
        return [*dict.fromkeys(best), *shown]

    def _line(self, policy: str, metric: str) -> Line:
        import numpy as np

        from recrawl.show.experiments import Line
        from recrawl.simulate.contest_entries import OURS

        held = [budget for budget in self.budgets if not isnan(self._median(policy, budget, metric))]
        spread = [np.quantile(self._over_fields(policy, budget, metric), [0.25, 0.5, 0.75]) for budget in held]
        low, middle, high = np.reshape(spread, (-1, 3)).T.tolist()
        return Line(policy, [budget * _DAYS_A_YEAR for budget in held], middle, low, high, ours=policy == OURS)


_FEWEST = 5
"""Clusters from which on whole clusters are resampled; pages where there are fewer."""
_BEST = 4
"""Policies drawn for each metric beside ours and the yardstick."""
_STALENESS_NOTE = """\
Median over collections of the share of stale copies, in units of the share that visiting every page equally often
leaves. Lower is better."""


def _policies(number: int) -> str:
    return counted(number, "policy", "policies")


def _or_least(value: float) -> float:
    """A number to compare by: what is not known is least."""
    return float("-inf") if isnan(value) else value
