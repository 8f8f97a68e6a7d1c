"""Whatever is wrong with a workspace is found by its right name. What is derived is repaired, and nothing else."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
import pytest

from recrawl.crawl.control.worker_registry import worker_lock
from recrawl.crawl.maintenance.archive_check import upper_bound
from recrawl.crawl.maintenance.workspace_check import KINDS, CheckScope, Severity, verify
from recrawl.crawl.visit.warc_archive import REVISIT
from recrawl.formats.atomic_files import PART, unfinished_file
from recrawl.model import Capture, Outcome, Validators, Visits
from recrawl.model.captures import RobotsCopy
from recrawl.store import checks, history
from recrawl.store.base import ClockHorizon
from recrawl.store.open import open_store

NOW = 1.79e9
"""When these workspaces are looked at."""


def check(maker, now=NOW, seed=0, **how):
    with open_store(maker.location) as store:
        return verify(
            store, maker.folder, now, CheckScope(**how), rng=np.random.default_rng(seed), tell=lambda *_told: None
        )


def kinds(found, *severities):
    chosen = severities or (Severity.ERROR, Severity.WARNING)
    return {one.kind for one in found.findings.all() if one.about.severity in chosen and one.count > one.repaired}


def run_sql(maker, *statements):
    with open_store(maker.location) as store:
        for statement in statements:
            assert store._database.write(lambda session, text=statement: session.run(text)) > 0


def test_a_whole_workspace_has_no_findings(maker):
    maker.fill()
    found = check(maker)
    assert found.findings.all() == []
    assert found.captures == 18
    assert found.records == 1 + 2 * 18 + 2  # who made the file, captures with their requests, and robots.txt
    assert found.files == 1
    assert found.read > 0
    assert found.sample is None


REPAIRED = {
    "host_bucket": "UPDATE host SET bucket = 1023 - bucket WHERE id = 1",
    "host_next_due": "UPDATE host SET next_due = next_due + 5 WHERE id = 1",
    "host_ready_far": f"UPDATE host SET ready_at = {NOW + 40 * 86_400} WHERE id = 2",
    "due_far": f"UPDATE schedule SET due = {NOW + 1e9} WHERE page = 2",
    "page_unscheduled": "DELETE FROM schedule WHERE page = 3",
    "schedule_host": "UPDATE schedule SET host = 1 WHERE page = 2",
    "segment": "UPDATE visit_segment SET visits = visits + 1",
    "orphan_row": "INSERT INTO fingerprint (page, data) VALUES (99, '')",
    "link_dangling": "INSERT INTO link (source, target, first_seen, last_seen) VALUES (1, 77, 1, 2)",
    "link_times": "UPDATE link SET last_seen = first_seen - 1 WHERE source = 2",
    "failing_wrong": ("INSERT INTO failing (page, since, time, failures, outcome, status) VALUES (1, 5, 6, 1, 7, -2)"),
    "lease_far": (
        f"INSERT INTO lease (page, host, worker, until) SELECT 1, host, 'w', {NOW + 9e5} FROM page WHERE id = 1",
        f"UPDATE host SET held_by = 'w', held_until = {NOW + 9e5} WHERE id = (SELECT host FROM page WHERE id = 1)",
    ),
    "lease_wrong": (
        f"INSERT INTO lease (page, host, worker, until) SELECT 1, host, 'w', {NOW + 60} FROM page WHERE id = 1"
    ),
    "hold_far": f"UPDATE host SET held_by = 'w', held_until = {NOW + 9e5} WHERE id = 3",
    "record_unindexed": "DELETE FROM capture WHERE page = 2 AND time = (SELECT max(time) FROM capture WHERE page = 2)",
}


@pytest.mark.parametrize("kind", REPAIRED)
def test_what_is_derived_is_found_and_repaired(maker, kind):
    maker.fill()
    before = snapshot(maker)
    done = REPAIRED[kind]
    run_sql(maker, *([done] if isinstance(done, str) else done))
    damaged = check(maker)
    assert kind in kinds(damaged)
    assert KINDS[kind].severity is Severity.WARNING
    told = check(maker, repair=True)
    assert kind not in kinds(told)
    assert [one.repaired for one in told.findings.all() if one.kind == kind] == [
        one.count for one in damaged.findings.all() if one.kind == kind
    ]
    assert kinds(check(maker)) <= {"lease_of_dead"}
    assert snapshot(maker) == before  # visits and bytes are as they were, and so is where they lie


def snapshot(maker):
    with open_store(maker.location) as store:
        visits, pages = store.visits(), store.pages().id
        captures = [(row.page, row.time, row.digest, row.warc_file, row.warc_offset) for row in store.captures(pages)]
    columns = [column.tolist() for column in visits.columns().values()]
    return columns, captures, [path.read_bytes() for path in maker.files]


LOST = {
    "capture_page_missing": "UPDATE capture SET page = 99 WHERE page = 4",
    "visit_page_missing": "UPDATE visit SET page = 99 WHERE page = 4",
    "capture_without_visit": "DELETE FROM visit WHERE page = 2",
    "visit_invalid": "UPDATE visit SET outcome = 99 WHERE page = 3",
    "page_host_missing": "UPDATE page SET host = 99 WHERE id = 1",
    "record_differs ": "UPDATE capture SET warc_length = warc_length + 1 WHERE page = 5",
    "record_missing": "UPDATE capture SET warc_offset = warc_offset + 1 WHERE page = 5",
    "record_differs": "UPDATE capture SET digest = (SELECT max(digest) FROM capture) WHERE page = 1 OR page = 2",
    "file_missing": "UPDATE capture SET warc_file = 'gone.warc.gz' WHERE page = 1",
    "site_capture_broken": (
        "INSERT INTO site_capture_step (capture, step, number, revisit, time, outcome, verdict) "
        "VALUES (1, 0, 7, 0, 1, 0, 0)"
    ),
}


@pytest.mark.parametrize("kind", LOST)
def test_what_is_lost_is_an_error_that_no_repair_hides(maker, kind):
    maker.fill()
    run_sql(maker, LOST[kind])
    kind = kind.strip()
    assert kind in kinds(check(maker, repair=True), Severity.ERROR)
    assert kind in kinds(check(maker), Severity.ERROR)


def test_a_full_segment_is_compared_with_its_pack(maker, monkeypatch):
    for module in (history, checks):
        monkeypatch.setattr(module, "SEGMENT_VISITS", 8)
    maker.fill()
    assert kinds(check(maker)) == set()
    run_sql(maker, "UPDATE visit SET verdict = 2 WHERE segment = 1 AND page = 1")
    assert kinds(check(maker)) == {"segment"}
    assert kinds(check(maker, repair=True)) == set()
    with open_store(maker.location) as store:
        assert (store.observations(np.array([1])).verdict == 2).any()  # what the rows say is what stands
    run_sql(maker, "DELETE FROM visit_segment WHERE id = 2")
    assert "segment" in kinds(check(maker))
    check(maker, repair=True)
    assert kinds(check(maker)) == set()


def test_pages_that_cannot_be_found_are_found_again(maker):
    maker.fill()
    with open_store(maker.location) as store:
        url = store.urls(np.array([1]))[0]
        store._database.write(
            lambda session: session.apply(session.statements.checks.set_key_hash, np.array([1]), [b"0123456789abcdef"])
        )
        assert store.find(url) is None
    found = check(maker, repair=True)
    assert [one.kind for one in found.findings.all()] == ["page_hash"]
    assert kinds(check(maker)) == set()
    with open_store(maker.location) as store:
        assert store.find(url).id == 1


def test_visits_ahead_of_the_clock_are_told_and_those_that_are_marked_noted(maker):
    maker.fill()
    early, horizon = NOW - 1e6, ClockHorizon(lease=1e9, ready=1e9)
    assert kinds(check(maker, now=early, horizon=horizon)) == {"visit_ahead"}
    with open_store(maker.location) as store:
        some = store.visits().take(slice(0, 4))
        store._database.write(lambda session: history.mark_misdated(session, some))
    found = check(maker)
    assert [(one.kind, one.count) for one in found.findings.all()] == [("visit_misdated", 4)]


# -- bytes ------------------------------------------------------------------------------------------


def test_every_flipped_byte_is_an_error(sqlite_maker):
    """Exhaustive over one capture in the middle of a file: whichever byte changes, it is noticed."""
    sqlite_maker.fill(pages=2, times=2)
    [path] = sqlite_maker.files
    whole = path.read_bytes()
    with open_store(sqlite_maker.location) as store:
        row = store.captures(np.array([1]))[0]
    unnoticed = []
    end = row.warc_offset + row.warc_length
    content = unpacked(whole[row.warc_offset : end])
    for place in range(row.warc_offset, end):
        damaged = whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :]
        if unpacked(damaged[row.warc_offset : end]) == content:
            continue  # the date in the head of gzip, and codes that mean the same: nothing is lost
        path.write_bytes(damaged)
        found = check(sqlite_maker, sample=99)
        if not kinds(found, Severity.ERROR):
            unnoticed.append(place - row.warc_offset)
        if place % 16 == 0 and not kinds(check(sqlite_maker), Severity.ERROR):
            unnoticed.append(place - row.warc_offset)
    assert unnoticed == []


def unpacked(member):
    try:
        return zlib.decompress(member, 31)
    except zlib.error:
        return None


def test_a_file_that_is_cut_or_gone_is_an_error(sqlite_maker):
    sqlite_maker.fill()
    [path] = sqlite_maker.files
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "record_missing" in kinds(check(sqlite_maker), Severity.ERROR)
    path.unlink()
    found = check(sqlite_maker)
    assert kinds(found, Severity.ERROR) == {"file_missing"}
    assert found.findings.all()[0].count == 18
    assert kinds(check(sqlite_maker, sample=5), Severity.ERROR) == {"file_missing"}


def test_files_of_another_workspace_with_the_same_store_are_read_there(maker, tmp_path):
    maker.fill()
    (tmp_path / "other").mkdir()
    [path] = maker.files
    path.rename(tmp_path / "other" / path.name)
    assert kinds(check(maker), Severity.ERROR) == {"file_missing"}
    found = check(maker, archives=(tmp_path / "other",))
    assert (found.findings.all(), found.captures) == ([], 18)
    assert check(maker, archives=(tmp_path / "other",), sample=3).findings.all() == []


def test_a_revisit_of_nothing_is_an_error(sqlite_maker):
    with open_store(sqlite_maker.location) as store, sqlite_maker.writer() as writer:
        [page] = store.discover(["http://a.example/"], NOW - 1e6)
        first = sqlite_maker.capture("http://a.example/", NOW - 500.0, b"same")
        ref = writer.write(first).ref._replace(time=NOW - 700.0)
        again = writer.write(sqlite_maker.capture("http://a.example/", NOW - 400.0, b"same"), revisit_of=ref)
        sqlite_maker.record(store, int(page), NOW - 400.0, again, "warc/revisit")
    assert kinds(check(sqlite_maker), Severity.ERROR) == {"revisit_dangling"}
    assert kinds(check(sqlite_maker, sample=1), Severity.ERROR) == {"revisit_dangling"}


def test_a_record_of_a_page_that_no_visit_made_is_a_warning(sqlite_maker):
    sqlite_maker.fill()
    with sqlite_maker.writer() as writer:
        writer.write(sqlite_maker.capture("http://h0.example/0", NOW - 77.0))
        writer.write(sqlite_maker.capture("http://h0.example/not-a-page", NOW - 77.0))
    found = check(sqlite_maker)
    assert kinds(found) == {"record_unknown"}
    assert found.findings.all()[0].count == 1


# -- beside a crawl ---------------------------------------------------------------------------------


def test_what_is_being_written_is_no_fault(maker):
    """Records that are not acknowledged yet, half a record behind them, and visits recorded while we look."""
    maker.fill()
    with open_store(maker.location) as store:
        writer = maker.writer()
        writer.hold()
        acknowledged = writer.write(maker.capture("http://h0.example/0", NOW - 50.0))
        maker.record(store, 1, NOW - 50.0, acknowledged)
        writer.write(maker.capture("http://h1.example/1", NOW - 40.0))
        with writer.path.with_name(writer.path.name + ".open").open("ab") as file:
            file.write(b"\x1f\x8b\x08half")
        found = check(maker)
        assert found.findings.all() == []
        assert found.captures == 19
        writer.abandon()
    left = check(maker)
    assert [one.kind for one in left.findings.all()] == ["file_left_open"]  # its writer is gone, nothing else is
    assert kinds(left) == set()


def test_a_visit_recorded_while_files_are_read_is_known(sqlite_maker):
    sqlite_maker.fill()
    later = []

    def tell(work, done, _whole):
        if work == "archive files" and not later:  # the captures of the store were read before
            with open_store(sqlite_maker.location) as store, sqlite_maker.writer() as writer:
                kept = writer.write(sqlite_maker.capture("http://h0.example/0", NOW - 30.0))
                sqlite_maker.record(store, 1, NOW - 30.0, kept)
            later.append(done)

    with open_store(sqlite_maker.location) as store:
        sqlite_maker.writer().close()  # a file that comes first, so that the other one is not listed yet
        found = verify(store, sqlite_maker.folder, NOW, CheckScope(), rng=np.random.default_rng(0), tell=tell)
    assert later
    assert kinds(found) == set()


def test_leases_of_the_dead_are_told_and_given_back(sqlite_maker):
    sqlite_maker.fill()
    with open_store(sqlite_maker.location) as store:
        store.reschedule(np.arange(1, 7), np.full(6, NOW - 1.0))
        with worker_lock(sqlite_maker.folder, "alive"):
            store.lease("alive", NOW, 1, ttl=300.0)
            assert kinds(check(sqlite_maker)) == set()
            store.lease("dead", NOW, 1, ttl=300.0)
            (sqlite_maker.folder / "workers" / "dead").touch()
            found = check(sqlite_maker)
            assert kinds(found) == {"lease_of_dead"}
            assert kinds(check(sqlite_maker, repair=True)) == set()
            assert store.held("dead").tolist() == []
            assert len(store.held("alive")) == 1
            assert check(sqlite_maker).findings.all() == []


def test_half_written_files_of_the_dead_are_told_and_removed(sqlite_maker):
    sqlite_maker.fill()
    theirs = sqlite_maker.folder / f".x.cdxj.0123abcd{PART}"
    theirs.touch()
    with unfinished_file(sqlite_maker.folder / "reports.csv") as mine:
        theirs.touch()  # who writes removes what is left, once
        assert [(one.kind, one.examples) for one in check(sqlite_maker).findings.all()] == [
            ("part_left", [theirs.name])
        ]
        check(sqlite_maker, repair=True)
        assert mine.exists()
        assert not theirs.exists()


# -- samples ----------------------------------------------------------------------------------------


def test_a_sample_says_how_far_it_speaks(sqlite_maker):
    sqlite_maker.fill(pages=20)
    found = check(sqlite_maker, sample=10)
    assert (found.sample.drawn, found.sample.captures, found.sample.wrong, found.captures) == (10, 60, 0, 10)
    assert found.sample.bound == pytest.approx(1 - 0.05 ** (1 / 10))
    everything = check(sqlite_maker, sample=99)
    assert (everything.sample.drawn, everything.sample.bound) == (60, 0.0)
    with open_store(sqlite_maker.location) as store:
        store._database.write(lambda session: session.run("UPDATE capture SET warc_offset = 3 WHERE page <= 10"))
    half = check(sqlite_maker, sample=30)
    assert 0 < half.sample.wrong < 30
    assert half.sample.wrong / 30 < half.sample.bound < 1.0


def test_every_capture_is_drawn_with_the_same_chance(sqlite_maker):
    sqlite_maker.fill(pages=4, times=2)
    rng = np.random.default_rng(4)
    seen = np.zeros(5, int)
    with open_store(sqlite_maker.location) as store:
        from recrawl.crawl.maintenance.archive_check import ArchiveCheck

        for _ in range(400):
            archive = ArchiveCheck(
                store, sqlite_maker.folder / "warc", lambda *_a, **_k: None, lambda *_t: None, now=NOW, repair=False
            )
            drawn, _ = archive._drawn(2, rng)
            for place in drawn:
                seen[place.page] += 1
    assert seen[1:].sum() == 800
    assert (np.abs(seen[1:] - 200) < 5 * np.sqrt(200)).all()


def test_the_bound_covers_the_truth_as_often_as_it_says():
    """Of many samples of an archive with 2 % wrong captures, at least 95 % have a bound above that."""
    rng = np.random.default_rng(5)
    wrong = rng.binomial(300, 0.02, 2_000)
    covered = np.mean([upper_bound(int(count), 300, 10**6) >= 0.02 for count in wrong])
    assert covered >= 0.95


# -- the command ------------------------------------------------------------------------------------


def test_a_damaged_database_is_an_error(sqlite_maker):
    sqlite_maker.fill(pages=60)
    path = sqlite_maker.folder / "recrawl.db"
    with open_store(sqlite_maker.location) as store:
        store._database.write(lambda session: session.run("CREATE INDEX extra ON capture (size)"))
        store._database._connection.execute("PRAGMA writable_schema = 1")
        store._database._connection.execute(
            "UPDATE sqlite_schema SET sql = 'CREATE INDEX extra ON capture (status)' WHERE name = 'extra'"
        )
    found = check(sqlite_maker)
    assert kinds(found) == {"index_damaged"}
    check(sqlite_maker, repair=True)
    assert kinds(check(sqlite_maker)) == set()
    with open_store(sqlite_maker.location) as store:
        [(root,)] = store._database._connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'claim'")
    data = bytearray(path.read_bytes())
    data[(root - 1) * 4096 + 3 : (root - 1) * 4096 + 5] = b"\x00\x07"  # seven cells where there is none
    path.write_bytes(data)
    assert "store_damaged" in kinds(check(sqlite_maker), Severity.ERROR)


def test_visits_recorded_twice_and_taken_back_are_no_fault(maker):
    ids = maker.fill()
    with open_store(maker.location) as store:
        visits = store.visits()
        store.record(Visits.of(visits.page[:3], visits.time[:3], outcome=Outcome.FETCHED))
        store.record(Visits.of(ids[:1], np.array([NOW - 3.0])))
        store.withdraw(ids[:1], np.array([NOW - 3.0]))
    assert check(maker).findings.all() == []


HEADS = {
    "first": b'HTTP/1.1 200 OK\r\nETag: "1"\r\nLast-Modified: Sun, 06 Nov 2022 08:49:37 GMT\r\n\r\n',
    "same": b'HTTP/1.1 200 OK\r\nETag: "2"\r\n\r\n',
    "not modified": b'HTTP/1.1 304 Not Modified\r\nETag: "3"\r\n\r\n',
}
RULES = b"User-agent: *\nDisallow: /private\n"


def visited_with_validators(maker, etag, last_modified=""):
    """A page with a response, a revisit of it and a 304, each with another ETag; the store has the one given."""
    with open_store(maker.location) as store, maker.writer() as writer:
        [page, other] = store.discover(["http://a.example/", "http://a.example/other"], NOW - 1e6).tolist()
        ref = None
        for number, (name, head) in enumerate(HEADS.items()):
            status, when = (304 if name == "not modified" else 200), NOW - 1e4 + number
            body = b"" if status == 304 else b"content"
            kept = writer.write(Capture("http://a.example/", when, status, head, body), revisit_of=ref)
            maker.record(store, page, when, kept, "text/html" if ref is None else REVISIT, size=len(body))
            ref = ref or kept.ref
        kept = writer.write(maker.capture("http://a.example/other", NOW - 9e3))
        maker.record(store, other, NOW - 9e3, kept)
        said = [Validators(etag, last_modified), Validators()]
        visits = Visits.of(np.array([page, other]), np.array([NOW - 9.0, NOW - 9.0]), outcome=Outcome.UNREACHABLE)
        store.record(visits, validators=said, due=np.full(2, NOW + 9.0))
        # rules that were read twice: the second time they were the same, and a revisit is kept
        for when in (NOW - 5e3, NOW - 4e3):
            kept = writer.write(Capture("http://a.example/robots.txt", when, 200, HEADS["same"], RULES), revisit_of=ref)
            ref = kept.ref
        read = "http://a.example/robots.txt"
        store.keep_robots_copies(
            [RobotsCopy("http://a.example", NOW - 3_999.0, NOW + 9.0, 200, "read", True, read, RULES)]
        )
    return page


@pytest.mark.parametrize("etag", ['"1"', '"2"', '"3"', ""])
def test_validators_that_an_archived_answer_said_are_right(maker, etag):
    visited_with_validators(maker, etag, "Sun, 06 Nov 2022 08:49:37 GMT" if etag else "")
    assert check(maker).findings.all() == []


@pytest.mark.parametrize(
    "said", [('"4"', ""), ('"1', ""), ("", "Sun, 06 Nov 2022 08:49:38 GMT"), ('"1"', "x")], ids=range(4)
)
def test_validators_that_nobody_said_are_found_and_forgotten(maker, said):
    page = visited_with_validators(maker, *said)
    before = snapshot(maker)
    found = check(maker)
    assert kinds(found) == {"validators_differ"}
    assert kinds(check(maker, repair=True)) == set()
    assert check(maker).findings.all() == []
    with open_store(maker.location) as store:
        [left] = store.validators(np.array([page]))
    assert (left.etag, left.last_modified) == ("", "")  # the next request brings the bytes, and new ones
    assert snapshot(maker) == before


def test_validators_of_a_page_whose_answers_cannot_all_be_read_are_not_judged(maker):
    visited_with_validators(maker, '"4"')
    run_sql(
        maker, "UPDATE capture SET warc_file = 'gone.warc.gz' WHERE page = 1 AND time = (SELECT min(time) FROM capture)"
    )
    assert "validators_differ" not in kinds(check(maker))


def test_a_copy_of_robots_txt_that_was_never_archived_so_is_found_and_read_again(maker):
    visited_with_validators(maker, "")
    with open_store(maker.location) as store:
        [(copy, _)] = store.robots_copies_after("", 9)
        store.keep_robots_copies([replace(copy, body=b"User-agent: *\nAllow: /\n")])
    assert kinds(check(maker)) == {"robots_differ"}
    assert kinds(check(maker, repair=True)) == set()
    with open_store(maker.location) as store:
        left = store.robots_copy("http://a.example")
        assert (left.expires, left.body, left.status) == (NOW, b"", 0)  # nothing is asked before it was read
        assert [one.origin for one in store.changed_robots_copies(NOW)] == ["http://a.example"]
    assert check(maker).findings.all() == []


def test_a_copy_of_robots_txt_that_cannot_be_unpacked_is_found_and_read_again(sqlite_maker):
    visited_with_validators(sqlite_maker, "")
    run_sql(sqlite_maker, "UPDATE robots SET body = x'00010203'")
    assert kinds(check(sqlite_maker)) == {"robots_differ"}
    assert kinds(check(sqlite_maker, repair=True)) == set()
    assert check(sqlite_maker).findings.all() == []


def test_a_copy_of_robots_txt_without_a_record_is_not_judged(maker):
    visited_with_validators(maker, "")
    with open_store(maker.location) as store:
        [(copy, _)] = store.robots_copies_after("", 9)
        store.keep_robots_copies([replace(copy, origin="http://b.example", url="http://b.example/robots.txt")])
    assert check(maker).findings.all() == []


def test_a_copy_of_robots_txt_that_is_newer_than_what_is_read_is_not_judged(sqlite_maker):
    """A crawl is reading rules while we read files: their record is not there yet, or not known to be whole."""
    visited_with_validators(sqlite_maker, "")
    with open_store(sqlite_maker.location) as store:
        [(copy, _)] = store.robots_copies_after("", 9)
        for late in (NOW + 5.0, NOW - 3_000.0):  # since the check began, and long after any record
            store.keep_robots_copies([replace(copy, body=b"other", fetched_at=late, expires=late + 9.0)])
            assert check(sqlite_maker).findings.all() == []
