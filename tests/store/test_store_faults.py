import resource
import subprocess
import sys
import threading
from pathlib import Path

import apsw
import numpy as np
import psycopg
import pytest

from recrawl.errors import DiskFullError, ExitCode, StoreError
from recrawl.model import Visits
from recrawl.store import open_store
from recrawl.store.engine.database import REVISIONS, VERSION_TABLE


def execute(location, statement):
    """Do something to a store behind its back."""
    if location.startswith("postgresql"):
        with psycopg.connect(location, autocommit=True) as connection:
            return connection.execute(statement.encode()).rowcount
    connection = apsw.Connection(location)
    connection.execute(statement)
    connection.close()
    return None


def test_a_store_from_a_newer_recrawl(location):
    execute(location, f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    try:
        for create in (False, True):
            with pytest.raises(StoreError, match=r"schema 9999, which is newer.*pip install --upgrade"):
                open_store(location, create=create)
    finally:
        execute(location, f"UPDATE {VERSION_TABLE} SET version_num = '{REVISIONS[-1]}'")


def test_a_missing_file(tmp_path):
    with pytest.raises(StoreError, match=r"no store at .*nothing\.db.*recrawl init"):
        open_store(tmp_path / "nothing.db")
    assert list(tmp_path.iterdir()) == []


def move_when_the_lock_is_taken(patch, move):
    class Lock:
        def __enter__(self):
            move()

        def __exit__(self, *_error):
            pass

    patch.setattr("recrawl.store.engine.sqlite._one_opens", Lock())


def move_when_the_file_is_opened(patch, move):
    connect = apsw.Connection

    def connect_late(*arguments, **named):
        move()
        return connect(*arguments, **named)

    patch.setattr("recrawl.store.engine.sqlite.apsw.Connection", connect_late)


@pytest.mark.parametrize("when", [move_when_the_lock_is_taken, move_when_the_file_is_opened])
def test_a_file_that_is_moved_while_it_is_opened_is_not_made_anew(tmp_path, when):
    path, aside = tmp_path / "recrawl.db", tmp_path / "aside.db"
    open_store(path, create=True).close()
    with pytest.MonkeyPatch.context() as patch:
        when(patch, lambda: path.rename(aside))
        with pytest.raises(StoreError):
            open_store(path)
    assert not path.exists()


def test_a_missing_folder(tmp_path):
    with pytest.raises(StoreError, match="folder"):
        open_store(tmp_path / "nowhere" / "recrawl.db", create=True)


@pytest.mark.parametrize("create", [False, True])
def test_a_file_that_is_not_a_database(tmp_path, create):
    path = tmp_path / "holiday.db"
    path.write_bytes(b"It was sunny. " * 1_000)
    with pytest.raises(StoreError, match=r"holiday\.db is not a store"):
        open_store(path, create=create)
    assert path.read_bytes().startswith(b"It was sunny.")


@pytest.mark.parametrize("create", [False, True])
def test_a_database_of_somebody_else(tmp_path, create):
    path = tmp_path / "other.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE page (id INTEGER)")
    connection.close()
    with pytest.raises(StoreError, match="not a store of recrawl"):
        open_store(path, create=create)


def test_an_empty_file_becomes_a_store_only_if_asked(tmp_path):
    path = tmp_path / "empty.db"
    path.touch()
    with pytest.raises(StoreError, match="not a store of recrawl"):
        open_store(path)
    with open_store(path, create=True) as store:
        assert store.counts(0.0).pages == 0


def test_a_damaged_file(tmp_path):
    path = tmp_path / "recrawl.db"
    with open_store(path, create=True) as store:
        pages = store.discover([f"http://a.example/{n}" for n in range(2_000)], 0.0)
        store.record(Visits.of(pages, 1.0))
    content = bytearray(path.read_bytes())
    content[8_192:] = b"\xa5" * (len(content) - 8_192)
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged.*backup"), open_store(path) as store:
        store.visits()


def test_a_location_that_means_nothing():
    with pytest.raises(StoreError, match="no store of kind 'mysql'"):
        open_store("mysql://localhost/recrawl")


def test_sqlite_by_address(tmp_path):
    path = tmp_path / "recrawl.db"
    open_store(f"sqlite:///{path}", create=True).close()
    assert path.exists()
    open_store(path).close()


def test_a_closed_store_says_so(location):
    store = open_store(location)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.next_due()


def test_a_full_file_system(tmp_path):
    """What was recorded stays, and work goes on when there is room again."""
    path = tmp_path / "recrawl.db"
    with open_store(path, create=True) as store:
        pages = store.discover([f"http://a.example/{n}" for n in range(500)], 0.0)
        connection = store._database._connection
        connection.pragma("max_page_count", connection.pragma("page_count") + 40)
        done = 0

        def record_until_it_fails():
            nonlocal done
            for batch in range(1_000):
                store.record(Visits.of(pages, batch * 1e3 + np.arange(500)), due=np.full(500, float(batch)))
                done = batch + 1

        with pytest.raises(DiskFullError, match=r"full.*Free some space") as caught:
            record_until_it_fails()
        assert caught.value.exit_code == ExitCode.DISK_FULL
        assert done > 0
        assert len(store.visits()) == done * 500
        connection.pragma("max_page_count", 1 << 30)
        store.record(Visits.of(pages, done * 1e3 + np.arange(500)))
        assert len(store.visits()) == (done + 1) * 500


def test_the_system_refuses_to_write_more(tmp_path):
    """A limit of the operating system on the size of a file, in a process of its own."""
    path = tmp_path / "recrawl.db"
    open_store(path, create=True).close()
    script = f"""
import numpy as np
from recrawl.errors import StoreError
from recrawl.store import open_store
store = open_store({str(path)!r})
try:
    for n in range(10_000):
        store.discover([f"http://a.example/{{n}}/{{m}}" for m in range(200)], 0.0)
except StoreError as error:
    print(error)
else:
    print("no error")
"""
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))  # noqa: E731
    done = subprocess.run([sys.executable, "-c", script], preexec_fn=limit, capture_output=True, text=True, check=False)
    assert "cannot be read or written" in done.stdout or "is full" in done.stdout, done.stderr
    with open_store(path) as store:
        assert store.counts(0.0).pages % 200 == 0


def test_two_open_the_same_store_and_wait_for_each_other(location):
    with open_store(location) as one, open_store(location) as other:
        pages = one.discover([f"http://h{n}.example/" for n in range(50)], 0.0)
        errors = []

        def work(store, start):
            try:
                for batch in range(20):
                    store.record(Visits.of(pages, start + batch), due=np.full(50, start + batch))
            except StoreError as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(store, start)) for store, start in ((one, 0.0), (other, 0.5))]
        threads += [threading.Thread(target=work, args=(one, 0.25))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert len(one.visits()) == 3 * 20 * 50
        assert one.next_due() == min(other.hosts().next_due)


# -- a PostgreSQL that goes away ----------------------------------------------------------------


@pytest.fixture
def postgres_location(postgres):
    with psycopg.connect(postgres % "postgres", autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS fragile WITH (FORCE)")
        connection.execute("CREATE DATABASE fragile")
    open_store(postgres % "fragile", create=True).close()
    return postgres % "fragile"


def cut_connections(postgres):
    with psycopg.connect(postgres % "postgres", autocommit=True) as connection:
        ours = "datname = 'fragile' AND backend_type = 'client backend'"
        query = f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {ours}"
        return connection.execute(query).rowcount


def test_an_idle_connection_that_was_cut_is_opened_again(postgres, postgres_location):
    with open_store(postgres_location) as store:
        pages = store.discover(["http://a.example/"], 0.0)
        assert cut_connections(postgres) >= 1
        assert store.next_due() == 0.0
        assert cut_connections(postgres) >= 1
        store.record(Visits.of(pages, 1.0))
        assert len(store.visits()) == 1


def test_a_cut_in_the_middle_of_the_work_undoes_it_and_the_work_is_done_again(postgres, postgres_location):
    with open_store(postgres_location) as store:
        pages = store.discover(["http://a.example/"], 0.0)
        cuts = []

        def work(session):
            session.apply(session.statements.set_due, pages, np.array([7.0 + len(cuts)]))
            if not cuts:
                cuts.append(cut_connections(postgres))
            session.run(session.statements.refresh_hosts, np.array([1]))

        store._database.write(work)
        assert len(cuts) == 1
        assert cuts[0] >= 1, "our connection, and any that was about to end"
        assert store.next_due() == 8.0


def test_a_cut_during_the_commit_is_told(postgres_location):
    """Nobody can know then whether the batch was kept; recording it again is safe."""
    execute(
        postgres_location,
        """CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER die_late AFTER INSERT ON visit DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION die()""",
    )
    with open_store(postgres_location) as store:
        pages = store.discover(["http://a.example/"], 0.0)
        with pytest.raises(StoreError, match=r"lost while it committed.*Do the same again"):
            store.record(Visits.of(pages, 1.0))
        execute(postgres_location, "DROP FUNCTION die CASCADE")
        store.record(Visits.of(pages, 1.0))
        store.record(Visits.of(pages, 1.0))
        assert len(store.visits()) == 1


def test_a_server_that_lets_nobody_in_and_then_does_again(postgres, postgres_location):
    with open_store(postgres_location) as store:
        pages = store.discover(["http://a.example/"], 0.0)
        execute(postgres % "postgres", "ALTER DATABASE fragile ALLOW_CONNECTIONS false")
        cut_connections(postgres)
        for call in (store.next_due, lambda: store.record(Visits.of(pages, 1.0))):
            with pytest.raises(StoreError, match=r"out of reach.*Check that the server runs"):
                call()
        execute(postgres % "postgres", "ALTER DATABASE fragile ALLOW_CONNECTIONS true")
        store.record(Visits.of(pages, 1.0))
        assert len(store.visits()) == 1


def test_no_server_no_database_no_store(postgres, tmp_path):
    with pytest.raises(StoreError, match="out of reach"):
        open_store(f"postgresql://postgres@/x?host={tmp_path}", create=True)
    with pytest.raises(StoreError, match="does not exist"):
        open_store(postgres % "nowhere", create=True)
    with pytest.raises(StoreError, match=r"no store in .*recrawl init"):
        open_store(postgres % "postgres")


def test_a_postgres_database_of_somebody_else(postgres):
    with psycopg.connect(postgres % "postgres", autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS foreign_tables")
        connection.execute("CREATE DATABASE foreign_tables")
    execute(postgres % "foreign_tables", "CREATE TABLE page (id integer)")
    with pytest.raises(StoreError, match="not recrawl's"):
        open_store(postgres % "foreign_tables", create=True)


def test_a_password_is_never_shown():
    with pytest.raises(StoreError) as caught:
        open_store("postgresql://me:secret@127.0.0.1:1/crawl?connect_timeout=1")
    assert "secret" not in str(caught.value)
    with pytest.raises(StoreError, match="makes no sense"):
        open_store("postgresql://[::1/x")


def test_a_full_disk_of_the_server(postgres_location):
    execute(
        postgres_location,
        """CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END $$;
        CREATE TRIGGER full_disk BEFORE INSERT ON visit FOR EACH STATEMENT EXECUTE FUNCTION no_room()""",
    )
    with open_store(postgres_location) as store:
        pages = store.discover(["http://a.example/"], 0.0)
        with pytest.raises(DiskFullError, match="full"):
            store.record(Visits.of(pages, 1.0))
        execute(postgres_location, "DROP FUNCTION no_room CASCADE")
        assert len(store.visits()) == 0
        store.record(Visits.of(pages, 1.0))
        assert len(store.visits()) == 1


@pytest.mark.parametrize("engine", ["postgres"])
def test_a_worker_that_is_stopped_within_a_transaction_does_not_hold_up_others_for_ever(location, monkeypatch):
    """Its connection lives on, and with it the locks on rows: the server undoes what it began, and it does it again."""
    monkeypatch.setattr("recrawl.store.engine.postgres.LONGEST_STOP", 0.3)
    with open_store(location) as stopped, open_store(location) as other:
        pages = stopped.discover(["http://a.example/"], 1.0)
        begun, go_on, tries = threading.Event(), threading.Event(), []

        def work(session):
            session.rows(session.statements.lock_hosts, np.array([1]))
            tries.append(1)
            begun.set()
            assert go_on.wait(120.0)
            return session.run(session.statements.pause_hosts, 0, np.array([1]))

        thread = threading.Thread(target=lambda: stopped._database.write(work))
        thread.start()
        assert begun.wait(120.0)
        other.reschedule(pages, np.array([5.0]))  # waits for the row
        go_on.set()
        thread.join(120.0)
        assert not thread.is_alive()
        assert len(tries) == 2
        assert stopped.due(pages).tolist() == [5.0]


def test_a_store_that_is_moved_away_while_it_is_opened_is_not_replaced_by_an_empty_one(tmp_path, monkeypatch):
    """Whoever opened it anew, such as a health check, found an empty store and called it well."""
    path = tmp_path / "store.db"
    open_store(path, create=True).close()
    looked = Path.exists

    def exists(self):
        found = looked(self)
        if self == path and found:
            path.rename(tmp_path / "elsewhere.db")
        return found

    monkeypatch.setattr(Path, "exists", exists)
    with pytest.raises(StoreError):
        open_store(path)
    monkeypatch.undo()
    assert not path.exists()
