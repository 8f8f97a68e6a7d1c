"""Migrates a store to the current schema, and reports the schema of a store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.errors import StoreError

if TYPE_CHECKING:
    import sqlalchemy as sa

VERSION_TABLE = "recrawl_version"
"""Where alembic notes the revision of a store."""

MIGRATIONS = Path(__file__).parent / "migrations"
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


def upgrade_postgres(url: str) -> None:
    """Create or upgrade the tables of a PostgreSQL database, all or nothing."""
    import psycopg
    import sqlalchemy as sa

    engine = sa.create_engine("postgresql+psycopg://", poolclass=sa.NullPool, creator=lambda: psycopg.connect(url))

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
