"""Two units as processes, one with SQLite and one with PostgreSQL: one joins, is killed and comes back, and the
coordination database goes away."""

from __future__ import annotations

import signal
from collections import Counter

import pytest
import yaml
from test_shared_postgres import PAGES, SETTINGS, a_starter, events, site, until  # noqa: F401 - a fixture

from recrawl.crawl.units.unit_registry import registered_units, unit_buckets
from recrawl.model import Verdict
from recrawl.store.open import open_store
from recrawl.urls import bucket_of


@pytest.fixture
def starter(tmp_path):
    with a_starter(tmp_path) as started:
        yield started


def unit(starter, folder, location, coordination):
    assert starter.end(starter.start("init", folder, "--store", location)) == 0, starter.said()
    settings = SETTINGS | {
        "store": {"location": str(location)},
        "fetch": SETTINGS["fetch"] | {"contact": f"{folder.name}@example.org"},
        "units": {"name": folder.name, "coordination": coordination},
    }
    (folder / "recrawl.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return folder


class Crawl:
    """Two units that share the hosts of a site."""

    def __init__(self, starter, site, folder, locations, coordination):  # noqa: F811 - a fixture
        self.starter, self.site, self.locations, self.coordination = starter, site, locations, coordination
        self.folders = {name: unit(starter, folder / name, where, coordination) for name, where in locations.items()}
        self.running = {}
        seeds = [f"http://{name}:{site.port}/" for name in site.names]
        assert starter.end(starter.start("add", "-w", self.folders["alpha"], *seeds)) == 0, starter.said()

    def start(self, name):
        self.running[name] = self.starter.start("run", "-w", self.folders[name])

    def stop(self, name, number=signal.SIGTERM):
        return self.starter.end(self.running.pop(name), number)

    def until(self, so):
        return until(so, self.starter.said)

    def owners(self):
        """The units that own the hosts of the site."""
        with open_store(self.coordination) as shared:
            owner = shared.buckets().owner
        return {name: owner[bucket_of(f"{name}:{self.site.port}")] for name in self.site.names}

    def is_settled(self):
        """Whether no bucket moves, and no page waits to be sent."""
        with open_store(self.coordination) as shared:
            units, rows = registered_units(shared.controls()), shared.buckets()
        return not any(rows.heir) and None not in rows.owner and not any(one.outbox for one in units.values())

    def progress(self, hosts):
        """Wait until these hosts were asked some more times; who asked them."""
        before = {name: self.site.asked(name) for name in hosts}
        self.until(lambda: all(self.site.asked(name) > before[name] + 2 for name in hosts))
        return {asker for name in hosts for *_, asker in self.site.log[name][before[name] :]}

    def both(self):
        """Start both, the second without a page of its own, until each visits hosts."""
        self.start("alpha")
        self.until(lambda: all(self.site.asked(name) > 1 for name in self.site.names))
        self.start("beta")
        self.until(lambda: set(self.owners().values()) == {"alpha", "beta"} and self.is_settled())
        self.visited_by_owners()

    def visited_by_owners(self):
        """Wait until the last request to each host came from the unit that owns it, after at least one more."""
        self.progress(self.site.names)
        self.until(lambda: self.owners() == {name: self.site.log[name][-1][-1] for name in self.site.names})

    def check(self):
        """Every page is with one unit, no visit is there twice, and no host was asked too soon or by two at once."""
        urls = Counter()
        for location in self.locations.values():
            with open_store(location) as store:
                visits, pages = store.visits(), store.pages()
                urls.update(store.urls(pages.id[pages.importance > 0]))
                keys = list(zip(visits.page.tolist(), visits.time.tolist(), strict=True))
                assert len(set(keys)) == len(keys)
                assert not (visits.verdict == Verdict.CHANGED).any()  # no page ever changed, whoever visited it
        assert len(urls) == len(self.site.names) * (PAGES + 1)
        assert set(urls.values()) == {1}
        assert self.site.short() == []


@pytest.fixture
def locations(tmp_path, new_database):
    return {"alpha": str(tmp_path / "alpha.db"), "beta": new_database()}


def test_a_unit_joins_and_the_coordination_database_goes_away(starter, site, tmp_path, locations, new_postgres):  # noqa: F811
    with new_postgres() as server:
        crawl = Crawl(starter, site, tmp_path, locations, server.get_uri())
        crawl.both()
        assert starter.end(starter.start("list", "units", "--json", "-w", crawl.folders["alpha"])) == 0, starter.said()
        server.stop()
        crawl.until(lambda: events(crawl.folders["alpha"], "coordination failed"))
        assert crawl.progress(site.names) == {"alpha", "beta"}  # the last assignment holds
        server.start()
        crawl.until(lambda: events(crawl.folders["alpha"], "coordination works again"))
        crawl.until(crawl.is_settled)
        crawl.visited_by_owners()
        for name in ("alpha", "beta"):
            assert crawl.stop(name) in {0, 11}, starter.said()
    crawl.check()


def test_a_unit_is_killed_comes_back_and_leaves(starter, site, tmp_path, locations, new_database):  # noqa: F811
    crawl = Crawl(starter, site, tmp_path, locations, new_database())
    crawl.both()
    assert crawl.stop("beta", signal.SIGKILL) != 0  # its pages wait for it
    assert crawl.progress([name for name, owner in crawl.owners().items() if owner == "alpha"]) == {"alpha"}
    assert "beta" in crawl.owners().values()
    crawl.start("beta")
    crawl.visited_by_owners()
    assert crawl.stop("beta") in {0, 11}, starter.said()
    assert starter.end(starter.start("leave", "-w", crawl.folders["beta"])) == 0, starter.said()
    crawl.until(lambda: set(crawl.owners().values()) == {"alpha"} and crawl.is_settled())
    assert crawl.progress(site.names) == {"alpha"}
    assert crawl.stop("alpha") in {0, 11}, starter.said()
    crawl.check()
    with open_store(locations["alpha"]) as here, open_store(locations["beta"]) as there:
        assert unit_buckets(here.controls()).all()
        visits = there.visits()
        known, mine = set(zip(there.urls(visits.page), visits.time.tolist(), strict=True)), here.visits()
        assert known <= set(zip(here.urls(mine.page), mine.time.tolist(), strict=True))  # all that it learned arrived
