"""``recrawl add``: add pages, and choose how they are requested."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from recrawl.app.display import HERE
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.page_additions import check_files, check_names, described, put, unknown
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.options import DryRunOption, SetOption, WorkspaceOption
from recrawl.errors import ConfigError, InputError
from recrawl.formats.seeds import read_seeds
from recrawl.model.plurals import counted

EXAMPLES = """
recrawl add https://example.org/ https://example.org/news/
recrawl add --file seeds.txt -w my-archive
recrawl add --file - --importance 3      the list from standard input
recrawl add --file seeds.txt --dry-run
recrawl add --feed https://example.org/news.atom
recrawl add --access rdf https://example.org/id/museum
recrawl add --access sparql https://example.org/sparql --option query=@museums.rq --option page_size=1000
recrawl add --access file file:///srv/data/list.csv
"""


def add(  # noqa: PLR0913 - one argument an option
    urls: Annotated[list[str] | None, typer.Argument(metavar="[URL]...", help="Page URLs, http or https.")] = None,
    files: Annotated[
        list[Path] | None,
        typer.Option("--file", "-f", metavar="FILE", help="Seed file; - for standard input. May be repeated."),
    ] = None,
    importance: Annotated[
        float, typer.Option(min=0.0, help="Weight of the new pages in the schedule; 1 is normal.")
    ] = 1.0,
    access: Annotated[
        str | None,
        typer.Option(
            metavar="METHOD",
            help="Access method: http, rdf, sparql, file, the name of a plug-in, or package.module:Name.",
        ),
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help="Option of the access method. @FILE reads the value from a file. May be repeated.",
        ),
    ] = None,
    *,
    feed: Annotated[
        bool, typer.Option("--feed", help="Treat the URLs as feeds and follow the pages that they list.")
    ] = False,
    workspace: WorkspaceOption = HERE,
    dry_run: DryRunOption = False,
    assignments: SetOption = None,
) -> None:
    """Add pages to the schedule.

    New pages are due at once. Known pages do not change, so it is safe to add a page twice. Pages that were known only
    as link targets are visited from now on. URLs that differ only in noise (www, session ids, the order of query
    arguments) are one page.

    A seed file is UTF-8 text with one URL per line. Lines that start with # are comments. TAB key=value metadata after
    a URL is ignored. +SURT lines name no page; they are skipped and counted. If any line is wrong, nothing is added.

    --access replaces the plain GET request. rdf requests data by content negotiation (option accept: other media
    types). sparql sends the query in the option query to an endpoint; with page_size it requests result pages of that
    many rows, at most max_pages of them. file reads a local file in a folder listed in fetch.allow_files. http restores
    the default.

    --feed adds RSS, Atom or JSON feeds. recrawl reads them regularly for new pages within the scope and for reported
    changes.
    """
    from recrawl.app.workspace.workspace_wiring import folders_of

    place = open_workspace(workspace, parse_assignments(assignments or []))
    if not (urls or files):
        raise ConfigError("There is nothing to add.", "Give URLs, or a seed file with --file.")
    if feed and access:
        raise ConfigError("--feed and --access exclude each other.", "Leave one of them out.")
    lists = [read_seeds(text_of(file), str(file)) for file in files or []]
    given = [*(urls or []), *(seed.url for seeds in lists for seed in seeds.addresses)]
    wanted = described("feed" if feed else access or "", given, options or [], text_of)
    check_files(wanted, folders_of(place.configuration.settings.fetch))
    for remark in dict.fromkeys(remark for one in wanted for remark in one.remarks):
        typer.echo(remark, err=True)
    with place.open_store() as store:
        check_names(store, wanted)
        if dry_run:
            added = unknown(store, wanted)
        else:
            from recrawl.crawl.clock import RealClock

            added = put(store, wanted, importance, RealClock().now())
    what = counted(added, "feed" if feed else "page")
    typer.echo(f"{'Would add' if dry_run else 'Added'} {what}; {len(wanted) - added:,} known already.")
    scopes = sum(seeds.scopes for seeds in lists)
    if scopes:
        typer.echo(f"Skipped {counted(scopes, '+SURT line')}: seed files cannot set the scope. Use crawl.include.")


def text_of(file: Path) -> str:
    """The text of a file, or of standard input for ``-``.

    Raises:
        InputError: it cannot be read, or is not UTF-8.
    """
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror}).", "Check the path.", source=str(file)) from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            "this is not UTF-8.", "Save the file as UTF-8 text.", source=str(file), position=error.start
        ) from error
