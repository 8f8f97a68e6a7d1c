"""Units: buckets that move between stores with their pages, and pages that reach the unit that owns their bucket."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np
import pytest

from recrawl.app.status import unit_facts
from recrawl.crawl.control.price_exchange import Partition, share_of_unit
from recrawl.crawl.control.worker_registry import SILENCE, RegisteredWorker, WorkerRegistry
from recrawl.crawl.units import moved_pages
from recrawl.crawl.units.stand_in import STAND_IN_AFTER
from recrawl.crawl.units.unit_agent import DRAIN_TIME, UnitAgent, UnitTerms, leave_units, remove_unit
from recrawl.crawl.units.unit_registry import registered_units, unit_buckets, unit_state
from recrawl.crawl.worker.inline_fit import ScheduleFit
from recrawl.errors import ConfigError
from recrawl.model import GammaBelief, NoiseCounts, Outcome, Validators, Verdict, Visits
from recrawl.schedule.frontier.revisit_scheduler import NewPageQueue, RevisitScheduler
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.store import unit_exchange
from recrawl.store.open import open_store
from recrawl.store.store_values import ClaimColumns, LearnedFacts, ValidatorCounts
from recrawl.store.unit_exchange import open_coordination, open_unit_store
from recrawl.time import DAY, HOUR
from recrawl.urls import BUCKETS, bucket_of

NOW = 1.7e9
HOSTS = [f"site{number}.example" for number in range(60)]
URLS = [f"http://{host}/{page}" for host in HOSTS for page in range(3)]


class Unit:
    """A unit with its store, without workers: time is what the test says."""

    def __init__(self, name, location, coordination, **terms):
        open_store(location, create=True).close()
        self.terms = UnitTerms(name, str(coordination), str(location), **terms)
        self.store, outgoing = open_unit_store(location)
        self.agent = UnitAgent(self.terms, self.store, outgoing)

    def step(self, now):
        return self.agent.step(now)

    def buckets(self):
        return unit_buckets(self.store.controls())

    def wanted(self):
        """The URLs that it visits."""
        pages = self.store.pages()
        return self.store.urls(pages.id[pages.importance > 0])


@contextmanager
def two_units(tmp_path, new_database, **terms):
    """One in SQLite, the other in PostgreSQL."""
    with ExitStack() as stack:
        made = []
        for name, location in (("alpha", tmp_path / "alpha.db"), ("beta", new_database())):
            unit = Unit(name, location, tmp_path / "shared.db", **terms)
            stack.callback(unit.store.close)
            stack.callback(unit.agent.close)
            made.append(unit)
        yield made


def settle(*units, start=NOW):
    """Let all units act in turn until nothing moves; the time after that."""
    now = start
    for _ in range(12):
        now += DRAIN_TIME
        for unit in units:
            assert unit.step(now).error == ""
    return now


def learn(store, urls, rounds=4):
    """Visits, versions, claims and noise of pages, as a crawl leaves them."""
    ids = store.discover(urls, NOW - 1e6)
    for number in range(rounds):
        times = NOW - 1e5 + 1000.0 * number + np.arange(len(ids))
        verdict = [Verdict.CHANGED if (page + number) % 3 == 0 else Verdict.UNCHANGED for page in ids.tolist()]
        visits = Visits.of(ids, times, outcome=Outcome.FETCHED, verdict=verdict, status=200, size=77, cost=0.25)
        versions = [Validators(etag=f'"{page}-{number}"', digest=bytes(20), mime="text/html") for page in ids.tolist()]
        prints = LearnedFacts([b"print %d" % page for page in ids.tolist()])
        store.record(visits, due=times + 5e5, validators=versions, learned_facts=prints)
    columns = (np.full(len(ids), NOW - 50.0), ["last-modified"] * len(ids), np.full(len(ids), NOW - 60.0))
    store.add_claims(ClaimColumns(ids, *columns, np.zeros(len(ids), np.int64), np.full(len(ids), -1.0)))
    hosts = np.unique(store.pages(ids).host)
    first = {host: page for page, host in zip(ids[::-1].tolist(), store.pages(ids).host[::-1].tolist(), strict=True)}
    noise = NoiseCounts(
        np.repeat(hosts, 2),
        np.array([page for host in hosts.tolist() for page in (0, first[host])]),
        *(np.full(2 * len(hosts), number) for number in range(1, 12)),
    )
    one = np.ones(len(hosts), np.int64)
    store.record(Visits.empty(), learned_facts=LearnedFacts((), noise, ValidatorCounts(hosts, 5 * one, 2 * one, one)))
    store.set_host(hosts, ready_at=np.full(len(hosts), NOW + 3.0), delay=np.full(len(hosts), 7.0))
    return ids


def known_of(store, url):
    """All that a store knows of a page and its host, without ids."""
    page = store.find(url)
    ids = np.array([page.id])
    visits, claims, noise = store.visits(pages=ids), store.claims(ids), store.noise(np.array([page.host]))
    host = store.hosts(np.array([page.host]))
    url_of = {0: ""} | dict(zip((on := np.unique(noise.page[noise.page > 0])).tolist(), store.urls(on), strict=True))
    return {
        "visits": {name: column.tolist() for name, column in visits.columns().items() if name != "page"},
        "validators": store.validators(ids),
        "fingerprint": store.fingerprints(ids),
        "claims": [claims.time.tolist(), claims.source, claims.lastmod.tolist()],
        "noise": sorted(
            zip([url_of[one] for one in noise.page.tolist()], noise.part.tolist(), noise.near.tolist(), strict=True)
        ),
        "due": store.due(ids).tolist(),
        "importance": page.importance,
        "source": list(store.sources(ids).values()),
        "host": [float(host.delay[0]), float(host.ready_at[0]), host.checks.tolist(), host.lies.tolist()],
    }


def test_everything_known_of_a_page_arrives_and_arrives_once(tmp_path, new_database):
    with two_units(tmp_path, new_database) as (alpha, beta):
        ids = learn(alpha.store, URLS[:9])
        alpha.store.set_importance(ids[:2], np.array([2.5, 0.5]))
        alpha.store.set_source(ids[3:4], "feed", '{"a": 1}')
        before = {url: known_of(alpha.store, url) for url in URLS[:9]}
        sent = moved_pages.packed(alpha.store, ids)
        assert sent.buckets.tolist()[:9] == [bucket_of(url.split("/")[2]) for url in URLS[:9]]
        for _ in range(2):
            moved_pages.take(beta.store, sent.contents)
            assert {url: known_of(beta.store, url) for url in URLS[:9]} == before
        assert beta.store.counts(NOW).visits == 36


def test_a_page_that_was_visited_since_keeps_its_state(tmp_path, new_database):
    """A row that is taken once more, late, changes nothing."""
    with two_units(tmp_path, new_database) as (alpha, beta):
        sent = moved_pages.packed(alpha.store, learn(alpha.store, URLS[:1]))
        moved_pages.take(beta.store, sent.contents)
        page = np.array([beta.store.find(URLS[0]).id])
        now = Visits.of(page, np.array([NOW]), verdict=Verdict.CHANGED)
        beta.store.record(now, due=np.array([NOW + 9.0]), validators=[Validators(etag='"new"')])
        moved_pages.take(beta.store, sent.contents)
        assert beta.store.due(page).tolist() == [NOW + 9.0]
        assert beta.store.validators(page)[0].etag == '"new"'
        assert len(beta.store.visits()) == 5


def test_a_unit_that_joins_gets_its_share_with_all_pages(tmp_path, new_database):
    with two_units(tmp_path, new_database) as (alpha, beta):
        learn(alpha.store, URLS)
        before = {url: known_of(alpha.store, url) for url in URLS}
        now = settle(alpha)
        assert alpha.buckets().all()
        now = settle(alpha, beta, start=now)
        assert (alpha.buckets() ^ beta.buckets()).all()
        assert 400 < beta.buckets().sum() < 624
        assert sorted(alpha.wanted() + beta.wanted()) == sorted(URLS)
        for unit in (alpha, beta):
            for url in unit.wanted():
                assert unit.buckets()[bucket_of(url.split("/")[2])]
                assert known_of(unit.store, url) == before[url]
        shared, exchange = open_coordination(tmp_path / "shared.db")
        with shared:
            assert exchange.waiting().rows.sum() == 0
            assert shared.buckets().token.max() == 2  # each bucket moved once at most


def test_new_pages_reach_their_unit_whoever_finds_them(tmp_path, new_database):
    with two_units(tmp_path, new_database) as (alpha, beta):
        now = settle(alpha, beta)
        alpha.store.discover(URLS[: len(URLS) // 2], now)
        beta.store.discover(URLS[len(URLS) // 3 :], now)  # some are found by both
        settle(alpha, beta, start=now)
        assert sorted(alpha.wanted() + beta.wanted()) == sorted(URLS)
        assert alpha.wanted()
        assert beta.wanted()
        assert unit_state(alpha.store.controls()).outbox == 0


class KilledError(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("where", ["packed", "retire", "take", "drop", "hand_over"])
def test_a_kill_at_any_step_of_the_exchange_loses_and_doubles_nothing(tmp_path, new_database, monkeypatch, where):
    """A unit is killed before or after a step, and started again."""
    owner = {"drop": unit_exchange.UnitExchange, "hand_over": unit_exchange.UnitExchange}.get(where, moved_pages)
    done, kills = getattr(owner, where), []

    def killed(*arguments, **named):
        kills.append(where)
        if len(kills) % 3 == 1:
            raise KilledError
        result = done(*arguments, **named)
        if len(kills) % 3 == 2:
            raise KilledError
        return result

    with two_units(tmp_path, new_database) as (alpha, beta):
        learn(alpha.store, URLS)
        before = {url: known_of(alpha.store, url) for url in URLS}
        now = settle(alpha)
        monkeypatch.setattr(owner, where, killed)
        monkeypatch.setattr("recrawl.crawl.units.unit_agent._AT_ONCE", 40)
        for _ in range(60):
            now += DRAIN_TIME
            for unit in (alpha, beta):
                try:
                    unit.step(now)
                except KilledError:
                    unit.agent.close()
        assert len(kills) >= 3
        assert sorted(alpha.wanted() + beta.wanted()) == sorted(URLS)
        assert beta.wanted()
        for url in beta.wanted():
            assert known_of(beta.store, url) == before[url]
        assert beta.store.counts(now).visits == 4 * len(beta.wanted())


def test_a_bucket_moves_only_when_no_worker_of_its_unit_has_it(tmp_path, new_database):
    with two_units(tmp_path, new_database) as (alpha, beta):
        alpha.store.discover(URLS, NOW)
        now = settle(alpha)
        registry = WorkerRegistry(alpha.store, "w")
        registry.report(RegisteredWorker("w", now, now))
        alpha.store.claim_buckets("w", np.arange(BUCKETS), now)
        for _ in range(8):
            now += DRAIN_TIME
            registry.report(RegisteredWorker("w", now, NOW))
            alpha.step(now)
            beta.step(now)
        assert not beta.buckets().any()
        assert len(alpha.wanted()) == len(URLS)
        assert 400 < (~alpha.buckets()).sum() < 624  # its workers know that these are to be drained
        alpha.store.release_buckets("w", now)
        registry.leave(now)
        settle(alpha, beta, start=now)
        assert sorted(alpha.wanted() + beta.wanted()) == sorted(URLS)
        assert (alpha.buckets() ^ beta.buckets()).all()


def test_without_the_coordination_database_the_last_assignment_holds(tmp_path, new_database):
    with two_units(tmp_path, new_database) as (alpha, beta):
        now = settle(alpha, beta)
        mine = alpha.buckets()
        for unit in (alpha, beta):
            unit.agent.close()
        (tmp_path / "shared.db").rename(tmp_path / "away.db")
        alpha.store.discover(URLS, now)
        state = alpha.step(now + 1)
        assert "There is no store" in state.error
        assert (alpha.buckets() == mine).all()
        assert len(alpha.wanted()) == len(URLS)  # they wait
        (tmp_path / "away.db").rename(tmp_path / "shared.db")
        settle(alpha, beta, start=now)
        assert (alpha.buckets() == mine).all()
        assert sorted(alpha.wanted() + beta.wanted()) == sorted(URLS)


def test_a_silent_unit_keeps_its_buckets_until_it_is_removed(tmp_path, new_database):
    with two_units(tmp_path, new_database) as (alpha, beta):
        now = settle(alpha, beta)
        theirs = beta.buckets()
        with pytest.raises(ConfigError, match="is alive"):
            remove_unit(alpha.terms.coordination, "beta", now)
        now = settle(alpha, start=now + 10 * SILENCE)
        assert (alpha.buckets() == ~theirs).all()
        alpha.store.discover(URLS, now)
        now = settle(alpha, start=now)
        assert 0 < len(alpha.wanted()) < len(URLS)  # the others wait for it in the coordination database
        remove_unit(alpha.terms.coordination, "beta", now)
        settle(alpha, start=now)
        assert alpha.buckets().all()
        assert sorted(alpha.wanted()) == sorted(URLS)
        with pytest.raises(ConfigError, match="no unit 'beta'"):
            remove_unit(alpha.terms.coordination, "beta", now)


def test_a_unit_that_leaves_sends_all_its_pages_first(tmp_path, new_database):
    with two_units(tmp_path, new_database) as (alpha, beta):
        learn(alpha.store, URLS)
        before = {url: known_of(alpha.store, url) for url in URLS}
        now = [settle(alpha, beta)]

        def wait(_seconds):
            now[0] += DRAIN_TIME
            alpha.step(now[0])

        leave_units(beta.terms, lambda: now[0], wait)
        settle(alpha, start=now[0])
        assert beta.wanted() == []
        assert alpha.buckets().all()
        assert {url: known_of(alpha.store, url) for url in alpha.wanted()} == before
        assert alpha.store.counts(NOW).visits == 4 * len(URLS)
        with pytest.raises(ConfigError, match="No other unit runs"):
            leave_units(alpha.terms, lambda: now[0], lambda _seconds: None)


def test_two_stores_cannot_be_the_same_unit(tmp_path):
    one, other = (Unit("alpha", tmp_path / name, tmp_path / "shared.db") for name in ("one.db", "other.db"))
    one.step(NOW)
    with pytest.raises(ConfigError, match="Another store is the unit 'alpha'"):
        other.step(NOW + 1)
    for unit in (one, other):
        unit.agent.close()
        unit.store.close()


def test_capacity_is_measured_from_visits(tmp_path, new_database):
    """A unit whose visits take twice the CPU time gets half as many buckets."""
    with two_units(tmp_path, new_database) as (alpha, beta):
        now = settle(alpha, beta)
        for unit, cpu, parse in ((alpha, 10.0, 0.0), (beta, 15.0, 5.0)):
            WorkerRegistry(unit.store, "w").report(RegisteredWorker("w", now, now - 100.0, 1000, cpu=cpu, parse=parse))
        for unit in (alpha, beta):
            unit.step(now)
        with open_store(tmp_path / "shared.db") as shared:
            units = registered_units(shared.controls())
        assert (units["alpha"].capacity, units["beta"].capacity) == (100.0, 50.0)
        assert units["beta"].cpu_per_visit == 0.02
        assert units["beta"].parse_per_visit == 0.005
        assert units["beta"].visits_per_second == 10.0
        for unit in (alpha, beta):
            WorkerRegistry(unit.store, "w").leave(now)
        settle(alpha, beta, start=now)
        assert 280 < beta.buckets().sum() < 400
        assert (alpha.buckets() ^ beta.buckets()).all()


def test_the_exchange_is_bounded(tmp_path, new_database, monkeypatch):
    """A unit that takes nothing does not fill the database of the others: pages wait in the store that found them."""
    with two_units(tmp_path, new_database) as (alpha, beta):
        now = settle(alpha, beta)
        monkeypatch.setattr("recrawl.crawl.units.unit_agent.MOST_WAITING", 10)
        monkeypatch.setattr("recrawl.crawl.units.unit_agent._AT_ONCE", 5)
        alpha.store.discover(URLS, now)
        alpha.step(now + 1)
        state = alpha.step(now + 2)
        shared, exchange = open_coordination(tmp_path / "shared.db")
        with shared:
            assert 10 <= exchange.waiting().rows.sum() <= 20  # pages, and their hosts
        foreign = [url for url in URLS if beta.buckets()[bucket_of(url.split("/")[2])]]
        assert 0 < state.outbox < len(foreign)
        for _ in range(80):
            now += 1
            alpha.step(now)
            beta.step(now)
        assert sorted(beta.wanted()) == sorted(foreign)


def test_units_find_one_price_and_share_one_budget(tmp_path, new_database):
    """Two units whose pages differ in worth: the price is that of one process, and the budget follows the demand."""
    with two_units(tmp_path, new_database) as (alpha, beta), open_store(tmp_path / "whole.db", create=True) as whole:
        settle(alpha, beta)
        mine = alpha.buckets()
        now, budget = NOW + HOUR, len(URLS) / 4 / DAY
        urls = {
            unit: [url for url in URLS if mine[bucket_of(url.split("/")[2])] == (unit is alpha)]
            for unit in (alpha, beta)
        }
        for store, worth in ((alpha.store, 1.0), (beta.store, 6.0), (whole, 1.0)):
            some = URLS if store is whole else urls[alpha if store is alpha.store else beta]
            ids = store.discover(some, NOW - 1e6)
            worths = (
                np.where([url in urls[beta] for url in some], 6.0, 1.0) if store is whole else np.full(len(some), worth)
            )
            store.set_importance(ids, worths)
            for number in range(6):
                times = NOW - (6 - number) * DAY + np.arange(len(ids)) / 1e3
                often = np.array([sum(map(ord, url)) % 3 for url in some]) > number % 3
                verdict = np.where(often, Verdict.CHANGED, Verdict.UNCHANGED)
                store.record(Visits.of(ids, times, outcome=Outcome.FETCHED, verdict=verdict), due=times + DAY)

        def fitted(store, buckets, at):
            prior = GammaBelief(np.full(1, 0.5), np.full(1, 3 * DAY))
            policy = ValuedPolicy(
                prior=lambda pages: GammaBelief(prior.a.repeat(len(pages)), prior.b.repeat(len(pages))), factors=()
            )
            scheduler = RevisitScheduler(policy, budget=budget, new_page_queue=NewPageQueue(0.5, HOUR))
            fit, partition = ScheduleFit(store, scheduler, HOUR), Partition("w", buckets)
            fit.fit(fit.catch_up(at, partition, adds=True), at)
            return scheduler.policy.price

        price = fitted(whole, np.arange(BUCKETS), now)
        for _ in range(3):
            found = []
            for unit in (alpha, beta):
                now += DRAIN_TIME
                found.append(fitted(unit.store, np.flatnonzero(unit.buckets()), now))
                for one in (alpha, beta):
                    one.step(now)
        assert found == pytest.approx([price, price], rel=2e-3)
        shares = [share_of_unit(unit.store.demands(), int(unit.buckets().sum()), 0.0, now) for unit in (alpha, beta)]
        assert sum(shares) == pytest.approx(1.0, rel=1e-3)
        assert shares[1] > 1.3 * shares[0]
        assert {said.partition for said in alpha.store.demands()} == {"w", "beta/w"}
        beta.store.withdraw_partition("w")  # its worker ends: what it asked for counts until the next one publishes
        for unit in (beta, alpha):
            unit.step(now)
        assert {said.partition for said in alpha.store.demands()} == {"w", "beta/w"}
        beta.store.publish_demand(replace(beta.store.demands()[0], partition="v", time=now))
        beta.agent.close()
        (tmp_path / "shared.db").rename(tmp_path / "away.db")
        alpha.agent.close()
        alpha.step(now)
        assert fitted(alpha.store, np.flatnonzero(alpha.buckets()), now + DRAIN_TIME) == pytest.approx(price, rel=2e-3)
        (tmp_path / "away.db").rename(tmp_path / "shared.db")
        for unit in (beta, alpha, beta, alpha):
            unit.step(now)
        assert {said.partition for said in alpha.store.demands()} == {"w", "beta/v"}
        remove_unit(alpha.terms.coordination, "beta", now + 10 * SILENCE)
        alpha.step(now + 10 * SILENCE)
        assert {said.partition for said in alpha.store.demands()} == {"w"}


def buckets_in(urls):
    return np.isin(np.arange(BUCKETS), [bucket_of(url.split("/")[2]) for url in urls])


def test_another_unit_stands_in_for_pages_that_matter(tmp_path, new_database):
    """The unit that owns a page is silent: the page goes on to be visited, and comes home with all visits."""
    with two_units(tmp_path, new_database, stand_in_from=2.0) as (alpha, beta):
        settle(alpha, beta)
        theirs = beta.buckets()
        urls = [url for url in URLS if theirs[bucket_of(url.split("/")[2])]]
        ids = learn(beta.store, urls)
        matter = urls[::5]
        beta.store.set_importance(ids[::5], np.full(len(matter), 3.0))
        before = {url: known_of(beta.store, url) for url in matter}
        now = settle(alpha, beta, start=NOW + 1000.0)
        assert alpha.wanted() == []
        settle(alpha, start=now)  # for two minutes: an owner that restarts is not replaced
        assert alpha.wanted() == []
        now = settle(alpha, start=now + STAND_IN_AFTER)
        assert sorted(alpha.wanted()) == sorted(matter)
        assert {url: known_of(alpha.store, url) for url in matter} == before
        assert (alpha.buckets() == (~theirs | buckets_in(matter))).all()
        assert unit_facts(alpha.store.controls(), now).standing_in == buckets_in(matter).sum()
        with open_store(tmp_path / "shared.db") as shared:
            assert (registered_units(shared.controls())["alpha"].stands_in_for() == buckets_in(matter)).all()
        for url in matter:  # it visits them
            page = np.array([alpha.store.find(url).id])
            made = Visits.of(page, np.array([now]), verdict=Verdict.CHANGED)
            alpha.store.record(made, due=np.array([now + DAY]), validators=[Validators(etag='"new"')])
        beta.step(now)  # it is back, and leaves these hosts alone until all pages are home
        assert (beta.buckets() == (theirs & ~buckets_in(matter))).all()
        now = settle(alpha, beta, start=now)
        assert alpha.wanted() == []
        assert (alpha.buckets() == ~theirs).all()
        assert (beta.buckets() == theirs).all()
        assert sorted(beta.wanted()) == sorted(urls)
        for url in matter:
            page = np.array([beta.store.find(url).id])
            assert len(beta.store.visits(pages=page)) == 5
            assert beta.store.validators(page)[0].etag == '"new"'
        assert beta.store.counts(now).visits == 4 * len(urls) + len(matter)


def test_a_stand_in_that_dies_too_and_a_page_that_matters_no_more(tmp_path, new_database):
    with two_units(tmp_path, new_database, stand_in_from=1.0) as (alpha, beta):
        settle(alpha, beta)
        theirs = beta.buckets()
        urls = [url for url in URLS if theirs[bucket_of(url.split("/")[2])]]
        ids = learn(beta.store, urls)
        now = settle(alpha, beta, start=NOW + 1000.0)
        beta.store.set_importance(ids, np.full(len(ids), 0.5))
        now = settle(alpha, beta, start=now)
        now = settle(alpha, start=now + STAND_IN_AFTER)
        assert alpha.wanted() == []  # the copies were taken back
        beta.store.set_importance(ids, np.full(len(ids), 1.5))
        now = settle(alpha, beta, start=now)
        now = settle(alpha, start=now + STAND_IN_AFTER)
        assert sorted(alpha.wanted()) == sorted(urls)
        now = settle(beta, start=now + SILENCE)  # the stand-in is dead: the owner goes on without it
        assert (beta.buckets() == theirs).all()
        settle(beta, alpha, start=now)
        assert alpha.wanted() == []
        assert sorted(beta.wanted()) == sorted(urls)
        assert (alpha.buckets() ^ beta.buckets()).all()
