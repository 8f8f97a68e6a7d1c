"""Open a store by its location."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from recrawl import plugins
from recrawl.errors import StoreError
from recrawl.store.base import Store
from recrawl.store.engine.database import Database
from recrawl.store.engine.sql import SqlStore


def open_store(
    location: str | Path, *, create: bool = False, durable: bool = True, patience: float | None = None
) -> Store:
    """Open the store at a file path, ``sqlite:///PATH``, ``postgresql://…``, or of a plug-in.

    Another scheme is the name of an entry point of the group ``recrawl.stores``: a callable with the arguments of this
    function that returns a :class:`Store`.

    With ``create``, a store is made where there is none: an SQLite file, or the tables in an empty PostgreSQL
    database. A store with an older schema is brought to the present one.

    What was acknowledged always survives the death of the process. If ``durable``, it also survives a power cut:
    each batch waits for the disk (SQLite's log is synced, PostgreSQL has ``synchronous_commit=on``). Without, the
    last batches before a power cut may be missing, never half there. Leases never wait for the disk.

    With ``patience``, a call that only reads is given up after N seconds, with a ``StoreError``: for questions of
    strangers, which must not cost more than that.
    """
    database = open_database(location, create=create, durable=durable, patience=patience)
    if database is not None:
        return SqlStore(database)
    scheme = str(location).partition("://")[0]
    if not any(entry.name == scheme for entry in plugins.installed("store")):
        raise StoreError(
            f"There is no store of kind {scheme!r}.",
            "Give a file name or a postgresql:// address, or install the package that has this kind of store.",
        )
    opener = partial(
        plugins.find("store", scheme, {}), str(location), create=create, durable=durable, patience=patience
    )
    store: Store = plugins.made("store", scheme, Store, opener)
    return store


def sqlite_path(location: str | Path) -> Path | None:
    """The file of an SQLite store; ``None`` if the location is that of another kind.

    >>> str(sqlite_path("sqlite:///my/recrawl.db")), sqlite_path("postgresql://db.example/crawl")
    ('my/recrawl.db', None)
    """
    scheme, separator, rest = str(location).partition("://")
    if not separator:
        return Path(location)
    return Path(rest.removeprefix("/")) if scheme == "sqlite" else None


def open_database(
    location: str | Path, *, create: bool = False, durable: bool = True, patience: float | None = None
) -> Database | None:
    """The database below a store, with the arguments of :func:`open_store`; ``None`` for the store of a plug-in."""
    file = sqlite_path(location)
    if file is not None:
        from recrawl.store.engine.sqlite import SqliteDatabase

        return SqliteDatabase(file, create=create, durable=durable, patience=patience)
    if str(location).partition("://")[0] in ("postgresql", "postgres"):
        from recrawl.errors import require

        require("psycopg", "postgres")
        from recrawl.store.engine.postgres import PostgresDatabase

        return PostgresDatabase(str(location), create=create, durable=durable, patience=patience)
    return None
