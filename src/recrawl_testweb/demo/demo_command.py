"""``recrawl demo``: a complete crawl of a small test web."""

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
"""Default port of a served site, and default years of a generated archive."""
MARKER = ".recrawl-demo"
"""Marks a workspace that the next demo may replace."""
NEEDED = ("fastwarc", "h11", "jinja2", "matplotlib", "pycurl")
"""Modules of other extras that the demo needs; a missing one is reported before anything starts."""
NEXT_COMMANDS = {
    "counts, freshness, due pages": "status",
    "all visits": "list visits",
    "change rates": "rates",
    "upcoming fetches, with reasons": "plan --at {end}",
    "predicted rates of new pages": "predict score",
    "quality of the capture": "capture show 1",
    "back-test of other policies": "compare",
    "dashboard in the browser": "serve",
}
EXAMPLES = """
recrawl demo                               four virtual weeks in about a minute
recrawl demo --pages 300 --budget 600      more pages, more visits a day
recrawl demo --seed 7 --folder other-demo  another test web
recrawl demo --serve --pages 40            a site that changes, for you to crawl
recrawl demo --serve --data --pages 12 --evaluate monitor  open data; at the end, the changes that monitor found
recrawl demo --archive old-crawls --pages 73  WARC files of ten years, as an older crawler wrote them
"""


def demo(  # noqa: PLR0913 - one argument an option
    *,
    folder: Annotated[
        Path, typer.Option("--folder", "-f", help="Workspace to create. That of an earlier demo is replaced.")
    ] = Path("recrawl-demo"),
    pages: Annotated[int, typer.Option(min=6, help="Pages of the test web, on three hosts.")] = 150,
    days: Annotated[float, typer.Option(min=1.0, help="Virtual days to crawl.")] = 28.0,
    budget: Annotated[
        str, typer.Option(metavar="VISITS", help="Visits per day, or 500/h, to all hosts together.")
    ] = "100",
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 1,
    serve: Annotated[
        bool,
        typer.Option(
            "--serve", help="Only serve a changing site for you to crawl. Ctrl-C ends it and prints the true changes."
        ),
    ] = False,
    data: Annotated[
        bool, typer.Option("--data", help="With --serve: JSON, CSV, RDF and a SPARQL endpoint instead of web pages.")
    ] = False,
    archive: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Only write WARC files of a site from 2016 on, as an older crawler would."),
    ] = None,
    years: Annotated[
        int | None,
        typer.Option(min=1, help="With --archive: number of years.", show_default=f"{_YEARS}"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            help="With --serve or --archive: port of the site; with --serve, 0 for any free port.",
            show_default=f"{_PORT}",
        ),
    ] = None,
    evaluate: Annotated[
        Path | None,
        typer.Option(
            metavar="WORKSPACE", help="With --serve: workspace to evaluate at the end: which changes it found."
        ),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --serve: CSV file for all true changes.")
    ] = None,
) -> None:
    """Run a complete crawl on a small test web.

    Starts a web server on this machine whose pages change at known times, and crawls it for four virtual weeks like any
    other site: robots.txt, sitemaps, links, conditional requests, politeness delays. Visits are recorded and archived,
    change rates are estimated, and pages are revisited when a visit is worth it. After a week, recrawl trains a model
    of change rates on its visits (if scikit-learn is installed). A day after the crawl, it captures one of the sites.
    Then it crawls the same web again with uniform revisits. At the end it compares results and estimates with the true
    changes, and writes a plot and a report.

    With --serve nothing is crawled: a site whose pages change about every minute is served on this machine, and the
    commands to crawl it are printed. With --data it is an open-data portal. Ctrl-C ends it and prints how often pages
    really changed. With --evaluate it also prints how many of these changes a workspace found (recall), and how many of
    the changes that it reported were true (precision).

    With --archive nothing is crawled either: a folder is filled with WARC files of a site, four crawls a year. With
    --serve as well, the site is served in its current state.
    """
    _refuse_idle(data or evaluate or truth, port, years, archive=archive is not None, serve=serve)
    where = _PORT if port is None else port
    if archive is not None:
        from recrawl_testweb.demo.demo_archive import DemoArchive, leave

        leave(DemoArchive(pages, years or _YEARS, seed, where), archive, serve=serve)
        return
    if serve:
        from recrawl_testweb.demo.demo_serve import serve_site

        serve_site(pages, where, seed, data=data, evaluate=evaluate, truth=truth)
        return
    visits = visits_of("--budget", budget)
    if visits < 1:
        raise ConfigError(f"--budget: {budget} is less than one visit a day.", "Write for example 100, or 5/h.")
    for module in NEEDED:
        if find_spec(module) is None:
            raise MissingExtraError(module, "demo")
    # Said before anything large is loaded: right after an installation that takes a while.
    time = f"{days:g} {'day' if days == 1 else 'days'}"
    typer.echo(f"Crawling a test web of {pages} pages for {time} of virtual time. This takes about a minute.", err=True)
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
    typer.echo(f"\nReport: {report}\nPlot: {plot}\nWorkspace: {folder}\n\nNext commands:")
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
    """Reject options without effect; ``changing`` is any option that applies only to a changing site.

    Raises:
        ConfigError: with the option that is missing or too much.
    """
    if archive and changing:
        raise ConfigError("--data, --evaluate and --truth apply only to a changing site.", "Leave out --archive.")
    if not archive and years is not None:
        raise ConfigError("--years applies only to an archive.", "Add --archive FOLDER.")
    if not (archive or serve) and (changing or port is not None):
        raise ConfigError("--data, --evaluate, --truth and --port apply only to a served site.", "Add --serve.")


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
