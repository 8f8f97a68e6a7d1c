"""Keep a workspace safe and move it: ``recrawl backup``, ``restore``, ``upload``, ``copy``, ``leave``, ``verify``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.app.display import HERE, command_in
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.settings import without_password
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.options import JsonOption, SetOption, WorkspaceOption
from recrawl.errors import ConfigError, ExitCode, counted

if TYPE_CHECKING:
    from recrawl.crawl.maintenance.workspace_check import Verification


BACKUP_EXAMPLES = """
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
    Imported files outside the workspace are not copied. WARC files that are only in object storage are listed with
    their location, and read from there after a restore.
    """
    from recrawl.app.progress import progress
    from recrawl.cli.tables import print_json
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.maintenance.workspace_backup import BackupRequest, make_backup

    place = open_workspace(workspace, parse_assignments(assignments or []))
    with progress() as tell, place.open_store() as store:
        request = BackupRequest(
            place.folder, place.store, folder, logs, copy, keep, pg_dump, uploaded=store.uploaded_file
        )
        made = make_backup(request, RealClock().now(), tell, _ask_to_dump)
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
                "in_storage": [f"{file['location']}{file['name']}" for file in manifest.in_storage],
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
    if manifest.in_storage:
        files = counted(len(manifest.in_storage), "WARC file")
        typer.echo(f"{files} in object storage are listed, and not copied.")
    if manifest.missing:
        typer.echo(f"Not in this workspace, and not copied: {', '.join(manifest.missing[:3])}", err=True)
    if made.removed:
        typer.echo(f"Removed {counted(made.removed, 'older backup')}.")


UPLOAD_EXAMPLES = """
recrawl upload -w my-archive                                              closed WARC files to archive.storage
recrawl upload -w my-archive --set archive.storage=s3://bucket/my-archive  to another bucket
"""


def upload(workspace: WorkspaceOption = HERE, json_output: JsonOption = False, assignments: SetOption = None) -> None:
    """Upload closed WARC files to object storage.

    A run does this itself, when it closes a file. This command uploads what is left: files of earlier runs and of
    imports. Each file is checked by size and checksum and then recorded in the store. Files that are there already are
    not sent again. Local files are removed when they are uploaded for longer than archive.keep_local.

    Credentials come from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or from the files of AWS.
    """
    from recrawl.cli.tables import print_json
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.maintenance.archive_upload import ArchiveUploader
    from recrawl.errors import ConfigError, InputError

    place = open_workspace(workspace, parse_assignments(assignments or []))
    options = place.archive.options
    if options is None or not options.upload:
        raise ConfigError("archive.storage is empty.", "Set it to s3://bucket/prefix in recrawl.yaml or with --set.")
    with place.open_store() as store:
        done = ArchiveUploader(place.warc, options, RealClock().now).run(store)
    if done.is_elsewhere:
        raise InputError("Another process uploads the files of this workspace.", "Wait for it: recrawl status")
    if json_output:
        print_json({"files": done.files, "bytes": done.bytes, "removed": done.removed, "location": options.upload})
        return
    typer.echo(f"Uploaded {counted(done.files, 'WARC file')}, {done.bytes / 1e6:,.1f} MB, to {options.upload}.")
    if done.removed:
        typer.echo(f"Removed {counted(done.removed, 'local file')}.")


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


RESTORE_EXAMPLES = """
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
    request = RestoreRequest(backup, workspace, replace=replace, store=store or "", pg_restore=pg_restore)

    def settings(folder: Path) -> tuple[str, float]:
        place = open_workspace(folder, {})
        return place.store, place.configuration.settings.politeness.min_delay

    with progress() as tell:
        made = restore_backup(request, RealClock().now(), settings, tell)
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


COPY_EXAMPLES = """
recrawl copy --to postgresql://me@db.example/crawl -w my-archive           from SQLite to PostgreSQL
recrawl copy --to postgresql://me@db.example/crawl -w my-archive --switch  and use it from now on
recrawl copy --to my-archive/recrawl-2.db -w my-archive                    back to an SQLite file
"""


def copy(
    to: Annotated[
        str,
        typer.Option("--to", metavar="STORE", help="New SQLite file, or empty PostgreSQL database (postgresql://…)."),
    ],
    *,
    switch: Annotated[
        bool, typer.Option("--switch", help="Write the new location into recrawl.yaml when the copy is complete.")
    ] = False,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Copy the store of a workspace to another database.

    Pages, visits, verdicts, captures, links, the schedule, learned noise, robots.txt copies and all else in the store
    are copied as they are, between SQLite and PostgreSQL in either direction. Archive files stay where they are: both
    stores refer to them.

    Stop all crawls first. An interrupted copy goes on where it stopped: run the same command again. At the end the
    number and a digest of the rows of every table are compared.
    """
    from recrawl.app.progress import progress
    from recrawl.app.workspace.workspace_wiring import politeness_of
    from recrawl.cli.tables import print_json
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.maintenance.workspace_backup import CopyRequest, copy_workspace

    place = open_workspace(workspace, parse_assignments(assignments or []))
    pause = politeness_of(place.configuration.settings.politeness).shortest
    request = CopyRequest(place.folder, place.store, to, pause, switch)
    with progress() as tell:
        copied = copy_workspace(request, RealClock().now(), tell)
    shown = without_password(to)
    if json_output:
        print_json({"store": shown, "tables": {one.name: {"rows": one.rows, "digest": one.digest} for one in copied}})
        return
    rows = {one.name: one.rows for one in copied}
    typer.echo(
        f"Copied {counted(rows['page'], 'page')}, {counted(rows['visit'], 'visit')} and "
        f"{counted(rows['capture'], 'capture')} to {shown}; all rows of {len(copied)} tables are the same."
    )
    if switch:
        typer.echo("The workspace uses the copy from now on.")
    else:
        typer.echo(f"To use it, set store.location in {place.folder / 'recrawl.yaml'}, or copy with --switch.")


LEAVE_EXAMPLES = """
recrawl leave -w unit-b                  send all pages of this unit to the others, and leave
recrawl leave -w unit-a --unit unit-b    remove a unit that is gone for good
"""


def leave(
    unit: Annotated[
        str, typer.Option("--unit", metavar="NAME", help="Remove another unit, which is gone for good.")
    ] = "",
    *,
    workspace: WorkspaceOption = HERE,
    assignments: SetOption = None,
) -> None:
    """Take a unit out of a crawl of several units.

    All its pages go to the units that own their buckets from now on, with their visits, their schedule and what was
    learned. Its captures stay in its archive files. Stop its crawls first; other units have to run, to take over its
    buckets. An interrupted command goes on where it stopped: run it again.

    With --unit, a unit that does not report any more is removed, and the others share its buckets. Pages that only its
    store has are lost to the crawl: restart the unit or promote its replica if you can.
    """
    import time

    from recrawl.app.workspace.workspace_wiring import unit_terms
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.units.unit_agent import leave_units, remove_unit

    place = open_workspace(workspace, parse_assignments(assignments or []))
    terms, clock = unit_terms(place), RealClock()
    if terms is None:
        raise ConfigError("This workspace is no unit.", "Set units.name and units.coordination.")
    if unit and unit != terms.name:
        remove_unit(terms.coordination, unit, clock.now())
        typer.echo(f"Removed the unit {unit}. The others take over its buckets.")
        return
    sent = leave_units(terms, clock.now, time.sleep)
    typer.echo(f"The unit {terms.name} has left; {counted(sent, 'page')} sent to other units.")


VERIFY_EXAMPLES = """
recrawl verify -w my-archive                 check everything
recrawl verify -w my-archive --sample 10000  check the bytes of 10,000 captures only
recrawl verify -w my-archive --repair        also repair derived data
recrawl verify --json                        print JSON
"""


def verify(  # noqa: PLR0913 - one argument an option
    sample: Annotated[
        int | None,
        typer.Option(min=1, metavar="CAPTURES", help="Number of captures to read, drawn at random. Default: all."),
    ] = None,
    *,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair derived data; visits and bytes are not changed.")
    ] = False,
    seed: Annotated[int | None, typer.Option(min=0, metavar="NUMBER", help="Random seed of the sample.")] = None,
    archive: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER", help="Folder warc/ of another workspace that shares the store. May be repeated."
        ),
    ] = None,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Check that store and archive files are complete and consistent.

    Reads every capture at its file and offset and compares digests; finds records that the store does not list, and
    revisit records without their capture; compares every derived table with its source; and checks leases, times ahead
    of the clock, and files left by killed processes. Crawls can run meanwhile.

    Findings are errors (bytes or visits are lost or damaged), warnings (nothing is lost; most can be repaired) and
    notes. --repair rebuilds indexes, counts, the schedule, leases and capture positions from their sources. The exit
    code is 9 if there are errors, else 0.

    With --sample the whole store is checked, but only randomly drawn captures of the archive files. The result states
    the share that was read, and an upper bound on the share of wrong captures.
    """
    import numpy as np

    from recrawl.app.progress import progress
    from recrawl.cli.tables import print_json
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.maintenance.workspace_check import CheckScope, Severity
    from recrawl.crawl.maintenance.workspace_check import verify as check
    from recrawl.errors import ConfigError
    from recrawl.store.base import ClockHorizon
    from recrawl.time import HOUR

    if seed is not None and sample is None:
        raise ConfigError("--seed needs --sample.", "Add --sample, or leave out --seed.")
    place = open_workspace(workspace, parse_assignments(assignments or []))
    said = place.configuration.settings
    horizon = ClockHorizon(lease=max(HOUR, 3 * said.crawl.lease_time))
    scope = CheckScope(repair, sample, said.politeness.min_delay, horizon, tuple(archive or ()))
    with place.open_store() as store, progress() as tell:
        rng = np.random.default_rng(seed)
        found = check(store, place.folder, RealClock().now(), scope, rng=rng, tell=tell, archive_files=place.archive)
    if json_output:
        print_json(found.facts())
    else:
        _print(found)
    if found.findings.left(Severity.ERROR):
        raise typer.Exit(ExitCode.FAILED)


def _print(found: Verification) -> None:
    from recrawl.cli.tables import print_table
    from recrawl.crawl.maintenance.workspace_check import Severity

    rows = [
        (
            one.about.severity.value,
            f"{one.count:,}",
            f"{one.repaired:,}" if one.repaired else "",
            one.about.meaning,
            one.examples[0] if one.examples else "",
            "" if one.repaired == one.count else one.about.remedy,
        )
        for one in found.findings.all()
    ]
    if rows:
        headings = ("severity", "found", "repaired", "what", "for example", "what to do")
        print_table(headings, rows, right=("found", "repaired"), spare=("for example", "what to do"))
    size = f"{found.read / 1e6:,.1f} MB"
    typer.echo(
        f"Read {counted(found.captures, 'capture')} and {counted(found.records, 'record')} "
        f"in {counted(found.files, 'archive file')}, {size}."
        if found.sample is None
        else f"Read {found.sample.drawn:,} of {counted(found.sample.captures, 'capture')}, {_share(found)}. "
        f"With 95% confidence at most {found.sample.bound:.3%} of all captures are wrong."
    )
    errors, warnings = found.findings.left(Severity.ERROR), found.findings.left(Severity.WARNING)
    if errors or warnings:
        typer.echo(f"Left: {counted(errors, 'error')}, {counted(warnings, 'warning')}.")
    else:
        typer.echo("The workspace is complete and consistent.")


def _share(found: Verification) -> str:
    sample = found.sample
    return f"{sample.drawn / sample.captures:.2%}" if sample is not None and sample.captures else "all"
