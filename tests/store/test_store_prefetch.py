"""A store's file is read once, and those who have it open notice nothing."""

import subprocess
import sys

import pytest

from recrawl.store.open import open_store
from recrawl.web.servers import read_ahead

LOCKED = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
try:
    connection.pragma("locking_mode", "EXCLUSIVE")
    connection.pragma("journal_mode", "DELETE")
except apsw.BusyError:
    print("busy")
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "recrawl.db"
    open_store(path, create=True).close()
    return path


def test_it_reads_all_or_as_much_as_it_may(path):
    size = path.stat().st_size
    assert size > 4096
    assert read_ahead(path, lambda: False) == size
    assert read_ahead(f"sqlite:///{path}", lambda: False) == size
    assert read_ahead(path, lambda: False, 5000) == 5000
    assert read_ahead(path, lambda: True) == 0
    assert read_ahead("postgresql://nowhere.example/x", lambda: False) == 0


def test_a_store_that_is_open_keeps_its_locks(path):
    """To open and close the file by the usual ways would let others take the file from under a reader."""

    def taken():
        return subprocess.run(
            [sys.executable, "-c", LOCKED, path], capture_output=True, text=True, check=True, timeout=120
        ).stdout

    with open_store(path) as store:
        assert store.last_page() == 0
        assert taken() == "busy\n"
        read_ahead(path, lambda: False)
        assert taken() == "busy\n"
    assert not taken()
