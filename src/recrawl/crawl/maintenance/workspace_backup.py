"""Backups of a workspace while crawls run in it, their restoration, and copies of its store to another location.

A restoration is complete, or changes nothing.

A backup folder holds one folder per backup, named by its time. Each contains a workspace: settings, store, archive
files. ``manifest.json`` is written last and lists every file with size and digest; a folder without it is no backup.

Rules of this file:

1. Archive files that are closed before the store is copied hold only captures that the copy has: they are taken whole.
   Of all others, only the part up to the end of the last capture in the copy is taken. So a backup holds no record
   that its store does not acknowledge.
2. Closed archive files never change. So a backup may share them with the workspace and with the last backup, by hard
   links, and only new files take space and time.
3. Everything is written under a temporary name, and renamed when it is complete. The next backup removes what a killed
   process left.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from recrawl.crawl.control.worker_registry import is_alive, live_workers, registered_workers
from recrawl.errors import ConfigError, InputError, StoreError, StoreMissingError
from recrawl.formats.atomic_files import complete_file, is_running, lock, reporting_write_errors, sync_folder
from recrawl.formats.warc.archive_stream import member_end
from recrawl.formats.warc.warc_check import OPEN
from recrawl.formats.warc.warc_stream import record_at
from recrawl.model.captures import UploadedFile
from recrawl.store.base import Tell
from recrawl.store.open import open_store, sqlite_path
from recrawl.store.store_copy import (
    CopiedTable,
    copy_sqlite,
    copy_store,
    dump_command,
    exported_snapshot,
    find_program,
    load_command,
    run_program,
)
from recrawl.time import iso_second

MANIFEST = "manifest.json"
SETTINGS = "recrawl.yaml"
WARC = "warc"
DUMP = "store.dump"
"""The dump of a PostgreSQL store in a backup."""
STORE = "recrawl.db"
"""An SQLite store in a backup, if it lies outside its workspace."""
FORMAT = 1
PART = ".part"
_PIECE = 1 << 20
_NO_LINK = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP})
"""Error numbers of the system where a hard link is not possible."""


@dataclass(frozen=True, slots=True)
class BackupFile:
    """One file of a backup."""

    path: str
    """Relative to the backup."""
    size: int
    sha256: str
    changed: int
    """Modification time in nanoseconds: tells whether the file is still the same."""
    committed: int | None = None
    """Of an archive file that was being written: how many bytes were acknowledged, and are here."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of a backup."""

    made: str
    """When it was made, UTC."""
    workspace: str
    kind: str
    """``sqlite`` or ``postgresql``."""
    store: str
    """The copy of the store, relative to the backup; for PostgreSQL the dump."""
    snapshot: str
    """For PostgreSQL: the exported snapshot of the dump."""
    files: list[BackupFile]
    missing: list[str] = field(default_factory=list)
    """Archive files in the store that are not in the workspace, such as those of other workspaces."""
    in_storage: list[dict[str, Any]] = field(default_factory=list)
    """Archive files that are only in object storage: their rows in the store, digests in hexadecimal."""
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class BackupRequest:
    """What to back up, and how."""

    workspace: Path
    location: str
    """Location of the store."""
    target: Path
    """The backup folder."""
    logs: bool = False
    copy: bool = False
    """Whether to copy archive files instead of sharing them by hard links."""
    keep: int | None = None
    """Number of newest backups to keep; all if ``None``."""
    pg_dump: Path | None = None
    uploaded: Callable[[str], UploadedFile | None] = lambda _name: None
    """Tells where an archive file was uploaded to."""


@dataclass(frozen=True, slots=True)
class BackupResult:
    """A finished backup."""

    folder: Path
    manifest: Manifest
    new: int
    """Bytes on disk that are not shared with the workspace or the last backup."""
    removed: int
    """Number of older backups removed."""


# -- making ----------------------------------------------------------------------------------------


def make_backup(request: BackupRequest, now: float, tell: Tell, ask: Callable[[list[str]], None]) -> BackupResult:
    """Back up a workspace.

    If pg_dump is not installed here, ``ask`` receives the command line that copies a PostgreSQL store, and returns when
    somebody has run it: until then the snapshot is held. It raises if nobody can.
    """
    if request.target.resolve().is_relative_to(request.workspace.resolve()):
        raise ConfigError("A backup inside its workspace is lost with it.", "Name a folder outside of the workspace.")
    with reporting_write_errors(request.target):
        request.target.mkdir(parents=True, exist_ok=True)
    with _alone(request.target / ".lock"):
        _remove_parts(request.target)
        name = free_name(request.target, now)
        part = request.target / f".{name}{PART}"
        with reporting_write_errors(part):
            part.mkdir()
            made = _Backup(request, part, latest(request.target), tell).make(now, ask)
            sync_folder(part)
            part.rename(request.target / name)
            sync_folder(request.target)
        removed = _prune(request.target, request.keep)
    return BackupResult(request.target / name, made[0], made[1], removed)


class _Backup:
    """Makes one backup."""

    def __init__(self, request: BackupRequest, part: Path, before: Path | None, tell: Tell) -> None:
        self._request, self._part, self._before, self._tell = request, part, before, tell
        self._known = {} if before is None else {entry.path: entry for entry in read_manifest(before).files}
        self._files: list[BackupFile] = []
        self._missing: list[str] = []
        self._in_storage: list[dict[str, Any]] = []
        self._new = 0

    def make(self, now: float, ask: Callable[[list[str]], None]) -> tuple[Manifest, int]:
        place = self._request.workspace
        closed = sorted(_closed(place / WARC))
        database = sqlite_path(self._request.location)
        if database is not None:
            kind, store, snapshot = "sqlite", _inside(place, database), ""
            self._room(store)
            offsets = copy_sqlite(database, self._part / store, self._tell)
            self._archive(closed, offsets)
        else:
            kind, store = "postgresql", DUMP
            program = find_program("pg_dump", self._request.pg_dump)
            with exported_snapshot(self._request.location) as held:
                snapshot = held.name
                command = dump_command(program or "pg_dump", self._request.location, snapshot, self._part / DUMP)
                self._archive(closed, held.offsets)
                self._tell("store", 0, 1)
                if program is None:
                    ask(command)
                else:
                    run_program(command, self._request.location)
                if not (self._part / DUMP).is_file():
                    raise StoreError(f"There is no dump in {self._part / DUMP}.", "Run the command, then confirm.")
                self._tell("store", 1, 1)
        self._note(store)
        for path in self._others():
            self._copy(path, path.relative_to(place).as_posix())
        return self._finish(
            Manifest(
                iso_second(int(now)) + "Z",
                str(place.resolve()),
                kind,
                store,
                snapshot,
                self._files,
                self._missing,
                self._in_storage,
            )
        )

    def _finish(self, manifest: Manifest) -> tuple[Manifest, int]:
        with complete_file(self._part / MANIFEST) as file:
            file.write(json.dumps(asdict(manifest), indent=1).encode())
        return manifest, self._new

    def _archive(self, closed: list[str], offsets: dict[str, int]) -> None:
        """Take the archive files: closed ones whole, of the others the acknowledged part."""
        rest = sorted(name for name in offsets if name not in set(closed))
        for done, name in enumerate((*closed, *rest)):
            self._tell("archive files", done, len(closed) + len(rest))
            if name in offsets and name in rest:
                self._take_committed(name, offsets[name])
            else:
                self._share(name)
        self._tell("archive files", 1, 1)

    def _share(self, name: str) -> None:
        """Take a closed file, by a hard link if that is possible."""
        source, path = self._request.workspace / WARC / name, f"{WARC}/{name}"
        try:
            state, before = source.stat(), self._known.get(path)
        except FileNotFoundError:  # removed a moment ago, after its upload
            self._list_elsewhere(name)
            return
        target = self._room(path)
        same = before is not None and (before.size, before.changed) == (state.st_size, state.st_mtime_ns)
        if same and before is not None and self._before is not None and _linked(self._before / path, target):
            self._files.append(before)
            return
        if not self._request.copy and _linked(source, target):
            self._files.append(BackupFile(path, state.st_size, _sha256(target), state.st_mtime_ns))
            return
        self._copy(source, path)

    def _copy(self, source: Path, path: str, committed: int | None = None) -> None:
        target = self._room(path)
        with source.open("rb") as file:
            size, digest = copied(file, target, committed)
            changed = os.fstat(file.fileno()).st_mtime_ns
        os.utime(target, ns=(changed, changed))
        self._new += size
        self._files.append(BackupFile(path, size, digest, changed, committed))

    def _take_committed(self, name: str, last: int) -> None:
        """Take the acknowledged part of a file that is, or was just now, being written."""
        path = self._request.workspace / WARC / name
        for source in (path.with_name(path.name + OPEN), path, path.with_name(path.name + OPEN)):
            with suppress(FileNotFoundError):
                with source.open("rb") as file:
                    end = committed_end(file, last)
                self._copy(source if source.exists() else path, f"{WARC}/{name}", end)
                return
        self._list_elsewhere(name)

    def _list_elsewhere(self, name: str) -> None:
        """Note a file that is in object storage, or nowhere."""
        found = self._request.uploaded(name)
        if found is None:
            self._missing.append(name)
        else:
            self._in_storage.append({**found._asdict(), "sha256": found.sha256.hex()})

    def _note(self, path: str) -> None:
        """Add a file that was written here to the manifest."""
        target = self._part / path
        state = target.stat()
        self._new += state.st_size
        self._files.append(BackupFile(path, state.st_size, _sha256(target), state.st_mtime_ns))

    def _others(self) -> Iterator[Path]:
        place = self._request.workspace
        yield place / SETTINGS
        models = place / "models"
        if models.is_dir():
            yield from sorted(path for path in models.rglob("*") if path.is_file())
        if self._request.logs:
            yield from sorted(path for pattern in ("recrawl.log*", "crawl.log*") for path in place.glob(pattern))

    def _room(self, path: str) -> Path:
        target = self._part / path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target


def committed_end(file: BinaryIO, last: int) -> int:
    """Where the records of the capture at ``last`` end, with statements about captures after it.

    Requests and metadata of a capture follow it. Later records may not be acknowledged.

    Raises:
        InputError: there is no whole record at ``last``.
    """
    end = member_end(file, last)
    capture = record_at(file, last)
    if end is None or capture is None:
        raise InputError(
            "no record begins here", "Look for more with: recrawl verify", source=str(file.name), position=last
        )
    id_ = capture.headers.get("WARC-Record-ID")
    while (after := member_end(file, end)) is not None:
        record = record_at(file, end)
        headers: Any = {} if record is None else record.headers.to_dict()
        belongs = headers.get("WARC-Concurrent-To") == id_
        is_statement = headers.get("WARC-Type") == "metadata" and "WARC-Concurrent-To" not in headers
        if not belongs and not is_statement:
            break
        end = after
    return end


def _closed(folder: Path) -> Iterator[str]:
    """Closed files of an archive folder, relative to it."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.startswith(".") and not path.name.endswith(OPEN):
            yield path.relative_to(folder).as_posix()


def _inside(place: Path, database: Path) -> str:
    """Where the store lies inside the workspace; its own name if it lies outside."""
    with suppress(ValueError):
        return database.resolve().relative_to(place.resolve()).as_posix()
    return STORE


def _linked(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno in _NO_LINK:
            return False
        raise
    return True


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copied(file: BinaryIO, target: Path, size: int | None = None) -> tuple[int, str]:
    """Copy a file, or its first bytes; return the number of bytes and their digest."""
    digest, done = hashlib.sha256(), 0
    with target.open("xb") as copy:
        while piece := file.read(_PIECE if size is None else min(_PIECE, size - done)):
            copy.write(piece)
            digest.update(piece)
            done += len(piece)
        copy.flush()
        os.fsync(copy.fileno())
    return done, digest.hexdigest()


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the lock of a backup folder, which the system drops with the process."""
    with reporting_write_errors(path):
        file = path.open("ab")
    with file:
        if os.name == "posix" and not lock(file):
            raise InputError("another backup is being made here", "Wait for it.", source=str(path.parent))
        yield


def _remove_parts(target: Path) -> None:
    for part in target.glob(f".*{PART}"):
        shutil.rmtree(part, ignore_errors=True)


def free_name(target: Path, now: float) -> str:
    """An unused name after the time."""
    stamp = iso_second(int(now)).replace("-", "").replace(":", "") + "Z"
    names = [stamp, *(f"{stamp}-{number}" for number in range(2, 1_000))]
    return next(name for name in names if not (target / name).exists())


def backups_in(target: Path) -> list[Path]:
    """Complete backups in a folder, the oldest first."""
    found = [path.parent for path in target.glob(f"[0-9]*/{MANIFEST}")]
    return sorted(found, key=lambda path: (path.name[:16], len(path.name), path.name))


def latest(target: Path) -> Path | None:
    """The newest complete backup in a folder, if there is one."""
    found = backups_in(target)
    return found[-1] if found else None


def _prune(target: Path, keep: int | None) -> int:
    """Remove all backups but the newest. The manifest goes first, so that a half-removed one is no backup."""
    old = [] if keep is None else backups_in(target)[:-keep]
    for path in old:
        (path / MANIFEST).unlink()
        shutil.rmtree(path, ignore_errors=True)
    return len(old)


def read_manifest(folder: Path) -> Manifest:
    """The contents of a backup.

    Raises:
        InputError: it cannot be read, or a newer recrawl made it.
    """
    file = folder / MANIFEST
    try:
        told_ = json.loads(file.read_bytes())
        if told_["format"] > FORMAT:
            raise InputError("a newer recrawl made it", "Use that version.", source=str(file))
        return Manifest(**{**told_, "files": [BackupFile(**entry) for entry in told_["files"]]})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError("it is no list of a backup", "Name another backup.", source=str(file)) from error


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """What to restore, and where."""

    backup: Path
    """One backup, or a folder of backups: then the newest."""
    workspace: Path
    replace: bool = False
    """Whether an existing workspace is renamed first."""
    store: str = ""
    """Another location of a PostgreSQL store than in the settings."""
    pg_restore: Path | None = None


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """A restored workspace."""

    backup: Path
    manifest: Manifest
    aside: Path | None
    """Where the former workspace is now."""
    leases: int
    """Number of leases that were ended: no worker runs in a restored workspace."""


Settings: TypeAlias = Callable[[Path], tuple[str, float]]
"""For the workspace in a folder: the location of its store, and the minimum pause of hosts in seconds."""


def restore_backup(request: RestoreRequest, now: float, settings: Settings, tell: Tell) -> RestoreResult:
    """Restore a workspace from a backup.

    Digests are compared while files are copied; nothing is put in place before everything is right.
    """
    backup = _chosen(request.backup)
    manifest, target = read_manifest(backup), request.workspace
    if target.is_dir() and any(target.iterdir()):
        if not request.replace:
            raise InputError(f"{target} is not empty.", "Name another folder, or rename it with --replace.")
        if live_workers(target):
            raise InputError(f"A crawl is at work in {target}.", "Stop it first.")
    parent = target.resolve().parent
    part = parent / f".{target.resolve().name}.{os.getpid()}{PART}"
    with reporting_write_errors(target):
        parent.mkdir(parents=True, exist_ok=True)
        _remove_dead_parts(parent, target.resolve().name)
        part.mkdir()
        try:
            _fill(part, backup, manifest, tell)
            leases = _bring_store(part, request, manifest, settings, now)
            sync_folder(part)
            aside = _put_in_place(part, target.resolve(), now)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
    return RestoreResult(backup, manifest, aside, leases)


def _chosen(folder: Path) -> Path:
    if (folder / MANIFEST).is_file():
        return folder
    found = latest(folder)
    if found is None:
        raise InputError(f"There is no complete backup in {folder}.", "Name a folder that recrawl backup made.")
    return found


def _fill(part: Path, backup: Path, manifest: Manifest, tell: Tell) -> None:
    whole, done = sum(entry.size for entry in manifest.files), 0
    (part / WARC).mkdir()
    (part / "reports").mkdir()
    for entry in manifest.files:
        tell("files", done, whole)
        target = part / entry.path
        if not target.resolve().is_relative_to(part.resolve()):
            raise InputError(f"{entry.path} leads out of the backup", "Use another backup.", source=str(backup))
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with (backup / entry.path).open("rb") as file:
                size, digest = copied(file, target)
        except FileNotFoundError as error:
            raise InputError("a file is missing", "Use another backup.", source=str(backup / entry.path)) from error
        if (size, digest) != (entry.size, entry.sha256):
            raise InputError("the file is not what it was", "Use another backup.", source=str(backup / entry.path))
        os.utime(target, ns=(entry.changed, entry.changed))
        done += size
    tell("files", 1, 1)


def _bring_store(part: Path, request: RestoreRequest, manifest: Manifest, settings: Settings, now: float) -> int:
    """Put the store in place, and end all leases in it."""
    location, pause = settings(part)
    if manifest.kind == "sqlite":
        place = str(part / manifest.store)
        there = sqlite_path(location)
        if there is None or there.resolve() != (part / manifest.store).resolve():
            set_location(part / SETTINGS, manifest.store)
    else:
        if request.store:
            set_location(part / SETTINGS, request.store)
        place = request.store or location
        _load(part / manifest.store, place, request)
        (part / manifest.store).unlink()
    with open_store(place) as store:
        for row in manifest.in_storage:  # one may have been uploaded after the store was copied
            store.record_upload(UploadedFile(**{**row, "sha256": bytes.fromhex(row["sha256"])}))
        return store.drop_leases(now, pause)


def _load(dump: Path, url: str, request: RestoreRequest) -> None:
    program = find_program("pg_restore", request.pg_restore)
    if program is None:
        raise ConfigError(
            "pg_restore is not installed here.", "Install PostgreSQL's programs, or name it: --pg-restore"
        )
    if not request.replace and _has_store(url):
        raise InputError(
            "The database holds a store already.", "Name an empty one with --store, or overwrite it with --replace."
        )
    run_program(load_command(program, url, dump, replace=request.replace), url)


def _has_store(url: str) -> bool:
    try:
        open_store(url).close()
    except StoreMissingError:
        return False
    return True


def set_location(settings: Path, location: str) -> None:
    """Write another location of the store into the settings, and leave the rest unchanged."""
    text = settings.read_text(encoding="utf-8")
    value = json.dumps(location)  # JSON is YAML
    pattern = re.compile(r"^(store:[^\n]*\n(?:(?:[ \t]+[^\n]*|[ \t]*#[^\n]*|)\n)*?[ \t]+location:)[^\n]*", re.MULTILINE)
    changed, count = pattern.subn(lambda found: f"{found[1]} {value}", text, count=1)
    if not count:  # the section may be there with all of its settings commented out
        heading = re.compile(r"^store:[ \t]*(#[^\n]*)?$", re.MULTILINE)
        changed, count = heading.subn(lambda found: f"{found[0]}\n  location: {value}", text, count=1)
    if not count:
        if re.search(r"^store:", text, re.MULTILINE):
            raise InputError("it names the store in a way of its own", "Edit store.location.", source=str(settings))
        changed = f"{text.rstrip()}\nstore:\n  location: {value}\n"
    settings.write_text(changed, encoding="utf-8")


def _put_in_place(part: Path, target: Path, now: float) -> Path | None:
    aside = None
    if target.is_dir() and any(target.iterdir()):
        aside = target.with_name(free_name(target.parent, now).join((f"{target.name}.before-", "")))
        target.rename(aside)
    elif target.is_dir():
        target.rmdir()
    part.rename(target)
    sync_folder(target.parent)
    return aside


def _remove_dead_parts(parent: Path, name: str) -> None:
    """Remove what killed restores left."""
    for part in parent.glob(f".{name}.*{PART}"):
        process = part.name.removesuffix(PART).rpartition(".")[2]
        if process.isdigit() and not is_running(int(process)):
            shutil.rmtree(part, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class CopyRequest:
    """What to copy, and where to."""

    workspace: Path
    location: str
    """Location of the store."""
    target: str
    """Location of the copy: a new SQLite file, or an empty PostgreSQL database."""
    pause: float
    """Seconds for which hosts pause that a worker had reserved."""
    switch: bool = False
    """Whether the settings name the copy afterwards."""


def copy_workspace(request: CopyRequest, now: float, tell: Tell) -> list[CopiedTable]:
    """Copy the store of a workspace. Archive files stay where they are: both stores refer to them.

    Raises:
        InputError: a crawl runs in the workspace, or there is something else at the target.
    """
    with open_store(request.location) as store:
        workers = [one.worker for one in registered_workers(store.controls()) if is_alive(one, now)]
    if workers or live_workers(request.workspace):
        raise InputError("A crawl runs in this workspace.", "Stop it, then copy again.")
    copied = copy_store(request.location, request.target, tell)
    with open_store(request.target) as copy:
        copy.drop_leases(now, request.pause)
    if request.switch:
        set_location(request.workspace / SETTINGS, _as_setting(request.workspace, request.target))
    return copied


def _as_setting(workspace: Path, location: str) -> str:
    """A location as the settings of a workspace write it: files relative to the workspace if they lie in it."""
    file = sqlite_path(location)
    if file is None:
        return location
    whole = file.resolve()
    inside = whole.is_relative_to(workspace.resolve())
    return whole.relative_to(workspace.resolve()).as_posix() if inside else str(whole)
