"""``recrawl backup``: copy a workspace while crawls run in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recrawl.app.display import HERE
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.options import JsonOption, SetOption, WorkspaceOption
from recrawl.model.plurals import counted

EXAMPLES = """
recrawl backup /backups/my-archive -w my-archive           a new folder below it for each backup
recrawl backup /backups/my-archive -w my-archive --keep 7  and remove all but the newest seven
recrawl backup /backups/my-archive --copy                  copy archive files instead of hard-linking them
"""


def backup(  # noqa: PLR0913 - one argument an option
    folder: Annotated[Path, typer.Argument(help="Folder of backups; created if it is missing.")],
    keep: Annotated[
        int | None,
        typer.Option(min=1, metavar="BACKUPS", help="Number of newest backups to keep; older ones are removed."),
    ] = None,
    *,
    logs: Annotated[bool, typer.Option("--logs", help="Include the logs.")] = False,
    copy: Annotated[
        bool, typer.Option("--copy", help="Copy archive files instead of sharing them by hard links.")
    ] = False,
    pg_dump: Annotated[
        Path | None, typer.Option(metavar="PROGRAM", help="Path of PostgreSQL's pg_dump, if not the one on PATH.")
    ] = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Copy a workspace while crawls run in it.

    Each backup is a new folder below FOLDER, named by its time. It holds settings, models, one state of the store, and
    the part of the archive files that this state has committed. manifest.json lists all files with size and digest. It
    is written last: a folder without it is incomplete, and the next backup removes it.

    Closed archive files never change. They are hard-linked to the workspace or to the previous backup where the file
    system allows it, so only new data takes time and space. To survive the loss of this disk, back up to another disk.

    An SQLite store is copied by SQLite's backup API. A PostgreSQL store is copied by pg_dump from an exported snapshot.
    If pg_dump is not installed here, the command is printed and the snapshot is held until you have run it elsewhere.
    Imported files outside the workspace are not copied.
    """
    from recrawl.app.progress import progress
    from recrawl.cli.tables import print_json
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.maintenance.workspace_backup import BackupRequest, make_backup

    place = open_workspace(workspace, parse_assignments(assignments or []))
    order = BackupRequest(place.folder, place.store, folder, logs=logs, copy=copy, keep=keep, pg_dump=pg_dump)
    with progress() as tell:
        made = make_backup(order, RealClock().now(), tell, _ask_to_dump)
    manifest = made.manifest
    if json_output:
        print_json(
            {
                "folder": str(made.folder),
                "files": len(manifest.files),
                "bytes": sum(entry.size for entry in manifest.files),
                "new_bytes": made.new,
                "snapshot": manifest.snapshot or None,
                "committed": {e.path: e.committed for e in manifest.files if e.committed is not None},
                "missing": manifest.missing,
                "removed": made.removed,
            }
        )
        return
    size = sum(entry.size for entry in manifest.files)
    typer.echo(f"Backed up {counted(len(manifest.files), 'file')}, {size / 1e6:,.1f} MB, in {made.folder}.")
    typer.echo(f"{made.new / 1e6:,.1f} MB are new; the rest is shared by hard links.")
    if manifest.snapshot:
        typer.echo(f"The store was dumped from snapshot {manifest.snapshot}, which matches these archive files:")
        for entry in manifest.files:
            if entry.committed is not None:
                typer.echo(f"  {entry.path} up to byte {entry.committed}")
    if manifest.missing:
        typer.echo(f"Not in this workspace, and not copied: {', '.join(manifest.missing[:3])}", err=True)
    if made.removed:
        typer.echo(f"Removed {counted(made.removed, 'older backup')}.")


def _ask_to_dump(command: list[str]) -> None:
    """Ask the user to run pg_dump while the snapshot is held."""
    import shlex
    import sys

    from recrawl.errors import ConfigError

    line = shlex.join(command)
    if not sys.stdin.isatty():
        raise ConfigError(
            "pg_dump is not installed here.",
            f"Install PostgreSQL's client programs, or give the path with --pg-dump. Command: {line}",
        )
    typer.echo("pg_dump is not installed here. The snapshot is held: run this where it is, then press Enter:", err=True)
    typer.echo(line)
    typer.prompt("", default="", show_default=False, prompt_suffix="", err=True)
