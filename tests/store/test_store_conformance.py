"""What every store promises (``recrawl.store.base``), run over both built-in ones."""

import psycopg
import pytest

from recrawl.store import open_store
from recrawl.testing import StoreConformance


class TestEveryStore(StoreConformance):
    @pytest.fixture(autouse=True)
    def chosen(self, engine, request):
        self.address = request.getfixturevalue("postgres") if engine == "postgres" else ""

    def open(self, folder, *, create):
        if not self.address:
            return open_store(folder / "recrawl.db", create=create)
        name = f"conformance_{folder.name.lower()}"
        if create:
            with psycopg.connect(self.address % "postgres", autocommit=True) as connection:
                connection.execute(f'CREATE DATABASE "{name}"')
        return open_store(self.address % name, create=create)
