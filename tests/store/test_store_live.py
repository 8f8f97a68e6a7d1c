import threading

import numpy as np
import pytest

from recrawl.detect.noise.learned_noise import NoiseEvidence
from recrawl.model import NoiseCounts, Outcome, Verdict, Visits
from recrawl.model.visits import OUR_FAULT
from recrawl.store.store_values import LearnedFacts, ValidatorCounts


@pytest.fixture
def pages(store):
    return store.discover([f"http://{host}.example/{n}" for host in "ab" for n in range(3)], 0.0)


def counts(rows):
    return NoiseCounts(*np.array(rows, np.int64).reshape(-1, 13).T)


def as_rows(noise):
    return [tuple(row) for row in np.stack([getattr(noise, name) for name in NoiseCounts.__slots__], 1).tolist()]


def test_a_fingerprint_stays_until_another_is_told(store, pages):
    store.record(Visits.of(pages[:3], 1.0), learned_facts=LearnedFacts([b"one", b"", b"three\0"]))
    assert store.fingerprints(pages[:3]) == [b"one", b"", b"three\0"]
    store.record(Visits.of(pages[:3], 2.0), learned_facts=LearnedFacts([b"", b"two", b"3"]))
    assert store.fingerprints(pages[[2, 1, 0, 0, 3]]) == [b"3", b"two", b"one", b"one", b""]
    assert store.fingerprints(pages[:0]) == []


def test_of_two_visits_in_a_batch_the_later_tells_the_fingerprint(store, pages):
    store.record(Visits.of(pages[[0, 0]], [1.0, 2.0]), learned_facts=LearnedFacts([b"old", b"new"]))
    assert store.fingerprints(pages[:1]) == [b"new"]


def test_noise_adds_up_over_parts_and_batches(store, pages):
    visit = Visits.of(pages[:1], 1.0)
    part = 2**40
    one, other = (1, 0, part, 1, 0, 1, 1, 2, 1, 0, 4, 1, 0), (1, 0, 7, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1)
    store.record(visit, learned_facts=LearnedFacts(noise=counts([one, other, (1, 3, 7, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1)])))
    again = [(1, 0, 7, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0), (2, 0, 7, 0, 0, 0, 0, 1, 1, 0, 0, 2**61, 0)]
    store.record(visit, learned_facts=LearnedFacts(noise=counts(again)))
    twice = [(1, 0, 7, 1, 1, 1, 0, 0, 0, 2, 0, 0, 8), (1, 0, 7, 3, 0, 2, 2, 0, 0, 0, 8, 0, 0)]
    store.record(visit, learned_facts=LearnedFacts(noise=counts(twice)))
    store.record(visit, learned_facts=LearnedFacts(noise=counts([])))
    expected = [
        (1, 0, 7, 6, 2, 4, 2, 0, 0, 3, 9, 0, 9),
        one,
        (1, 3, 7, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1),
        (2, 0, 7, 0, 0, 0, 0, 1, 1, 0, 0, 2**61, 0),
    ]
    assert as_rows(store.noise()) == expected
    assert as_rows(store.noise(np.array([2]))) == expected[3:]
    assert as_rows(store.noise(np.empty(0, np.int64))) == []


def test_old_evidence_on_noise_fades_as_it_does_in_memory(store, pages):
    """What workers add up by themselves between two readings is what the store makes of it."""
    visit, kept = Visits.of(pages[:1], 1.0), NoiseEvidence.empty()
    chance = np.random.default_rng(5)
    for number in range(120):
        differed = chance.random() < (0.9 if number < 40 else 0.1)
        near = number % 3 != 0
        bit = 1 << int(chance.integers(62))
        tested = near and (differed or number % 2 == 0)
        row = (1, 0, 7, near, near and differed, tested, tested and not differed, not near, not near and differed)
        sets = (bit * (near and differed), bit * (near and not differed), bit * (not near and differed))
        more = NoiseEvidence.counted(counts([(*row, *sets, sets[0])]))
        store.record(visit, learned_facts=LearnedFacts(noise=more))
        kept = kept.plus(more)
        assert as_rows(store.noise()) == as_rows(kept)
    assert kept.near[0] <= 24


def test_evidence_on_noise_can_be_forgotten(store, pages):
    rows = [
        (host, page, part, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1) for host in (1, 2) for page in (0, 1, 2) for part in (5, 6)
    ]
    store.record(Visits.of(pages[:1], 1.0), learned_facts=LearnedFacts(noise=counts(rows)))
    store.trim_noise(1, np.array([5]), np.array([2]))
    assert [row[:3] for row in as_rows(store.noise(np.array([1])))] == [(1, 0, 6), (1, 1, 5), (1, 1, 6)]
    store.trim_noise(1, np.empty(0, np.int64), np.empty(0, np.int64))
    assert store.drop_noise(np.array([1])) == 3
    assert store.drop_noise(np.empty(0, np.int64)) == 0
    assert len(store.noise()) == 6


def test_the_conduct_of_hosts_adds_up(store, pages):
    validator_trust = ValidatorCounts(
        np.array([2, 1, 2]), np.array([1, 1, 1]), np.array([0, 1, 1]), np.array([0, 0, 1])
    )
    for time in (1.0, 2.0):
        store.record(Visits.of(pages[:1], time), learned_facts=LearnedFacts(validator_trust=validator_trust))
    hosts = store.hosts()
    assert (hosts.checks.tolist(), hosts.lies.tolist(), hosts.restless.tolist()) == ([2, 4], [2, 2], [0, 2])


def test_a_refused_batch_teaches_nothing(store, pages):
    with pytest.raises(ValueError, match="no finite time"):
        store.record(Visits.of(pages[:1], np.nan), learned_facts=LearnedFacts([b"x"]))
    with pytest.raises(ValueError, match="zip"):
        store.record(Visits.of(pages[:1], 1.0), learned_facts=LearnedFacts([b"x", b"y"]))
    assert store.fingerprints(pages[:1]) == [b""]
    assert len(store.visits()) == 0


def test_nothing_of_a_paused_host_is_leased(store, pages):
    hosts = store.pages(pages).host
    store.pause(np.unique(hosts[:1]))
    assert store.hosts().paused.tolist() == [True, False]
    assert store.lease("w", 1.0, 9, per_host=9, ttl=60).page.tolist() == pages[3:].tolist()
    store.acknowledge("w")
    store.pause(np.unique(hosts))
    assert len(store.lease("w", 1.0, 9, ttl=60)) == 0
    assert store.next_due() == np.inf
    store.resume(np.unique(hosts[:1]))
    assert store.next_due() == 0.0
    assert store.lease("w", 1.0, 9, per_host=9, ttl=60).page.tolist() == pages[:3].tolist()


def test_a_pause_leaves_the_leases_that_there_are(store, pages):
    leased = store.lease("w", 1.0, 1, ttl=60)
    store.pause(leased.host)
    store.record(Visits.of(leased.page, 2.0), worker="w", due=np.array([9.0]))
    assert len(store.visits()) == 1
    assert store.counts(0.0).leased == 0


def test_pages_that_fail_are_listed_until_they_answer(store, pages):
    def visit(page, time, outcome, status=0, worker="w"):
        store.acknowledge("w")
        store.lease("w", 1e9, 9, per_host=9, ttl=60.0)
        store.record(Visits.of(pages[[page]], time, outcome=outcome, status=status), worker=worker)

    visit(0, 1.0, Outcome.SERVER_ERROR, 500)
    visit(0, 2.0, Outcome.UNREACHABLE, -2)
    visit(3, 3.0, Outcome.REJECTED, 403)
    visit(4, 4.0, Outcome.GONE, 404)
    visit(5, 5.0, Outcome.SERVER_ERROR, worker=None)  # not of our own
    failing = store.failing(9)
    assert failing.page.tolist() == pages[[3, 0]].tolist()
    assert failing.failures.tolist() == [1, 2]
    assert failing.since.tolist() == [3.0, 1.0]
    assert failing.time.tolist() == [3.0, 2.0]
    assert failing.outcome.tolist() == [Outcome.REJECTED, Outcome.UNREACHABLE]
    assert failing.status.tolist() == [403, -2]
    assert store.failing(1).page.tolist() == pages[[3]].tolist()
    assert store.failing(9, host=int(store.pages(pages).host[0])).page.tolist() == pages[[0]].tolist()
    visit(0, 6.0, Outcome.NOT_MODIFIED, 304)
    assert store.failing(9).page.tolist() == pages[[3]].tolist()


def test_a_failure_recorded_twice_counts_once(store, pages):
    store.lease("w", 1e9, 9, per_host=9, ttl=60.0)
    for _ in range(2):
        store.record(Visits.of(pages[:1], 1.0, outcome=Outcome.UNREACHABLE), worker="w")
    assert store.failing(9).failures.tolist() == [1]


def test_pages_have_access_methods_of_their_own(store, pages):
    assert store.sources(pages) == {}
    store.set_source(pages[[0, 1, 1]], "sparql", '{"query": "ASK {}"}')
    store.set_source(pages[:1], "rdf")
    assert store.sources(pages) == {int(pages[0]): ("rdf", "{}"), int(pages[1]): ("sparql", '{"query": "ASK {}"}')}
    assert store.sources(pages[2:]) == {}
    assert store.sources() == store.sources(pages)
    store.set_source(pages[:2], "")
    assert store.sources(pages) == {}
    store.set_source(pages[:0], "rdf")
    with pytest.raises(ValueError, match="page ids run"):
        store.set_source(np.array([99]), "rdf")


def test_controls_are_told_and_taken_back(store):
    assert store.controls() == {}
    assert store.controls_changed() == -np.inf
    store.set_control("paused", "1", 5.0)
    store.set_control("schedule.budget", "10", 6.0)
    store.set_control("schedule.budget", "20", 7.0)
    assert store.controls() == {"paused": "1", "schedule.budget": "20"}
    store.set_control("paused", None, 8.0)
    assert store.controls() == {"schedule.budget": "20"}
    assert store.controls_changed() == 8.0


def test_a_page_that_breaks_our_code_twice_is_quarantined_until_a_visit_goes_well(store):
    pages = store.discover(["http://a.example/1", "http://a.example/2"], 0.0)

    def visit(time, outcome, status, reasons=None):
        store.lease("w", time, 9, per_host=9, ttl=60.0)
        both = Visits.of(pages, np.full(2, time), outcome=outcome, status=status)
        store.record(both, worker="w", due=np.full(2, time), reasons=reasons)

    visit(1.0, Outcome.UNREACHABLE, -2)
    visit(2.0, [Outcome.UNREACHABLE] * 2, [OUR_FAULT, -2], ["links: ValueError()", ""])
    assert store.quarantined() == 0
    visit(3.0, [Outcome.UNREACHABLE] * 2, [OUR_FAULT, OUR_FAULT], ["dates: KeyError()", "dates: KeyError()"])
    failing = store.failing(9)
    assert dict(zip(failing.page.tolist(), failing.faults.tolist(), strict=True)) == {
        int(pages[0]): 2,
        int(pages[1]): 1,
    }
    assert list(failing.reason) == ["dates: KeyError()"] * 2
    assert store.quarantined() == 1
    visit(4.0, Outcome.FETCHED, 200)
    assert store.quarantined() == 0
    assert not len(store.failing(9))


def test_a_thread_reads_visits_while_others_use_the_store(store, pages):
    """It takes seconds where there are millions, and the event loop would wait for the lock."""
    store.record(Visits.of(pages, np.full(len(pages), 100.0), outcome=Outcome.FETCHED, verdict=Verdict.UNCHANGED))
    found = []

    def work(_session):
        reader = threading.Thread(target=lambda: found.append(store.observations(since=0.0, beside=True)), daemon=True)
        reader.start()
        reader.join(60)

    store._database.read(work)
    assert [len(visits) for visits in found] == [len(pages)]
