"""Copies of a store between engines: every row of every table, also after an interruption."""

import runpy
from pathlib import Path

import apsw
import numpy as np
import psycopg
import pytest
import sqlalchemy as sa

from recrawl.errors import InputError, StoreError
from recrawl.store import open_store, store_copy
from recrawl.store.store_copy import copy_store

SCHEMA = runpy.run_path(str(Path(__file__).with_name("schema.py")))["metadata"]
TABLES = {name: table for name, table in SCHEMA.tables.items() if name != "row_count"}
"""Without the counts of rows, which each store keeps itself."""


@pytest.fixture
def database(postgres):
    """An empty PostgreSQL database."""
    location = postgres % "copied"
    with psycopg.connect(postgres % "postgres", autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS copied")
        connection.execute("CREATE DATABASE copied")
    return location


@pytest.fixture
def source(tmp_path):
    """A store with rows in every table."""
    path = tmp_path / "source.db"
    open_store(path, create=True).close()
    fill(f"sqlite:///{path}", np.random.default_rng(1))
    return path


def engine_of(location):
    if str(location).startswith("postgresql"):
        return sa.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(location))
    return sa.create_engine(f"sqlite:///{location}")


def fill(url, rng, rows=37):
    """Rows of any values that their types allow; keys count up."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for table in TABLES.values():
            for number in range(rows):
                row = {
                    column.name: some_value(column, number, rng) for column in table.columns if column.computed is None
                }
                connection.execute(table.insert().values(row))
    engine.dispose()


def some_value(column, number, rng):
    if column.primary_key and not isinstance(column.type, (sa.Text, sa.Double)):
        return number + 1
    match column.type:
        case sa.Text():
            return f"{column.name} {number} ⚒ \u00e4"
        case sa.LargeBinary():
            return rng.bytes(16) + number.to_bytes(2)
        case sa.REAL():
            return float(np.float32(rng.normal()))
        case sa.Double() | sa.Float():
            values = [1.8e9 * float(rng.random()), float("inf"), float("-inf"), 0.1]
            return 0.5 + number if column.primary_key else values[number % 4]
        case _:
            return int(rng.integers(0, 100))


def rows_of(location):
    """All rows of all tables, those that the engine computes left out."""
    engine = engine_of(location)
    with engine.connect() as connection:
        found = {
            name: sorted(map(tuple, connection.execute(written(table))), key=repr) for name, table in TABLES.items()
        }
    engine.dispose()
    return found


def written(table):
    """A query of all columns that can be written; single precision as double, as SQLite has it."""
    columns = (column for column in table.columns if column.computed is None)
    return sa.select(*(sa.cast(one, sa.Double) if isinstance(one.type, sa.REAL) else one for one in columns))


def silent(_work, _done, _whole):
    pass


def test_every_row_arrives_in_another_engine_and_comes_back(source, database, tmp_path):
    there = copy_store(source, database, silent)
    back = tmp_path / "back.db"
    assert copy_store(database, back, silent) == there
    assert {table.name: table.rows for table in there} == dict.fromkeys(TABLES, 37)
    assert rows_of(database) == rows_of(source)
    assert rows_of(back) == rows_of(source)
    with open_store(database) as store:
        assert store._database.read(
            lambda session: dict(session.rows("SELECT name, sum(rows) FROM row_count GROUP BY name"))
        ) == dict.fromkeys(("capture", "host", "link", "page"), 37)


def test_new_rows_of_a_copy_get_numbers_of_their_own(source, database):
    copy_store(source, database, silent)
    with open_store(database) as store:
        before = store.pages().id
        [added] = store.discover(["https://new.example/"], 1.0).tolist()
        assert added not in before.tolist()


@pytest.mark.parametrize("stop", [1, 5, 12, 40])
def test_an_interrupted_copy_goes_on(source, database, monkeypatch, stop):
    monkeypatch.setattr(store_copy, "_ROWS", 10)
    monkeypatch.setattr(store_copy, "_FEW_ROWS", {})
    written = 0
    write = store_copy._StoreCopy._write

    def stopping(self, *arguments):
        nonlocal written
        written += 1
        if written > stop:
            raise KeyboardInterrupt
        return write(self, *arguments)

    monkeypatch.setattr(store_copy._StoreCopy, "_write", stopping)
    with pytest.raises(KeyboardInterrupt):
        copy_store(source, database, silent)
    monkeypatch.setattr(store_copy._StoreCopy, "_write", write)
    copied = copy_store(source, database, silent)
    assert sum(table.rows for table in copied) == 37 * len(TABLES)
    assert rows_of(database) == rows_of(source)


def test_a_copy_does_not_go_on_from_a_store_that_changed(source, database, monkeypatch):
    monkeypatch.setattr(store_copy._StoreCopy, "_compared", interrupted)
    with pytest.raises(KeyboardInterrupt):
        copy_store(source, database, silent)
    monkeypatch.undo()
    with open_store(source) as store:
        store.discover(["https://new.example/"], 1.0)
    with pytest.raises(InputError, match="changed since"):
        copy_store(source, database, silent)


def interrupted(*_arguments):
    raise KeyboardInterrupt


def test_a_store_is_never_copied_over_another(source, tmp_path):
    there = tmp_path / "there.db"
    with open_store(there, create=True) as store:
        store.discover(["https://other.example/"], 1.0)
    with pytest.raises(InputError, match="There is a store"):
        copy_store(source, there, silent)


def test_a_row_that_is_lost_or_altered_is_noticed(source, tmp_path):
    for number, damage in enumerate(("DELETE FROM link WHERE source = 3", "UPDATE page SET etag = 'x' WHERE id = 3")):
        target = tmp_path / f"target-{number}.db"

        def meddle(work, done, _whole, damage=damage, target=target):
            if work == "tables compared" and not done:
                connection = apsw.Connection(str(target))
                connection.execute(damage)
                connection.close()

        with pytest.raises(StoreError, match="differ"):
            copy_store(source, target, meddle)
