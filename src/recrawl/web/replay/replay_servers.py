"""The servers of time travel beside a dashboard: archived pages on an origin of their own, and pywb on another."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recrawl.crawl.clock import RealClock
from recrawl.parse.pooled_classification import new_parse_pool
from recrawl.store.open import open_store
from recrawl.web.dashboard.access_control import AccessGuard
from recrawl.web.dashboard.stale_cache import StorePool
from recrawl.web.replay.pywb_process import PywbReplay
from recrawl.web.replay.replay_app import COLLECTION, time_travel_app
from recrawl.web.replay.workspace_archive import archive_of
from recrawl.web.server.request_prefetch import PrefetchPaths, read_ahead_meanwhile
from recrawl.web.server.run_servers import address_of, bound

if TYPE_CHECKING:
    import socket

    from starlette.types import ASGIApp

    from recrawl.app.workspace.workspace import Workspace
    from recrawl.store.base import Store
    from recrawl.web.dashboard.page_beliefs import PageBeliefs

PATIENCE = 30.0
"""Timeout of store queries in seconds: counting a whole index takes longer than a page."""


@dataclass(frozen=True, slots=True)
class ReplayServers:
    """Servers that are ready to be run."""

    apps: tuple[tuple[ASGIApp, socket.socket], ...]
    archive: str
    """Where archived pages are: put 14 digits, a slash and a URL behind it."""
    replay: str
    """The same with pywb; empty without it."""
    first: PrefetchPaths
    """What the server prefetches."""


@contextmanager
def time_travel(  # noqa: PLR0913 - what is served, to whom, where, and what is shared with the dashboard
    place: Workspace,
    guard: AccessGuard,
    host: str,
    listening: socket.socket,
    *,
    replay: int | None,
    beliefs: PageBeliefs | None = None,
) -> Iterator[ReplayServers]:
    """The replay servers of a workspace; pywb starts at once and stops with the block.

    Archived pages are served at ``listening``, and pywb at the port ``replay``, unless that is ``None``; 0 for any free
    port.
    """
    clock = RealClock()

    def open_one() -> Store:
        return open_store(place.store, patience=PATIENCE)

    with ExitStack() as stack:
        stores = stack.enter_context(closing(StorePool(open_one)))
        stack.enter_context(read_ahead_meanwhile(place.store))
        detect = place.configuration.settings.detect
        pool = stack.enter_context(new_parse_pool(detect.parse_limits(), detect.standards()))
        archive = archive_of(place, stores.one, clock, beliefs, pool)
        address = address_of(listening, host)
        apps: list[tuple[ASGIApp, socket.socket]] = []
        replayed = ""
        if replay is not None:
            inside = stack.enter_context(bound("127.0.0.1", 0))
            word = secrets.token_hex(16)  # so that only pywb can use it: other local users need the token
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
        yield ReplayServers(
            tuple(apps),
            f"{address}/{COLLECTION}/",
            replayed,
            PrefetchPaths(app, _first_observations(stores), guard.write_token),
        )


def _first_observations(stores: StorePool) -> list[str]:
    """An index look-up, the newest page, and its sharpness."""
    with stores.one() as store:
        newest = store.urls(np.arange(store.last_page(), store.last_page() + 1)) if store.last_page() else []
    asked = [path for url in newest for path in (f"/{COLLECTION}/{url}", f"/{COLLECTION}/2000/{url}")]
    return [f"/{COLLECTION}/cdx?url=example.org&filter=statuscode:200", *asked]
