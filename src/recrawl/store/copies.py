"""Copies of a store in use: one consistent state, and the last acknowledged capture of each archive file.

SQLite is copied by its own backup API, on one snapshot. For PostgreSQL a snapshot is exported, and its own tools copy
exactly that. Both contain the same captures as the offsets that are read with them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from recrawl.errors import ConfigError, StoreError, require
from recrawl.store.base import Tell
from recrawl.store.engine.sqlite import BUSY_SECONDS, SqliteSession, explained

_BLOCKS = 2_048
"""Blocks of SQLite's file that are copied between two reports of progress: 8 MiB."""


def copy_sqlite(source: Path, target: Path, tell: Tell) -> dict[str, int]:
    """Copy a store that may be in use to a new file; where the last capture of our own in each archive file begins.

    Writers go on meanwhile: they only append to the write-ahead log, which cannot be emptied until the copy is done.
    """
    if not source.is_file():
        raise StoreError(f"There is no store at {source}.", "Check store.location in recrawl.yaml.")
    with explained(source):
        held = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            held.set_busy_timeout(int(BUSY_SECONDS * 1000))
            held.execute("BEGIN")
            rows: list[Any] = held.execute(SqliteSession.statements.checks.last_offsets).fetchall()
            with explained(target):
                _copy(held, target, tell)
            held.execute("COMMIT")
        finally:
            held.close()
    return dict(rows)


def _copy(held: apsw.Connection, target: Path, tell: Tell) -> None:
    copy = apsw.Connection(str(target))
    try:
        with copy.backup("main", held, "main") as work:
            while not work.done:
                work.step(_BLOCKS)
                tell("store", work.page_count - work.remaining, work.page_count)
        copy.pragma("journal_mode", "DELETE")  # so that the copy is one file
    finally:
        copy.close()
    _sync(target)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


@dataclass(frozen=True, slots=True)
class PostgresSnapshot:
    """One state of a PostgreSQL store, for as long as whoever exported it holds it."""

    name: str
    offsets: dict[str, int]
    """Where the last capture of our own in each archive file begins."""


@contextmanager
def exported_snapshot(url: str) -> Iterator[PostgresSnapshot]:
    """Export a snapshot of a database and hold it until the block ends."""
    psycopg = require("psycopg", "postgres")
    from recrawl.store.engine.postgres import PostgresSession

    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            connection.execute("SET idle_in_transaction_session_timeout TO 0")
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            [(name,)] = connection.execute("SELECT pg_export_snapshot()").fetchall()
            offsets = connection.execute(PostgresSession.statements.checks.last_offsets).fetchall()
            yield PostgresSnapshot(name, dict(offsets))
            connection.execute("COMMIT")
    except psycopg.OperationalError as error:
        reason = str(error).strip().partition("\n")[0]
        raise StoreError(
            f"The database is out of reach: {reason.rstrip('.')}.", "Check that the server runs."
        ) from error


def dump_command(program: str, url: str, snapshot: str, target: Path) -> list[str]:
    """The command line that copies exactly a snapshot. The password is not in it."""
    return [
        program,
        f"--snapshot={snapshot}",
        "--format=custom",
        "--no-owner",
        "--no-privileges",
        f"--file={target}",
        f"--dbname={_without_password(url)[0]}",
    ]


def load_command(program: str, url: str, dump: Path, *, replace: bool) -> list[str]:
    """The command line that brings a dump back, all of it or nothing. The password is not in it."""
    return [
        program,
        "--no-owner",
        "--no-privileges",
        "--exit-on-error",
        "--single-transaction",
        *(("--clean", "--if-exists") if replace else ()),
        f"--dbname={_without_password(url)[0]}",
        str(dump),
    ]


def find_program(name: str, given: Path | None) -> str | None:
    """Where one of PostgreSQL's own programs is: as given, or in the path; ``None`` if it is not installed.

    Raises:
        ConfigError: the one that was given is not there.
    """
    if given is None:
        return shutil.which(name)
    found = shutil.which(str(given))
    if found is None:
        raise ConfigError(f"There is no program {given}.", f"Name the {name} of PostgreSQL.")
    return found


def run_program(command: list[str], url: str) -> None:
    """Run one of PostgreSQL's own programs on a database."""
    password = _without_password(url)[1]
    environment = {**os.environ, **({"PGPASSWORD": password} if password else {})}  # noqa: TID251 - a child's
    done = subprocess.run(  # noqa: S603 - a program that the user has or names, and no shell
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise StoreError(
            f"{Path(command[0]).name} failed: {said[0].rstrip('.')}.",
            "Check the database. The program must not be older than the server; another one can be named.",
        )


def _without_password(url: str) -> tuple[str, str]:
    """A connection string without its password, and the password."""
    conninfo = require("psycopg.conninfo", "postgres")
    parts = conninfo.conninfo_to_dict(url)
    password = parts.pop("password", None)
    return conninfo.make_conninfo("", **parts), str(password or "")
