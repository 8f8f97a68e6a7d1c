"""``recrawl demo``: the whole job on a small web that really changes."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.app.display import command_name, visits_of
from recrawl.app.workspace.workspace import Workspace, make_workspace
from recrawl.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from recrawl_testweb.demo.demo_capture import DemoCapture

_PORT, _YEARS = 8080, 10
"""Where a site is served, and how long an old crawler went there, if nobody says so."""
MARKER = ".recrawl-demo"
"""Marks a workspace that the next demo may replace."""
NEEDED = ("fastwarc", "h11", "jinja2", "matplotlib", "pycurl")
"""Modules of other extras without which there is no demo: one that is missing is told of before anything starts."""
NEXT_COMMANDS = {
    "what is in the workspace": "status",
    "every visit": "list visits",
    "how often pages change": "rates",
    "what comes next, and why": "plan --at {end}",
    "what to expect of new pages": "predict score",
    "how good the capture is": "capture show 1",
    "would another policy do better?": "compare",
    "all of it in the browser, live": "serve",
}
EXAMPLES = """
recrawl demo                               four virtual weeks in a minute or so
recrawl demo --pages 300 --budget 600      more pages, more visits a day
recrawl demo --seed 7 --folder other-demo  another web
recrawl demo --serve --pages 40            a site that changes, for you to crawl
recrawl demo --serve --data --pages 12 --judge monitor  open data, and what the workspace monitor found of its changes
recrawl demo --archive old-crawls --pages 73  ten years of WARC files, as an old crawler left them
"""


def demo(  # noqa: PLR0913 - one argument an option
    *,
    folder: Annotated[
        Path, typer.Option("--folder", "-f", help="Workspace to make; that of an earlier demo is replaced.")
    ] = Path("recrawl-demo"),
    pages: Annotated[int, typer.Option(min=6, help="Pages of the test web, on three hosts.")] = 150,
    days: Annotated[float, typer.Option(min=1.0, help="Virtual days to crawl.")] = 28.0,
    budget: Annotated[
        str, typer.Option(metavar="VISITS", help="Visits a day, or like 500/h, to all hosts together.")
    ] = "100",
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
    years: Annotated[
        int | None,
        typer.Option(min=1, help="With --archive: how many years of them.", show_default=f"{_YEARS}"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            help="With --serve or --archive: port of the site; 0, to serve, for any that is free.",
            show_default=f"{_PORT}",
        ),
    ] = None,
    judge: Annotated[
        Path | None,
        typer.Option(metavar="WORKSPACE", help="With --serve: say in the end which changes this workspace found."),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --serve: write all changes into a CSV file in the end.")
    ] = None,
) -> None:
    """Run a complete crawl on a small test web.

    Starts a web server on this machine whose pages change by known laws, then crawls it for some virtual weeks as
    recrawl crawls any site: robots.txt, sitemaps, links, conditional requests, pauses. Every visit is recorded and
    archived, change rates are estimated, and each page is visited again when that is worth a visit. After a week
    recrawl learns from its visits what pages look like that change often (if scikit-learn is installed). A day after
    the crawl one of the sites is captured whole, its new pages in the order that this suggests. Then the same
    web is crawled once more with every page visited equally often. In the end the server tells the truth, and you
    see what recrawl believed and did beside it. A report on the workspace is written, to open in a browser.

    With --serve nothing is crawled: a site of N pages, which change every minute or so, is served on this
    machine, and you are told how to crawl it in another terminal. With --data it is an open-data portal. Ctrl-C ends
    it: then it tells how often pages really changed and, with --evaluate, how many of these changes a workspace found
    (recall) and how many of those it reported were true (precision).

    With --archive nothing is crawled for recrawl either: a folder is filled with WARC files of ten years of a town's
    site, four nights a year. With --serve as well, that site is served as it is today.
    """
    _refuse_idle(data or judge or truth, port, years, archive=archive is not None, serve=serve)
    where = _PORT if port is None else port
    if archive is not None:
        from recrawl_testweb.demo.demo_archive import DemoArchive, leave

        leave(DemoArchive(pages, years or _YEARS, seed, where), archive, serve=serve)
        return
    if serve:
        from recrawl_testweb.demo.demo_serve import serve_site

        serve_site(pages, where, seed, data=data, judge=judge, truth=truth)
        return
    visits = visits_of("--budget", budget)
    if visits < 1:
        raise ConfigError(f"--budget: {budget} is less than one visit a day.", "Write for example 100, or 5/h.")
    for module in NEEDED:
        if find_spec(module) is None:
            raise MissingExtraError(module, "demo")
    # Said before anything large is loaded: right after an installation that takes a while.
    time = f"{days:g} {'day' if days == 1 else 'days'}"
    typer.echo(f"A web of {pages} pages that change, and {time} of crawling it: a minute or so.", err=True)
    from rich.console import Console

    from recrawl.time import to_iso
    from recrawl_testweb.demo.demo_capture import capture_words
    from recrawl_testweb.demo.demo_crawl import crawl_twice
    from recrawl_testweb.demo.demo_output import draw, plot_of, print_rates, print_table

    console = Console()
    workspace = _new_workspace(folder, visits)
    result = crawl_twice(workspace, console, pages=pages, days=days, seed=seed)
    plot = workspace.reports / "demo.png"
    title = f"{len(result.ours.page)} pages, {len(result.ours.visits):,} visits in {time}"
    print_table(result, console)
    print_rates(result, console)
    console.print("", *capture_words(result.capture), sep="\n", highlight=False)
    typer.echo("Drawing the plot …", err=True)
    draw(plot_of(result), plot, title)
    typer.echo("Writing the report …", err=True)
    report = _write_report(workspace, result.capture)
    typer.echo(f"\nReport: {report}\nPicture: {plot}\nWorkspace: {folder}\n\nLook further:")
    for question, command in NEXT_COMMANDS.items():
        if command.startswith("predict") and not (folder / "models").is_dir():
            continue
        typer.echo(f"  {question:<32} {command_name()} {command.format(end=to_iso(result.ours.end))} -w {folder}")


def _write_report(workspace: Workspace, capture: DemoCapture) -> Path:
    """All that is known of the workspace after the capture, and what that stated, in one file to open."""
    from dataclasses import replace

    from recrawl.cli.collect.report_command import FILE_NAME, report_of_workspace, write_report
    from recrawl.web.report.report_builder import statement_section

    file, made = workspace.reports / FILE_NAME, capture.report.capture
    with workspace.open_store() as store:
        report = report_of_workspace(workspace, store, now=made.finished)
        first, *others = report.sections
        write_report(replace(report, sections=[first, statement_section(store, made), *others]), file)
    return file


def _refuse_idle(changing: object, port: int | None, years: int | None, *, archive: bool, serve: bool) -> None:
    """Refuse options that would do nothing; ``changing`` is any that is about a site that changes while it is served.

    Raises:
        ConfigError: with the option that is missing or too much.
    """
    if archive and changing:
        raise ConfigError("--data, --judge and --truth are about a site that changes.", "Leave out --archive.")
    if not archive and years is not None:
        raise ConfigError("--years is about an archive.", "Add --archive FOLDER.")
    if not (archive or serve) and (changing or port is not None):
        raise ConfigError("--data, --judge, --truth and --port are about a site that is served.", "Add --serve.")


def _new_workspace(folder: Path, budget: float) -> Workspace:
    """An empty workspace; only what an earlier demo left is ever removed."""
    import shutil

    from recrawl_testweb.demo.demo_crawl import CONTACT

    if (folder / MARKER).is_file():
        shutil.rmtree(folder)
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"The folder {folder} is not empty and not from a demo.", "Name another one with --folder.")
    workspace = make_workspace(folder, {"fetch.contact": CONTACT, "schedule.budget": budget})
    (folder / MARKER).touch()
    return workspace
