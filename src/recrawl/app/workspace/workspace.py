"""A workspace: a folder with settings, a store, archive files and reports; and the limits of its running crawls."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.app.display import command_name
from recrawl.app.workspace.configuration import FILE_NAME, Configuration, configure, settings_text
from recrawl.app.workspace.settings import declared, without_password
from recrawl.errors import ConfigError, InputError, StoreMissingError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recrawl.formats.warc.archive_folder import ArchiveFolder
    from recrawl.store.base import ScheduleStore, Store


@dataclass(frozen=True, slots=True)
class Workspace:
    """The parts of a workspace by name. The folder exists; what is in it may not."""

    folder: Path
    configuration: Configuration
    flags: Mapping[str, object] = field(default_factory=dict)
    """Settings given on the command line."""

    @property
    def settings_file(self) -> Path:
        """``recrawl.yaml``."""
        return self.folder / FILE_NAME

    @property
    def warc(self) -> Path:
        """Where archive files go."""
        return self.folder / "warc"

    @property
    def archive(self) -> ArchiveFolder:
        """Archive files, wherever they are."""
        from recrawl.formats.warc.archive_folder import ArchiveFolder

        return ArchiveFolder(self.warc, self.configuration.settings.archive.storage_options(self.folder / "cache"))

    @property
    def schedule_state(self) -> Path:
        """What the scheduler had learned at its last fit: a cache, which may be deleted at any time."""
        return self.folder / "state" / "schedule.snapshot"

    @property
    def reports(self) -> Path:
        """The folder for tables and plots."""
        return self.folder / "reports"

    @property
    def store(self) -> str:
        """Location of the store: a PostgreSQL URL as it is, a file relative to the workspace."""
        location = self.configuration.settings.store.location
        return location if "://" in location else str(self.folder / location)

    @property
    def shown_store(self) -> str:
        """The same for people to see: without a password."""
        return without_password(self.store)

    @property
    def coordination(self) -> str:
        """Location of the coordination database of its units; empty if there are none.

        Raises:
            ConfigError: it is the store of this unit.
        """
        location = self.configuration.settings.units.coordination
        if not location:
            return ""
        place = location if "://" in location else str(self.folder / location)
        if place == self.store:
            raise ConfigError(
                "units.coordination is the store of this unit.", "Name another database, which all units share."
            )
        return place

    def limited(self, limits: Mapping[str, object]) -> Workspace:
        """The same with what ``recrawl limit`` says put before every other origin of a setting."""
        configuration = configure(self.settings_file, os.environ, self.flags, limits)  # noqa: TID251 - the command line
        return replace(self, configuration=configuration)

    def open_store(self) -> Store:
        """Open the store, which must exist."""
        from recrawl.store.open import open_store

        try:
            return open_store(self.store)
        except StoreMissingError as error:
            if self.configuration.origins["store.location"].kind == "flag":  # init keeps to the file
                remedy = "Correct the store.location that was given."
            else:
                remedy = f"Create one with: {init_command(self.folder)}"
            raise StoreMissingError(error.what, remedy) from error


def open_workspace(folder: Path, flags: Mapping[str, object]) -> Workspace:
    """The workspace in this folder with its settings resolved; an error naming ``recrawl init`` if there is none."""
    file = folder / FILE_NAME
    if not file.is_file():
        raise ConfigError(
            f"There is no workspace in {named(folder)}: {file} is missing.",
            f"Create one with: {init_command(folder)}   or give another with --workspace.",
        )
    configuration = configure(file, os.environ, flags)  # noqa: TID251 - the command line is where it is read
    return Workspace(folder, configuration, flags)


def make_workspace(folder: Path, flags: Mapping[str, object]) -> Workspace:
    """Create a workspace: settings with every key explained, an empty store, and folders for archive files and reports.

    A workspace that has settings and no store is given one, unless ``flags`` would have to be written to its settings.
    If anything fails, no new settings are left behind.
    """
    file = folder / FILE_NAME
    if file.exists():
        if flags or _has_store(folder):
            raise InputError(
                f"There is a workspace in {named(folder)} already.", "Choose another folder, or edit its recrawl.yaml."
            )
        return _furnish(folder)
    text = settings_text(flags)
    was_there = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return _furnish(folder)
    except BaseException as error:
        with suppress(OSError):
            file.unlink(missing_ok=True)
            if not was_there:
                folder.rmdir()
        if not isinstance(error, OSError):
            raise
        raise InputError(
            f"A workspace cannot be created in {named(folder)}: {error.strerror}.", "Choose a folder you may write to."
        ) from error


def _has_store(folder: Path) -> bool:
    place = open_workspace(folder, {})
    if "://" not in place.store:
        return Path(place.store).exists()  # not opened: a store of an older recrawl is left as it is
    try:
        place.open_store().close()
    except StoreMissingError:
        return False
    return True


def _furnish(folder: Path) -> Workspace:
    """Make what the settings in a folder speak of."""
    from recrawl.store.open import open_store

    workspace = open_workspace(folder, {})
    open_store(workspace.store, create=True).close()
    workspace.warc.mkdir(exist_ok=True)
    workspace.reports.mkdir(exist_ok=True)
    return workspace


def init_command(folder: Path) -> str:
    """How to make a workspace there.

    >>> init_command(Path("archive")).removeprefix(command_name()), init_command(Path()).removeprefix(command_name())
    (' init archive', ' init')
    """
    return command_name() + " init" + ("" if folder == Path() else f" {shlex.quote(str(folder))}")


def named(folder: Path) -> str:
    """A folder in a sentence: a lone dot is easily overread.

    >>> named(Path("archive")), named(Path())
    ('archive', 'the current folder')
    """
    return "the current folder" if folder == Path() else str(folder)


def change_limits(
    place: Workspace, store: ScheduleStore, wanted: Mapping[str, str | None], now: float
) -> dict[str, str]:
    """Set limits by key, or take them back where that is ``None``; returns those that hold then.

    They must make sense together and with the settings; else nothing is changed.
    """
    from recrawl.crawl.control import runtime_limits

    told = runtime_limits.limits(store.controls())
    held = {key: text for key, text in {**told, **wanted}.items() if text is not None}
    place.limited(held)
    for key, text in wanted.items():
        runtime_limits.set_limit(store, key, text, now)
    return held


def not_live(key: str, live: Iterable[str]) -> ConfigError:
    """Why there is no limit of that name."""
    known = {setting.key for setting in declared()}
    why = "it is read when a run starts" if key in known else "there is no such setting"
    return ConfigError(
        f"{key} cannot be changed while a crawl runs: {why}.",
        f"Set it in recrawl.yaml and restart. Possible limits: {', '.join(live)}.",
    )
