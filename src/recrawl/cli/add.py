"""``recrawl add``: pages to come back to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, DryRunOption, SetOption, WorkspaceOption
from recrawl.cli.workspace import open_workspace
from recrawl.errors import InputError
from recrawl.formats.seeds import Seeds, parse_seed, read_seeds

EXAMPLES = """
recrawl add https://example.org/ https://example.org/news/
recrawl add --file seeds.txt -w my-archive
recrawl add --file - --importance 3      read the list from standard input
recrawl add --file seeds.txt --dry-run
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
    *,
    workspace: WorkspaceOption = HERE,
    dry_run: DryRunOption = False,
    assignments: SetOption = None,
) -> None:
    """Add pages to come back to.

    New pages are due at once. Pages that are known already stay as they are, so adding twice does no harm; those that
    were known only as targets of links now count. URLs that differ only in noise (www, session ids, the order of
    query arguments) are one page.

    There is no command yet that crawls them: so far the crawler runs in recrawl demo only.

    A seed file is UTF-8 text with one URL a line. Lines that begin with # are comments; after a URL, TAB key=value
    metadata is ignored; +SURT lines, which name no page, are skipped and counted. If any line is wrong, nothing is
    added.
    """
    place = open_workspace(workspace, parse_assignments(assignments or []))
    lists = [Seeds(tuple(parse_seed(url, "") for url in urls or []))]
    lists += [read_seeds(text_of(file), str(file)) for file in files or []]
    if not (urls or files):
        raise InputError("There is nothing to add.", "Give URLs, or a seed file with --file.")
    wanted: dict[str, str] = {}
    for seed in (seed for seeds in lists for seed in seeds.addresses):
        wanted.setdefault(seed.key, seed.url)
    with place.open_store() as store:
        if dry_run:
            known = sum(store.find(url) is not None for url in wanted.values())
            added = len(wanted) - known
        else:
            import numpy as np

            from recrawl.crawl.clock import RealClock

            now = RealClock().now()
            pages = store.pages(store.discover(list(wanted.values()), now, importance=importance))
            new = pages.discovered == now
            only_linked = pages.id[~new & (pages.importance == 0)]
            store.set_importance(only_linked, np.full(len(only_linked), importance))
            added = int(new.sum()) + len(only_linked)
    typer.echo(f"{'Would add' if dry_run else 'Added'} {_pages(added)}; {len(wanted) - added} known already.")
    scopes = sum(seeds.scopes for seeds in lists)
    if scopes:
        typer.echo(f"Skipped {scopes} +SURT line{'s' if scopes > 1 else ''}: scopes are not read from seed files.")


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


def _pages(count: int) -> str:
    return f"{count} page{'' if count == 1 else 's'}"
