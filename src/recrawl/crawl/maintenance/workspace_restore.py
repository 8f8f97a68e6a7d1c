"""Restores a workspace from a backup: completely, or not at all."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from recrawl.crawl.control.worker_registry import live_workers
from recrawl.crawl.maintenance.workspace_backup import (
    MANIFEST,
    PART,
    SETTINGS,
    WARC,
    Manifest,
    copied,
    free_name,
    latest,
    read_manifest,
)
from recrawl.errors import ConfigError, InputError, StoreMissingError
from recrawl.formats.atomic_files import is_running, told
from recrawl.formats.warc.warc_repair import sync_folder
from recrawl.store.base import Tell
from recrawl.store.copies import find_program, load_command, run_program
from recrawl.store.open import open_store, sqlite_path


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """What to restore, and where."""

    backup: Path
    """One backup, or a folder of backups: then the newest."""
    workspace: Path
    replace: bool = False
    """Whether an existing workspace is moved aside."""
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


def restore_backup(order: RestoreRequest, now: float, settings: Settings, tell: Tell) -> RestoreResult:
    """Restore a workspace from a backup.

    Digests are compared while files are copied; nothing is put in place before everything is right.
    """
    backup = _chosen(order.backup)
    manifest, target = read_manifest(backup), order.workspace
    if target.is_dir() and any(target.iterdir()):
        if not order.replace:
            raise InputError(
                f"{target} is not empty.", "Name another folder, or put what is there aside with --replace."
            )
        if live_workers(target):
            raise InputError(f"A crawl is at work in {target}.", "Stop it first.")
    parent = target.resolve().parent
    part = parent / f".{target.resolve().name}.{os.getpid()}{PART}"
    with told(target):
        parent.mkdir(parents=True, exist_ok=True)
        _remove_dead_parts(parent, target.resolve().name)
        part.mkdir()
        try:
            _fill(part, backup, manifest, tell)
            leases = _bring_store(part, order, manifest, settings, now)
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


def _bring_store(part: Path, order: RestoreRequest, manifest: Manifest, settings: Settings, now: float) -> int:
    """Put the store in place, and end all leases in it."""
    location, pause = settings(part)
    if manifest.kind == "sqlite":
        place = str(part / manifest.store)
        there = sqlite_path(location)
        if there is None or there.resolve() != (part / manifest.store).resolve():
            set_location(part / SETTINGS, manifest.store)
    else:
        if order.store:
            set_location(part / SETTINGS, order.store)
        place = order.store or location
        _load(part / manifest.store, place, order)
        (part / manifest.store).unlink()
    with open_store(place) as store:
        return store.drop_leases(now, pause)


def _load(dump: Path, url: str, order: RestoreRequest) -> None:
    program = find_program("pg_restore", order.pg_restore)
    if program is None:
        raise ConfigError(
            "pg_restore is not installed here.", "Install PostgreSQL's programs, or name it: --pg-restore"
        )
    if not order.replace and _has_store(url):
        raise InputError(
            "The database holds a store already.", "Name an empty one with --store, or overwrite it with --replace."
        )
    run_program(load_command(program, url, dump, replace=order.replace), url)


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
