"""A store in one SQLite file, through apsw: the embedded default.

Any number of processes may open the file; one writes at a time, the others wait for it.
"""

from __future__ import annotations

import errno
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, TypeVar

import apsw
import numpy as np

from recrawl.errors import DiskFullError, StoreAwayError, StoreError, StoreMissingError
from recrawl.model import AnyArray, FloatArray, IntArray
from recrawl.store.engine.database import (
    VERSION_TABLE,
    Column,
    DatabaseSession,
    Parameter,
    as_list,
    needs_upgrade,
    too_long,
    upgrade_sqlite,
)
from recrawl.store.engine.statements import How, SqlStatements, Types

T = TypeVar("T")

_NO_ROOM = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})
BUSY_SECONDS = 60.0
"""How long to wait for another process that writes."""
CACHE_KIB = 65_536
CHECKPOINT_BLOCKS = 16_384
"""Blocks of 4 KiB that gather in the write-ahead log before they go into the file: 64 MiB."""
STEPS_A_LOOK = 20_000
"""Steps of SQLite's virtual machine between two checks of the time limit of a read: about a millisecond."""


_one_opens = threading.Lock()
"""Held while a store is opened: so no thread upgrades a file that another one has open (see ``upgrade_sqlite``)."""


_NOTHING = ("\0",)
"""Stands for an array of nothing, of which SQLite cannot be told: nothing that is stored equals it."""


class SqliteDialect:
    """SQLite's words: a batch is a statement repeated, an array is a ``carray``."""

    lock = ""
    lock_free = ""
    larger = "max"
    first_due = (
        "SELECT s.page, s.host, s.due FROM carray($1) AS h CROSS JOIN schedule AS s WHERE s.page IN "
        "(SELECT page FROM schedule WHERE host = h.value AND due <= $2 ORDER BY due, page LIMIT $3)"
    )

    def among(self, parameter: int, type_: str = "bigint") -> str:  # noqa: ARG002 - SQLite's arrays know their type
        """After a column's name: equal to one of the array with that number."""
        return f"IN carray(${parameter})"

    def bytewise(self, column: str) -> str:
        """A text in the order of its bytes: the only one there is."""
        return column

    def insert(self, table: str, columns: Types, conflict: str = "") -> str:
        """Insert one row."""
        values = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
        return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values}) {conflict}"  # noqa: S608 - names of our own

    def update(self, table: str, key: str, columns: Types, *, how: How = "set") -> str:
        """Set columns of one row. The key comes first but is used last, hence numbers that SQLite takes as such."""
        value = {"set": "{0} = ?{1}", "raise": "{0} = max({0}, ?{1})", "add": "{0} = {0} + ?{1}"}[how]
        values = ", ".join(value.format(name, number) for number, name in enumerate(columns, start=2))
        return f"UPDATE {table} SET {values} WHERE {key} = ?1"  # noqa: S608 - names of our own


class SqliteSession:
    """One transaction on one connection."""

    statements = SqlStatements(SqliteDialect())

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def run(self, statement: str, *parameters: Parameter) -> int:
        """Run a statement; return how many rows it changed."""
        before = self._connection.total_changes()
        self._connection.execute(statement, _bound(parameters))
        return self._connection.total_changes() - before

    def rows(self, statement: str, *parameters: Parameter) -> list[tuple[Any, ...]]:
        """Run a query; return its rows."""
        return self._connection.execute(statement, _bound(parameters)).fetchall()

    def table(self, dtype: np.dtype[Any], statement: str, *parameters: Parameter) -> AnyArray:
        """Run a query of numbers; return its rows as a structured array."""
        return np.fromiter(self._connection.execute(statement, _bound(parameters)), dtype)

    def apply(self, statement: str, *columns: Column) -> int:
        """Run a statement for every row of equally long columns; an insertion of many rows for some of them at once."""
        before = self._connection.total_changes()
        done = self._insert_groups(statement, columns) if len(columns[0]) >= _FEW_ROWS else 0
        self._connection.executemany(statement, zip(*(as_list(column[done:]) for column in columns), strict=True))
        return self._connection.total_changes() - before

    def add_counted(self, table: str, statement: str, *columns: Column) -> int:
        """As :meth:`apply` for an insertion: the rows are counted together, not each by the trigger of the table."""
        self._connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        try:
            added = self.apply(statement, *columns)
        finally:
            self._connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)
        self.run(self.statements.count_rows, added, table)
        return added

    def _insert_groups(self, statement: str, columns: tuple[Column, ...]) -> int:
        """Insert rows in groups, each by one statement, but for the last few rows; return how many rows these were.

        A column of one value is bound once for a group: most of what is imported is of one kind.
        """
        insertion = _INSERTION.fullmatch(statement)
        if insertion is None:
            return 0
        same = tuple(_is_constant(column) for column in columns)
        varied = [as_list(column) for column, constant in zip(columns, same, strict=True) if not constant]
        fixed = tuple(as_list(column[:1])[0] for column, constant in zip(columns, same, strict=True) if constant)
        groups = len(columns[0]) // _GROUP
        values = chain.from_iterable(zip(*varied, strict=True)) if varied else iter(())
        rows = _tuples(values, _GROUP * len(varied), groups)
        self._connection.executemany(
            _grouped(insertion["begin"], insertion["end"], same),
            (row + fixed for row in rows) if fixed else rows,
        )
        return groups * _GROUP

    def add_links(self, source: IntArray, target: IntArray, first: FloatArray, last: FloatArray) -> None:
        """Note links, those of one source that were seen at the same times by one statement."""
        if not len(source):
            return
        differs = (source[1:] != source[:-1]) | (first[1:] != first[:-1]) | (last[1:] != last[:-1])
        begins = np.append(0, np.flatnonzero(differs) + 1)
        target, ends = np.ascontiguousarray(target), np.append(begins[1:], len(source))
        of_each = (column.tolist() for column in (source[begins], first[begins], last[begins], begins, ends))
        for page, seen, again, begin, end in zip(*of_each, strict=True):
            self._connection.execute(self.statements.add_links_of, (page, seen, again, apsw.carray(target[begin:end])))

    def touched(self, statement: str, *columns: Column) -> list[tuple[Any, ...]]:
        """Run a statement for every row; return what it says of those that it changed."""
        return self._connection.executemany(statement, zip(*map(as_list, columns), strict=True)).fetchall()


_GROUP = 16
"""Rows that one statement inserts: more take longer to be prepared than they save."""
_FEW_ROWS = 256
"""Rows below which each is inserted by itself."""
_INSERTION = re.compile(
    r"(?P<begin>INSERT INTO [^()]* \([^()]*\) VALUES )\(\$[^()]*\)(?P<end>(?:(?!RETURNING).)*)", re.DOTALL
)


def _is_constant(column: Column) -> bool:
    """Whether all values of a column are the same number, text or bytes."""
    if isinstance(column, np.ndarray):
        return bool((column == column[0]).all())
    return column[0] == column[-1] and column.count(column[0]) == len(column)


@cache
def _grouped(begin: str, end: str, same: tuple[bool, ...]) -> str:
    """An insertion of :data:`_GROUP` rows; columns that are the ``same`` in all rows are bound last, once each."""
    varied = same.count(False)
    last = _GROUP * varied
    rows = []
    for row in range(_GROUP):
        number = count(row * varied + 1)
        shared = count(last + 1)
        rows.append(f"({', '.join(f'?{next(shared if one else number)}' for one in same)})")
    return f"{begin}{', '.join(rows)}{end}"


def _tuples(values: Iterator[Any], size: int, number: int) -> Iterator[tuple[Any, ...]]:
    """The first values of an iterator, in ``number`` tuples of ``size``."""
    return (tuple(islice(values, size)) for _ in range(number))


class SqliteDatabase:
    """One SQLite file."""

    def __init__(self, path: Path, *, create: bool, durable: bool, patience: float | None = None) -> None:
        self._path = path
        self._patience = patience
        self._lasting = durable
        self._waits: bool | None = None
        """Whether commits wait for the disk; ``None`` while nobody said so."""
        self._lock = threading.RLock()
        self._log: int | None = None
        """The write-ahead log, once somebody waited for it; wherever the file is moved."""
        self._is_uncertain = False
        """Whether the disk failed to keep what was committed."""
        if create and not path.parent.is_dir():
            raise StoreError(f"There is no folder {path.parent}.", "Make the folder first.")
        with _one_opens, explained(path):
            if _outdated(path, create=create):
                upgrade_sqlite(path)
            self._connection = _connect(path)
            self._file = path.stat()

    def read(self, work: Callable[[DatabaseSession], T]) -> T:
        """Do ``work`` on one snapshot."""
        if self._patience is None:
            return self._transaction("BEGIN DEFERRED", work)
        with self._lock, self._in_time(self._patience):
            return self._transaction("BEGIN DEFERRED", work)

    def beside(self) -> SqliteDatabase:
        """Another connection to the same file."""
        return SqliteDatabase(self._path, create=False, durable=self._lasting, patience=self._patience)

    def write(self, work: Callable[[DatabaseSession], T], *, lasting: bool = True) -> T:
        """Do ``work`` entirely or not at all."""
        with self._lock, self._explained():
            self._check_in_place()
            # FULL waits for the disk at each commit. NORMAL leaves that to the machine, which outlives the process.
            waits = lasting and self._lasting
            if waits is not self._waits:
                self._connection.pragma("synchronous", "FULL" if waits else "NORMAL")
                self._waits = waits
            return self._transaction("BEGIN IMMEDIATE", work)

    def write_ahead(self, work: Callable[[DatabaseSession], object]) -> Callable[[], object]:
        """Do ``work`` and commit it; what is returned waits for the disk."""
        if self._is_uncertain:
            with self._lock, self._explained():
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._is_uncertain = False
        self.write(work, lasting=False)
        if not self._lasting:
            return lambda: None
        if self._log is None:
            with self._told_of_disk():
                self._log = os.open(self._connection.filename_wal, os.O_RDONLY)
        return partial(self._wait_for_disk, self._log)

    def _wait_for_disk(self, log: int) -> None:
        """Return once all that was committed is on the disk, as a commit with ``synchronous=FULL`` would.

        That is in the write-ahead log, or was taken into the file by a checkpoint, which waits for the disk itself.
        """
        with self._told_of_disk():
            os.fsync(log)

    @contextmanager
    def _told_of_disk(self) -> Iterator[None]:
        """Explain an error of the disk.

        Where it failed once, a second try tells nothing of what it did not keep: so the log is emptied into the file
        before more is written.
        """
        try:
            yield
        except OSError as error:
            self._is_uncertain = True
            if error.errno in _NO_ROOM:
                raise _full(self._path) from error
            raise StoreAwayError(
                f"The disk with {self._path} keeps nothing: {error}.", "Look after the disk."
            ) from error

    def time(self) -> float | None:
        """There is no server."""
        return None

    def faults(self, *, thorough: bool) -> list[str]:
        """What SQLite's own check says, and foreign keys that lead nowhere; at most a hundred of each."""
        check = "PRAGMA integrity_check" if thorough else "PRAGMA quick_check"

        def work(session: DatabaseSession) -> list[str]:
            said = [str(text) for (text,) in session.rows(check)]
            keys = [
                f"{table}: a row refers to {parent}, which is not there" for table, _, parent, _ in _no_keys(session)
            ]
            return [text for text in said if text != "ok"] + keys

        with self._lock, self._explained():
            try:
                return self._transaction("BEGIN DEFERRED", work)
            except (apsw.CorruptError, apsw.NotADBError) as error:
                return [f"it cannot be read: {error}"]

    def rebuild_indexes(self) -> None:
        """Rebuild all indexes."""
        self.write(lambda session: session.run("REINDEX"))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()
            if self._log is not None:
                os.close(self._log)
                self._log = None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """As the function of this name; and SQLite takes only a full disk for one, not a full quota or file."""
        with explained(self._path):
            try:
                yield
            except apsw.IOError as error:
                if self._connection.system_errno in _NO_ROOM:
                    raise apsw.FullError(str(error)) from error
                raise

    @contextmanager
    def _in_time(self, patience: float) -> Iterator[None]:
        """Give up what takes longer."""
        end = time.monotonic() + patience  # noqa: TID251 - a guard over one call; nothing is decided by it
        self._connection.set_progress_handler(lambda: time.monotonic() > end, STEPS_A_LOOK)  # noqa: TID251 - likewise
        try:
            yield
        except apsw.InterruptError as error:
            raise too_long(patience) from error
        finally:
            self._connection.set_progress_handler(None)

    def _check_in_place(self) -> None:
        """Refuse to write to a file that has no name any more: all of it would be gone with the process."""
        try:
            there = self._path.stat()
        except FileNotFoundError as error:
            raise StoreAwayError(f"The store {self._path} was moved or deleted.", "Put the file back.") from error
        if not os.path.samestat(there, self._file):
            raise StoreError(f"The store {self._path} was replaced by another file.", "Start again.")

    def _transaction(self, begin: str, work: Callable[[DatabaseSession], T]) -> T:
        with self._lock, self._explained():
            self._connection.execute(begin)
            try:
                result = work(SqliteSession(self._connection))
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            return result


def _no_keys(session: DatabaseSession) -> list[tuple[Any, ...]]:
    return session.rows("PRAGMA foreign_key_check")[:100]


def _bound(parameters: tuple[Parameter, ...]) -> tuple[Any, ...]:
    return tuple(apsw.carray(_array(value)) if isinstance(value, np.ndarray | list) else value for value in parameters)


def _array(values: AnyArray | list[Any]) -> AnyArray | tuple[Any, ...]:
    if not len(values):
        return _NOTHING
    return np.ascontiguousarray(values) if isinstance(values, np.ndarray) else tuple(values)


def _outdated(path: Path, *, create: bool) -> bool:
    """Whether tables are to be made or upgraded. A file that goes away meanwhile is missing, not created."""
    if not path.exists():
        if create:
            return True
        raise StoreMissingError(f"There is no store at {path}.", "Make one with: recrawl init")
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if VERSION_TABLE not in tables:
            if create and not tables:
                return True
            raise StoreError(f"{path} is a database, but not a store of recrawl.", "Give another file name.")
        found = [revision for (revision,) in connection.execute(f"SELECT version_num FROM {VERSION_TABLE}")]  # noqa: S608 - our own name
    finally:
        connection.close()
    return needs_upgrade(found, str(path))


def _connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
    connection.pragma("journal_mode", "WAL")
    connection.pragma("cache_size", -CACHE_KIB)
    connection.pragma("wal_autocheckpoint", CHECKPOINT_BLOCKS)
    return connection


def _full(path: Path) -> DiskFullError:
    return DiskFullError(
        f"The disk with {path} is full.", "Free some space and go on; what was recorded before is kept."
    )


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into errors of the store, with a remedy."""
    try:
        yield
    except apsw.FullError as error:
        raise _full(path) from error
    except apsw.NotADBError as error:
        raise StoreError(f"{path} is not a store of recrawl.", "Give another file name.") from error
    except apsw.CorruptError as error:
        raise StoreError(f"The store {path} is damaged: {error}.", "Restore it from a backup.") from error
    except apsw.BusyError as error:
        raise StoreAwayError(
            f"Another process has been writing to {path} for {BUSY_SECONDS:g} s.", "Wait for it or stop it."
        ) from error
    except apsw.ConnectionClosedError as error:
        raise StoreError(f"The store {path} is closed.", "Open it again.") from error
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.IOError) as error:
        raise StoreAwayError(
            f"The store {path} cannot be read or written: {error}.", "Check that the folder exists and is writable."
        ) from error
