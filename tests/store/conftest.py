import runpy
import shutil
import uuid
from pathlib import Path

import psycopg
import pytest

from recrawl.store import open_store

metadata = runpy.run_path(str(Path(__file__).with_name("schema.py")))["metadata"]


@pytest.fixture(scope="session")
def postgres(postgres_server):
    """The address of a real PostgreSQL server, with %s where the database goes; there is a store in "store"."""
    address = postgres_server.get_uri("%s")
    with psycopg.connect(address % "postgres", autocommit=True) as connection:
        connection.execute("CREATE DATABASE store")
    open_store(address % "store", create=True).close()
    return address


@pytest.fixture(scope="session")
def empty_sqlite(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "empty.db"
    open_store(path, create=True).close()
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request):
    return request.param


@pytest.fixture
def new_location(engine, request, tmp_path):
    """Makes an empty store and tells its location, as often as asked; each replaces the one before."""

    def make():
        if engine == "sqlite":
            path = tmp_path / f"{uuid.uuid4().hex}.db"
            shutil.copy(request.getfixturevalue("empty_sqlite"), path)
            return str(path)
        location = request.getfixturevalue("postgres") % "store"
        with psycopg.connect(location, autocommit=True) as connection:
            connection.execute(f"TRUNCATE {', '.join(metadata.tables)} RESTART IDENTITY")
        return location

    return make


@pytest.fixture
def location(new_location):
    return new_location()


@pytest.fixture
def store(location):
    with open_store(location) as opened:
        yield opened
