"""Set up a workspace: ``recrawl init``, ``recrawl config`` and ``recrawl add``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from recrawl.app.display import HERE, command_in
from recrawl.app.workspace.configuration import FILE_NAME, parse_assignments
from recrawl.app.workspace.page_additions import check_files, check_names, described, put, unknown
from recrawl.app.workspace.settings import declared, without_password
from recrawl.app.workspace.workspace import Workspace, make_workspace, named, open_workspace
from recrawl.cli.commands import CommandWithExamples, SubcommandGroup, new_app
from recrawl.cli.options import DryRunOption, JsonOption, SetOption, WorkspaceOption
from recrawl.cli.tables import print_json, print_table
from recrawl.errors import ConfigError, InputError, StoreError, counted
from recrawl.formats.seeds import read_seeds

INIT_EXAMPLES = """
recrawl init                       in the current folder
recrawl init my-archive            in a new folder
recrawl init shared --store postgresql://me@db.example.org/archive
"""


def init(
    folder: Annotated[Path, typer.Argument(help="Folder of the workspace; created if it is missing.")] = HERE,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="LOCATION", help="SQLite file or PostgreSQL URL, written to recrawl.yaml as store.location."
        ),
    ] = None,
    assignments: SetOption = None,
) -> None:
    """Create a workspace: a folder with settings, a store and archive files.

    Writes recrawl.yaml with every setting, its default and an explanation, creates an empty store, and creates the
    folders warc/ (archive files) and reports/ (tables and plots). An existing workspace is not changed. If it has
    recrawl.yaml but no store, the store is created.
    """
    flags = parse_assignments(assignments or [])
    if store is not None:
        flags["store.location"] = store
    is_new = not (folder / FILE_NAME).exists()
    make_workspace(folder, flags)
    typer.echo(f"Created a {'workspace' if is_new else 'store for the workspace'} in {named(folder)}.")
    typer.echo(f"Next, add pages: {command_in(folder, 'add', 'https://example.org/')}")


CONFIG_EXAMPLES = """
recrawl config show -w my-archive
recrawl config show --json
RECRAWL_FETCH_TIMEOUT=20s recrawl config show
recrawl config show --set fetch.timeout=20s
"""

app = new_app()


@app.callback(cls=SubcommandGroup, no_args_is_help=True)
def config() -> None:
    """Show the settings and where each comes from."""


def _limited(place: Workspace) -> Workspace:
    """The configuration with the limits in force. If the store cannot be read, print that and leave the limits out."""
    from recrawl.crawl.control.runtime_limits import limits

    try:
        with place.open_store() as store:
            return place.limited(limits(store.controls()))
    except StoreError as error:
        typer.echo(f"Limits are not shown: {error.what}", err=True)
        return place


@app.command("show", cls=CommandWithExamples, epilog=CONFIG_EXAMPLES)
def show(workspace: WorkspaceOption = HERE, json_output: JsonOption = False, assignments: SetOption = None) -> None:
    """Print every setting, its value and its origin.

    The order of precedence is: recrawl limit, an option (--set KEY=VALUE), an environment variable
    (RECRAWL_SECTION_KEY), the recrawl.yaml of the workspace, the default.
    """
    configuration = _limited(open_workspace(workspace, parse_assignments(assignments or []))).configuration
    if json_output:
        rows = {}
        for setting in declared():
            value = configuration.value(setting)
            shown = without_password(value) if isinstance(value, str) else value
            rows[setting.key] = {"value": shown, "origin": str(configuration.origins[setting.key])}
        print_json(rows)
        return
    print_table(
        ("setting", "value", "origin"),
        [
            (
                setting.key,
                without_password(setting.kind.write(configuration.value(setting))),
                str(configuration.origins[setting.key]),
            )
            for setting in declared()
        ],
    )


ADD_EXAMPLES = """
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
    urls: Annotated[list[str] | None, typer.Argument(metavar="URL", help="Page URLs, http or https.")] = None,
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
