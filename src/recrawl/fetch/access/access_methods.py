"""The registry of access methods: built-in ones, and those of other packages.

A package adds one by an entry point of the group ``recrawl.access``. Its name is the method's name, its value is called
without arguments. ``package.module:Name`` names one without an entry point (:mod:`recrawl.plugins`). A method is loaded
when it is used, so a broken one does not affect others.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

from recrawl import plugins
from recrawl.errors import ConfigError
from recrawl.fetch.access.access_method import AccessMethod
from recrawl.fetch.access.file_access import LocalFile
from recrawl.fetch.access.rdf_access import Negotiation
from recrawl.fetch.access.sparql import Sparql

GROUP = plugins.GROUPS["access method"]
"""The group of entry points."""
PLAIN = "http"
"""The method of plain pages: one request."""
FEED = "feed"
"""Stored in place of a method for feeds, which are fetched like plain pages."""


class AccessMethods:
    """Access methods by name."""

    def __init__(self, brought: Iterable[EntryPoint] | None = None) -> None:
        """``brought`` are the entry points of other packages; by default those that are installed."""
        ours: tuple[AccessMethod, ...] = (Negotiation(), Sparql(), LocalFile())
        self._methods = {method.name: method for method in ours}
        self._ours = frozenset(self._methods) | {PLAIN, FEED}
        self._brought: dict[str, list[EntryPoint]] = {}
        for entry in entry_points(group=GROUP) if brought is None else brought:
            self._brought.setdefault(entry.name, []).append(entry)

    def names(self) -> list[str]:
        """Every name, built-in ones first. Loads none."""
        return [PLAIN, *self._methods, *(name for name in self._brought if name not in self._methods)]

    def get(self, name: str) -> AccessMethod:
        """The method of this name.

        Raises:
            ConfigError: there is none, there are two, or it cannot be loaded.
        """
        entries = self._brought.get(name, [])
        if entries and (len(entries) > 1 or name in self._ours):
            packages = ", ".join(map(plugins.package_of, entries))
            raise ConfigError(
                f"More than one access method is called {name!r}; one is from {packages}.", "Uninstall that package."
            )
        if name not in self._methods:
            if not entries and not plugins.is_reference(name):
                raise ConfigError(
                    f"There is no access method {name!r}.",
                    f"There are: {', '.join(self.names())}. One of another package is written package.module:Name.",
                )
            make = plugins.find(_KIND, name, {}, entries)
            said = name if not entries else f"{name} ({entries[0].value})"
            self._methods[name] = plugins.made(_KIND, said, AccessMethod, make)
        return self._methods[name]


_KIND = "access method"
