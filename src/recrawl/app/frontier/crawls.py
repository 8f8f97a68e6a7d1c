"""Crawl ids: each is a workspace.

``DEFAULT`` is the workspace that is served. Another id is a workspace that was named when the service started, or one
in the folder ``crawls`` of the served one. That is made when URLs are first sent for it, with the same settings. So
each crawl has its own store, budget and schedule, and is a workspace like any other: ``recrawl status -w W/crawls/ID``.
"""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from recrawl.app.frontier.url_frontier import UrlFrontier
from recrawl.app.workspace.configuration import FILE_NAME
from recrawl.app.workspace.workspace import Workspace, make_workspace, open_workspace
from recrawl.errors import ConfigError

DEFAULT = "DEFAULT"
FOLDER = "crawls"
MOST = 100
"""Crawls of one service: each has a store, a policy in memory and a thread."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class FrontierCrawls:
    """The frontiers of all crawls of a service, opened when they are first needed."""

    def __init__(self, place: Workspace, others: Mapping[str, Workspace] | None = None) -> None:
        """``others`` are workspaces of further crawls, by id."""
        self._place = place
        self._lock = threading.Lock()
        self._places: dict[str, Workspace] = {DEFAULT: place}
        for name, other in (others or {}).items():
            self._places[checked(name)] = other
        for folder in sorted((place.folder / FOLDER).glob(f"*/{FILE_NAME}")):
            if _ID.fullmatch(folder.parent.name):
                self._places.setdefault(folder.parent.name, open_workspace(folder.parent, place.flags))
        self._open: dict[str, UrlFrontier] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all frontiers."""
        with self._lock:
            self._open.clear()
            self._stack.close()

    @property
    def names(self) -> list[str]:
        """Ids of all crawls, ``DEFAULT`` first."""
        with self._lock:
            return [DEFAULT, *sorted(name for name in self._places if name != DEFAULT)]

    def find(self, name: str) -> UrlFrontier | None:
        """The frontier of a crawl; ``None`` if there is no such crawl. May take seconds at first."""
        return self._get(name or DEFAULT, create=False)

    def get(self, name: str) -> UrlFrontier:
        """The frontier of a crawl, made if it is new.

        Raises:
            ConfigError: it cannot be made: the id is none, there are too many, or the store is a database.
        """
        found = self._get(name or DEFAULT, create=True)
        assert found is not None  # noqa: S101 - it was made
        return found

    def _get(self, name: str, *, create: bool) -> UrlFrontier | None:
        with self._lock:
            if name in self._open:
                return self._open[name]
            if name not in self._places:
                if not create:
                    return None
                self._places[name] = self._make(checked(name))
            self._open[name] = found = self._stack.enter_context(UrlFrontier(self._places[name]))
            return found

    def _make(self, name: str) -> Workspace:
        """A new workspace with the settings of the served one."""
        if len(self._places) >= MOST:
            raise ConfigError(f"There are {MOST} crawls already.", "Start another service for more.")
        if "://" in self._place.store:
            raise ConfigError(
                f"There is no crawl {name!r}, and none is made beside a database server.",
                f"Make a workspace with its own store.location, and start with --crawl {name}=FOLDER.",
            )
        folder = self._place.folder / FOLDER / name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self._place.settings_file, folder / FILE_NAME)
        made = make_workspace(folder, {})
        return open_workspace(made.folder, self._place.flags)


def checked(name: str) -> str:
    """A crawl id that may be the name of a folder.

    Raises:
        ConfigError: it may not.
    """
    if not _ID.fullmatch(name):
        raise ConfigError(
            f"{name[:80]!r} is not a crawl id.", "Use at most 63 letters, digits, dots, dashes and underscores."
        )
    return name


def named_crawls(given: list[str], flags: Mapping[str, object]) -> dict[str, Workspace]:
    """The workspaces in texts like ``ID=FOLDER``.

    Raises:
        ConfigError: a text is none of these, or there is no such workspace.
    """
    found = {}
    for text in given:
        name, sign, folder = text.partition("=")
        if not sign or not folder:
            raise ConfigError(f"--crawl {text!r} is not ID=FOLDER.", "Write for example --crawl news=../news.")
        found[checked(name)] = open_workspace(Path(folder), flags)
    return found
