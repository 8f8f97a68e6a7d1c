"""``recrawl demo``: the whole job on a small web that really changes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.options import command_name
from recrawl.cli.workspace import Workspace, make_workspace
from recrawl.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from recrawl.cli.predict_watch import LiveModel
    from recrawl.crawl.trial import TrialResult
    from recrawl.model import Belief, FloatArray, IntArray
    from recrawl.schedule.policy import Policy
    from recrawl.show.trial import TrialPicture
    from recrawl.store.base import Store

MARKER = ".recrawl-demo"
"""Marks a workspace that the next demo may replace."""
CONTACT = "https://example.org/recrawl-demo"
A_MONDAY = 1_789_948_800.0
"""Demos begin on a Monday, so that a web with the same seed has the same weeks."""
MEDIAN_CHANGES_PER_DAY, SPREAD = 0.05, 2.2
"""The median page changes every three weeks; one in six pages nine times as often, or as seldom."""
LAWS = {
    "data": "where changes come by pure chance",
    "office": "where they come in working hours",
    "news": "where one visit sees one change of a burst",
}
"""How the hosts of the living web change."""
NEEDED = ("fastwarc", "h11", "jinja2", "matplotlib", "pycurl")
"""Modules of other extras without which there is no demo: one that is missing is told of before anything begins."""
PAGES_SHOWN = 8
_PARTS = 20
"""Lines in which the course of a crawl is told where there is no terminal."""
LEARNED_ON = 7.0
"""Virtual days after which a model of what to expect of pages is trained."""
LOOK_FURTHER = {
    "what is in the workspace": "status",
    "every visit": "list visits",
    "how often pages change": "rates",
    "what comes next, and why": "plan --at {end}",
    "what to expect of new pages": "predict score",
    "would another policy do better?": "compare",
    "all of it in the browser, live": "serve",
}
EXAMPLES = """
recrawl demo                               four virtual weeks in under a minute
recrawl demo --pages 300 --budget 600      more pages, more visits a day
recrawl demo --seed 7 --folder other-demo  another web
recrawl demo --serve --pages 40            a site that changes, for you to crawl
recrawl demo --serve --data --pages 12 --judge monitor  open data, and what the workspace monitor found of its changes
recrawl demo --archive old-crawls --pages 73  ten years of WARC files, as an old crawler left them
"""


@dataclass(frozen=True, slots=True)
class Demo:
    """What was asked for, and what came of it."""

    ours: TrialResult
    even: TrialResult
    """The same web crawled with as many visits, but every page equally often."""
    page: IntArray
    """Pages of ``ours`` that were seen: robots.txt forbids some."""
    url: list[str]
    """Of these pages."""
    rate: FloatArray
    """Their true rates, changes per second."""
    belief: Belief
    """What recrawl believes of them in the end."""
    price: float | None
    """Seconds of freshness that a visit had to bring in the end."""


class Lines:
    """How far a crawl is, for logs and pipes, where a bar would only show up when it is full: a line now and then."""

    def __init__(self, what: str, days: float) -> None:
        self._what, self._days = what, days
        self._told = 0
        typer.echo(f"{what}: getting ready (the first start takes longest)", err=True)

    def tell(self, share: float, requests: int) -> None:
        """Print a line if another twentieth is done."""
        part = int(share * _PARTS)
        if part > self._told:
            self._told = part
            typer.echo(f"{self._what}: day {share * self._days:.0f} of {self._days:g}, {requests:,} requests", err=True)


def demo(  # noqa: PLR0913 - one argument an option
    *,
    folder: Annotated[
        Path, typer.Option("--folder", "-f", help="Workspace to make; that of an earlier demo is replaced.")
    ] = Path("recrawl-demo"),
    pages: Annotated[int, typer.Option(min=6, help="Pages of the living web, on three hosts.")] = 150,
    days: Annotated[float, typer.Option(min=1.0, help="Virtual days to crawl.")] = 28.0,
    budget: Annotated[
        float, typer.Option(min=1.0, metavar="VISITS", help="Visits a day, to all hosts together.")
    ] = 100.0,
    seed: Annotated[int, typer.Option(min=0, help="Another number, another web.")] = 1,
    serve: Annotated[
        bool, typer.Option("--serve", help="Only serve a site that changes, for you to crawl; Ctrl-C tells the truth.")
    ] = False,
    data: Annotated[
        bool, typer.Option("--data", help="With --serve: JSON, CSV, RDF and a SPARQL endpoint instead of web pages.")
    ] = False,
    archive: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Only make the WARC files that an old crawler left of a site, from 2016 on."
        ),
    ] = None,
    years: Annotated[int, typer.Option(min=1, help="With --archive: how many years of them.")] = 10,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="With --serve: port to listen at; 0 for any that is free.")
    ] = 8080,
    judge: Annotated[
        Path | None,
        typer.Option(metavar="WORKSPACE", help="With --serve: say in the end which changes this workspace found."),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --serve: write all changes into a CSV file in the end.")
    ] = None,
) -> None:
    """Watch the whole job on a small web that really changes.

    Starts a web server on this machine whose pages change by known laws, then crawls it for some virtual weeks as
    recrawl crawls any site: robots.txt, sitemaps, links, conditional requests, pauses. Every visit is recorded and
    archived, change rates are estimated, and each page is visited again when that is worth a visit. After a week
    recrawl learns from its visits what pages look like that change often (if scikit-learn is installed). Then the same
    web is crawled once more with every page visited equally often. In the end the server tells the truth, and you
    see what recrawl believed and did beside it. A report on the workspace is written, to open in a browser.

    With --serve nothing is crawled: a site of so many pages, which change every minute or so, is served on this
    machine, and you are told how to crawl it in another terminal. With --data it is an open-data portal. Ctrl-C ends
    it: then it tells how often pages really changed and, with --judge, how many of these changes a workspace found
    (recall) and how many of those it reported were true (precision).

    With --archive nothing is crawled for recrawl either: a folder is filled with WARC files of ten years of a town's
    site, four nights a year. With --serve as well, that site is served as it is today.
    """
    if archive is not None:
        from recrawl.cli.demo_archive import OldArchive, leave

        leave(OldArchive(pages, years, seed, port), archive, serve=serve)
        return
    if serve:
        from recrawl.cli.demo_serve import serve_site

        serve_site(pages, port, seed, data=data, judge=judge, truth=truth)
        return
    if data or judge or truth:
        raise ConfigError("--data, --judge and --truth are about a site that is served.", "Add --serve.")
    for module in NEEDED:
        if find_spec(module) is None:
            raise MissingExtraError(module, "demo")
    # Said before anything large is loaded: right after an installation that takes a while.
    typer.echo(f"A web of {pages} pages that change, and {days:g} days of crawling it: a minute or so.", err=True)
    from rich.console import Console

    from recrawl.time import to_iso

    console = Console()
    workspace = _new_workspace(folder, budget)
    result = _crawl_twice(workspace, console, pages=pages, days=days, seed=seed)
    picture = workspace.reports / "demo.png"
    title = f"{len(result.ours.page)} pages, {len(result.ours.visits):,} visits in {days:g} days"
    _print_table(result, console)
    _print_rates(result, console)
    typer.echo("Drawing the picture …", err=True)
    _draw(result, picture, title)
    typer.echo("Writing the report …", err=True)
    report = _write_report(workspace, result.ours.end)
    typer.echo(f"\nReport: {report}\nPicture: {picture}\nWorkspace: {folder}\n\nLook further:")
    for question, command in LOOK_FURTHER.items():
        if command.startswith("predict") and not (folder / "models").is_dir():
            continue
        typer.echo(f"  {question:<32} {command_name()} {command.format(end=to_iso(result.ours.end))} -w {folder}")


def _draw(result: Demo, picture: Path, title: str) -> None:
    from recrawl.show.trial import draw

    draw(_picture(result), picture, title)


def _write_report(workspace: Workspace, end: float) -> Path:
    """All that is known of the workspace, as of the end of the crawl, in one file to open."""
    from recrawl.cli.report import FILE_NAME, report_of_workspace, write_report

    file = workspace.reports / FILE_NAME
    with workspace.open_store() as store:
        write_report(report_of_workspace(workspace, store, now=end), file)
    return file


def _new_workspace(folder: Path, budget: float) -> Workspace:
    """An empty workspace; only what an earlier demo left is ever removed."""
    import shutil

    if (folder / MARKER).is_file():
        shutil.rmtree(folder)
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"The folder {folder} is not empty and not from a demo.", "Name another one with --folder.")
    workspace = make_workspace(folder, {"fetch.contact": CONTACT, "schedule.budget": budget})
    (folder / MARKER).touch()
    return workspace


def _crawl_twice(workspace: Workspace, console: Console, *, pages: int, days: float, seed: int) -> Demo:
    """Crawl a web as recrawl does, then again with as many visits spread evenly."""
    from tempfile import TemporaryDirectory

    import numpy as np
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from recrawl.cli.knowledge import learn
    from recrawl.cli.predict_watch import LiveModel
    from recrawl.cli.wiring import crawl_settings_of, host_limits_of, policy_of, politeness_of
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.trial import TrialSettings, run_trial
    from recrawl.living.quirks import Quirks
    from recrawl.simulate.sites import synthetic_web
    from recrawl.time import DAY, WEEK

    start = A_MONDAY + WEEK * ((RealClock().now() - days * DAY - A_MONDAY) // WEEK)
    web = synthetic_web(pages=pages, start=start, days=days, seed=seed, hot=MEDIAN_CHANGES_PER_DAY, sigma=SPREAD)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("day {task.completed:.0f} of {task.total:g}, {task.fields[requests]:,} requests"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bar, TemporaryDirectory() as scratch:

        def crawl(what: str, place: Workspace) -> tuple[TrialResult, Policy]:
            task = bar.add_task(f"{'getting ready':<24}", total=days, requests=0)
            lines = None if console.is_terminal and not console.is_dumb_terminal else Lines(what, days)
            said = place.configuration.settings
            settings = TrialSettings(crawl_settings_of(said), quirks=Quirks.mild(), seed=seed)

            with place.open_store() as store:
                limits = host_limits_of(store, lambda: politeness_of(said.politeness))
                model = LiveModel(None, store)
                policy = policy_of(said.schedule, store.urls, limits, model)
                learn_later = _after_a_week(place, store, model)

                def show(share: float, requests: int) -> None:
                    bar.update(task, description=f"{what:<24}", completed=share * days, requests=requests)
                    if lines is not None:
                        lines.tell(share, requests)
                    learn_later(share * days)

                trial = run_trial(web, policy, store=store, folder=place.folder, settings=settings, progress=show)
                return asyncio.run(trial), policy

        ours, policy = crawl("recrawl", workspace)
        as_many = {"schedule.policy": "uniform", "schedule.budget": len(ours.visits) / days, "fetch.contact": CONTACT}
        even, _ = crawl("every page equally often", make_workspace(Path(scratch) / "even", as_many))
    with workspace.open_store() as store:
        known = learn(store)
        seen = np.isin(ours.page, known.histories.page)
        page = ours.page[seen]
        urls = store.urls(page)
    belief = known.belief.take(np.searchsorted(known.histories.page, page))
    return Demo(ours, even, page, urls, ours.rate[seen], belief, policy.price)


def _after_a_week(place: Workspace, store: Store, model: LiveModel) -> Callable[[float], None]:
    """Something to be told the day, which trains a model on the eighth: from then on it says what to expect of pages.

    Only where scikit-learn is installed, where the policy is ours, and where a week of visits is enough to learn from.
    """
    from recrawl.cli.predict_lessons import material
    from recrawl.cli.predict_models import USUAL, save_model
    from recrawl.cli.predict_training import trained
    from recrawl.errors import InputError

    wanted = find_spec("sklearn") is not None and place.configuration.settings.schedule.policy.startswith("valued")

    def told(day: float) -> None:
        nonlocal wanted
        if not wanted or day < LEARNED_ON:
            return
        wanted = False
        try:
            kept = trained(USUAL, material(place, store, None), 1, judged=False)
        except InputError:
            return
        save_model(place.folder, kept)
        model.take_over(kept)

    return told


def _picture(result: Demo) -> TrialPicture:
    import numpy as np

    from recrawl.show.trial import TrialPicture
    from recrawl.time import DAY

    ours, belief = result.ours, result.belief
    edges = (ours.edges - ours.start) / DAY
    first, behind = (np.searchsorted(ours.visits.page, result.page, side) for side in ("left", "right"))
    return TrialPicture(
        bin_days=(edges[1:] + edges[:-1]) / 2,
        fresh=ours.fresh.fresh,
        fresh_even=result.even.fresh.fresh,
        edge_days=edges,
        happened=ours.happened,
        noticed=ours.noticed,
        true_days=1 / (result.rate * DAY),
        guessed_days=1 / (belief.quantile(0.5) * DAY),
        low_days=1 / (belief.quantile(0.95) * DAY),
        high_days=1 / (belief.quantile(0.05) * DAY),
        visits=behind - first,
        even_visits=len(result.even.visits) / max(len(result.even.page), 1),
    )


def _print_table(result: Demo, console: Console) -> None:
    from rich.table import Table

    table = Table(title="What recrawl did, beside what was so", title_justify="left", box=None, show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right", style="cyan")
    table.add_column()
    for row in _rows(result):
        table.add_row(*row)
    console.print()
    console.print(table)


def _rows(result: Demo) -> list[tuple[str, str, str]]:
    """Name, figure and explanation of everything worth knowing."""
    import numpy as np

    from recrawl.assess.rates import coverage, rate_error
    from recrawl.model import ANSWERED, Outcome
    from recrawl.time import DAY, format_duration

    ours, even, changes = result.ours, result.even, result.ours.changes
    visits, days = ours.visits, (ours.end - ours.start) / DAY
    error = rate_error(result.belief.quantile(0.5), result.rate)
    covered = coverage(result.belief, result.rate, np.array([0.9]))[0]
    alarms = changes.detections - changes.true_detections
    seen, even_seen = changes.alone + changes.merged, even.changes.true_detections
    return [
        ("pages found", f"{len(ours.page):,}", f"of {ours.pages_there:,} that were there"),
        ("visits", f"{len(visits):,}", f"{len(visits) / days:.0f} a day; {len(ours.requests):,} requests in all"),
        ("  not modified (304)", f"{(visits.outcome == Outcome.NOT_MODIFIED).sum():,}", "no body was sent"),
        ("  failed or refused", f"{(visits.outcome > ANSWERED).sum():,}", "errors, cut answers, robots.txt"),
        ("changes that happened", f"{changes.total:,}", ""),
        ("  noticed", f"{seen:,}", f"{changes.alone:,} one by one, {changes.merged:,} together with others"),
        ("  overlooked", f"{changes.overlooked:,}", "above all where a server's validators lied"),
        ("  not to be noticed", f"{changes.before + changes.pending:,}", "before the first visit, or after the last"),
        ("visits that found change", f"{changes.true_detections:,}", f"{even_seen:,} with every page equally often"),
        ("false alarms", f"{alarms:,}", "noise taken for change"),
        (
            "copies current",
            _percent(ours.fresh.mean_fresh),
            f"{_percent(even.fresh.mean_fresh)} with every page equally often",
        ),
        ("rates right within", f"× {error.median_factor:.1f}", "for half of the pages"),
        ("true rate in 90 % interval", _percent(covered), "of pages"),
        *_coverage_by_host(result),
        ("price of a visit", format_duration(result.price or float("nan")), "of freshness it had to bring in the end"),
    ]


def _coverage_by_host(result: Demo) -> list[tuple[str, str, str]]:
    """The same for each host: intervals promise to cover where changes come by chance, and bursts break the promise."""
    import numpy as np

    from recrawl.assess.rates import coverage

    host = np.array([url.partition("://")[2].partition(".")[0] for url in result.url])
    rows = []
    for name, law in LAWS.items():
        pages = np.flatnonzero(host == name)
        covered = coverage(result.belief.take(pages), result.rate[pages], np.array([0.9]))[0]
        rows.append((f"  {name}", _percent(covered), law))
    return rows


def _print_rates(result: Demo, console: Console) -> None:
    """Some pages, from the one that changes most often to the one that changes least: the truth and the estimate."""
    import numpy as np
    from rich.table import Table

    from recrawl.cli.rates_words import in_words
    from recrawl.time import format_duration

    order = np.argsort(-result.rate, kind="stable")
    chosen = order[np.linspace(0, len(order) - 1, min(PAGES_SHOWN, len(order))).astype(int)]
    middle, low, high = (result.belief.take(chosen).quantile(q) for q in (0.5, 0.05, 0.95))
    rows = []
    for row, times in zip(chosen.tolist(), np.stack([1 / middle, 1 / high, 1 / low]).T.tolist(), strict=True):
        true = 1 / float(result.rate[row])
        host, _, path = result.url[row].partition("://")[2].partition("/")
        mark = "" if times[1] <= true <= times[2] else " ×"
        rows.append((f"{host.partition('.')[0]}/{path}", format_duration(true), in_words(*times) + mark))
    title = "\nTime between changes of some pages (× where the truth lies outside)"
    table = Table(title=title, title_justify="left", box=None)
    _, true_column, words_column = zip(*rows, strict=True)
    others = [("true", max(map(len, true_column))), ("estimated, 90 % interval", max(map(len, words_column)))]
    room = console.width - sum(width for _, width in others) - 2 * (len(others) + 1)
    table.add_column("page", no_wrap=True, overflow="ellipsis", max_width=max(room, 12))
    for heading, width in others:
        table.add_column(heading, no_wrap=True, min_width=width)
    for cells in rows:
        table.add_row(*cells)
    console.print(table)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
