"""What a crawl makes of answers: learned noise, second looks, and servers that lie. A real store, answers by hand."""

import asyncio
import io
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import recrawl.crawl.visit.change_classifier
import recrawl.parse.parse_pool
from recrawl.crawl.control.json_log import JsonLinesLog
from recrawl.crawl.visit.change_classifier import ChangeClassifier, ClassifierRules
from recrawl.crawl.visit.recorder import recall
from recrawl.crawl.visit.visit_machine import NeedsConfirmation, VisitDone, VisitTarget, last_version, unconfirmed_visit
from recrawl.detect.change_criteria import ChangeCriteria
from recrawl.detect.noise.learned_noise import NoiseEvidence
from recrawl.model import Capture, Outcome, Verdict, Visits
from recrawl.parse.parse_pool import warm_up
from recrawl.store.open import open_store
from recrawl.time import HOUR, VirtualClock

URLS = [f"http://a.example/{n}" for n in range(60)]
TEXT = "The mill by the river turns as it has turned for as long as anybody here can remember."


@pytest.fixture
def store(tmp_path, empty_store):
    path = tmp_path / "store.db"
    path.write_bytes(empty_store.read_bytes())
    with open_store(path, durable=False) as opened:
        opened.discover(URLS, 0.0)
        yield opened


@pytest.fixture
def events():
    return io.StringIO()


@pytest.fixture
def classifier(store, events):
    return ChangeClassifier(store, ClassifierRules(check_share=0.0), JsonLinesLog(events, VirtualClock(0.0)))


def answer(page, time, *, text=TEXT, readers="", etag="", status=200):  # noqa: PLR0913 - what differs between answers
    """A page with a paragraph and, somewhere else, how many have read it."""
    counter = f"<div class='box'><p>{readers} of us were here.</p></div>" if readers else ""
    body = f"<html><body><main><h1>Page {page}</h1><p>{text}</p></main>{counter}</body></html>".encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: text/html\r\n{f'ETag: {etag}' if etag else 'X: y'}\r\n\r\n"
    return Capture(URLS[page], time, status, head.encode(), body)


class Crawl:
    """Visits pages and records them, as the driver does; time passes as told."""

    def __init__(self, store, classifier):
        self.store, self.classifier = store, classifier

    def target(self, page, due=0.0):
        one = np.array([page + 1])
        [known] = recall(self.store, one, self.store.validators(one))
        return VisitTarget(page + 1, 1, URLS[page], due, known)

    def see(self, capture, page, **how):
        """One look; recorded unless a second one is wanted."""
        self.classifier.prepare(np.array([1]), capture.time)
        result = asyncio.run(self.classifier.classify(self.target(page), capture, **{"conditional": False, **how}))
        return self.record(result) if isinstance(result, VisitDone) else result

    def again(self, seen, capture):
        """The second look."""
        return self.record(asyncio.run(self.classifier.classify(seen.target, capture, conditional=False)))

    def record(self, visited):
        batch = [visited.first, visited] if visited.first else [visited]
        learned_facts = self.classifier.learned_facts(batch)
        self.store.record(
            Visits.from_rows(observation.visit for observation in batch),
            validators=[last_version(observation) for observation in batch],
            learned_facts=learned_facts,
        )
        self.classifier.learn(learned_facts)
        return visited

    def classify_confirmed(self, page, time, **how):
        """A page whose counter is another each time, seen and seen again."""
        seen = self.see(answer(page, time, readers="41", **how), page)
        assert isinstance(seen, NeedsConfirmation)
        return self.again(seen, answer(page, time + 5.0, readers="77", **how))


@pytest.fixture
def crawl(store, classifier):
    return Crawl(store, classifier)


def words(verdicts):
    return [Verdict(verdict).name for verdict in verdicts]


def test_what_both_looks_show_is_a_change(crawl, store):
    crawl.see(answer(0, 0.0), 0)
    seen = crawl.see(answer(0, HOUR, text="The mill stands still."), 0)
    assert isinstance(seen, NeedsConfirmation)
    assert len(store.visits()) == 1  # nothing is called a change before the second look
    crawl.again(seen, answer(0, HOUR + 5.0, text="The mill stands still."))
    visits = store.visits()
    assert visits.time.tolist() == [0.0, HOUR, HOUR + 5.0]
    assert words(visits.verdict) == ["UNKNOWN", "CHANGED", "UNKNOWN"]
    assert visits.magnitude[1] > 0.2
    assert visits.magnitude[[0, 2]].tolist() == [-1.0, -1.0]
    assert store.histories().gaps.tolist() == [HOUR]


def test_what_differs_between_the_looks_is_none(crawl, store):
    crawl.see(answer(0, 0.0, readers="12"), 0)
    crawl.classify_confirmed(0, HOUR)
    assert words(store.visits().verdict) == ["UNKNOWN", "UNCHANGED", "UNKNOWN"]


def test_a_change_beside_noise_is_still_found(crawl, store):
    crawl.see(answer(0, 0.0, readers="12"), 0)
    crawl.classify_confirmed(0, HOUR, text="The mill stands still.")
    assert words(store.visits().verdict) == ["UNKNOWN", "CHANGED", "UNKNOWN"]


def test_noise_is_learned_for_all_pages_of_the_host(crawl, store):
    for page in range(12):
        crawl.see(answer(page, float(page), readers="12"), page)
    observations = 0
    for page in range(12):
        time = HOUR * (page + 1)
        visited = crawl.see(answer(page, time, readers="41"), page)
        if isinstance(visited, NeedsConfirmation):
            observations += 1
            visited = crawl.again(visited, answer(page, time + 5.0, readers="77")).first
        assert visited.visit.verdict == Verdict.UNCHANGED
    assert 4 <= observations <= 8  # four to learn it, and audits
    changed = crawl.see(answer(3, 50 * HOUR, readers="90", text="The mill stands still."), 3)
    if isinstance(changed, NeedsConfirmation):
        changed = crawl.again(changed, answer(3, 50 * HOUR + 5, readers="91", text="The mill stands still.")).first
    assert changed.visit.verdict == Verdict.CHANGED


def test_another_worker_learns_it_too(crawl, store):
    """Counts are added up in the store, and read again after a few minutes."""
    other = Crawl(store, ChangeClassifier(store, ClassifierRules(check_share=0.0)))
    for page in range(8):
        crawl.see(answer(page, float(page), readers="12"), page)
    for page in range(4):
        now = HOUR + 60.0 * page
        if isinstance(seen := crawl.see(answer(page, now, readers="41"), page), NeedsConfirmation):
            crawl.again(seen, answer(page, now + 5.0, readers="77"))
    found = other.see(answer(7, 2 * HOUR, readers="55"), 7)
    if isinstance(found, NeedsConfirmation):  # an audit
        assert found.target.seen.judgement.verdict == Verdict.UNCHANGED
        found = other.again(found, answer(7, 2 * HOUR + 5.0, readers="56")).first
    assert found.visit.verdict == Verdict.UNCHANGED


def test_a_known_host_is_not_asked_about_again_and_again(crawl, store):
    crawl.see(answer(0, 0.0, readers="12"), 0)
    crawl.classifier.prepare(np.array([1]), 0.0)
    asked = []
    crawl.classifier._store = watched(store, asked)
    for now in (1.0, 299.0, 300.0, 301.0):
        crawl.classifier.prepare(np.array([1, 1]), now)
    assert len(asked) == 1


@pytest.mark.parametrize("limit", ["_MOST_HOSTS", "_MOST_PARTS_OF_ALL"])
def test_hosts_that_take_too_much_memory_are_read_again_when_they_are_needed(crawl, store, monkeypatch, limit):
    monkeypatch.setattr(recrawl.crawl.visit.change_classifier, limit, 2 if limit == "_MOST_HOSTS" else 0)
    monkeypatch.setattr(recrawl.crawl.visit.change_classifier, "_MIN_HOSTS", 2)
    store.discover(["http://b.example/", "http://c.example/"], 0.0)
    for page in range(8):
        crawl.see(answer(page, float(page), readers="12"), page)
    for page in range(4):
        now = HOUR - 60.0 * page
        if isinstance(seen := crawl.see(answer(page, now, readers="41"), page), NeedsConfirmation):
            crawl.again(seen, answer(page, now + 5.0, readers="77"))
    learned = crawl.classifier._host(1).standards
    assert learned.mask
    asked = []
    crawl.classifier._store = watched(store, asked)
    for hosts, questions in (([2], 1), ([1], 1), ([3], 2), ([2], 3), ([1], 4)):
        crawl.classifier.prepare(np.array(hosts), HOUR + 10.0)
        assert len(asked) == questions, "two hosts are at hand, and the one that waited longest is forgotten"
    assert crawl.classifier._host(1).standards == learned
    assert crawl.classifier._parts == sum(len(host.evidence) for host in crawl.classifier._hosts.values()) > 0


def watched(store, asked):
    """The store, with a note each time it is asked about noise."""

    class Watched:
        def __getattr__(self, name):
            if name == "noise":
                asked.append(name)
            return getattr(store, name)

    return Watched()


@pytest.mark.parametrize("second", [answer(0, HOUR + 5.0, status=503), Capture(URLS[0], HOUR + 5.0, 0, error="x")])
def test_a_second_look_that_fails_leaves_it_to_the_next_visit(crawl, store, second):
    crawl.see(answer(0, 0.0), 0)
    [before] = store.validators(np.array([1]))
    seen = crawl.see(answer(0, HOUR, text="The mill stands still."), 0)
    crawl.again(seen, second)
    assert store.validators(np.array([1])) == [before]
    seen = crawl.see(answer(0, 3 * HOUR, text="The mill stands still."), 0)
    crawl.again(seen, answer(0, 3 * HOUR + 5.0, text="The mill stands still."))
    visits = store.visits()
    assert words(visits.verdict) == ["UNKNOWN", "UNKNOWN", "UNKNOWN", "CHANGED", "UNKNOWN"]
    assert visits.outcome[1:3].tolist() == [Outcome.FETCHED, seen_as(second)]
    assert store.histories().gaps.tolist() == [3 * HOUR]


def seen_as(capture):
    return Outcome.SERVER_ERROR if capture.status else Outcome.UNREACHABLE


def test_a_second_look_that_finds_the_page_gone_leaves_the_first(crawl, store):
    crawl.see(answer(0, 0.0), 0)
    seen = crawl.see(answer(0, HOUR, text="The mill stands still."), 0)
    crawl.again(seen, answer(0, HOUR + 5.0, status=404))
    visits = store.visits()
    assert words(visits.verdict) == ["UNKNOWN", "CHANGED", "UNKNOWN"]
    assert visits.outcome[2] == Outcome.GONE
    [known] = store.validators(np.array([1]))
    assert not known.gone  # the next visit will find that
    assert crawl.see(answer(0, 9 * HOUR, text="The mill stands still."), 0).visit.verdict == Verdict.UNCHANGED


def test_what_changes_between_the_looks_is_found_by_the_next_visit(crawl, store):
    crawl.see(answer(0, 0.0), 0)
    seen = crawl.see(answer(0, HOUR, text="The mill stands still."), 0)
    crawl.again(seen, answer(0, HOUR + 5.0, text="The mill was sold."))
    visited = crawl.see(answer(0, 9 * HOUR, text="The mill was sold."), 0)
    if isinstance(visited, NeedsConfirmation):
        visited = crawl.again(visited, answer(0, 9 * HOUR + 5.0, text="The mill was sold.")).first
    assert visited.visit.verdict == Verdict.CHANGED


def test_one_look_has_to_do_where_the_second_never_came(crawl, store):
    crawl.see(answer(0, 0.0), 0)
    seen = crawl.see(answer(0, HOUR, text="The mill stands still."), 0)
    crawl.record(unconfirmed_visit(seen.target))
    assert words(store.visits().verdict) == ["UNKNOWN", "CHANGED"]
    with pytest.raises(ValueError, match="does not wait"):
        unconfirmed_visit(replace(seen.target, seen=None))


def test_a_clock_that_stands_still_makes_one_visit_of_two_looks(crawl, store):
    crawl.see(answer(0, 0.0), 0)
    seen = crawl.see(answer(0, HOUR, text="The mill stands still."), 0)
    crawl.again(seen, answer(0, HOUR, text="The mill stands still."))
    assert words(store.visits().verdict) == ["UNKNOWN", "CHANGED"]


def test_second_looks_can_be_switched_off(store):
    crawl = Crawl(store, ChangeClassifier(store, ClassifierRules(confirm_changes=False)))
    crawl.see(answer(0, 0.0), 0)
    assert crawl.see(answer(0, HOUR, text="The mill stands still."), 0).visit.verdict == Verdict.CHANGED


def test_a_page_that_changes_every_minute_is_no_noise(crawl, store):
    """Visits may be moments apart without being second looks."""
    crawl.see(answer(0, 0.0), 0)
    changes = 0
    for minute in range(1, 12):
        text = f"{minute} o'clock, and all is {'well' if minute % 2 else 'quiet'}."
        visited = crawl.see(answer(0, 60.0 * minute, text=text), 0)
        if isinstance(visited, NeedsConfirmation):
            visited = crawl.again(visited, answer(0, 60.0 * minute + 5.0, text=text)).first
        changes += visited.visit.verdict == Verdict.CHANGED
    assert changes == 11


# -- servers that lie ---------------------------------------------------------------------------


def lie(crawl, page, time):
    """The page changed, its entity tag did not."""
    crawl.see(answer(page, time, etag='"1"'), page)
    seen = crawl.see(answer(page, time + HOUR, text=f"It is {time} now.", etag='"1"'), page)
    if isinstance(seen, NeedsConfirmation):
        crawl.again(seen, answer(page, time + HOUR + 5.0, text=f"It is {time} now.", etag='"1"'))


def test_a_host_that_lied_twice_is_not_asked_conditionally(crawl, store, events):
    lie(crawl, 0, 0.0)
    assert crawl.classifier.validators_to_send(crawl.target(0)).etag == '"1"'
    assert events.getvalue() == ""
    lie(crawl, 1, 10.0)
    assert crawl.classifier.validators_to_send(crawl.target(0)).etag == ""
    [event] = map(json.loads, events.getvalue().splitlines())
    assert event["message"] == "validator trust changed"
    assert event["details"] == {"host": "a.example", "lies": 2, "checks": 2, "believed": False}
    hosts = store.hosts()
    assert (hosts.checks.tolist(), hosts.lies.tolist()) == ([2], [2])
    other = Crawl(store, ChangeClassifier(store, ClassifierRules(check_share=0.0)))
    other.classifier.prepare(np.array([1]), 0.0)
    assert other.classifier.validators_to_send(other.target(0)).etag == ""


def test_a_304_that_is_followed_by_another_page_is_a_lie(store, events):
    """Whatever its validators say: this server looks only at whether the request has any."""
    crawl = Crawl(
        store, ChangeClassifier(store, ClassifierRules(check_share=1.0), JsonLinesLog(events, VirtualClock(0.0)))
    )
    lies = 0
    for page in range(40, 46):  # what is text and what is noise here is known
        crawl.see(answer(page, float(page)), page)
        seen = crawl.see(answer(page, 100.0 + page, text="The mill was sold."), page)
        if isinstance(seen, NeedsConfirmation):
            crawl.again(seen, answer(page, 105.0 + page, text="The mill was sold."))
    for page in range(30):
        crawl.see(answer(page, float(page), etag='"1"'), page)
        now = HOUR + 10.0 * page
        seen = crawl.see(replace(answer(page, now, etag='"1"'), status=304, raw_body=b""), page, conditional=True)
        if isinstance(seen, NeedsConfirmation):
            second = crawl.again(seen, answer(page, now + 5.0, text="The mill stands still.", etag='"2"'))
            lies += 1
            assert (second.first.visit.verdict, second.visit.verdict) == (Verdict.UNKNOWN, Verdict.CHANGED)
            assert crawl.target(page).known.validators.etag == '"2"'
    assert lies >= 2
    assert store.hosts().lies.tolist() == [lies]
    assert crawl.classifier.validators_to_send(crawl.target(0)).etag == ""
    assert "validator trust changed" in events.getvalue()


def test_a_304_that_is_followed_by_what_may_be_noise_stands(store):
    """If neither look said anything the page would be due at once, and be asked for again and again."""
    crawl = Crawl(store, ChangeClassifier(store, ClassifierRules(check_share=1.0)))
    doubts = 0
    for page in range(30):
        crawl.see(answer(page, float(page), etag='"1"', readers="12"), page)
        now = HOUR + 10.0 * page
        seen = crawl.see(replace(answer(page, now, etag='"1"'), status=304, raw_body=b""), page, conditional=True)
        if isinstance(seen, NeedsConfirmation):
            doubts += 1
            second = crawl.again(seen, answer(page, now + 5.0, etag='"1"', readers="41"))
            assert (second.first.visit.verdict, second.visit.verdict) == (Verdict.UNCHANGED, Verdict.UNKNOWN)
            assert crawl.target(page).known.validators.etag == '"1"'
    assert doubts > 0
    assert store.hosts().lies.tolist() == [0]


def test_a_304_that_is_followed_by_the_same_page_is_true(store):
    crawl = Crawl(store, ChangeClassifier(store, ClassifierRules(check_share=1.0)))
    checked = 0
    for page in range(30):
        crawl.see(answer(page, float(page), etag='"1"'), page)
        now = HOUR + 10.0 * page
        seen = crawl.see(replace(answer(page, now, etag='"1"'), status=304, raw_body=b""), page, conditional=True)
        if isinstance(seen, NeedsConfirmation):
            checked += 1
            second = crawl.again(seen, answer(page, now + 5.0, etag='"1"'))
            assert (second.first.visit.verdict, second.visit.verdict) == (Verdict.UNCHANGED, Verdict.UNKNOWN)
    assert 0 < checked < 20
    assert store.hosts().lies.tolist() == [0]


def test_a_host_whose_changes_move_the_validators_is_believed_again(crawl, events):
    for page in (0, 1):
        lie(crawl, page, 10.0 * page)
    for page in range(2, 60):
        crawl.see(answer(page, float(page), etag='"1"'), page)
        seen = crawl.see(answer(page, HOUR + page, text="The mill stands still.", etag='"2"'), page)
        if isinstance(seen, NeedsConfirmation):
            crawl.again(seen, answer(page, HOUR + page + 5.0, text="The mill stands still.", etag='"2"'))
        if crawl.classifier.validators_to_send(crawl.target(0)).etag:
            break
    assert [json.loads(line)["details"]["believed"] for line in events.getvalue().splitlines()] == [False, True]


def test_noise_with_the_same_validators_is_no_lie(crawl, store):
    crawl.see(answer(0, 0.0, readers="12", etag='"1"'), 0)
    crawl.classify_confirmed(0, HOUR, etag='"1"')
    assert store.hosts().lies.tolist() == [0]


def test_a_share_of_visits_is_made_to_see_for_oneself(store):
    classifier = ChangeClassifier(store, ClassifierRules(check_share=0.25))
    crawl = Crawl(store, classifier)
    crawl.see(answer(0, 0.0, etag='"1"'), 0)
    sent = [bool(classifier.validators_to_send(crawl.target(0, due=HOUR * visit)).etag) for visit in range(400)]
    assert 60 < sent.count(False) < 140
    seen = replace(crawl.target(0, due=HOUR), seen=object())
    assert not classifier.validators_to_send(seen).etag  # the bytes of both looks are compared


def test_a_host_to_which_all_was_modified_just_now_makes_no_claims(crawl, store):
    def modified(time):
        capture = answer(0, time)
        date = f"Thu, 01 Jan 1970 {int(time // HOUR):02d}:00:00 GMT"
        head = capture.raw_head.replace(b"X: y", f"Date: {date}\r\nLast-Modified: {date}".encode())
        return replace(capture, raw_head=head)

    for hour in range(4):
        assert crawl.classifier.trusts_dates(1) == (hour < 3)
        crawl.see(modified(hour * HOUR), 0)
    assert store.hosts().restless.tolist() == [3]
    assert crawl.classifier.validators_to_send(crawl.target(0)).last_modified


@pytest.mark.slow
@pytest.mark.parametrize("use_kernels", [True, False])
def test_compiled_code_is_made_before_the_first_answer(store, monkeypatch, use_kernels):
    judged = []
    classify_change = recrawl.parse.parse_pool.classify_change
    monkeypatch.setattr(
        recrawl.parse.parse_pool,
        "classify_change",
        lambda *how: judged.append(classify_change(*how).verdict) or classify_change(*how),
    )
    warm_up(ChangeCriteria(use_kernels=use_kernels))
    assert judged[:2] == ([Verdict.UNKNOWN, Verdict.CHANGED] if use_kernels else [])
    assert not len(store.visits())


KERNELS = """
import gc
from numba.core.dispatcher import Dispatcher
from recrawl.parse.parse_pool import warm_up
from recrawl.detect import ChangeCriteria, classify_change, known_after
from recrawl.model import Capture

def made():
    return sum(len(one.signatures) for one in gc.get_objects() if isinstance(one, Dispatcher))

standards = ChangeCriteria(use_kernels=True)
warm_up(standards)
before, known = made(), None
words = " ".join(map(str, range(3_000)))
for mime, text in (
    ("text/html", f"<p>One <a href=/b>two</a> 12:30:00</p>{words}"),
    ("text/html", f"<p>\u00dcber <a href=/b>zwei</a> 12:30:00</p>{words}"),
    ("text/html", f"<b><i>not nested</b></i> 12:30:00 {words}"),
    ("text/html", f"<b><i>nicht verschachtelt: \u00fc</b></i> 12:30:00 {words}"),
    ("text/html", "<p>\u65e5\u672c\u8a9e<table><p>x</table>"),
    ("text/html", f"<p>One 12:30:00<xmp><b></xmp>{words}"),
    ("text/html", f"<p>\u00dcber 12:30:00<plaintext>{words}"),
    ("text/plain", "One 12:30:00"),
    ("text/plain", "\u00dcber 12:30:00"),
    ("application/json", '{"a": "\u00fc 12:30:00"}'),
):
    head = f"HTTP/1.1 200 OK\\r\\nContent-Type: {mime}; charset=utf-8\\r\\n\\r\\n".encode()
    capture = Capture("http://a.example/", 0.0, 200, head, text.encode())
    known = known_after(classify_change(capture, known, standards), known)
print(before > 0, made() - before)
"""


def test_no_kernel_is_left_to_compile_once_a_crawl_is_warm():
    done = subprocess.run([sys.executable, "-c", KERNELS], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["True", "0"]


def test_two_workers_learn_noise_together_and_both_hear_that_it_is_forgotten(store):
    """Each adds to what the store has and overwrites nothing; neither writes back what was forgotten."""
    workers = [Crawl(store, ChangeClassifier(store, ClassifierRules(check_share=0.0))) for _ in range(2)]
    for page in range(4):
        for time in (0.0, HOUR + 60.0 * page):
            worker = workers[page % 2]
            if time:
                worker.classify_confirmed(page, time)
            else:
                worker.see(answer(page, time, readers="12"), page)
    of_store = NoiseEvidence.counted(store.noise()).noise_of(1)
    assert of_store.rows.near[of_store.rows.page == 0].tolist() == [4]
    assert of_store.masked == 1
    later = 2 * HOUR
    for worker in workers:
        worker.classifier.prepare(np.array([1]), later)
        assert worker.classifier._host(1).noise.mask == of_store.mask
    store.drop_noise(np.array([1]))
    seen = workers[0].see(answer(0, later + 1.0, readers="13"), 0)  # masked still: it hears within five minutes
    if isinstance(seen, NeedsConfirmation):  # an audit
        workers[0].again(seen, answer(0, later + 3.0, readers="14"))
    assert "CHANGED" not in words(store.visits().verdict)
    rows = store.noise()
    assert len(rows)
    assert max(*rows.near, *rows.far) == 1  # what this visit told
    for worker in workers:
        worker.classifier.prepare(np.array([1]), later + 301.0)
        assert worker.classifier.masked == 0
