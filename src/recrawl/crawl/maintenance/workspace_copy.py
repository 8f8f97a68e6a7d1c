"""Copies the store of a workspace to another location, so that the workspace can use another database."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from recrawl.crawl.control.worker_registry import is_alive, live_workers, registered_workers
from recrawl.crawl.maintenance.workspace_backup import SETTINGS, set_location
from recrawl.errors import InputError
from recrawl.store.base import Tell
from recrawl.store.open import open_store, sqlite_path
from recrawl.store.store_copy import CopiedTable, copy_store


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


def copy_workspace(order: CopyRequest, now: float, tell: Tell) -> list[CopiedTable]:
    """Copy the store of a workspace. Archive files stay where they are: both stores refer to them.

    Raises:
        InputError: a crawl runs in the workspace, or there is something else at the target.
    """
    with open_store(order.location) as store:
        workers = [one.worker for one in registered_workers(store.controls()) if is_alive(one, now)]
    if workers or live_workers(order.workspace):
        raise InputError("A crawl runs in this workspace.", "Stop it, then copy again.")
    copied = copy_store(order.location, order.target, tell)
    with open_store(order.target) as copy:
        copy.drop_leases(now, order.pause)
    if order.switch:
        set_location(order.workspace / SETTINGS, _as_setting(order.workspace, order.target))
    return copied


def _as_setting(workspace: Path, location: str) -> str:
    """A location as the settings of a workspace write it: files relative to the workspace if they lie in it."""
    file = sqlite_path(location)
    if file is None:
        return location
    whole = file.resolve()
    inside = whole.is_relative_to(workspace.resolve())
    return whole.relative_to(workspace.resolve()).as_posix() if inside else str(whole)
