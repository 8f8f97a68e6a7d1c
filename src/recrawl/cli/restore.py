"""``recrawl restore``: a workspace made from a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.options import JsonOption, command_in
from recrawl.model.words import counted

EXAMPLES = """
recrawl restore /backups/my-archive my-archive-again            the newest backup
recrawl restore /backups/my-archive/20261117T021500Z my-archive --replace
recrawl restore /backups/my-archive again --store postgresql://db.example/again
"""


def restore(  # noqa: PLR0913 - one argument an option
    backup: Annotated[Path, typer.Argument(help="A backup, or the folder of backups: then the newest complete one.")],
    workspace: Annotated[Path, typer.Argument(help="The folder to make the workspace in.")],
    *,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="If the folder is not empty, put it aside; overwrite a PostgreSQL store."),
    ] = False,
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The PostgreSQL database to restore to, if not that of the settings."),
    ] = None,
    pg_restore: Annotated[
        Path | None, typer.Option(metavar="PROGRAM", help="PostgreSQL's pg_restore, if not the one in the path.")
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Make a workspace from a backup.

    Every file is compared with its digest while it is copied, and the workspace is put in place when all of it is
    there. A folder that is not empty is left alone, unless --replace puts it aside under another name. Leases in the
    store are ended: whoever held them is not at work in this copy. A crawl goes on from there.

    A PostgreSQL store is brought back by pg_restore, all of it or nothing, into an empty database.
    """
    from recrawl.cli.tables import print_json
    from recrawl.cli.waiting import progress
    from recrawl.cli.workspace import open_workspace
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.restore import Return, restore_backup
    from recrawl.errors import ConfigError

    if store is not None and "://" not in store:
        raise ConfigError("--store is the address of a PostgreSQL database.", "Give a postgresql:// address.")
    order = Return(backup, workspace, replace=replace, store=store or "", pg_restore=pg_restore)

    def settings(folder: Path) -> tuple[str, float]:
        place = open_workspace(folder, {})
        return place.store, place.configuration.settings.politeness.min_delay

    with progress() as tell:
        made = restore_backup(order, RealClock().now(), settings, tell)
    if json_output:
        print_json(
            {
                "backup": str(made.backup),
                "workspace": str(workspace),
                "files": len(made.manifest.files),
                "aside": None if made.aside is None else str(made.aside),
                "leases_ended": made.leases,
            }
        )
        return
    typer.echo(f"Made a workspace in {workspace} from {made.backup}: {counted(len(made.manifest.files), 'file')}.")
    if made.aside is not None:
        typer.echo(f"What was there is now in {made.aside}.")
    if made.leases:
        typer.echo(f"Ended {counted(made.leases, 'lease')} of workers that are not at work here.")
    typer.echo(f"Check it with: {command_in(workspace, 'verify')}")
