"""``recrawl restore``: restore a workspace from a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recrawl.app.display import command_in
from recrawl.cli.options import JsonOption
from recrawl.model.plurals import counted

EXAMPLES = """
recrawl restore /backups/my-archive my-archive-again            the newest backup
recrawl restore /backups/my-archive/20261117T021500Z my-archive --replace
recrawl restore /backups/my-archive again --store postgresql://db.example/again
"""


def restore(  # noqa: PLR0913 - one argument an option
    backup: Annotated[
        Path, typer.Argument(help="A backup, or a folder of backups: then the newest complete one is used.")
    ],
    workspace: Annotated[Path, typer.Argument(help="Folder of the new workspace.")],
    *,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Rename a folder that is not empty, and overwrite a PostgreSQL store."),
    ] = False,
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", help="PostgreSQL database to restore to. Default: the one in the settings."),
    ] = None,
    pg_restore: Annotated[
        Path | None, typer.Option(metavar="PROGRAM", help="Path of PostgreSQL's pg_restore, if not the one on PATH.")
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Restore a workspace from a backup.

    Every file is checked against its digest while it is copied, and the workspace appears when it is complete. A folder
    that is not empty is an error unless --replace is given, which renames it. Leases in the store are released, because
    their workers do not run on this copy. A crawl can continue from there.

    A PostgreSQL store is restored by pg_restore in one transaction, into an empty database.
    """
    from recrawl.app.progress import progress
    from recrawl.app.workspace.workspace import open_workspace
    from recrawl.cli.tables import print_json
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.maintenance.workspace_backup import RestoreRequest, restore_backup
    from recrawl.errors import ConfigError

    if store is not None and "://" not in store:
        raise ConfigError("--store is the address of a PostgreSQL database.", "Give a postgresql:// address.")
    order = RestoreRequest(backup, workspace, replace=replace, store=store or "", pg_restore=pg_restore)

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
    typer.echo(f"Restored a workspace in {workspace} from {made.backup}: {counted(len(made.manifest.files), 'file')}.")
    if made.aside is not None:
        typer.echo(f"The previous content is now in {made.aside}.")
    if made.leases:
        typer.echo(f"Ended {counted(made.leases, 'lease')} of workers that do not run here.")
    typer.echo(f"Check it with: {command_in(workspace, 'verify')}")
