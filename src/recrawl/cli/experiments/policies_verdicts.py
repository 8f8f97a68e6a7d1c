"""What the grand table decides: ours against the yardstick, the reference and every other policy, case by case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from math import isnan
from statistics import median
from typing import Protocol

from recrawl.assess.scores import Interval
from recrawl.cli.experiments.policies_published import BUDGET, FRESHNESS
from recrawl.schedule.policies import ORACLES
from recrawl.show.experiments import markdown_table
from recrawl.simulate.contest_entries import NAMED, OURS, OURS_FOR_CHANGES, OWN_MEASURE, SAME_AT_A_BUDGET, YARDSTICK
from recrawl.simulate.contest_tally import HIGHER_IS_BETTER

_MANY = 100
"""Pages from which on a collection must not be worse off than with even visits ..."""
_SLACK = 1e-3
"""... by more than this share of its copies."""


_WORSE_HEADS = ("policy", "collection", "visits a page a day", "ours", "best other", "difference")


class Numbers(Protocol):
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

    def difference(self, field: str, policy: str, than: str, budget: float, metric: str) -> Interval:
        """How far one policy is above another."""
        ...

    def median_staleness(self, policy: str, than: str, budget: float) -> float:
        """Median over collections of staleness in units of that of another policy; of the best named one if ""."""
        ...


@dataclass(frozen=True, slots=True)
class Case:
    """One of ours against the best of its rivals, by its own measure."""

    ours: str
    metric: str
    field: str
    budget: float
    rival: str
    gain: Interval
    """How much better ours is, in units of the measure; below 0 where it is worse."""

    @property
    def verdict(self) -> str:
        """``better``, ``worse``, or ``level`` where the interval holds 0."""
        if self.gain.low <= 0.0 <= self.gain.high:
            return "level"
        return "better" if self.gain.low > 0.0 else "worse"


def rivals(table: Numbers, ours: str, *, own_too: bool) -> list[str]:
    """Whom one of ours is measured against: policies of others and even visits; with ``own_too``, all but oracles.

    A policy that makes the same visits as ours is none.
    """
    same = SAME_AT_A_BUDGET.get(ours, ours)
    return [
        name
        for name in table.policies
        if SAME_AT_A_BUDGET.get(name, name) != same
        and name not in ORACLES
        and (own_too or name in NAMED or name == YARDSTICK)
    ]


def cases(table: Numbers, *, own_too: bool = False) -> Iterator[Case]:
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
                yield Case(ours, metric, field, budget, rival, Interval(sign * apart.mean, low, high))


def dashed(value: float, digits: int) -> str:
    """A number, or a dash for what is not known."""
    return "–" if isnan(value) else f"{value:.{digits}f}"


def own_measures(table: Numbers) -> str:
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


def _counted(found: Sequence[Case], ours: str) -> list[str]:
    """How many cases of one of ours are better, level and worse."""
    verdicts = [case.verdict for case in found if case.ours == ours]
    return [str(verdicts.count(word)) for word in ("better", "level", "worse")]


def _worse(table: Numbers, case: Case) -> list[str]:
    ours, best = (table.ratio(case.field, name, case.budget, case.metric) for name in (case.ours, case.rival))
    apart = f"{case.gain.mean:+.4f} ({case.gain.low:+.4f} to {case.gain.high:+.4f})"
    return [case.ours, case.field, f"{case.budget:g}", f"{ours:.4f}", f"{best:.4f} {case.rival}", apart]


def in_short(table: Numbers) -> str:
    """Budget by budget: staleness of the default, whom it leaves worse off, and who catches most changes."""
    if not {OURS, YARDSTICK} <= set(table.policies) or not set(NAMED) & set(table.policies):
        return ""
    rows = []
    for budget in table.budgets:
        row = [f"{budget:g}"]
        row += [dashed(table.median_staleness(OURS, than, budget), 3) for than in (YARDSTICK, "")]
        row.append(", ".join(_behind(table, budget)) or "none")
        if OURS_FOR_CHANGES in table.policies:
            row += [_won(table, budget, own_too=own_too) for own_too in (False, True)]
        rows.append(row)
    heads = ["visits a page a day", "against even visits", "against the best named", "worse off than with even visits"]
    if OURS_FOR_CHANGES in table.policies:
        heads += ["most changes caught, beside those of others", "most changes caught, of all"]
    return f"{_SHORT_NOTE}\n\n{markdown_table(heads, rows)}"


def _behind(table: Numbers, budget: float) -> list[str]:
    """Collections of many pages that the default leaves worse off than even visits."""
    return [
        name
        for name, field in table.fields.items()
        if len(field) >= _MANY
        and table.ratio(name, OURS, budget, "freshness") < table.ratio(name, YARDSTICK, budget, "freshness") - _SLACK
    ]


def _won(table: Numbers, budget: float, *, own_too: bool) -> str:
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


def beside_the_reference(table: Numbers) -> str:
    """Printed and own freshness, collection by collection, where the table holds what was printed."""
    if OURS not in table.policies or BUDGET not in table.budgets or not table.as_printed:
        return ""
    rows, ratios = [], []
    for name, printed in FRESHNESS.items():
        ours = table.ratio(name, OURS, BUDGET, "freshness") if name in table.fields else float("nan")
        if isnan(ours):
            continue
        ratios.append(((1.0 - ours) / (1.0 - printed.best_named), (1.0 - ours) / (1.0 - printed.reference)))
        even = f"{table.ratio(name, YARDSTICK, BUDGET, 'freshness'):.4f}" if YARDSTICK in table.policies else "–"
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
Staleness of `{OURS}` as the median over collections of its ratio to that of `{YARDSTICK}`, and to that of the best
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
