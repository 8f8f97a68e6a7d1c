import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recrawl.model import UNCOUNTED, ChangeKind, Histories, Outcome, Verdict, Visit, Visits
from recrawl.store import CaptureRecord, history, open_store
from recrawl.store.store_values import ImportMark


def same(one, other):
    names = one.columns() if isinstance(one, Visits) else Histories.__slots__
    for name in names:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.fixture
def small_segments(monkeypatch):
    """Segments that fill after a handful of visits, so that few visits go through all that many would."""
    monkeypatch.setattr(history, "SEGMENT_VISITS", 7)


def some_visits(rng, pages, count, start=0.0):
    return Visits.of(
        rng.choice(pages, count),
        start + rng.permutation(count) * 1.25,
        outcome=rng.integers(0, 8, count),
        verdict=rng.integers(0, 3, count),
        kinds=rng.integers(0, 128, count),
        status=rng.integers(-5000, 600, count),
        size=rng.integers(0, 2**40, count),
        cost=rng.random(count),
        new_internal=rng.integers(-1, 9, count),
        new_external=rng.integers(-1, 9, count),
        added_internal=rng.integers(-1, 9, count),
        added_external=rng.integers(-1, 2**31 - 1, count),
        magnitude=rng.random(count),
    )


def test_visits_come_back_as_they_were_recorded(store):
    rng = np.random.default_rng(1)
    pages = store.discover([f"http://a.example/{n}" for n in range(20)], 0.0)
    visits = some_visits(rng, pages, 200)
    for start in range(0, 200, 64):
        store.record(visits.take(slice(start, start + 64)))
    same(store.visits(), visits.sorted())
    assert store.counts(0.0).visits == len(visits)


def test_recording_nothing(store):
    store.record(Visits.empty(), due=np.empty(0), validators=[], worker="w", host_ready=np.empty(0))
    assert len(store.visits()) == 0
    assert len(store.histories()) == 0
    assert store.counts(0.0).visits == 0


def test_the_same_visit_recorded_twice_is_one_visit(store, small_segments):
    pages = store.discover(["http://a.example/1", "http://a.example/2"], 0.0)
    visits = Visits.of(np.repeat(pages, 10), np.tile(np.arange(10.0), 2), verdict=1)
    store.record(visits)
    store.record(visits)
    store.record(Visits.of(pages[[0, 0]], [3.0, 3.0], verdict=[1, 1]))
    same(store.visits(), visits)
    assert store.histories(pages=pages).counts().tolist() == [9, 9]


def test_a_batch_fills_several_segments(store, small_segments):
    pages = store.discover([f"http://a.example/{n}" for n in range(9)], 0.0)
    visits = some_visits(np.random.default_rng(3), pages, 40)
    store.record(visits)
    same(store.visits(), visits.sorted())
    counts = store.counts(0.0)
    assert counts.visits == 40
    assert counts.changed == np.count_nonzero(visits.verdict == Verdict.CHANGED)
    assert counts.failed == np.count_nonzero(visits.outcome > Outcome.GONE)


def test_a_visit_of_a_page_nobody_knows_is_refused_whole(store):
    pages = store.discover(["http://a.example/1"], 0.0)
    for wrong in (0, 2, -1):
        with pytest.raises(ValueError, match="page ids"):
            store.record(Visits.of([pages[0], wrong], [1.0, 1.0]))
    assert len(store.visits()) == 0


def test_columns_that_do_not_fit_are_refused_whole(store):
    pages = store.discover(["http://a.example/1", "http://a.example/2"], 0.0)
    visits = Visits.of(pages, [1.0, 2.0])
    for wrong in ({"due": np.zeros(1)}, {"host_ready": np.zeros(3)}, {"validators": [None]}):
        with pytest.raises(ValueError, match="entries for 2 visits"):
            store.record(visits, **wrong)
    with pytest.raises(ValueError, match="not a number"):
        store.record(visits, due=np.array([1.0, np.nan]))
    for time in (np.nan, np.inf):
        with pytest.raises(ValueError, match="finite time"):
            store.record(Visits.of(pages, [1.0, time]))
    assert len(store.visits()) == 0


when = st.integers(0, 30).map(float)
observations = st.fixed_dictionaries(
    {
        "outcome": st.sampled_from(list(Outcome)),
        "verdict": st.sampled_from(list(Verdict)),
        "kinds": st.integers(0, 127).map(ChangeKind),
        "new_internal": st.integers(UNCOUNTED, 1),
    }
)


@st.composite
def batches_of_visits(draw):
    """Batches, in which the same visit may come again, in the same batch or later."""
    known = draw(st.dictionaries(st.tuples(st.integers(1, 6), when), observations, min_size=1, max_size=40))
    visits = [Visit(page, time, **observation) for (page, time), observation in known.items()]
    batches = draw(st.lists(st.lists(st.sampled_from(visits), max_size=20), max_size=4))
    return [Visits.from_rows(batch) for batch in batches]


selections = st.fixed_dictionaries(
    {
        "pages": st.none() | st.sets(st.integers(1, 7), max_size=4).map(lambda ids: np.array(sorted(ids), np.int64)),
        "host": st.none() | st.integers(1, 3),
        "since": st.none() | when,
        "until": st.none() | when,
    }
)


def selected(visits, selection):
    keep = np.ones(len(visits), bool)
    if selection["pages"] is not None:
        keep &= np.isin(visits.page, selection["pages"])
    if selection["host"] is not None:
        keep &= (visits.page - 1) % 2 == selection["host"] - 1
    if selection["since"] is not None:
        keep &= visits.time >= selection["since"]
    if selection["until"] is not None:
        keep &= visits.time <= selection["until"]
    return visits.take(keep)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=batches_of_visits(),
    selection=selections,
    kind=st.none() | st.sampled_from([ChangeKind.TEXT, ChangeKind.LINKS]),
)
def test_what_is_read_is_what_was_recorded(new_location, small_segments, batches, selection, kind):
    with open_store(new_location(), durable=False) as store:
        store.discover([f"http://h{n % 2}.example/{n}" for n in range(6)], 0.0)
        for batch in batches:
            store.record(batch)
        expected = selected(Visits.concatenate(batches), selection)
        same(store.histories(**selection, kind=kind), Histories.from_visits(expected, kind))
        found = store.visits(**selection)
        once = dict.fromkeys(zip(*(column.tolist() for column in expected.sorted().columns().values()), strict=True))
        assert list(zip(*(column.tolist() for column in found.columns().values()), strict=True)) == list(once)


def test_few_pages_among_many_visits(store, monkeypatch):
    """Few pages are looked up by key, many are read from the packs: the answer is the same."""
    monkeypatch.setattr(history, "SEGMENT_VISITS", 500)
    rng = np.random.default_rng(7)
    pages = store.discover([f"http://h{n % 5}.example/{n}" for n in range(50)], 0.0)
    visits = some_visits(rng, pages, 3_000)
    store.record(visits)
    for chosen in (pages[:1], pages[[3, 17]], pages[5:45]):
        expected = visits.take(np.isin(visits.page, chosen))
        assert 0 < len(expected) < len(visits)
        same(store.visits(pages=chosen), expected.sorted())
        same(store.histories(pages=chosen), Histories.from_visits(expected))


def test_a_full_segment_is_packed_and_its_rows_stay(store, small_segments):
    pages = store.discover(["http://a.example/1"], 0.0)
    store.record(Visits.of(np.repeat(pages, 16), np.arange(16.0), verdict=2))
    [(count, visits)] = store._database.read(lambda session: session.rows(session.statements.segments))
    assert (count, visits) == (3, 16)
    packs = store._database.read(lambda session: session.rows(session.statements.packs_between, -np.inf, np.inf, 0, 10))
    assert [history.unpack(pack)["time"].tolist() for _, pack in packs] == [
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        [7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0],
    ]
    assert store.visits().time.tolist() == list(range(16))


def test_captures_are_kept_once(store):
    pages = store.discover(["http://a.example/1", "http://a.example/2"], 0.0)
    made = [
        CaptureRecord(int(pages[1]), 5.0, 200, "text/html", b"d" * 20, 1234, "a.warc.gz", 0, 456),
        CaptureRecord(int(pages[0]), 6.0, 404, "", b"", 0, "a.warc.gz", 456, 2**40),
    ]
    store.record(Visits.of(pages[::-1], [5.0, 6.0]), captures=made)
    store.record(Visits.of(pages[::-1], [5.0, 6.0]), captures=made)
    assert store.captures(pages) == made[::-1]
    assert store.captures(pages[1:]) == made[:1]
    assert store.captures(np.empty(0, np.int64)) == []
    assert store.counts(0.0).captures == 2


def test_links_keep_the_first_and_the_last_time_they_were_seen(store):
    store.discover([f"http://a.example/{n}" for n in range(4)], 0.0)
    store.record_links(np.array([2, 1, 1, 1]), np.array([1, 3, 2, 3]), np.array([5.0, 9.0, 4.0, 7.0]))
    store.record_links(np.array([1, 1, 1]), np.array([2, 3, 4]), np.array([20.0, 8.0, 20.0]))
    store.record_links(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    links = store.outlinks(np.array([1]))
    assert links.target.tolist() == [2, 3, 4]
    assert links.first_seen.tolist() == [4.0, 7.0, 20.0]
    assert links.last_seen.tolist() == [20.0, 9.0, 20.0]
    assert store.outlinks(np.array([2, 1])).source.tolist() == [1, 1, 1, 2]
    assert len(store.outlinks(np.array([4]))) == 0
    assert len(store.outlinks(np.empty(0, np.int64))) == 0
    assert store.counts(0.0).links == 4


def test_a_policy_finds_its_state_again(store):
    assert store.load_state("price") is None
    store.save_state("price", b"\x00\x01", 1.0)
    store.save_state("price", b"new", 2.0)
    store.save_state("other", b"", 2.0)
    assert store.load_state("price") == b"new"
    assert store.load_state("other") == b""


def test_visits_before_a_time_are_counted(store, small_segments):
    pages = store.discover([f"http://a.example/{n}" for n in range(30)], 0.0)

    def counted(time):
        found = store.count_before(time)
        return found.visits, found.changed, found.failed

    assert counted(5.0) == (0, 0, 0)
    for time in (1.0, 2.0, 3.0):
        store.record(Visits.of(pages, time, verdict=Verdict.CHANGED if time < 3.0 else Verdict.UNCHANGED))
    store.record(Visits.of(pages[:4], 4.0, outcome=Outcome.UNREACHABLE))
    assert [counted(time) for time in (1.0, 1.5, 3.0, 3.5, 9.0)] == [
        (0, 0, 0),
        (30, 30, 0),
        (60, 60, 0),
        (90, 60, 0),
        (94, 60, 4),
    ]
    before = counted(3.5)
    store.record(Visits.of(pages, 7.0))
    assert counted(3.5) == before
    store.withdraw(pages[:1], np.full(1, 2.0))
    assert counted(1.5) == (30, 30, 0)
    assert counted(3.5) != before


@pytest.mark.parametrize("between", [0, 40])
def test_a_visit_judged_again_is_read_as_judged_last(store, small_segments, between):
    """In the open segment and in a full one; by seeking a page and by scanning all."""
    pages = store.discover([f"http://a.example/{n}" for n in range(9)], 0.0)
    store.record(Visits.of(pages[[0, 0, 0]], [1.0, 2.0, 3.0], verdict=[0, 2, 2]))
    if between:
        store.record(some_visits(np.random.default_rng(5), pages[1:], between))
    store.record(Visits.of(pages[[0, 0]], [3.0, 2.0], verdict=[1, 1], size=[33, 22]))
    for visits in (store.visits(pages=pages[:1]), store.visits().take(store.visits().page == pages[0])):
        assert visits.verdict.tolist() == [0, 1, 1]
        assert visits.size.tolist() == [0, 22, 33]
    for histories in (store.histories(pages=pages[:1]), store.histories().take(slice(0, 1))):
        assert histories.changed.tolist() == [False, False]


def test_a_visit_that_was_taken_back_is_seen_by_nobody(store, small_segments):
    pages = store.discover([f"http://a.example/{n}" for n in range(30)], 0.0)
    for time in (1.0, 2.0, 3.0):
        store.record(Visits.of(pages, time, verdict=Verdict.CHANGED))
    store.set_import_mark(ImportMark("x", "1"))  # an import may have judged again, so each visit is counted
    store.withdraw(pages[:10], np.full(10, 2.0))
    assert len(store.visits()) == 80
    assert store.visits(pages=pages[:1]).time.tolist() == [1.0, 3.0]
    assert store.histories().counts().tolist() == [1] * 10 + [2] * 20
    counts = store.counts(0.0)
    assert (counts.visits, counts.changed, counts.failed) == (80, 80, 0)
    assert len(store.latest_visits(200)) == 80
    store.record(Visits.of(pages[:1], 2.0))
    assert store.visits(pages=pages[:1]).time.tolist() == [1.0, 2.0, 3.0]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=15)
@given(
    batches=st.lists(
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30), st.booleans()), min_size=1, max_size=12), max_size=8
    ),
    limit=st.integers(1, 40),
)
def test_the_latest_visits_are_the_latest_of_all(new_location, small_segments, batches, limit):
    with open_store(new_location()) as store:
        pages = store.discover([f"http://{'ab'[n % 2]}.example/{n}" for n in range(6)], 0.0)
        for batch in batches:
            page, time, back = (np.array(column) for column in zip(*batch, strict=True))
            store.record(Visits.of(pages[page], time.astype(float)))
            store.withdraw(pages[page[back]], time[back].astype(float))
        host = int(store.pages(pages[:1]).host[0])
        for of in (None, host):
            every = store.visits(host=of)
            order = np.lexsort((every.page, -every.time))[:limit]
            found = store.latest_visits(limit, host=of)
            assert found.page.tolist() == every.page[order].tolist()
            assert found.time.tolist() == every.time[order].tolist()


def test_looks_at_few_pages_are_those_among_all_visits_as_segments_fill(store, small_segments):
    """Of full segments it is remembered which pages they have: nothing may be missing, before and after they fill."""
    rng = np.random.default_rng(5)
    ids = store.discover([f"http://few.example/{number}" for number in range(9)], 0.0)
    for batch in range(12):
        some = np.sort(rng.choice(ids[max(0, batch - 4) : batch + 2], 5)) if batch % 2 else rng.choice(ids, 4)
        times = rng.integers(0, 30, len(some)).astype(np.float64)
        store.record(Visits.of(some, times, verdict=rng.integers(0, 3, len(some)), kinds=2))
        if batch == 7:
            store.withdraw(some[:1], times[:1])
        for wanted in (ids[:1], ids[3:5], ids[[8, 0]], ids):
            found, whole = store.observations(wanted), store.visits(pages=wanted)
            for name in ("page", "time", "outcome", "verdict", "kinds"):
                assert getattr(found, name).tolist() == getattr(whole, name).tolist(), (batch, name)
    assert len(store.observations(np.empty(0, np.int64))) == 0
