"""A store in a PostgreSQL database, through psycopg: for several workers on one schedule.

A lost connection is opened again automatically, and a transaction that the server rolled back (it was cut off before
its commit, or conflicted with another one) is repeated. A cut during the commit itself is raised to the caller: only
then is it unknown whether the work was stored. Numpy arrays are sent in the server's binary format, without a Python
object per value.

An address may name several servers, of which one is the primary and others are its standbys: a new connection goes to
the one that accepts writes. A server that vanished without closing its connections is noticed by keep-alive packets.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import numpy as np
import psycopg
from psycopg import Connection
from psycopg.abc import DumperKey
from psycopg.adapt import Dumper, PyFormat
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format

from recrawl.errors import DiskFullError, StoreAwayError, StoreError, StoreMissingError
from recrawl.model import AnyArray, FloatArray, IntArray
from recrawl.store.engine.database import (
    VERSION_TABLE,
    Column,
    DatabaseSession,
    Parameter,
    needs_upgrade,
    too_long,
    upgrade_postgres,
)
from recrawl.store.engine.statements import How, SqlStatements, Types

_TYPES: dict[type[np.generic], tuple[str, int, int]] = {
    np.int64: (">i8", 20, 1016),
    np.int32: (">i4", 23, 1007),
    np.int16: (">i2", 21, 1005),
    np.uint16: (">i4", 23, 1007),
    np.uint8: (">i2", 21, 1005),
    np.float64: (">f8", 701, 1022),
    np.float32: (">f4", 700, 1021),
}
"""Of each kind of number: how the server reads one, and its ids for the type and for an array of it (pg_type.dat)."""


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def get_key(self, obj: Any, format: PyFormat) -> DumperKey:  # noqa: A002, ANN401, ARG002 - psycopg's signature
        return (self.cls, obj.dtype.type)

    def upgrade(self, obj: Any, format: PyFormat) -> Dumper:  # noqa: A002, ANN401, ARG002 - psycopg's signature
        dumper = _ArrayDumper(self.cls)
        dumper.oid = _TYPES[obj.dtype.type][2]
        return dumper

    def dump(self, obj: Any) -> bytes:  # noqa: ANN401 - psycopg's signature
        return array_bytes(obj)


def array_bytes(array: np.ndarray[Any, Any]) -> bytes:
    """A one-dimensional array as the server's array_recv wants it: dimensions, then each value behind its length."""
    number, type_id, _ = _TYPES[array.dtype.type]
    values = np.empty(len(array), np.dtype([("length", ">i4"), ("value", number)]))
    values["length"] = values.dtype["value"].itemsize
    values["value"] = array
    return np.array([1, 0, type_id, len(array), 1], ">i4").tobytes() + values.tobytes()


def register_arrays(connection: Connection[tuple[Any, ...]]) -> None:
    """Let the cursors of a connection take numpy arrays."""
    connection.adapters.register_dumper(np.ndarray, _ArrayDumper)


T = TypeVar("T")

LONGEST_STOP = 15.0
"""Seconds for which a worker that is stopped, or whose machine is gone, keeps its locks on rows: others wait for them.
The server then undoes its transaction; a worker that goes on does it again."""
ATTEMPTS = 5
"""How often a transaction is begun before its failure is the caller's."""


def _unnest(columns: Types) -> str:
    return f"unnest({', '.join(f'${number}::{type_}[]' for number, type_ in enumerate(columns.values(), start=1))})"


class PostgresDialect:
    """PostgreSQL's words: a batch is one statement over arrays."""

    lock = "FOR UPDATE"
    lock_free = "FOR UPDATE SKIP LOCKED"
    larger = "greatest"
    first_due = (
        "SELECT s.page, s.host, s.due FROM unnest($1::bigint[]) AS h(id) CROSS JOIN LATERAL "
        "(SELECT page, host, due FROM schedule WHERE host = h.id AND due <= $2 ORDER BY due, page LIMIT $3) AS s"
    )

    def among(self, parameter: int, type_: str = "bigint") -> str:
        """After a column's name: equal to one of the array with that number."""
        return f"= ANY(${parameter}::{type_}[])"

    def bytewise(self, column: str) -> str:
        """A text in the order of its bytes, whatever language the database is set to."""
        return f'{column} COLLATE "C"'

    def insert(self, table: str, columns: Types, conflict: str = "") -> str:
        """Insert the rows of several arrays."""
        return f"INSERT INTO {table} ({', '.join(columns)}) SELECT * FROM {_unnest(columns)} {conflict}"  # noqa: S608 - names of our own

    def update(self, table: str, key: str, columns: Types, *, how: How = "set") -> str:
        """Set columns of the rows whose keys are in the first array."""
        value = {
            "set": "{0} = new.{0}",
            "raise": "{0} = greatest({1}.{0}, new.{0})",
            "add": "{0} = {1}.{0} + new.{0}",
        }[how]
        values = ", ".join(value.format(name, table) for name in columns)
        new = f"{_unnest({key: 'bigint', **columns})} AS new({', '.join((key, *columns))})"
        return f"UPDATE {table} SET {values} FROM {new} WHERE {table}.{key} = new.{key}"  # noqa: S608 - names of our own


class PostgresSession:
    """One transaction on one connection."""

    statements = SqlStatements(PostgresDialect())

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._cursor = psycopg.RawCursor(connection)

    def run(self, statement: str, *parameters: Parameter | Column) -> int:
        """Run a statement; return how many rows it changed."""
        return self._cursor.execute(statement.encode(), parameters).rowcount

    def rows(self, statement: str, *parameters: Parameter) -> list[tuple[Any, ...]]:
        """Run a query; return its rows."""
        return self._cursor.execute(statement.encode(), parameters, binary=True).fetchall()

    def table(self, dtype: np.dtype[Any], statement: str, *parameters: Parameter) -> AnyArray:
        """Run a query of numbers; return its rows as a structured array."""
        return np.array(self.rows(statement, *parameters), dtype)

    def apply(self, statement: str, *columns: Column) -> int:
        """Run a statement for every row of equally long columns."""
        return self.run(statement, *columns)

    def add_counted(self, table: str, statement: str, *columns: Column) -> int:  # noqa: ARG002 - counted per statement
        """As :meth:`apply` for an insertion; the trigger of the table counts all rows at once."""
        return self.run(statement, *columns)

    def add_links(self, source: IntArray, target: IntArray, first: FloatArray, last: FloatArray) -> None:
        """Note links, all of them by one statement."""
        self.run(self.statements.add_links, source, target, first, last)

    def touched(self, statement: str, *columns: Column) -> list[tuple[Any, ...]]:
        """Run a statement for every row; return what it says of those that it changed."""
        return self._cursor.execute(statement.encode(), columns, binary=True).fetchall()


class PostgresDatabase:
    """One PostgreSQL database."""

    def __init__(self, url: str, *, create: bool, durable: bool, patience: float | None = None) -> None:
        self._url = url
        self._patience = patience
        self._shown = _without_password(url)
        self._lasting = durable
        self._lock = threading.RLock()
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._closed = False
        try:
            with self._explained():
                if _outdated(self._connect(), self._shown, create=create):
                    upgrade_postgres(url, **_connection_options(url))
        except StoreAwayError as error:
            self.close()
            if _is_refused(error.__cause__):  # to wait would not help
                raise StoreError(error.what, error.remedy) from error
            raise
        except BaseException:
            self.close()
            raise

    def read(self, work: Callable[[DatabaseSession], T]) -> T:
        """Do ``work`` on one snapshot."""
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        if self._patience is None:
            return self._transaction(begin, work)
        return self._transaction(f"{begin}; SET LOCAL statement_timeout TO {int(1000 * self._patience)}", work)

    def beside(self) -> PostgresDatabase:
        """Another connection to the same database."""
        return PostgresDatabase(self._url, create=False, durable=self._lasting, patience=self._patience)

    def write(self, work: Callable[[DatabaseSession], T], *, lasting: bool = True) -> T:
        """Do ``work`` entirely or not at all."""
        wait = "on" if lasting and self._lasting else "off"
        return self._transaction(f"BEGIN; SET LOCAL synchronous_commit TO {wait}", work)

    def write_ahead(self, work: Callable[[DatabaseSession], object]) -> Callable[[], object]:
        """Leave all of it to what is returned: here it is mostly waiting for the server."""
        return lambda: self.write(work)

    def time(self) -> float | None:
        """The time of the server."""
        now = "SELECT extract(epoch FROM clock_timestamp())::float8"
        return float(self.read(lambda session: session.rows(now))[0][0])

    def faults(self, *, thorough: bool) -> list[str]:  # noqa: ARG002 - the server looks after its own files
        """Nothing: the server checks its pages when it reads them."""
        return []

    def rebuild_indexes(self) -> None:
        """Nothing: that is the business of who runs the server."""

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()

    def _transaction(self, begin: str, work: Callable[[DatabaseSession], T]) -> T:
        with self._lock, self._explained():
            for attempt in range(1, ATTEMPTS + 1):
                connection = self._connect()
                try:
                    connection.execute(begin.encode())
                    result = work(PostgresSession(connection))
                except (psycopg.OperationalError, psycopg.errors.IdleInTransactionSessionTimeout) as error:
                    _roll_back(connection)
                    if attempt < ATTEMPTS and (connection.closed or isinstance(error, _CROSSED)):
                        continue
                    raise
                except BaseException:
                    _roll_back(connection)
                    raise
                self._commit(connection)
                return result
        raise AssertionError  # the last attempt returns or raises

    def _commit(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        try:
            connection.execute(b"COMMIT")
        except psycopg.OperationalError as error:
            if not connection.closed:
                raise
            raise StoreAwayError(
                f"The connection to {self._shown} was lost while it committed; the last batch may or may not be there.",
                "Do the same again: what is there already is not doubled.",
            ) from error

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._closed:
            raise StoreError(f"The store {self._shown} is closed.", "Open it again.")
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._url, autocommit=True, **_connection_options(self._url))
            self._connection.execute(f"SET idle_in_transaction_session_timeout = {int(1000 * LONGEST_STOP)}".encode())
            register_arrays(self._connection)
        return self._connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of PostgreSQL into errors of the store, with a remedy."""
        try:
            yield
        except psycopg.errors.DiskFull as error:
            raise DiskFullError(
                f"The disk of {self._shown} is full.", "Free some space and go on; what was recorded before is kept."
            ) from error
        except psycopg.errors.QueryCanceled as error:
            if self._patience is None:
                raise
            raise too_long(self._patience) from error
        except psycopg.errors.ReadOnlySqlTransaction as error:
            raise StoreAwayError(
                f"The database {self._shown} accepts no changes: it is a standby.",
                "Name the primary, or all servers with commas between them, in store.location.",
            ) from error
        except (psycopg.OperationalError, psycopg.errors.IdleInTransactionSessionTimeout) as error:
            reason = str(error).strip().partition("\n")[0]  # libpq goes on with guesses
            raise StoreAwayError(
                f"The database {self._shown} is out of reach: {reason.rstrip('.')}.",
                "Check that the server runs, that the address is right and that the database exists, then try again.",
            ) from error


_VANISHED = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""How soon a server that does not answer counts as gone: seconds, but for the last, which is in milliseconds. So a lost
server is noticed within half a minute."""


def _connection_options(url: str) -> dict[str, Any]:
    """Options of a connection that the address leaves open. Of several servers the one that accepts writes is meant.

    >>> _connection_options("postgresql://a,b/crawl")["target_session_attrs"]
    'read-write'
    >>> "target_session_attrs" in _connection_options("postgresql://a,b/crawl?target_session_attrs=any")
    False
    """
    given = conninfo_to_dict(url)
    several = "," in str(given.get("host", "")) or "," in str(given.get("hostaddr", ""))
    options = {**_VANISHED, **({"target_session_attrs": "read-write"} if several else {})}
    return {name: value for name, value in options.items() if name not in given}


_PASSING = (
    "starting up",
    "shutting down",
    "recovery",
    "accepting connections",
    "too many",
    "connection slots",
    "terminating connection",
)
"""Words of a server that does not let us in for now. There is no code for it: libpq tells only the text."""


def _is_refused(error: BaseException | None) -> bool:
    """Whether a server answered that it does not let us in, and will not later: a wrong password, no such database."""
    said = str(error)
    return "FATAL" in said and not any(words in said for words in _PASSING)


_CROSSED = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)


def _roll_back(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    with suppress(
        psycopg.OperationalError, psycopg.errors.IdleInTransactionSessionTimeout
    ):  # a lost connection has been rolled back by the server
        connection.execute(b"ROLLBACK")


def _outdated(connection: psycopg.Connection[tuple[Any, ...]], shown: str, *, create: bool) -> bool:
    def exists(table: str) -> bool:
        return connection.execute("SELECT to_regclass(%s)", (table,)).fetchone() != (None,)

    if exists(VERSION_TABLE):
        found = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}".encode()).fetchall()  # noqa: S608 - our own name
        return needs_upgrade([revision for (revision,) in found], shown)
    if not create:
        raise StoreMissingError(f"There is no store in {shown}.", "Make one with: recrawl init")
    if exists("page") or exists("visit"):
        raise StoreError(f"{shown} holds tables that are not recrawl's.", "Give an empty database.")
    return True


def _without_password(url: str) -> str:
    """A URL that may be shown.

    >>> _without_password("postgresql://me:secret@db.example:5433/crawl")
    'postgresql://db.example:5433/crawl'
    >>> _without_password("postgresql://me:secret@one.example:5433,two.example:5434/crawl")
    'postgresql://one.example:5433,two.example:5434/crawl'
    """
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise StoreError("The address of the database makes no sense.", f"PostgreSQL says: {error}") from error
    hosts, ports = (str(parts.get(name, "")).split(",") for name in ("host", "port"))
    ports = ports * len(hosts) if len(ports) == 1 else ports
    servers = ",".join(f"{host}:{port}" if port else host for host, port in zip(hosts, ports, strict=False))
    return f"postgresql://{servers}/{parts.get('dbname', '')}"
