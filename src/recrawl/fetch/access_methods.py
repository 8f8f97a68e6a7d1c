"""The access methods there are: ours, and those that other packages bring.

A package brings one by an entry point of the group ``recrawl.access``, whose name is the method's and whose value is
called without arguments for it. Only a method that somebody uses is loaded, so one that is broken disturbs no others.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

from recrawl.errors import ConfigError
from recrawl.fetch.access import AccessMethod
from recrawl.fetch.files import LocalFile
from recrawl.fetch.negotiate import Negotiation
from recrawl.fetch.sparql import Sparql

GROUP = "recrawl.access"
"""Of entry points."""
PLAIN = "http"
"""The method of pages that have none: one request, as any page is asked for."""
FEED = "feed"
"""Kept in place of a method for what is read as a feed, and asked for as any page."""


class AccessMethods:
    """Access methods by name."""

    def __init__(self, brought: Iterable[EntryPoint] | None = None) -> None:
        """``brought`` are the entry points of other packages; those that are installed, if not given."""
        ours: tuple[AccessMethod, ...] = (Negotiation(), Sparql(), LocalFile())
        self._methods = {method.name: method for method in ours}
        self._ours = frozenset(self._methods) | {PLAIN, FEED}
        self._brought: dict[str, list[EntryPoint]] = {}
        for entry in entry_points(group=GROUP) if brought is None else brought:
            self._brought.setdefault(entry.name, []).append(entry)

    def names(self) -> list[str]:
        """Every name, ours first. None is loaded."""
        return [PLAIN, *self._methods, *(name for name in self._brought if name not in self._methods)]

    def get(self, name: str) -> AccessMethod:
        """The method of this name.

        Raises:
            ConfigError: there is none, there are two, or it cannot be loaded.
        """
        entries = self._brought.get(name, [])
        if entries and (len(entries) > 1 or name in self._ours):
            packages = ", ".join(filter(None, map(_package, entries))) or "an unnamed package"
            raise ConfigError(
                f"More than one access method is called {name!r}; one is from {packages}.", "Uninstall that package."
            )
        if name not in self._methods:
            if not entries:
                raise ConfigError(f"There is no access method {name!r}.", f"There are: {', '.join(self.names())}.")
            self._methods[name] = _loaded(entries[0])
        return self._methods[name]


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else ""


def _loaded(entry: EntryPoint) -> AccessMethod:
    package = _package(entry) or "the package that brings it"
    remedy = f"Update or uninstall {package}."
    try:
        method = entry.load()()
    except Exception as error:  # whatever somebody else's code raises while it is loaded
        raise ConfigError(
            f"The access method {entry.name!r} ({entry.value}) cannot be loaded: {error!r}.", remedy
        ) from error
    if not isinstance(method, AccessMethod):
        raise ConfigError(
            f"{entry.value} is no access method: it lacks one of name, summary, options, source and talk.", remedy
        )
    return method
