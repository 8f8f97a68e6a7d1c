"""Open a store by its location."""

from __future__ import annotations

from pathlib import Path

from recrawl.errors import StoreError
from recrawl.store.base import Store
from recrawl.store.sql import SqlStore


def open_store(
    location: str | Path, *, create: bool = False, durable: bool = True, patience: float | None = None
) -> Store:
    """Open the store at a file path, ``sqlite:///PATH`` or ``postgresql://…``.

    With ``create``, a store is made where there is none: an SQLite file, or the tables in an empty PostgreSQL
    database. A store with an older schema is brought to the present one.

    What was acknowledged always survives the death of the process. If ``durable``, it also survives a power cut:
    each batch waits for the disk (SQLite's log is synced, PostgreSQL has ``synchronous_commit=on``). Without, the
    last batches before a power cut may be missing, never half there. Leases never wait for the disk.

    With ``patience``, a call that only reads is given up after so many seconds, with a ``StoreError``: for questions of
    strangers, which must not cost more than that.
    """
    scheme, separator, rest = str(location).partition("://")
    if not separator:
        return _open_sqlite(Path(location), create=create, durable=durable, patience=patience)
    if scheme == "sqlite":
        return _open_sqlite(Path(rest.removeprefix("/")), create=create, durable=durable, patience=patience)
    if scheme in ("postgresql", "postgres"):
        from recrawl.errors import require

        require("psycopg", "postgres")
        from recrawl.store.postgres import PostgresDatabase

        return SqlStore(PostgresDatabase(str(location), create=create, durable=durable, patience=patience))
    raise StoreError(f"There is no store of kind {scheme!r}.", "Give a file name or a postgresql:// address.")


def _open_sqlite(path: Path, *, create: bool, durable: bool, patience: float | None) -> Store:
    from recrawl.store.sqlite import SqliteDatabase

    return SqlStore(SqliteDatabase(path, create=create, durable=durable, patience=patience))
