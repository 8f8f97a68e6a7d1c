"""``recrawl add``: pages to come back to, and how they are asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, DryRunOption, SetOption, WorkspaceOption
from recrawl.cli.sources import check_files, check_names, described, put, unknown
from recrawl.cli.workspace import open_workspace
from recrawl.errors import ConfigError, InputError
from recrawl.formats.seeds import read_seeds
from recrawl.model.words import counted

EXAMPLES = """
recrawl add https://example.org/ https://example.org/news/
recrawl add --file seeds.txt -w my-archive
recrawl add --file - --importance 3      read the list from standard input
recrawl add --file seeds.txt --dry-run
recrawl add --feed https://example.org/news.atom
recrawl add --access rdf https://example.org/id/museum
recrawl add --access sparql https://example.org/sparql --option query=@museums.rq --option page_size=1000
recrawl add --access file file:///srv/data/list.csv
"""


def add(  # noqa: PLR0913 - one argument an option
    urls: Annotated[list[str] | None, typer.Argument(metavar="[URL]...", help="Pages, as http or https URLs.")] = None,
    files: Annotated[
        list[Path] | None,
        typer.Option("--file", "-f", metavar="FILE", help="A seed file, - for standard input. May be repeated."),
    ] = None,
    importance: Annotated[
        float, typer.Option(min=0.0, help="Weight of the new pages when visits are shared out; 1 is ordinary.")
    ] = 1.0,
    access: Annotated[
        str | None,
        typer.Option(metavar="METHOD", help="How they are asked for: http, rdf, sparql, file, or one of a plug-in."),
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="An option of the method; @FILE as value reads a file."),
    ] = None,
    *,
    feed: Annotated[bool, typer.Option("--feed", help="They are feeds: read for the pages that they name.")] = False,
    workspace: WorkspaceOption = HERE,
    dry_run: DryRunOption = False,
    assignments: SetOption = None,
) -> None:
    """Add pages to come back to.

    New pages are due at once. Pages that are known already stay as they are, so adding twice does no harm; those that
    were known only as targets of links now count. URLs that differ only in noise (www, session ids, the order of
    query arguments) are one page.

    A seed file is UTF-8 text with one URL a line. Lines that begin with # are comments; after a URL, TAB key=value
    metadata is ignored; +SURT lines, which name no page, are skipped and counted. If any line is wrong, nothing is
    added.

    With --access the pages are asked for in another way than by one plain request. rdf asks for data by content
    negotiation (option accept: other media types). sparql asks an endpoint the query of the option query, in pages of
    page_size rows if that is given, at most max_pages. file reads a file of this machine, in a folder that
    fetch.allow_files names. http takes a method back.

    With --feed they are RSS, Atom or JSON feeds. They are read regularly for new pages within the scope, and for what
    they say about changes of pages.
    """
    from recrawl.cli.wiring import folders_of

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
        typer.echo(f"Skipped {counted(scopes, '+SURT line')}: scopes are not read from seed files, see crawl.include.")


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
