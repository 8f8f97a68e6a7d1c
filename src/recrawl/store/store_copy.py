"""Copies of a store: of one in use, for backups, and into another engine.

**Of one in use.** SQLite is copied by its own backup API, on one snapshot. For PostgreSQL a snapshot is exported, and
its own tools copy exactly that. Both contain the same captures as the offsets that are read with them.

**Into another store**, of the same or of another engine, table by table. Both have the same tables, so rows are copied
as they are: every page keeps its id, every visit its segment, its verdict and its pack. Each transaction writes some
rows and how far the copy is, so a copy that was interrupted goes on where it stopped. At the end, the number and a
digest of the rows of each table are compared.

Nobody may write to either store meanwhile. A copy that goes on checks that the source has the same pages and visits as
before.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from recrawl.errors import ConfigError, InputError, StoreError, require
from recrawl.store.base import Tell
from recrawl.store.engine.database import VERSION_TABLE, Database, DatabaseSession
from recrawl.store.engine.sqlite import BUSY_SECONDS, SqliteSession, explained
from recrawl.store.open import open_database, sqlite_path

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


_PROGRESS = "copy"
"""The name of the control that says how far a copy is."""
_ROWS = 5_000
"""Rows per transaction."""
_FEW_ROWS = {"visit_segment": 16, "fingerprint": 500, "policy_state": 16, "robots": 500}
"""The same for tables with large values."""
_WRAP = 1 << 64
_SQLITE_TABLES = (
    "SELECT m.name, c.name, c.type, c.pk, 0 FROM sqlite_schema AS m, pragma_table_xinfo(m.name) AS c "
    "WHERE m.type = 'table' AND c.hidden = 0 ORDER BY m.name, c.cid"
)
_POSTGRES_TABLES = """
SELECT t.relname, c.attname, format_type(c.atttypid, NULL), coalesce(array_position(k.indkey::int2[], c.attnum) + 1, 0),
    CASE WHEN pg_get_serial_sequence(quote_ident(t.relname), c.attname) IS NULL THEN 0 ELSE 1 END
FROM pg_class AS t JOIN pg_attribute AS c ON c.attrelid = t.oid
LEFT JOIN pg_index AS k ON k.indrelid = t.oid AND k.indisprimary
WHERE t.relkind = 'r' AND t.relnamespace = current_schema()::regnamespace
AND c.attnum > 0 AND NOT c.attisdropped AND c.attgenerated = '' ORDER BY t.relname, c.attnum
"""
_SIZE = (
    "SELECT coalesce(max(id), 0), coalesce(sum(visits), 0), (SELECT coalesce(max(id), 0) FROM page), "
    "(SELECT coalesce(max(id), 0) FROM host), (SELECT count(*) FROM capture) FROM visit_segment"
)
"""What changes with every visit, page, host and capture that is recorded."""


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """One table of a copy."""

    name: str
    rows: int
    digest: str
    """The sum of the hashes of all rows, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    columns: dict[str, str]
    """The type of each column that can be written."""
    key: tuple[str, ...]
    serial: str
    """The column whose numbers a sequence of the database makes; empty if there is none."""


def copy_store(source: str | Path, target: str | Path, tell: Tell) -> list[CopiedTable]:
    """Copy a store to another location, where there is no store yet, or where a copy of the same store stopped.

    Raises:
        InputError: there is something else at the target, or the source changed since an interrupted copy.
        StoreError: a location has a store of a plug-in, or the copy differs from the source.
    """
    with closing(_database(source, create=False)) as old, closing(_database(target, create=True)) as new:
        return _StoreCopy(old, new, _tables(old, source), _tables(new, target), tell).run()


class _Sums(NamedTuple):
    """Of rows that were copied or compared."""

    rows: int = 0
    digest: int = 0

    def plus(self, rows: Sequence[tuple[Any, ...]]) -> _Sums:
        return _Sums(self.rows + len(rows), (self.digest + _hash_of(rows)) % _WRAP)


class _StoreCopy:
    def __init__(
        self, old: Database, new: Database, theirs: dict[str, _Table], ours: dict[str, _Table], tell: Tell
    ) -> None:
        self._old, self._new, self._theirs, self._ours, self._tell = old, new, theirs, ours, tell
        self._size = [int(number) for number in old.read(lambda session: session.rows(_SIZE))[0]]
        self._done: dict[str, _Sums] = {}
        """Of the tables that are copied."""

    def run(self) -> list[CopiedTable]:
        """Copy what is missing, then compare all of it."""
        table, last, sums = self._progress()
        for place, name in enumerate(self._ours):
            self._tell("tables copied", place, len(self._ours))
            if name not in self._done:
                self._copy(name, *((last, sums) if name == table else (None, _Sums())))
        self._tell("tables copied", 1, 1)
        copied = [self._compared(place, table) for place, table in enumerate(self._ours.values())]
        self._tell("tables compared", 1, 1)
        self._new.write(self._set_sequences)
        self._new.write(lambda session: session.run("DELETE FROM control WHERE name = $1", _PROGRESS))
        return copied

    def _progress(self) -> tuple[str, list[Any] | None, _Sums]:
        """How far an earlier copy came: its table, the key of the last row, and what was copied of the table."""
        found = self._new.read(lambda session: session.rows("SELECT value FROM control WHERE name = $1", _PROGRESS))
        if not found:
            if any(self._new.read(lambda session: session.rows(_SIZE))[0]):
                raise InputError("There is a store at the target.", "Name a new file or an empty database.")
            return "", None, _Sums()
        state = json.loads(found[0][0])
        if state["size"] != self._size:
            raise InputError(
                "The store changed since the copy was interrupted.",
                "Remove what is at the target, and copy again while nobody crawls.",
            )
        self._done = {name: _Sums(*sums) for name, sums in state["done"].items()}
        return state["table"], state["key"], _Sums(*state["sums"])

    def _copy(self, name: str, last: list[Any] | None, sums: _Sums) -> None:
        """Copy a table from the row after the key ``last`` on."""
        table = self._ours[name]
        for rows in _chunks(self._old, self._theirs[name], tuple(table.columns), last):
            kept = _without_progress(table, rows)
            sums = sums.plus(kept)
            self._new.write(partial(self._write, table, kept, _key_of(self._theirs[name], table, rows[-1]), sums))
        self._done[name] = sums
        self._new.write(lambda session: self._note(session, "", None, _Sums()))

    def _write(
        self, table: _Table, rows: list[tuple[Any, ...]], last: list[Any], sums: _Sums, session: DatabaseSession
    ) -> None:
        if rows:
            statement = session.statements.dialect.insert(table.name, table.columns)
            session.apply(statement, *(list(column) for column in zip(*rows, strict=True)))
        self._note(session, table.name, last, sums)

    def _note(self, session: DatabaseSession, table: str, last: list[Any] | None, sums: _Sums) -> None:
        state = {"size": self._size, "done": self._done, "table": table, "key": last, "sums": sums}
        session.run(session.statements.live.set_control, _PROGRESS, json.dumps(state), 0.0)

    def _compared(self, place: int, table: _Table) -> CopiedTable:
        self._tell("tables compared", place, len(self._ours))
        sums = _Sums()
        for rows in _chunks(self._new, table, tuple(table.columns), None):
            sums = sums.plus(_without_progress(table, rows))
        expected = self._done[table.name]
        if sums != expected:
            raise StoreError(
                f"Rows of the table {table.name} differ: {sums.rows:,} in the copy, {expected.rows:,} in the store.",
                "Remove what is at the target, and copy again while nobody crawls.",
            )
        return CopiedTable(table.name, sums.rows, f"{sums.digest:016x}")

    def _set_sequences(self, session: DatabaseSession) -> None:
        """Let the numbers of new rows follow those that were copied. SQLite does so itself."""
        for table in self._ours.values():
            if table.serial:
                session.rows(
                    f"SELECT setval(pg_get_serial_sequence('{table.name}', '{table.serial}'), "  # noqa: S608 - names of our own
                    f"coalesce(max({table.serial}), 0) + 1, false) FROM {table.name}"
                )


def _tables(database: Database, location: str | Path) -> dict[str, _Table]:
    """All tables but that of the schema's revision and the counts, which each store keeps itself, by name."""
    catalogue = _POSTGRES_TABLES if sqlite_path(location) is None else _SQLITE_TABLES
    columns: dict[str, dict[str, str]] = {}
    keys: dict[str, dict[int, str]] = {}
    serials: dict[str, str] = {}
    for table, column, type_, key, serial in database.read(lambda session: session.rows(catalogue)):
        if table in {VERSION_TABLE, "row_count"} or table.startswith("sqlite_"):
            continue
        columns.setdefault(table, {})[column] = type_
        if key:
            keys.setdefault(table, {})[int(key)] = column
        if serial:
            serials[table] = column
    return {
        name: _Table(
            name, columns[name], tuple(column for _, column in sorted(keys[name].items())), serials.get(name, "")
        )
        for name in sorted(columns)
    }


def _chunks(
    database: Database, table: _Table, columns: tuple[str, ...], last: list[Any] | None
) -> Iterator[list[tuple[Any, ...]]]:
    """The rows after the key ``last``, in the order of the key, some at a time."""
    names, key = (", ".join(f'"{name}"' for name in some) for some in (columns, table.key))
    most = _FEW_ROWS.get(table.name, _ROWS)
    places = ", ".join(f"${number}" for number in range(1, len(table.key) + 1))
    while True:
        after = "" if last is None else f"WHERE ({key}) > ({places})"
        query = f'SELECT {names} FROM "{table.name}" {after} ORDER BY {key} LIMIT {most}'  # noqa: S608 - names of our own
        rows = database.read(partial(_rows, query, last or []))
        if rows:
            yield rows
        if len(rows) < most:
            return
        last = [rows[-1][columns.index(name)] for name in table.key]


def _rows(query: str, parameters: list[Any], session: DatabaseSession) -> list[tuple[Any, ...]]:
    return session.rows(query, *parameters)


def _key_of(theirs: _Table, ours: _Table, row: tuple[Any, ...]) -> list[Any]:
    columns = tuple(ours.columns)
    return [row[columns.index(name)] for name in theirs.key]


def _without_progress(table: _Table, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows of a table, without the note of how far the copy is."""
    if table.name != "control":
        return rows
    name = tuple(table.columns).index("name")
    return [row for row in rows if row[name] != _PROGRESS]


def _hash_of(rows: Sequence[tuple[Any, ...]]) -> int:
    """The sum of the hashes of rows: the same in any order, and in any engine."""
    total = 0
    for row in rows:
        plain = tuple(hashlib.blake2b(value).digest() if isinstance(value, bytes) else value for value in row)
        text = repr(plain).encode("utf-8", "surrogatepass")
        total += int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
    return total


def _database(location: str | Path, *, create: bool) -> Database:
    found = open_database(location, create=create)
    if found is None:
        raise StoreError(f"The store {location} belongs to another package.", "Copy it by means of that package.")
    return found
