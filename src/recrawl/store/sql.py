"""The store over any database that speaks our statements: each call of ``base.Store`` as one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self, Unpack

import numpy as np

from recrawl.model import (
    BoolArray,
    ChangeKind,
    FloatArray,
    Histories,
    IntArray,
    NoiseCounts,
    Page,
    Pages,
    Validators,
    Visits,
)
from recrawl.store import (
    ahead,
    browse,
    discovery,
    frontier,
    history,
    latest,
    learned,
    recording,
    segments,
    site_captures,
    told,
    totals,
)
from recrawl.store.ahead import FoundAhead, Misdated
from recrawl.store.base import Recorded
from recrawl.store.browse import HostCounts, PageQuery, PageRows
from recrawl.store.checks import SqlChecks
from recrawl.store.database import Database, Session
from recrawl.store.robots import SqlRobots
from recrawl.store.site_values import FoundPages, SiteCapture, SiteCounts, SiteLog, SiteStep
from recrawl.store.sql_archives import SqlArchives
from recrawl.store.sql_look_ups import SqlLookUps
from recrawl.store.values import (
    Backlog,
    DuePages,
    Failing,
    Hosts,
    Leased,
    Links,
    StoreCounts,
)


class SqlStore(SqlArchives, SqlLookUps, SqlRobots, SqlChecks):
    """A store in a database. See :class:`recrawl.store.base.Store` for what each call promises."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._spans = history.PageSpans()

    def discover(self, urls: Sequence[str], now: float | FloatArray, *, importance: float = 1.0) -> IntArray:
        """The id of the page each URL names, added if it is new; -1 where it is not an http(s) URL."""
        pages, names = discovery.parse(urls)
        ids = self._database.read(lambda session: discovery.known(session, list(pages)))
        new = {name: found for name, found in pages.items() if name not in ids}
        if new:  # known pages cost no write, and do not wait for one
            heard = discovery.first_heard(new, names, now)
            ids |= self._database.write(lambda session: discovery.add(session, new, heard, importance))
        return np.array([discovery.NO_PAGE if name is None else ids[name] for name in names], np.int64)

    def find(self, url: str) -> Page | None:
        """The page a URL names, if it is known."""
        return self._database.read(lambda session: discovery.find(session, url))

    def pages(self, pages: IntArray | None = None) -> Pages:
        """Pages as columns by ascending id."""
        return self._database.read(lambda session: discovery.columns(session, pages))

    def urls(self, pages: IntArray) -> list[str]:
        """The URL of each page."""
        return self._database.read(lambda session: discovery.urls(session, pages))

    def validators(self, pages: IntArray) -> list[Validators]:
        """What each page last said about its version."""
        return self._database.read(lambda session: discovery.validators(session, pages))

    def set_importance(self, pages: IntArray, importance: FloatArray) -> None:
        """Set the weight of pages."""
        self._database.write(lambda session: discovery.set_importance(session, pages, importance))

    def set_gone(self, pages: IntArray, gone: BoolArray) -> None:
        """Note whether pages are gone."""
        differ = self._database.read(lambda session: discovery.said_otherwise(session, pages, gone))
        if bool(differ.any()):
            self._database.write(lambda session: discovery.set_gone(session, pages[differ], gone[differ]))

    def respell(self, pages: IntArray, urls: Sequence[str]) -> None:
        """Write the URLs of pages in another way."""
        self._database.write(lambda session: discovery.respell(session, pages, urls))

    def hosts(self, hosts: IntArray | None = None) -> Hosts:
        """Hosts as columns by ascending id."""
        return self._database.read(lambda session: discovery.hosts(session, hosts))

    def set_host(self, hosts: IntArray, *, ready_at: FloatArray | None = None, delay: FloatArray | None = None) -> None:
        """Set when hosts may be asked again, or how long they rest."""

        def work(session: Session) -> None:
            if ready_at is not None:
                session.apply(session.statements.set_ready, hosts, ready_at)
            if delay is not None:
                session.apply(session.statements.set_delay, hosts, delay)

        self._database.write(work)

    def pause(self, hosts: IntArray) -> None:
        """Lease no page of these hosts."""
        self._set_paused(hosts, 1)

    def resume(self, hosts: IntArray) -> None:
        """Lease pages of these hosts again."""
        self._set_paused(hosts, 0)

    def _set_paused(self, hosts: IntArray, paused: int) -> None:
        if len(hosts):
            self._database.write(lambda session: session.run(session.statements.pause_hosts, paused, hosts))

    def record(self, visits: Visits, **more: Unpack[Recorded]) -> None:
        """Append visits with all that follows from them; when it returns, the batch is acknowledged."""
        self._database.write(lambda session: recording.record(session, visits, **more))

    def record_ahead(self, visits: Visits, **more: Unpack[Recorded]) -> Callable[[], object]:
        """As :meth:`record`, but for what waits: that is left to what is returned, which a thread may call."""
        return self._database.write_ahead(lambda session: recording.record(session, visits, **more))

    def visits(
        self,
        *,
        host: int | None = None,
        pages: IntArray | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> Visits:
        """Visits with all columns, by page and time."""
        return self._database.read(
            lambda session: history.load_visits(session, history.select(session, host, pages, since, until))
        )

    def looks(self, pages: IntArray | None = None, *, since: float | None = None) -> Visits:
        """Visits, as far as histories need them."""
        if pages is None or since is not None:
            return self._database.read(
                lambda session: history.load_looks(session, history.select(session, None, pages, since, None))
            )
        return self._database.read(lambda session: history.looks_of_pages(session, pages, self._spans))

    def latest_visits(self, limit: int, *, host: int | None = None) -> Visits:
        """The latest visits, latest first."""
        return self._database.read(lambda session: latest.latest_visits(session, limit, host))

    def repair_ahead(self, now: float, *, lease_time: float) -> FoundAhead:
        """Mark and repair what lies ahead of the clock."""
        return self._database.write(lambda session: ahead.repair(session, now, lease_time))

    def misdated(self) -> Misdated:
        """How many visits are misdated."""
        return self._database.read(ahead.noted)

    def misdated_visits(self, pages: IntArray | None = None) -> Visits:
        """The visits that are misdated."""

        def work(session: Session) -> Visits:
            if not ahead.noted(session).visits:
                return Visits.empty()
            return history.load_misdated(session, history.select(session, None, pages, None, None))

        return self._database.read(work)

    def time(self) -> float | None:
        """The time of the database server."""
        return self._database.time()

    def withdraw(self, page: IntArray, time: FloatArray) -> None:
        """Take visits back."""
        if len(page):
            self._database.write(lambda session: segments.withdraw(session, page, time))

    def histories(
        self,
        *,
        host: int | None = None,
        pages: IntArray | None = None,
        since: float | None = None,
        until: float | None = None,
        kind: ChangeKind | None = None,
    ) -> Histories:
        """Histories of the visits in the selection, in one pass."""
        return self._database.read(
            lambda session: history.load_histories(session, history.select(session, host, pages, since, until), kind)
        )

    def failing(self, limit: int, *, host: int | None = None) -> Failing:
        """Pages whose last visit of our own failed."""
        return self._database.read(lambda session: learned.failing(session, limit, host))

    def fingerprints(self, pages: IntArray) -> list[bytes]:
        """What each page looked like."""
        return self._database.read(lambda session: learned.fingerprints(session, pages))

    def noise(self, hosts: IntArray | None = None) -> NoiseCounts:
        """How often parts of pages differed."""
        return self._database.read(lambda session: learned.noise(session, hosts))

    def drop_noise(self, hosts: IntArray) -> int:
        """Forget all evidence on parts of these hosts."""
        return self._database.write(lambda session: learned.drop_noise(session, hosts))

    def trim_noise(self, host: int, parts: IntArray, pages: IntArray) -> None:
        """Forget the evidence on some parts and pages of a host."""
        self._database.write(lambda session: learned.trim_noise(session, host, parts, pages))

    def set_source(self, pages: IntArray, method: str, options: str = "{}") -> None:
        """Set how pages are asked for."""
        self._database.write(lambda session: told.set_source(session, pages, method, options))

    def sources(self, pages: IntArray | None = None) -> dict[int, tuple[str, str]]:
        """How those of the pages are asked for that have a way of their own."""
        return self._database.read(lambda session: told.sources(session, pages))

    def set_control(self, name: str, value: str | None, now: float) -> None:
        """Tell whoever runs something."""
        self._database.write(lambda session: told.set_control(session, name, value, now))

    def controls(self) -> dict[str, str]:
        """What was told."""
        return self._database.read(told.controls)

    def controls_changed(self) -> float:
        """When something was last told."""
        return self._database.read(told.controls_changed)

    def record_links(self, source: IntArray, target: IntArray, time: FloatArray) -> None:
        """Note links seen at a time."""
        if len(source):
            self._database.write(lambda session: recording.record_links(session, source, target, time))

    def outlinks(self, pages: IntArray) -> Links:
        """Every link ever seen on these pages."""
        return self._database.read(lambda session: recording.outlinks(session, pages))

    def lease(  # noqa: PLR0913 - who, when, and how much
        self, worker: str, now: float, limit: int, *, per_host: int = 1, ttl: float, share: tuple[int, int] = (0, 1)
    ) -> Leased:
        """Take pages that are due, earliest first."""
        return self._database.write(
            lambda session: frontier.lease(session, worker, now, limit, per_host=per_host, ttl=ttl, share=share),
            lasting=False,
        )

    def renew(self, worker: str, now: float, *, ttl: float, pages: IntArray | None = None) -> int:
        """Keep leases for longer."""
        return self._database.write(lambda session: frontier.renew(session, worker, now, ttl, pages), lasting=False)

    def acknowledge(self, worker: str, pages: IntArray | None = None) -> int:
        """Give back leases without a visit."""

        def work(session: Session) -> int:
            mine = frontier.held_pages(session, worker) if pages is None else pages
            return len(frontier.give_back(session, worker, mine, frontier.claim_hosts(session, mine)))

        return self._database.write(work, lasting=False)

    def release_worker(self, worker: str, now: float, *, pause: float, unless: tuple[str, str] | None = None) -> int:
        """Free what a dead worker had leased."""

        def work(session: Session) -> int:
            if unless is not None and told.controls(session).get(unless[0]) != unless[1]:
                return -1
            return frontier.release_worker(session, worker, now, pause)

        return self._database.write(work, lasting=False)

    def lease_holders(self) -> dict[str, int]:
        """How many leases each worker has."""
        return dict(self._database.read(lambda session: session.rows(session.statements.lease_holders)))

    def held(self, worker: str) -> IntArray:
        """The pages this worker has leases on."""
        return self._database.read(lambda session: np.sort(frontier.held_pages(session, worker)))

    def expire(self, now: float) -> int:
        """Drop the leases that have ended."""
        return self._database.write(lambda session: frontier.expire(session, now), lasting=False)

    def reschedule(self, pages: IntArray, due: FloatArray, *, before: FloatArray | None = None) -> None:
        """Set when pages are due."""
        last = len(pages) - 1 - np.unique(pages[::-1], return_index=True)[1]
        distinct = pages[last]

        def work(session: Session) -> None:
            hosts = frontier.claim_hosts(session, distinct)
            still = slice(None) if before is None else frontier.due(session, distinct) == before[last]
            frontier.set_due(session, distinct[still], due[last][still], hosts)

        self._database.write(work)

    def due(self, pages: IntArray) -> FloatArray:
        """When each of these pages is due."""
        return self._database.read(lambda session: frontier.due(session, pages))

    def due_pages(self, now: float, limit: int, *, host: int | None = None) -> DuePages:
        """The pages that are due."""
        return self._database.read(lambda session: frontier.due_pages(session, now, limit, host))

    def backlog(self, now: float) -> Backlog:
        """How much is due."""
        return self._database.read(lambda session: frontier.backlog(session, now))

    def next_due(self) -> float:
        """The earliest time at which a lease could return something."""
        return self._database.read(frontier.next_due)

    def soon_free(self, now: float, pause: float) -> float:
        """When the first host is free that has a page due and only rests between two requests."""
        return self._database.read(lambda session: frontier.soon_free(session, now, pause))

    def quarantined(self) -> int:
        """How many pages are quarantined."""
        return self._database.read(learned.quarantined)

    def begin_site_capture(self, site: str, terms: str, *, delay: float, now: float, known: FoundPages) -> int:
        """Note a capture that begins."""
        return self._database.write(
            lambda session: site_captures.begin(session, site, terms, delay=delay, now=now, known=known)
        )

    def site_captures(self, *, only: IntArray | None = None) -> list[SiteCapture]:
        """Every capture of a site, or some."""
        return self._database.read(lambda session: site_captures.some_of(session, only))

    def latest_site_captures(self, before: int, limit: int) -> list[int]:
        """The numbers of the latest captures before one."""
        return self._database.read(lambda session: site_captures.latest(session, before, limit))

    def site_log(self, capture: int) -> SiteLog:
        """Pages and steps of a capture."""
        return self._database.read(lambda session: site_captures.log_of(session, capture))

    def site_steps(self, capture: int, every: int) -> list[SiteStep]:
        """One of so many steps of a capture."""
        return self._database.read(lambda session: site_captures.some_steps(session, capture, every))

    def site_counts(self, capture: int) -> SiteCounts:
        """How far a capture is."""
        return self._database.read(lambda session: site_captures.counts_of(session, capture))

    def finish_site_capture(self, capture: int, statement: str, now: float) -> None:
        """Note that a capture is complete."""
        self._database.write(lambda session: site_captures.finish(session, capture, statement, now))

    def save_state(self, name: str, state: bytes, now: float) -> None:
        """Keep a policy's state."""
        self._database.write(lambda session: session.run(session.statements.save_state, name, state, now))

    def load_state(self, name: str) -> bytes | None:
        """A policy's state, if there is one."""
        rows = self._database.read(lambda session: session.rows(session.statements.load_state, name))
        return bytes(rows[0][0]) if rows else None

    def rough_size(self) -> tuple[int, int]:
        """The largest page id, and about how many visits there are."""
        return self._database.read(totals.rough_size)

    def counts(self, now: float) -> StoreCounts:
        """How much there is."""
        return self._database.read(lambda session: totals.counts(session, now))

    def browse_pages(self, query: PageQuery, now: float) -> PageRows:
        """One screen of pages."""
        return self._database.read(lambda session: browse.browse_pages(session, query, now))

    def find_host(self, name: str) -> int | None:
        """The host of a name."""
        return self._database.read(lambda session: browse.find_host(session, name))

    def host_counts(self, now: float) -> HostCounts:
        """Pages of hosts, counted."""
        return self._database.read(lambda session: browse.host_counts(session, now))

    def close(self) -> None:
        """Let go of the files and connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
