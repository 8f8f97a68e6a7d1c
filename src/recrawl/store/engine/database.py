"""The interface of a database engine: transactions, and a few ways to run a statement on arrays.

Statements have numbered parameters ($1, $2, …), first used in ascending order: both engines understand that.

A store is created and upgraded by alembic migrations; its revision is noted in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np

from recrawl.errors import StoreError
from recrawl.model import AnyArray, FloatArray, IntArray
from recrawl.store.engine.statements import SqlStatements

if TYPE_CHECKING:
    import sqlalchemy as sa

T = TypeVar("T")

Column: TypeAlias = AnyArray | Sequence[str] | Sequence[bytes]
Parameter: TypeAlias = float | str | bytes | Column | None


class DatabaseSession(Protocol):
    """One transaction of one engine."""

    statements: SqlStatements

    def run(self, statement: str, *parameters: Parameter) -> int:
        """Run a statement; return how many rows it changed. An array is one parameter and must not be empty."""
        ...

    def rows(self, statement: str, *parameters: Parameter) -> list[tuple[Any, ...]]:
        """Run a query; return its rows. For results that are small or hold text."""
        ...

    def table(self, dtype: np.dtype[Any], statement: str, *parameters: Parameter) -> AnyArray:
        """Run a query of numbers without NULLs; return its rows as a structured array."""
        ...

    def apply(self, statement: str, *columns: Column) -> int:
        """Run a statement made by ``Dialect.insert`` or ``Dialect.update`` for every row of equally long columns."""
        ...

    def add_counted(self, table: str, statement: str, *columns: Column) -> int:
        """As ``apply`` for an insertion of many rows into a table whose rows are counted."""
        ...

    def add_links(self, source: IntArray, target: IntArray, first: FloatArray, last: FloatArray) -> None:
        """Note links by source and target, each once, and when they were seen; those of a source lie together."""
        ...

    def touched(self, statement: str, *columns: Column) -> list[tuple[Any, ...]]:
        """As ``apply`` for a statement that ends with RETURNING; return what that says of the rows it changed."""
        ...


class Database(Protocol):
    """One store, in one engine. May be shared by threads; transactions then wait for each other."""

    def read(self, work: Callable[[DatabaseSession], T]) -> T:
        """Do ``work`` on one snapshot. It may be done again if the connection is lost."""
        ...

    def write(self, work: Callable[[DatabaseSession], T], *, lasting: bool = True) -> T:
        """Do ``work`` entirely or not at all.

        When this returns, the work survives the death of the process and, if ``lasting`` (and the store was not
        opened otherwise), of the machine. ``work`` may be done again if the engine undid the first attempt.
        """
        ...

    def write_ahead(self, work: Callable[[DatabaseSession], object]) -> Callable[[], object]:
        """Do of :meth:`write` what takes the processor; what is returned does the rest, and a thread may call it.

        Only when that has returned too does the work survive, all or nothing; if it fails it is to be done again.
        """
        ...

    def beside(self) -> Database:
        """Another connection to the same store, to be closed: for what takes long, so that nobody waits for it."""
        ...

    def time(self) -> float | None:
        """The time of the server, seconds since the epoch; ``None`` if there is none."""
        ...

    def faults(self, *, thorough: bool) -> list[str]:
        """What the engine finds wrong with its own file; ``thorough`` compares indexes with tables, too."""
        ...

    def rebuild_indexes(self) -> None:
        """Rebuild all indexes, where the engine may need that."""
        ...

    def close(self) -> None:
        """Let go of the files and connections. Doing it twice is harmless."""
        ...


def too_long(patience: float) -> StoreError:
    """What is said of a read that was given up."""
    return StoreError(f"The store did not answer within {patience:g} s.", "Ask for less, or ask again later.")


def as_list(column: Column) -> list[Any]:
    """The values of a column as Python objects."""
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


VERSION_TABLE = "recrawl_version"
"""Where alembic notes the revision of a store."""

MIGRATIONS = Path(__file__).parents[1] / "migrations"
REVISIONS = tuple(sorted(path.name.partition("_")[0] for path in MIGRATIONS.glob("versions/[0-9]*.py")))
"""Every schema revision this recrawl knows, oldest first; the last is the one it reads and writes."""


FIRST = REVISIONS[0]
"""The revision with which the tables are created."""


def needs_upgrade(found: Sequence[str], location: str) -> bool:
    """Whether a store with these revisions is older than this recrawl, or has no tables yet.

    >>> needs_upgrade([REVISIONS[-1]], "recrawl.db"), needs_upgrade([], "recrawl.db")
    (False, True)

    Raises:
        StoreError: it is newer than this recrawl, or so old that it cannot be upgraded.
    """
    for revision in found:
        if revision.isdecimal() and revision < FIRST:
            raise StoreError(
                f"The store {location} has the schema {revision} of a development version, before {FIRST}: it cannot "
                "be upgraded.",
                "The archive files are intact: make a new workspace with 'recrawl init', then 'recrawl import' them.",
            )
        if revision not in REVISIONS:
            raise StoreError(
                f"The store {location} has the schema {revision}, which is newer than this recrawl knows.",
                "Upgrade recrawl: pip install --upgrade recrawl",
            )
    return list(found) != [REVISIONS[-1]]


def upgrade_sqlite(path: Path) -> None:
    """Create or upgrade the tables of an SQLite file, all or nothing.

    Alembic wants the SQLite of Python's library, the store has its own. Two of them in one process must never
    have the same file open at once (closing a file drops the process's locks on it), so this one closes
    before the other opens.
    """
    import sqlalchemy as sa

    engine = sa.create_engine(f"sqlite:///{path}", poolclass=sa.NullPool, connect_args={"timeout": 60.0})

    @sa.event.listens_for(engine, "connect")
    def _leave_transactions_to_us(connection: sa.engine.interfaces.DBAPIConnection, _record: object) -> None:
        connection.isolation_level = None

    @sa.event.listens_for(engine, "begin")
    def _lock_out_others(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN EXCLUSIVE")

    _upgrade(engine)


def upgrade_postgres(url: str, **options: Any) -> None:  # noqa: ANN401 - libpq's
    """Create or upgrade the tables of a PostgreSQL database, all or nothing. ``options`` are those of a connection."""
    import psycopg
    import sqlalchemy as sa

    engine = sa.create_engine(
        "postgresql+psycopg://", poolclass=sa.NullPool, creator=lambda: psycopg.connect(url, **options)
    )

    @sa.event.listens_for(engine, "begin")
    def _lock_out_others(connection: sa.Connection) -> None:
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('recrawl schema'))")

    _upgrade(engine)


def _upgrade(engine: sa.Engine) -> None:
    """Run the revisions that the store does not have yet, oldest first, in one transaction."""
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory
    from sqlalchemy.exc import OperationalError

    scripts = ScriptDirectory(str(MIGRATIONS))
    try:
        with engine.begin() as connection:
            context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
            missing = scripts.iterate_revisions("head", context.get_current_revision() or "base")
            with Operations.context(context):
                for script in reversed(list(missing)):
                    script.module.upgrade()
                    context.stamp(scripts, script.revision)
    except OperationalError as error:
        if engine.dialect.name == "postgresql" and error.orig is not None:
            raise error.orig from error  # whoever speaks with PostgreSQL knows what it means
        raise StoreError(
            f"The tables of the store cannot be made: {error.orig}.", "Check that there is room and that you may write."
        ) from error
    finally:
        engine.dispose()
