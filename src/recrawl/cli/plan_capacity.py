"""``recrawl plan --capacity``: what a budget keeps, what a goal costs, how many pages and machines that is."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
import typer

from recrawl.cli.plan_next import host_capacity, shown_price, what_if
from recrawl.cli.plan_outlook import Outlook
from recrawl.errors import InputError
from recrawl.plan.keeping import Limits, Machines, Measure, keep_many, machines_for
from recrawl.time import DAY, format_duration

SAMPLE = 20_000
"""Of more pages so many stand for all."""


NOTICED = 0.002
"""A goal missed by less is no news."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What is to be reached."""

    measure: Measure
    share: float | None


def tell_capacity(outlook: Outlook, goal: Goal, pages: int | None, threads: int, *, json_output: bool) -> None:
    """Print what this budget does for pages of this kind, and what a goal takes. One machine spends the budget."""
    from recrawl.cli.tables import print_json, print_table

    if outlook.budget <= 0:
        raise InputError("A budget of 0 visits keeps nothing.", "Try one: --set schedule.budget=1000.")
    demand, limits = outlook.demand, outlook.limits
    if len(demand) > SAMPLE:
        some = np.linspace(0, len(demand) - 1, SAMPLE).astype(np.int64)
        demand, limits = demand.take(some), Limits(limits.host[some], limits.most * SAMPLE / len(demand))
    asked = len(outlook.pages) if pages is None else pages
    busiest = busiest_visits(outlook, threads)
    machine = min(outlook.budget, busiest)
    kept = keep_many(demand, machine, asked, limits)
    share = goal.share if goal.share is not None else _round_up(kept.measure(goal.measure))
    reach = machines_for(demand, share, goal.measure, machine, asked)
    hosts = host_capacity(outlook, what_if(outlook).rate, threads)
    if json_output:
        facts = {"pages": asked, "budget_per_day": outlook.budget * DAY, "threads_visits_per_day": busiest * DAY}
        bounds = {"hosts_visits_per_day": hosts.largest_budget * DAY, "round_seconds": hosts.round_seconds}
        wanted = {"measure": goal.measure, "share": share, "reached": None if reach is None else asdict(reach)}
        print_json({**facts, **bounds, "kept": asdict(kept), "goal": wanted})
        return
    scaled = asked / len(outlook.pages)
    rows = [
        ("pages", f"{asked:,}" + (f", as the {len(outlook.pages):,} here" if pages is not None else "")),
        ("budget", f"{outlook.budget * DAY:,.1f} visits a day"),
        (
            "threads could make",
            f"{busiest * DAY:,.0f} visits a day, hosts could take {hosts.largest_budget * DAY:,.0f} here",
        ),
        ("keeps current", f"{kept.freshness:.1%} of the pages"),
        ("finds", f"{kept.found * DAY:,.1f} of {kept.happening * DAY:,.1f} changes a day ({kept.recall:.1%})"),
        ("price of a visit", shown_price(kept.price, outlook.settings.schedule.objective)),
    ]
    if kept.feasible:
        print_table(("", ""), rows)
    else:
        least = format_duration(outlook.settings.schedule.max_interval)
        needed = float((outlook.pages.cost / outlook.settings.schedule.max_interval).sum()) * scaled * DAY
        print_table(("", ""), rows[:3])
        typer.echo(f"One visit to each page in {least} alone takes {needed:,.1f} visits a day: more than there are.")
    typer.echo(_sentence(goal.measure, share, asked, reach))
    if reach is not None:
        bound = keep_many(demand, reach.spending * 1.001, asked, limits).measure(goal.measure)
        if bound < share - NOTICED:
            typer.echo(
                f"The rests that hosts are given allow only {bound:.1%} for it: pages on slow hosts stay behind."
            )


def busiest_visits(outlook: Outlook, threads: int) -> float:
    """Visits per second that so many threads can make, by the download times of the pages there are (Little's law)."""
    seconds = outlook.hosts.times.mean()[outlook.host]
    return threads / float(seconds.mean())


def _sentence(measure: Measure, share: float, asked: int, reach: Machines | None) -> str:
    what = {"freshness": f"{share:.1%} of the pages current", "recall": f"{share:.1%} of the changes found"}[measure]
    if reach is None:
        return f"{what} cannot be reached: schedule.min_interval is too long for the pages that change most often."
    machines = max(math.ceil(reach.needed - 1e-9), 1)
    return (
        f"{what} takes {reach.spending * DAY:,.1f} visits a day for {asked:,} pages, {reach.needed:.3g} times this "
        f"budget: {machines:,} machine{'s' * (machines > 1)} like this one. One keeps {reach.pages:,.0f} such pages so."
    )


def _round_up(share: float) -> float:
    """A goal a little above what there is: the next whole per cent.

    >>> _round_up(0.923), _round_up(1.0)
    (0.93, 0.99)
    """
    return min(math.floor(share * 100.0 + 1.0) / 100.0, 0.99)
