import runpy
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from recrawl.errors import StoreError
from recrawl.model import VISIT_COLUMNS
from recrawl.store import open_store
from recrawl.store.engine.database import MIGRATIONS, REVISIONS, VERSION_TABLE
from recrawl.urls import BUCKETS, bucket_of

metadata = runpy.run_path(str(Path(__file__).with_name("schema.py")))["metadata"]


@pytest.fixture
def connection(engine, location):
    if engine == "sqlite":
        database = sa.create_engine(f"sqlite:///{location}")
    else:
        database = sa.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(location))
    with database.connect() as opened:
        yield opened
    database.dispose()


def test_the_migrations_lead_to_the_schema(connection):
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    assert compare_metadata(context, metadata) == []


def test_the_revisions_we_know_are_those_there_are():
    scripts = ScriptDirectory(str(MIGRATIONS))
    assert [script.revision for script in scripts.walk_revisions()] == list(reversed(REVISIONS))


def test_a_row_of_the_table_is_a_visit():
    assert set(metadata.tables["visit"].columns.keys()) == {*VISIT_COLUMNS, "segment"}


def test_a_store_of_an_older_schema_says_what_to_do(location):
    """Nothing of it is changed: the version that made it still opens it."""

    def note(store, revision):
        store._database.write(lambda session: session.run(f"UPDATE {VERSION_TABLE} SET version_num = '{revision}'"))

    with open_store(location) as store:
        note(store, "0011")
        try:
            for create in (False, True):
                with pytest.raises(StoreError, match="schema 0011 of a development version") as caught:
                    open_store(location, create=create)
                assert "recrawl import" in caught.value.remedy
        finally:
            note(store, REVISIONS[-1])


def test_creating_twice_changes_nothing(location):
    with open_store(location) as store:
        store.discover(["http://a.example/"], 1.0)
    with open_store(location, create=True) as store:
        assert store.counts(1.0).pages == 1


def test_several_create_the_same_store_at_once(engine, tmp_path, request):
    location = str(tmp_path / "new.db")
    if engine == "postgres":
        address = request.getfixturevalue("postgres")
        with psycopg.connect(address % "postgres", autocommit=True) as server:
            server.execute("DROP DATABASE IF EXISTS created_by_many WITH (FORCE)")
            server.execute("CREATE DATABASE created_by_many")
        location = address % "created_by_many"
    script = f"from recrawl.store import open_store\nopen_store({location!r}, create=True).close()"
    running = [subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE) for _ in range(3)]
    for process in running:
        _, error = process.communicate(timeout=120)
        assert process.returncode == 0, error.decode()
    with open_store(location) as store:
        assert store.counts(0.0).pages == 0


def test_opening_a_store_loads_neither_alembic_nor_sqlalchemy(empty_sqlite):
    script = f"""
import sys
from recrawl.store import open_store
open_store({str(empty_sqlite)!r}).close()
assert not {{"alembic", "sqlalchemy", "psycopg", "pyarrow"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_store_serves_several_threads(store):
    found = []

    def work(start):
        found.append(store.discover([f"http://h{n}.example/" for n in range(start, start + 60)], 0.0).tolist())

    threads = [threading.Thread(target=work, args=(start,)) for start in (0, 20, 40, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert store.counts(0.0).pages == 100
    assert len({page for pages in found for page in pages}) == 100


def test_hosts_of_an_older_store_get_their_buckets(engine, tmp_path, request):
    """Revision 0013 fills them in, however many hosts there are."""
    from alembic.operations import Operations

    if engine == "sqlite":
        place = tmp_path / "old.db"
        database = sa.create_engine(f"sqlite:///{place}", poolclass=sa.NullPool)
    else:
        place = request.getfixturevalue("new_database")()
        creator = partial(psycopg.connect, place)
        database = sa.create_engine("postgresql+psycopg://", creator=creator, poolclass=sa.NullPool)
    scripts = ScriptDirectory(str(MIGRATIONS))
    names = [f"www{number % 7}.site{number}.example" for number in range(10_050)]
    with database.begin() as opened:
        context = MigrationContext.configure(opened, opts={"version_table": VERSION_TABLE})
        with Operations.context(context):
            scripts.get_revision("0012").module.upgrade()
            context.stamp(scripts, "0012")
        row = "INSERT INTO host (name, ready_at, delay, held_until, next_due) VALUES (:name, 0, 0, 0, 1)"
        opened.execute(sa.text(row), [{"name": name} for name in names])
    database.dispose()
    with open_store(place) as store:
        hosts = store.hosts()
        assert hosts.name == names
        assert hosts.bucket.tolist() == [bucket_of(name) for name in names]
        assert store.buckets().owner == [None] * BUCKETS
