"""Plan a crawl.

- ``recrawl plan``: upcoming fetches and the effect of the budget
- ``recrawl plan capacity``: the freshness of a budget, the cost of a goal, and the machines that it needs
- ``recrawl plan crawl-time``: the duration of a crawl of a list of URLs
- ``recrawl plan slots``: due pages in hourly slots, each filled so that its crawl ends within the hour
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from recrawl.app.display import HERE
from recrawl.app.plan import (
    HostCosts,
    PlanOutlook,
    changes_known,
    chosen,
    host_capacity,
    hosts_of,
    shown_price,
    what_if,
)
from recrawl.app.progress import line
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.policy_parameters import ignored_settings
from recrawl.app.workspace.settings import Settings
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.commands import Subcommand
from recrawl.cli.options import (
    AtOption,
    ConcurrencyOption,
    HostOption,
    JsonOption,
    LimitOption,
    SetOption,
    WorkspaceOption,
)
from recrawl.errors import ConfigError, InputError, counted
from recrawl.formats.seeds import SeedDialect
from recrawl.model import IntArray
from recrawl.plan.budget_outcome import (
    BudgetOutcome,
    HostVisitLimits,
    MachineCount,
    Measure,
    RequestCosts,
    VisitSlots,
    fill_slots,
    keep_many,
    machines_for,
)
from recrawl.plan.crawl_time import CrawlForecast, Domains, PlannedCrawl, estimate, forecast
from recrawl.plan.download_times import DownloadTimes
from recrawl.time import DAY, HOUR, format_duration, to_iso

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recrawl.app.plan import BudgetAlternatives, Columns, UnmetRequest
    from recrawl.app.provenance import Provenance
    from recrawl.app.rates.belief_table import Expected
    from recrawl.app.workspace.configuration import Configuration
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.crawl.control.worker_registry import VisitCosts
    from recrawl.model import FloatArray
    from recrawl.store.base import PageTable, Store


@dataclass(frozen=True, slots=True)
class PlanningInputs:
    """What every planning question starts from: an open store, settings with their live limits, a time."""

    place: Workspace
    store: Store
    configuration: Configuration
    now: float

    @property
    def settings(self) -> Settings:
        """The settings in effect, limits of ``recrawl limit`` included."""
        return self.configuration.settings

    def provenance(self, seed: int | None = None) -> Provenance | None:
        """What JSON says about its origin."""
        from recrawl.cli.tables import command_provenance

        return command_provenance(self.configuration, [self.place.folder], as_of=self.now, seed=seed)

    def expected(self) -> Expected | None:
        """Change rates that the trained model of the workspace expects, if it has one."""
        from recrawl.app.predict.model_use import expected_changes

        return expected_changes(self.place, self.store, self.now)

    def outlook(self) -> PlanOutlook:
        """Due times and threshold at the budget of the settings."""
        from recrawl.app.plan import look_ahead
        from recrawl.app.predict.model_use import expected_links, first_classes

        expected, links = self.expected(), expected_links(self.place, self.store, self.now)
        classes = first_classes(self.place, self.store, self.now)
        with line("Fitting the threshold to the budget"):
            return look_ahead(self.store, self.settings, self.now, expected, links, classes)


@contextmanager
def _planning(workspace: Path, assignments: list[str] | None, at: str | None) -> Iterator[PlanningInputs]:
    from recrawl.app.rates.rates_table import moment
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.control.runtime_limits import limits

    place = open_workspace(workspace, parse_assignments(assignments or []))
    now = moment(at, RealClock().now())
    for sentence in ignored_settings(place.configuration):
        typer.echo(sentence, err=True)
    with place.open_store() as store:
        yield PlanningInputs(place, store, place.limited(limits(store.controls())).configuration, now)


SAMPLE = 20_000
"""Maximum number of pages in the computation; of more pages a sample is used."""


NOTICED = 0.002
"""Tolerance: a goal missed by less counts as reached."""
MANY = 10_000.0
"""Numbers from here on are shown with two digits."""


@dataclass(frozen=True, slots=True)
class CapacityGoal:
    """The goal of a capacity question."""

    measure: Measure
    share: float | None


def tell_capacity(
    planning: PlanningInputs, goal: CapacityGoal, pages: int | None, at_once: int, *, json_output: bool
) -> None:
    """Print the effect of this budget on pages of this kind, the cost of a goal, and the machines that it needs.

    The budget limits the visits that are wanted; the machine limits the visits that are possible. Both are independent.
    Change rates are those of ``recrawl rates``, as in ``recrawl plan``. Where no rate is known, the effect of a budget
    and the cost of a goal are not known.
    """
    from recrawl.app.rates.belief_table import VisitSpan, learn
    from recrawl.cli.tables import print_json, print_table

    outlook = planning.outlook()
    known = learn(planning.store, VisitSpan(until=planning.now), expected=planning.expected())
    if outlook.budget <= 0:
        raise ConfigError("A budget of 0 visits has no effect.", "Set one: --set schedule.budget=1000.")
    demand, limits, changing = outlook.demand, outlook.limits, changes_known(outlook, known)
    if len(demand) > SAMPLE:
        some = np.linspace(0, len(demand) - 1, SAMPLE).astype(np.int64)
        demand, limits = demand.take(some), HostVisitLimits(limits.host[some], limits.most * SAMPLE / len(demand))
        changing = None if changing is None else changing[some]
    asked = len(outlook.pages) if pages is None else pages
    machine = machine_bounds(planning, outlook, at_once)
    most = machine.visits if machine.is_known else machine.downloads
    spent = min(outlook.budget, most)
    kept = keep_many(demand, spent, asked, limits, changing)
    told_of = not math.isnan(kept.freshness)
    share = goal.share if goal.share is not None else _round_up(kept.measure(goal.measure)) if told_of else math.nan
    reach = machines_for(demand, share, goal.measure, spent, asked, changing=changing) if told_of else None
    able = machines_for(demand, share, goal.measure, most, asked, changing=changing) if told_of else None
    hosts = host_capacity(outlook, what_if(outlook, known).rate, at_once)
    if json_output:
        facts = {"pages": asked, "budget_per_day": outlook.budget * DAY, **machine.facts()}
        bounds = {"hosts_visits_per_day": hosts.largest_budget * DAY, "round_seconds": hosts.round_seconds}
        wanted = {
            "measure": goal.measure, "share": share,
            "reached": None if reach is None else asdict(reach),
            "machines": None if able is None or not machine.is_known else asdict(able),
        }  # fmt: skip
        print_json({**facts, **bounds, "kept": asdict(kept), "goal": wanted}, planning.provenance())
        return
    scaled = asked / len(outlook.pages)
    short = "; fewer than the budget, so only these are made" if most < outlook.budget else ""
    rows = [
        ("pages", f"{asked:,}" + (f", as the {len(outlook.pages):,} here" if pages is not None else "")),
        ("budget", f"{outlook.budget * DAY:,.1f} visits a day"),
        ("hosts allow", f"{about(hosts.largest_budget * DAY)} visits a day"),
        *machine.rows(short),
        *_kept_rows(kept, links=outlook.of_links),
        ("threshold (shadow price)", shown_price(kept.price, outlook.settings.schedule.objective)),
    ]
    if kept.feasible:
        print_table(("", ""), rows)
    else:
        least = format_duration(outlook.settings.schedule.max_interval)
        needed = float((outlook.pages.cost / outlook.settings.schedule.max_interval).sum()) * scaled * DAY
        print_table(("", ""), rows[:5])
        typer.echo(
            f"One visit to each page in {least} alone takes {_figure(needed)} visits a day: more than the budget."
        )
    if not told_of:
        typer.echo("The effect of the budget and the cost of a goal are not known: no page was observed twice.")
        return
    typer.echo(_cost(_goal_words(goal.measure, share, links=outlook.of_links), asked, reach))
    if reach is not None and able is not None:
        typer.echo(_machines(asked, able) if machine.is_known else NO_MACHINES)
        bound = keep_many(demand, reach.spending * 1.001, asked, limits, changing).measure(goal.measure)
        if bound < share - NOTICED:
            typer.echo(f"The pauses between requests allow only {bound:.1%}: pages on slow hosts stay stale.")


@dataclass(frozen=True, slots=True)
class MachineBounds:
    """What one machine can do: visits per second by its downloads, and by its processors."""

    at_once: int
    downloads: float
    """Visits per second at this concurrency, from the download times of the known pages (Little's law)."""
    processors: int
    """Of the machine that answers."""
    costs: VisitCosts | None
    """What a visit costs as measured on this crawl; ``None`` if that is not known."""

    @property
    def is_known(self) -> bool:
        """Whether it is known what a visit costs."""
        return self.costs is not None

    @property
    def computing(self) -> float:
        """Visits per second that the processors can compute, with a worker for each of them; NaN if not known."""
        return math.nan if self.costs is None else self.processors / self.costs.seconds

    @property
    def visits(self) -> float:
        """Visits per second of the machine: the smaller of both bounds; NaN if one is not known."""
        return math.nan if self.costs is None else min(self.downloads, self.computing)

    def facts(self) -> dict[str, object]:
        """For programs; ``None`` is not known."""
        costs = self.costs
        return {
            "machine_visits_per_day": self.visits * DAY,
            "download_visits_per_day": self.downloads * DAY,
            "cpu_visits_per_day": self.computing * DAY,
            "processors": self.processors,
            "cpu_seconds_per_visit": None if costs is None else costs.seconds,
            "parse_seconds_per_visit": None if costs is None else costs.parse,
            "visits_measured": 0 if costs is None else costs.visits,
        }

    def rows(self, short: str) -> list[tuple[str, str]]:
        """For people; ``short`` is added where the bound that holds is below the budget."""
        seconds = format_duration(self.at_once / self.downloads)
        downloads = f"{about(self.downloads * DAY)} visits a day: {counted(self.at_once, 'request')} at once, {seconds}"
        if self.costs is None:
            computing = "not known: too few visits were measured; a run of recrawl measures them"
        else:
            each, parsing = format_duration(self.costs.seconds), format_duration(self.costs.parse)
            computing = (
                f"{about(self.computing * DAY)} visits a day: {counted(self.processors, 'processor')}, {each} of them "
                f"a visit ({parsing} to parse), measured on {self.costs.visits:,} visits"
            )
        slower = self.is_known and self.computing < self.downloads
        return [
            ("downloads allow", f"{downloads} a download{'' if slower else short}"),
            ("processors allow", computing + (short if slower else "")),
        ]


def machine_bounds(planning: PlanningInputs, outlook: PlanOutlook, at_once: int) -> MachineBounds:
    """What this machine can do for the known pages."""
    from recrawl.app.compare.benchmark_runs import processors
    from recrawl.crawl.control.worker_registry import visit_costs

    seconds = outlook.hosts.times.mean()[outlook.host]
    return MachineBounds(at_once, at_once / float(seconds.mean()), processors(), visit_costs(planning.store.controls()))


NO_MACHINES = "How many machines that takes is not known before visits were measured."


def about(number: float) -> str:
    """A number rounded to two significant digits.

    >>> about(3_300_937_738.0), about(86_352.0), about(7.0)
    ('3.3 billion', '86,000', '7')
    """
    for unit, name in ((1e9, "billion"), (1e6, "million")):
        if number >= unit:
            return f"{float(f'{number / unit:.2g}'):,g} {name}"
    return f"{float(f'{number:.2g}'):,g}"


def _figure(number: float, form: str = ",.1f") -> str:
    return format(number, form) if number < MANY else about(number)


def _kept_rows(kept: BudgetOutcome, *, links: bool) -> list[tuple[str, str]]:
    """The effect of a budget, for changes or for new links."""
    if math.isnan(kept.freshness):
        return [("keeps current", "not known"), ("finds", "not known")]
    if links:
        waits = f"{kept.happening * DAY:,.1f} a day, which wait {format_duration(kept.delay)} on average"
        return [("keeps without unseen links", f"{kept.freshness:.1%} of the pages"), ("new links", waits)]
    found = f"{kept.found * DAY:,.1f} of {kept.happening * DAY:,.1f} changes a day ({kept.recall:.1%})"
    return [("keeps current", f"{kept.freshness:.1%} of the pages"), ("finds", found)]


def _goal_words(measure: Measure, share: float, *, links: bool) -> str:
    """A goal in words, for changes or for new links."""
    if links:
        words = {"freshness": "of the pages without unseen links", "recall": "of the new links each found by a visit"}
    else:
        words = {"freshness": "of the pages current", "recall": "of the changes found"}
    return f"{share:.1%} {words[measure]}"


def _cost(what: str, asked: int, reach: MachineCount | None) -> str:
    """The visits that a goal needs."""
    if reach is None:
        return f"{what} cannot be reached: schedule.min_interval is too long for the pages that change most often."
    return (
        f"{what} takes {_figure(reach.spending * DAY)} visits a day for {counted(asked, 'page')}, "
        f"{_figure(reach.needed, '.3g')} times the current number. The current number would be enough for "
        f"{counted(round(reach.pages), 'such page')}."
    )


def _machines(asked: int, able: MachineCount) -> str:
    """The number of machines that these visits need."""
    machines = max(math.ceil(able.needed - 1e-9), 1)
    few = "1 machine" if machines == 1 else f"{about(machines)} machines"  # thousands of machines are rounded
    return (
        f"One machine like this could do this for {about(able.pages)} such pages on more such hosts: "
        f"{counted(asked, 'page')} {'needs' if asked == 1 else 'need'} {few} like this one."
    )


def _round_up(share: float) -> float:
    """A goal slightly above the current value: the next whole per cent.

    >>> _round_up(0.923), _round_up(1.0)
    (0.93, 0.99)
    """
    return min(math.floor(share * 100.0 + 1.0) / 100.0, 0.99)


ALL = "all"
SEED = 1
"""A fixed seed: the same question gives the same answer."""


def tell_crawl_time(asked: PlanningInputs, urls: str, at_once: int, *, host: str | None, json_output: bool) -> None:
    """Print the estimate, its interval, its bottleneck, and the heuristic of paper 001 for comparison."""
    from recrawl.cli.tables import print_json, print_table

    wanted = _wanted(asked.store, urls, host)
    if not wanted:
        raise InputError("There is no URL to crawl.", "Give a file with http or https URLs, one per line.", source=urls)
    hosts = hosts_of(asked.store, asked.settings, asked.now)
    crawl, times, names = crawl_of(wanted, hosts, at_once)
    with line("Simulating the crawl"):
        found = forecast(crawl, times, np.random.default_rng(SEED))
    delay = crawl.treatment.pause(times.mean(), crawl.crawl_delay)
    domains = Domains(names, crawl.pages, times.mean(), delay)
    printed, corrected = (estimate(domains, at_once, keep_delay=keep).seconds for keep in (False, True))
    slowest = names[found.slowest]
    if json_output:
        facts = {"seconds": found.seconds, "low": found.low, "high": found.high, "longest_host": slowest}
        bounds = {"longest_host_seconds": found.longest, "work_seconds": found.work}
        paper = {"heuristic_printed": printed, "heuristic_corrected": corrected}
        counts = {"urls": int(found.pages), "hosts": len(names), "concurrency": at_once}
        print_json({**counts, **facts, **bounds, **paper}, asked.provenance(SEED))
        return
    unasked = int(_new(wanted, hosts))
    rows = [
        ("URLs", f"{found.pages:,.0f} on {counted(len(names), 'host')}, {unasked:,} of them new"),
        ("takes", f"{format_duration(found.seconds)}; {format_duration(found.low)} to {format_duration(found.high)}"),
        ("longest host", f"{slowest}: {format_duration(found.longest)}, with any number of requests at once"),
        ("work", f"{format_duration(found.work)} with {counted(at_once, 'request')} at once"),
        ("useful at once", _useful(found)),
        ("heuristic of paper 001", f"{format_duration(printed)} as printed, {format_duration(corrected)} corrected"),
    ]
    print_table(("", ""), rows)


def crawl_of(
    wanted: Mapping[str, int], hosts: HostCosts, at_once: int
) -> tuple[PlannedCrawl, DownloadTimes, list[str]]:
    """The crawl of URLs counted by host, with the download times of each host; new hosts use those of all hosts."""
    row_of = {name: row for row, name in enumerate(hosts.name)}
    names = list(wanted)
    new = len(row_of)
    rows = np.array([row_of.get(name, new) for name in names], dtype=np.int64)
    delay = np.append(hosts.crawl_delay, math.nan)[rows]
    crawl = PlannedCrawl(np.array(list(wanted.values()), dtype=np.int64), delay, at_once, hosts.treatment, rows == new)
    return crawl, hosts.all_times.take(rows), names


def _wanted(store: PageTable, urls: str, host: str | None) -> Counter[str]:
    """How many URLs each host has."""
    from pathlib import Path

    from recrawl.app.rates.belief_table import host_id
    from recrawl.cli.collect.setup_commands import text_of
    from recrawl.formats.seeds import read_seeds
    from recrawl.urls import host_of

    if urls == ALL:
        pages, hosts = store.pages(), store.hosts()
        count = np.bincount(np.searchsorted(hosts.id, pages.host[pages.importance > 0]), minlength=len(hosts))
        found = Counter({name: int(number) for name, number in zip(hosts.name, count, strict=True) if number})
    else:
        seeds = read_seeds(text_of(Path(urls)), urls)
        found = Counter(host_of(seed.url) or "" for seed in seeds.addresses)
    if host is None:
        return found
    if urls == ALL:
        host_id(store, host)
    elif host not in found:
        raise InputError(f"No URL of this list is on the host {host!r}.", "Leave out --host to take all.", source=urls)
    return Counter({name: n for name, n in found.items() if name == host})


def _new(wanted: Mapping[str, int], hosts: HostCosts) -> int:
    return len(wanted.keys() - set(hosts.name))


def _useful(found: CrawlForecast) -> str:
    useful = max(found.useful_concurrency, 1.0)
    if found.concurrency >= useful:
        return f"about {math.ceil(useful)}: beyond that the longest host is the bottleneck"
    return f"about {math.ceil(useful)}: more than {found.concurrency} would shorten the crawl"


FILLS = (0.95, 0.85, 0.7, 0.5, 0.3)
"""Fill levels to try, until each slot ends within the hour with probability 95 %."""
DRAWS = 60


@dataclass(frozen=True, slots=True)
class SlotFiles:
    """Where the URLs of slots are written to: a seed file for each slot."""

    folder: Path
    dialect: SeedDialect

    def write(self, start: float, urls: Sequence[str]) -> Path:
        """Write the URLs of the slot that starts at this time, the first to fetch first."""
        from recrawl.formats.atomic_files import complete_file
        from recrawl.formats.seeds import seed_lines

        name = to_iso(start).replace("-", "").replace(":", "")
        ending = "yaml" if self.dialect is SeedDialect.BROWSERTRIX else "txt"
        file = self.folder / f"slot-{name}.{ending}"
        with complete_file(file) as stream:
            stream.writelines(line.encode() for line in seed_lines(urls, self.dialect, pages_only=True))
        return file


def slot_files(folder: Path, dialect: str) -> SlotFiles:
    """Make the folder of seed files.

    Raises:
        InputError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"The folder cannot be made ({error.strerror}).", "Give another --seeds.", source=str(folder)
        ) from error
    return SlotFiles(folder, SeedDialect(dialect))


def tell_slots(  # noqa: PLR0913 - the question, and where the answer goes
    asked: PlanningInputs,
    count: int,
    at_once: int,
    *,
    host: str | None,
    json_output: bool,
    files: SlotFiles | None = None,
) -> None:
    """Print one row per hour; the URLs of each are in the JSON, and in seed files where these are wanted."""
    from recrawl.app.display import rows_of, shown_time
    from recrawl.app.rates.belief_table import host_id
    from recrawl.cli.tables import print_json, print_table

    outlook = asked.outlook()
    rows = np.flatnonzero(chosen(outlook, host_id(asked.store, host)))
    start = outlook.now
    slots, times = fitting(outlook, rows, count, at_once)
    columns: dict[str, list[Any]] = {
        "start": [start + HOUR * number for number in range(count)],
        "pages": slots.pages.tolist(),
        "moved": slots.moved.tolist(),
        "seconds": [time.seconds for time in times],
        "high": [time.high for time in times],
    }
    unplaced = len(slots.unplaced)
    ids = outlook.pages.id[rows]
    in_slots = np.split(ids[slots.page], np.cumsum(slots.pages)[:-1])
    if files is not None:
        for begin, part in zip(columns["start"], in_slots, strict=True):
            files.write(begin, asked.store.urls(part))
    if json_output:
        columns["urls"] = [asked.store.urls(part) for part in in_slots]
        left = asked.store.urls(ids[slots.unplaced])
        print_json({"slots": rows_of(columns), "unplaced": unplaced, "unplaced_urls": left}, asked.provenance(SEED))
        return
    shown = [
        (shown_time(begin), f"{pages:,}", f"{moved:,}", format_duration(middle), format_duration(high))
        for begin, pages, moved, middle, high in zip(*columns.values(), strict=True)
    ]
    headings = ("hour from", "pages", "moved here", "takes", "at most (95%)")
    print_table(headings, shown, right=headings[1:])
    if unplaced:
        more = "1 more page falls due and fits" if unplaced == 1 else f"{unplaced:,} more pages fall due and fit"
        typer.echo(f"{more} into none of these hours.")
    if files is not None:
        typer.echo(f"Wrote {counted(count, 'seed file')} to {files.folder}.")


def fitting(outlook: PlanOutlook, rows: IntArray, count: int, at_once: int) -> tuple[VisitSlots, list[CrawlForecast]]:
    """Lower the fill level until every slot ends in time; the lowest level if none does."""
    hosts = outlook.hosts
    mean = hosts.times.mean()
    turns = RequestCosts(mean, mean + hosts.pause)
    host = outlook.host[rows]
    interval = outlook.interval[rows]
    for fill in FILLS:
        slots = fill_slots(
            outlook.due[rows], host, turns, start=outlook.now, length=HOUR, count=count, concurrency=at_once, fill=fill,
            interval=interval,
        )  # fmt: skip
        parts = np.split(host[slots.page], np.cumsum(slots.pages)[:-1])
        times = [_time(outlook, part, at_once) for part in parts]
        if all(time.high <= HOUR for time in times):
            break
    return slots, times


def _time(outlook: PlanOutlook, host: IntArray, at_once: int) -> CrawlForecast:
    hosts = outlook.hosts
    asked = np.bincount(host, minlength=len(hosts.id))
    used = np.flatnonzero(asked)
    crawl = PlannedCrawl(asked[used], hosts.crawl_delay[used], at_once, hosts.treatment)
    return forecast(crawl, hosts.times.take(used), np.random.default_rng(SEED), draws=DRAWS)


EXAMPLES = """
recrawl plan -w my-archive                      upcoming fetches
recrawl plan --host example.org --limit 100     of one host
recrawl plan --at 2026-11-09                    the plan as of that time
recrawl plan --set schedule.budget=5000         with another budget
recrawl plan slots 24                           24 hourly slots
recrawl plan crawl-time urls.txt                the duration of a crawl of these URLs
recrawl plan capacity --freshness 0.95          the visits that keep 95 % of the pages current
"""
SLOTS = """
recrawl plan slots -w my-archive                the next 24 hours
recrawl plan slots 6 --host example.org         six hours, one host
recrawl plan slots 48 --concurrency 20 --json   two days with 20 requests at once; the URLs of each hour
recrawl plan slots --seeds slots/               a seed file for each hour, for another crawler or recrawl add
recrawl plan slots --seeds slots/ --dialect heritrix
"""
CRAWL_TIME = """
recrawl plan crawl-time urls.txt --concurrency 20  a crawl of these URLs with 20 requests at once
recrawl plan crawl-time all -w my-archive       one visit to every page of the workspace
recrawl plan crawl-time all --host example.org  one visit to every page of a host
"""
CAPACITY = """
recrawl plan capacity -w my-archive             what the budget of the workspace achieves
recrawl plan capacity --freshness 0.95          the visits that keep 95 % of the pages current
recrawl plan capacity --recall 0.8              the visits that find 80 % of the changes
recrawl plan capacity --pages 1000000           the effect of this budget on a million such pages
"""
STORED = "recrawl explain shows those that the crawler stored at its last fit"


def plan(  # noqa: PLR0913 - one argument an option
    host: HostOption = None,
    at: AtOption = None,
    *,
    limit: LimitOption = 20,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Show upcoming fetches, and what the budget achieves.

    A page is due when the value of a visit reaches the threshold (shadow price): the value at which all requested
    visits use exactly the budget. Worth is the current value of a visit relative to the threshold. P(changed) is the
    probability that the page has changed since its last observation. Change rates are those of recrawl rates. The
    policy decides by its own estimate of the same rate, which it learns visit by visit; it is shown beside it. Below
    the table: late pages, the effect of 10 % more or less budget, and requests that cannot be met, with the reason.
    """
    with _planning(workspace, assignments, at) as asked:
        _tell_next(asked, host, limit, json_output=json_output)


def slots(  # noqa: PLR0913 - one argument an option
    hours: Annotated[
        int, typer.Argument(min=1, max=10_000, metavar="HOURS", help="Number of hourly slots to fill.")
    ] = 24,
    host: HostOption = None,
    at: AtOption = None,
    *,
    seeds: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write the URLs of each slot to a seed file in FOLDER."),
    ] = None,
    dialect: Annotated[
        SeedDialect, typer.Option(help="With --seeds: the crawler that reads the files.")
    ] = SeedDialect.PLAIN,
    concurrency: ConcurrencyOption = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Assign due pages to hourly slots.

    Each slot is filled so that its crawl ends within the hour with a probability of 95 %. A page comes again when its
    value reaches the threshold again, at most once per hour. A page that does not fit into its hour moves to a later
    one. Download times, failures and pauses are those of past visits. --json lists the URLs of each slot, --seeds
    writes them to files, in the order in which they fall due.
    """
    files = None if seeds is None else slot_files(seeds, dialect.value)
    with _planning(workspace, assignments, at) as asked:
        at_once = concurrency or asked.settings.crawl.concurrency
        tell_slots(asked, hours, at_once, host=host, json_output=json_output, files=files)


def crawl_time(  # noqa: PLR0913 - one argument an option
    urls: Annotated[
        str, typer.Argument(metavar="URLS", help="File with one URL per line, - for standard input, or all.")
    ],
    host: HostOption = None,
    at: AtOption = None,
    *,
    concurrency: ConcurrencyOption = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Estimate the duration of a crawl.

    recrawl simulates the crawl many times with the download times, failures and pauses of past visits; hosts without
    visits use those of all hosts. 90 % of crawls end within the printed interval. The longest host is the lower bound
    for any number of concurrent requests. The heuristic of datamonitor (paper 001) is printed for comparison.
    """
    with _planning(workspace, assignments, at) as asked:
        at_once = concurrency or asked.settings.crawl.concurrency
        tell_crawl_time(asked, urls, at_once, host=host, json_output=json_output)


def capacity(  # noqa: PLR0913 - one argument an option
    at: AtOption = None,
    *,
    freshness: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Goal for the share of current pages.")
    ] = None,
    recall: Annotated[float | None, typer.Option(min=0.0, max=1.0, help="Goal for the share of changes found.")] = None,
    pages: Annotated[
        int | None, typer.Option(min=1, help="Number of pages of this kind. Default: those of the workspace.")
    ] = None,
    concurrency: ConcurrencyOption = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Estimate what budget and machine can achieve.

    The answer has the freshness that the budget keeps, the visits that a goal needs, and the number of machines for
    them. Without a goal, it is the next whole per cent of freshness. All hosts share the budget, so the answer is
    always about all pages. Change rates are those of recrawl rates.
    """
    if freshness is not None and recall is not None:
        raise ConfigError("--freshness and --recall exclude each other.", "Give one of them.")
    goal = CapacityGoal("recall", recall) if recall is not None else CapacityGoal("freshness", freshness)
    with _planning(workspace, assignments, at) as asked:
        tell_capacity(asked, goal, pages, concurrency or asked.settings.crawl.concurrency, json_output=json_output)


def _tell_next(asked: PlanningInputs, host: str | None, limit: int, *, json_output: bool) -> None:
    from recrawl.app.display import shown_time
    from recrawl.app.plan import coming, facts
    from recrawl.cli.tables import print_json

    outlook = asked.outlook()
    with line("Computing the effect of other budgets"):
        found = coming(asked.store, outlook, host, limit)
    if json_output:
        print_json(facts(found), asked.provenance())
        return
    _print_next(found.columns)
    if len(found.due) > limit:
        typer.echo(f"{limit} of {len(found.due):,} shown; --limit shows more.")
    typer.echo(f"Due times come from a fit as of {shown_time(outlook.now)}; {STORED}.")
    _print_late(outlook.now, found.late)
    _print_budget(outlook, found.buys, found.unmet)


def _print_next(columns: Columns) -> None:
    from recrawl.app.display import shown_share, shown_time
    from recrawl.cli.tables import print_table

    shown = {
        "due": [shown_time(when) for when in columns["due"]],
        "url": columns["url"],
        "why": columns["why"],
        "worth": [shown_share(worth) for worth in columns["worth"]],
        "last visit": [shown_time(when) for when in columns["last_observed"]],
        "P(changed)": [shown_share(share) for share in columns["p_changed"]],
        "changes": columns["in_words"],
        "policy's estimate": columns["policy_in_words"],
    }
    print_table(list(shown), list(zip(*shown.values(), strict=True)), right=("worth", "P(changed)"))


def _print_late(now: float, late: FloatArray) -> None:
    import numpy as np

    from recrawl.app.display import shown_time
    from recrawl.time import format_duration

    if len(late) == 1:
        typer.echo(f"1 page is late as of {shown_time(now)}, by {format_duration(float(late[0]))}.")
    elif len(late):
        half, most = format_duration(float(np.median(late))), format_duration(float(late.max()))
        by = f"half of them by {half} or more, one by {most}" if half != most else f"by up to {most}"
        typer.echo(f"{len(late):,} pages are late as of {shown_time(now)}: {by}.")


def _print_budget(outlook: PlanOutlook, buys: BudgetAlternatives, unmet: list[UnmetRequest]) -> None:
    from recrawl.app.plan import HEADINGS, LINK_HEADINGS, UNNAMED, what_if_rows
    from recrawl.cli.tables import print_table
    from recrawl.time import format_duration

    headings = LINK_HEADINGS if outlook.of_links else HEADINGS
    rows = what_if_rows(buys, outlook.budget, outlook.settings.schedule.objective, links=outlook.of_links)
    print_table(headings, rows, right=headings[1:])
    if buys.now.hopeless:
        hopeless = f"{counted(buys.now.hopeless, 'page')} {'is' if buys.now.hopeless == 1 else 'are'}"
        typer.echo(
            f"{hopeless} not worth a visit at this threshold; each gets one every "
            f"{format_duration(outlook.settings.schedule.max_interval)}."
        )
    for one in unmet[:UNNAMED]:
        typer.echo(f"Cannot be met: {one.what}: {one.reason}.")
    if len(unmet) > UNNAMED:
        typer.echo(f"Cannot be met: {counted(len(unmet) - UNNAMED, 'more host')}; --json names all.")


SUBCOMMANDS = (
    Subcommand("slots", slots, SLOTS),
    Subcommand("crawl-time", crawl_time, CRAWL_TIME),
    Subcommand("capacity", capacity, CAPACITY),
)
