"""The servers of time travel beside a dashboard: archived pages on an origin of their own, and pywb on another."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recrawl.cli.serving.archive import archive_of
from recrawl.cli.serving.replay import PywbReplay
from recrawl.cli.serving.run import address_of, bound
from recrawl.cli.serving.warm import Looks, read_ahead_meanwhile
from recrawl.cli.wiring import parse_limits_of
from recrawl.crawl.clock import RealClock
from recrawl.crawl.judging import readers
from recrawl.show.dashboard.security import Guard
from recrawl.show.dashboard.stores import Stores
from recrawl.show.timetravel.app import COLLECTION, time_travel_app
from recrawl.store.open import open_store

if TYPE_CHECKING:
    import socket

    from starlette.types import ASGIApp

    from recrawl.cli.serving.page_beliefs import PageBeliefs
    from recrawl.cli.workspace import Workspace
    from recrawl.store.base import Store

PATIENCE = 30.0
"""Seconds after which a question to the store is given up: whoever counts a whole index waits longer than a page."""


@dataclass(frozen=True, slots=True)
class Travel:
    """Servers that are ready to be run."""

    apps: tuple[tuple[ASGIApp, socket.socket], ...]
    archive: str
    """Where archived pages are: put 14 digits, a slash and a URL behind it."""
    replay: str
    """The same with pywb; empty without it."""
    first: Looks
    """What the server looks at itself before others do."""


@contextmanager
def time_travel(  # noqa: PLR0913 - what is served, to whom, where, and what is shared with the dashboard
    place: Workspace,
    guard: Guard,
    host: str,
    listening: socket.socket,
    *,
    replay: int | None,
    beliefs: PageBeliefs | None = None,
) -> Iterator[Travel]:
    """The servers of time travel of a workspace; pywb begins at once and ends with the block.

    Archived pages are served where ``listening`` does, and pywb at the port ``replay``, unless that is ``None``; 0
    takes any that is free.
    """
    clock = RealClock()

    def open_one() -> Store:
        return open_store(place.store, patience=PATIENCE)

    with ExitStack() as stack:
        stores = stack.enter_context(closing(Stores(open_one)))
        stack.enter_context(read_ahead_meanwhile(place.store))
        detect = place.configuration.settings.detect
        pool = stack.enter_context(readers(parse_limits_of(detect), detect.standards()))
        archive = archive_of(place, stores.one, clock, beliefs, pool)
        address = address_of(listening, host)
        apps: list[tuple[ASGIApp, socket.socket]] = []
        replayed = ""
        if replay is not None:
            inside = stack.enter_context(bound("127.0.0.1", 0))
            word = secrets.token_hex(16)  # so that only pywb can ask there: others on this machine show the token
            apps.append((time_travel_app(archive, hidden_below=word), inside))
            child = PywbReplay(
                f"{address_of(inside, '127.0.0.1')}/{word}/",
                f"{address}/api/memento",
                host=host,
                port=replay,
                guard=guard,
            )
            replayed = stack.enter_context(child).address
        app = time_travel_app(archive, guard, replay=replayed)
        apps.append((app, listening))
        yield Travel(
            tuple(apps), f"{address}/{COLLECTION}/", replayed, Looks(app, _first_looks(stores), guard.write_token)
        )


def _first_looks(stores: Stores) -> list[str]:
    """A look-up in the index, the newest page with its sharpness, and how sharp that is."""
    with stores.one() as store:
        newest = store.urls(np.arange(store.last_page(), store.last_page() + 1)) if store.last_page() else []
    asked = [path for url in newest for path in (f"/{COLLECTION}/{url}", f"/{COLLECTION}/2000/{url}")]
    return [f"/{COLLECTION}/cdx?url=example.org&filter=statuscode:200", *asked]
