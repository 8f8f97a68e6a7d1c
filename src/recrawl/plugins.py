"""Find implementations of the seven seams by name: built-in ones and those of other packages.

A name is one of three things:

- the name of a built-in implementation (``nutch``),
- the name of an entry point of the seam's group (:data:`GROUPS`), registered by an installed package,
- ``package.module:Name``, an object of any module that Python can import.

A built-in name never looks further, so no package can replace or break a built-in implementation. Only the chosen
plug-in is imported, so a broken one harms nothing but itself. All errors are :class:`~recrawl.errors.ConfigError`
and name the package to update or uninstall.

The conformance suites for authors are in :mod:`recrawl.testing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from recrawl.errors import ConfigError, RecrawlError, meant

GROUPS: Mapping[str, str] = {
    "policy": "recrawl.policies",
    "strategy": "recrawl.strategies",
    "estimator": "recrawl.estimators",
    "detector": "recrawl.detectors",
    "fetcher": "recrawl.fetchers",
    "access method": "recrawl.access",
    "store": "recrawl.stores",
}
"""The entry-point group of each seam."""


def installed(kind: str) -> list[EntryPoint]:
    """The entry points of a seam. Imports none of them; O(installed packages), some milliseconds."""
    return list(entry_points(group=GROUPS[kind]))


def is_reference(name: str) -> bool:
    """Whether a name has the form ``package.module:Name``.

    >>> is_reference("mypackage.policies:Mine"), is_reference("nutch"), is_reference("http://x/")
    (True, False, False)
    """
    module, separator, attribute = name.partition(":")
    return bool(separator) and all(part.isidentifier() for path in (module, attribute) for part in path.split("."))


def is_known(kind: str, name: str) -> bool:
    """Whether a name that is not built in may be a plug-in: an entry point or a reference. Imports nothing."""
    return is_reference(name) or any(entry.name == name for entry in installed(kind))


def find(kind: str, name: str, built_in: Mapping[str, Any], entries: Iterable[EntryPoint] | None = None) -> Any:  # noqa: ANN401 - the seam knows the type
    """The object of this name: built in, of an entry point, or at ``package.module:Name``.

    ``kind`` is a key of :data:`GROUPS`. ``entries`` replaces the installed entry points.

    Raises:
        ConfigError: there is none, two packages have one, or it cannot be imported.
    """
    if name in built_in:
        return built_in[name]
    if is_reference(name):
        return _loaded(kind, EntryPoint(name, name, GROUPS[kind]))
    found = installed(kind) if entries is None else list(entries)
    matching = [entry for entry in found if entry.name == name]
    if len(matching) > 1:
        packages = ", ".join(package_of(entry) for entry in matching)
        raise ConfigError(f"More than one package has a {kind} {name!r}: {packages}.", "Uninstall one of them.")
    if not matching:
        known = [*built_in, *(entry.name for entry in found)]
        raise ConfigError(
            f"There is no {kind} {name!r}.",
            f"{meant(name, known)} One of another package is written package.module:Name.",
        )
    return _loaded(kind, matching[0])


def made(kind: str, name: str, protocol: type, make: Any, *arguments: object) -> Any:  # noqa: ANN401 - the same
    """What ``make(*arguments)`` returns, if it implements the protocol of the seam.

    ``protocol`` is runtime-checkable. What is an implementation already is returned as it is.

    Raises:
        ConfigError: it cannot be made, or lacks members of the protocol.
    """
    if not isinstance(make, type) and isinstance(make, protocol):
        return make
    if not callable(make):
        raise ConfigError(f"{name} is no {kind}: it cannot be called.", "Name a class or a function that makes one.")
    try:
        one = make(*arguments)
    except RecrawlError:
        raise
    except Exception as error:
        raise ConfigError(f"The {kind} {name} cannot be made: {error!r}.", _REMEDY) from error
    if not isinstance(one, protocol):
        wanted = sorted(member for member in dir(protocol) if not member.startswith("_"))
        lacking = [member for member in wanted if not hasattr(one, member)]
        raise ConfigError(
            f"{name} makes no {kind}: {type(one).__name__} lacks {', '.join(lacking) or 'part of the protocol'}.",
            f"See {protocol.__module__}.{protocol.__name__}.",
        )
    return one


def package_of(entry: EntryPoint) -> str:
    """The distribution that registered an entry point."""
    return entry.dist.name if entry.dist is not None else "an unnamed package"


_REMEDY = "Update or uninstall the package that has it."


def _loaded(kind: str, entry: EntryPoint) -> object:
    try:
        return entry.load()
    except Exception as error:
        where = entry.value if entry.dist is None else f"{entry.value} of {package_of(entry)}"
        raise ConfigError(
            f"The {kind} {entry.name!r} ({where}) cannot be loaded: {error!r}.",
            _REMEDY if entry.dist is not None else "Check the spelling, and that Python can import the module.",
        ) from error
