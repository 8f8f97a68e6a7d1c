"""The input of ``recrawl add``: pages, their access methods, and validation."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.errors import ConfigError, InputError
from recrawl.formats.seeds import parse_seed

if TYPE_CHECKING:
    from recrawl.model import IntArray
    from recrawl.store.base import PageTable, ScheduleStore


HOME = '{"home": "yes"}'
"""Options of a feed that people named: the scope of the crawl goes around it."""


@dataclass(frozen=True, slots=True)
class PageToAdd:
    """One page to add."""

    url: str
    key: str
    """The identity of the page."""
    method: str = ""
    """The access method; empty to keep the current one."""
    options: str = "{}"
    """Of the method, as JSON."""
    remarks: tuple[str, ...] = ()


def described(method: str, urls: Iterable[str], options: Sequence[str], read: Callable[[Path], str]) -> list[PageToAdd]:
    """The pages that URLs and options describe, each once. ``read`` gives the text of a file, for ``NAME=@FILE``.

    Without a method the current one is kept; ``feed`` marks feeds.

    Raises:
        ConfigError: there is no such method, or an option is wrong.
        InputError: something is no URL, or a file cannot be read.
    """
    from recrawl.fetch.access.access_methods import FEED, PLAIN, AccessMethods

    found: dict[str, PageToAdd] = {}
    if method in ("", FEED, PLAIN):
        if options:
            raise ConfigError(
                "The access method http has no options.", "Leave out --option, or give another method with --access."
            )
        for url in urls:
            seed = parse_seed(url, "")
            options_kept = HOME if method == FEED else "{}"
            found.setdefault(seed.key, PageToAdd(seed.url, seed.key, method, options_kept))
        return list(found.values())
    way, given = AccessMethods().get(method), _options(options, read)
    for url in urls:
        source = way.source(url, given)
        seed = parse_seed(source.url, "")
        kept = json.dumps(dict(source.options), sort_keys=True)
        found.setdefault(seed.key, PageToAdd(seed.url, seed.key, method, kept, source.remarks))
    return list(found.values())


def _options(options: Sequence[str], read: Callable[[Path], str]) -> dict[str, str]:
    given = {}
    for text in options:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise ConfigError(f"{text!r} is not an option.", "Write NAME=VALUE, for example query=@museums.rq.")
        given[name.strip()] = read(Path(value[1:])) if value.startswith("@") else value
    return given


def check_files(wanted: Iterable[PageToAdd], folders: Sequence[Path]) -> None:
    """Refuse files that no crawl would read.

    Raises:
        InputError: one of them is in no allowed folder, or is not there.
    """
    for one in wanted:
        if one.method != "file":
            continue
        path = Path(os.path.realpath(json.loads(one.options)["path"]))
        if not any(path.is_relative_to(os.path.realpath(folder)) for folder in folders):
            raise InputError(
                f"{path} is not in a folder of fetch.allow_files.",
                f"Add {path.parent} to fetch.allow_files in recrawl.yaml, if files there may be read.",
            )
        if not path.is_file():
            raise InputError(f"{path} is not a file.", "Check the path.")


def check_names(store: ScheduleStore, wanted: Iterable[PageToAdd]) -> None:
    """Refuse a source that has the page of another one: pages whose URLs differ only in case are one.

    Raises:
        InputError: there is another query, or another file, of nearly this name.
    """
    for one in wanted:
        known = store.find(one.url) if one.method else None
        if known is None or known.url == one.url:
            continue
        before = store.sources(_ids([known.id])).get(known.id)
        if before is not None and before != (one.method, one.options):
            raise InputError(
                f"{one.url} has the same key as {known.url}, which is another source.",
                "They differ only in case or in the order of arguments. Rewrite the query, for example "
                "with other variable names, or rename the file.",
            )


def check_methods(store: ScheduleStore) -> None:
    """Refuse to set out without the access methods of all pages: one may come from a package that is gone.

    Raises:
        ConfigError: one of them is not there, or cannot be loaded.
    """
    from recrawl.fetch.access.access_methods import FEED, AccessMethods

    methods = AccessMethods()
    for name in sorted({method for method, _ in store.sources().values()} - {FEED}):
        methods.get(name)


def unknown(store: PageTable, wanted: Sequence[PageToAdd]) -> int:
    """How many of them the store does not know yet."""
    return sum(store.find(one.url) is None for one in wanted)


def put(store: ScheduleStore, wanted: Sequence[PageToAdd], importance: float, now: float) -> int:
    """Add them; how many are new, or count from now on."""
    import numpy as np

    from recrawl.fetch.access.access_methods import FEED

    feeds = [one for one in wanted if one.method == FEED]
    pages = [one for one in wanted if one.method != FEED]
    added = 0
    for some, weight in ((pages, importance), (feeds, 0.0)):
        ids = store.discover([one.url for one in some], now, importance=weight)
        known = store.pages(ids)
        new = known.discovered == now
        only_linked = known.id[~new & (known.importance == 0)] if weight else np.empty(0, np.int64)
        store.set_importance(only_linked, np.full(len(only_linked), weight))
        added += int(new.sum()) + len(only_linked)
        _set_sources(store, some, ids.tolist())
    return added


def _set_sources(store: ScheduleStore, wanted: Sequence[PageToAdd], ids: Sequence[int]) -> None:
    from recrawl.fetch.access.access_methods import PLAIN

    ways: dict[tuple[str, str], list[int]] = {}
    for one, page in zip(wanted, ids, strict=True):
        if one.method:
            ways.setdefault((one.method, one.options), []).append(page)
    for (method, options), pages in ways.items():
        store.set_source(_ids(pages), "" if method == PLAIN else method, options)


def _ids(pages: Sequence[int]) -> IntArray:
    import numpy as np

    return np.array(pages, np.int64)
