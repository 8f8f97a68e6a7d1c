"""``recrawl plan --capacity``: what a budget keeps, what a goal costs, how many pages and machines that is."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
import typer

from recrawl.cli.plan_next import host_capacity, shown_price, what_if
from recrawl.cli.plan_outlook import Outlook
from recrawl.errors import ConfigError
from recrawl.model.words import counted
from recrawl.plan.keeping import Kept, Limits, Machines, Measure, keep_many, machines_for
from recrawl.time import DAY, format_duration

SAMPLE = 20_000
"""Of more pages so many stand for all."""


NOTICED = 0.002
"""A goal missed by less is no news."""
MANY = 10_000.0
"""From so many on two digits are enough."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What is to be reached."""

    measure: Measure
    share: float | None


def tell_capacity(outlook: Outlook, goal: Goal, pages: int | None, at_once: int, *, json_output: bool) -> None:
    """Print what this budget does for pages of this kind, what a goal takes, and how many machines could do that.

    A budget is what is wanted, a machine is what it can download: one says nothing of the other.
    """
    from recrawl.cli.tables import print_json, print_table

    if outlook.budget <= 0:
        raise ConfigError("A budget of 0 visits keeps nothing.", "Try one: --set schedule.budget=1000.")
    demand, limits = outlook.demand, outlook.limits
    if len(demand) > SAMPLE:
        some = np.linspace(0, len(demand) - 1, SAMPLE).astype(np.int64)
        demand, limits = demand.take(some), Limits(limits.host[some], limits.most * SAMPLE / len(demand))
    asked = len(outlook.pages) if pages is None else pages
    busiest = busiest_visits(outlook, at_once)
    machine = min(outlook.budget, busiest)
    kept = keep_many(demand, machine, asked, limits)
    share = goal.share if goal.share is not None else _round_up(kept.measure(goal.measure))
    reach = machines_for(demand, share, goal.measure, machine, asked)
    able = machines_for(demand, share, goal.measure, busiest, asked)
    hosts = host_capacity(outlook, what_if(outlook).rate, at_once)
    if json_output:
        facts = {"pages": asked, "budget_per_day": outlook.budget * DAY, "machine_visits_per_day": busiest * DAY}
        bounds = {"hosts_visits_per_day": hosts.largest_budget * DAY, "round_seconds": hosts.round_seconds}
        wanted = {
            "measure": goal.measure, "share": share,
            "reached": None if reach is None else asdict(reach), "machines": None if able is None else asdict(able),
        }  # fmt: skip
        print_json({**facts, **bounds, "kept": asdict(kept), "goal": wanted})
        return
    scaled = asked / len(outlook.pages)
    short = "; fewer than the budget, so these are what is spent" if busiest < outlook.budget else ""
    rows = [
        ("pages", f"{asked:,}" + (f", as the {len(outlook.pages):,} here" if pages is not None else "")),
        ("budget", f"{outlook.budget * DAY:,.1f} visits a day"),
        ("hosts here could take", f"{about(hosts.largest_budget * DAY)} visits a day"),
        ("machine could make", f"{about(busiest * DAY)} visits a day: {_busy(at_once, busiest)}" + short),
        *_kept_rows(kept, links=outlook.of_links),
        ("price of a visit", shown_price(kept.price, outlook.settings.schedule.objective)),
    ]
    if kept.feasible:
        print_table(("", ""), rows)
    else:
        least = format_duration(outlook.settings.schedule.max_interval)
        needed = float((outlook.pages.cost / outlook.settings.schedule.max_interval).sum()) * scaled * DAY
        print_table(("", ""), rows[:4])
        typer.echo(
            f"One visit to each page in {least} alone takes {_figure(needed)} visits a day: more than there are."
        )
    typer.echo(_cost(_goal_words(goal.measure, share, links=outlook.of_links), asked, reach))
    if reach is not None and able is not None:
        typer.echo(_machines(asked, able))
        bound = keep_many(demand, reach.spending * 1.001, asked, limits).measure(goal.measure)
        if bound < share - NOTICED:
            typer.echo(
                f"The pauses that hosts are given allow only {bound:.1%} for it: pages on slow hosts stay behind."
            )


def busiest_visits(outlook: Outlook, at_once: int) -> float:
    """Visits per second of so many requests at once, by the download times of the pages there are (Little's law)."""
    seconds = outlook.hosts.times.mean()[outlook.host]
    return at_once / float(seconds.mean())


def about(number: float) -> str:
    """A number of which nobody knows more than two digits.

    >>> about(3_300_937_738.0), about(86_352.0), about(7.0)
    ('3.3 billion', '86,000', '7')
    """
    for unit, name in ((1e9, "billion"), (1e6, "million")):
        if number >= unit:
            return f"{float(f'{number / unit:.2g}'):,g} {name}"
    return f"{float(f'{number:.2g}'):,g}"


def _figure(number: float, form: str = ",.1f") -> str:
    return format(number, form) if number < MANY else about(number)


def _busy(at_once: int, visits: float) -> str:
    """How many visits can be made comes about so."""
    return f"{counted(at_once, 'request')} at once, {format_duration(at_once / visits)} a download"


def _kept_rows(kept: Kept, *, links: bool) -> list[tuple[str, str]]:
    """What a budget does, for changes or for new links."""
    if links:
        waits = f"{kept.happening * DAY:,.1f} a day, which wait {format_duration(kept.delay)} on average"
        return [("keeps without unseen links", f"{kept.freshness:.1%} of the pages"), ("new links", waits)]
    found = f"{kept.found * DAY:,.1f} of {kept.happening * DAY:,.1f} changes a day ({kept.recall:.1%})"
    return [("keeps current", f"{kept.freshness:.1%} of the pages"), ("finds", found)]


def _goal_words(measure: Measure, share: float, *, links: bool) -> str:
    """A goal, for changes or for new links."""
    if links:
        words = {"freshness": "of the pages without unseen links", "recall": "of the new links each found by a visit"}
    else:
        words = {"freshness": "of the pages current", "recall": "of the changes found"}
    return f"{share:.1%} {words[measure]}"


def _cost(what: str, asked: int, reach: Machines | None) -> str:
    """What the goal takes of visits."""
    if reach is None:
        return f"{what} cannot be reached: schedule.min_interval is too long for the pages that change most often."
    return (
        f"{what} takes {_figure(reach.spending * DAY)} visits a day for {counted(asked, 'page')}, "
        f"{_figure(reach.needed, '.3g')} times what there are now. These would keep "
        f"{counted(round(reach.pages), 'such page')} so."
    )


def _machines(asked: int, able: Machines) -> str:
    """How many machines can make these visits, by what they can download."""
    machines = max(math.ceil(able.needed - 1e-9), 1)
    few = "1 machine" if machines == 1 else f"{about(machines)} machines"  # thousands of them are told roughly
    return (
        f"By its downloads alone one machine could keep {about(able.pages)} such pages so, on more such hosts: "
        f"{counted(asked, 'page')} {'needs' if asked == 1 else 'need'} {few} like this one."
    )


def _round_up(share: float) -> float:
    """A goal a little above what there is: the next whole per cent.

    >>> _round_up(0.923), _round_up(1.0)
    (0.93, 0.99)
    """
    return min(math.floor(share * 100.0 + 1.0) / 100.0, 0.99)
