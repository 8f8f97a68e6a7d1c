"""What hosts say about themselves: robots.txt, sitemaps, and the list of hosts."""

from dataclasses import replace
from datetime import datetime
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from protego import Protego

from recrawl.simulate.sites import tree_site
from recrawl.time import DAY, HOUR
from recrawl_testweb import FaultProfile, SitemapLie

NAME = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
FREQUENCY = {"always": 0, "hourly": HOUR, "daily": DAY, "weekly": 7 * DAY, "monthly": 30 * DAY, "yearly": 365 * DAY}


def sitemap_of(running, host=0):
    """URL → (lastmod, changefreq), through robots.txt and the index, as a crawler finds it."""
    home = f"http://{running.living.hosts()[host]}/"
    robots = Protego.parse(running.client.get(f"{home}robots.txt").body.decode())
    entries = {}
    for index_url in robots.sitemaps:
        index = ET.fromstring(running.client.get(index_url).body)
        assert index.tag == f"{NAME}sitemapindex"
        for part in index.iter(f"{NAME}sitemap"):
            urls = ET.fromstring(running.client.get(part.findtext(f"{NAME}loc")).body)
            latest = datetime.fromisoformat(part.findtext(f"{NAME}lastmod")).timestamp()
            found = {
                url.findtext(f"{NAME}loc"): (
                    datetime.fromisoformat(url.findtext(f"{NAME}lastmod")).timestamp(),
                    url.findtext(f"{NAME}changefreq"),
                )
                for url in urls
            }
            assert latest == max(lastmod for lastmod, _ in found.values())
            entries |= found
    return entries


def test_robots_txt_names_the_delay_and_the_closed_section(run, small):
    running = run(small, FaultProfile(crawl_delay=2.5))
    home = running.living.seeds()[0]
    answer = running.client.get(f"{home}robots.txt")
    robots = Protego.parse(answer.body.decode())
    assert answer.headers["content-type"].startswith("text/plain")
    assert robots.crawl_delay("recrawl") == 2.5
    private = [url for url in running.urls if "/private/" in url]
    assert private
    assert not any(robots.can_fetch(url, "recrawl") for url in private)
    assert all(robots.can_fetch(url, "recrawl") for url in running.urls if url not in private)


def test_no_delay_and_another_section_can_be_named(run, small):
    running = run(small, FaultProfile(disallow=()))
    robots = Protego.parse(running.client.get(f"{running.living.seeds()[0]}robots.txt").body.decode())
    assert robots.crawl_delay("recrawl") is None
    assert all(robots.can_fetch(url, "recrawl") for url in running.urls)


def test_robots_txt_fails_at_its_rate_and_repeats_with_the_seed(run, small):
    def statuses(seed):
        running = run(small, FaultProfile(robots_errors=0.5), seed=seed)
        return [running.client.get(f"{home}robots.txt").status for home in running.living.seeds() for _ in range(20)]

    first, again, other = (statuses(seed) for seed in (1, 1, 2))
    assert first == again != other
    assert set(first) == {200, 503}
    assert first[:20] != first[20:]


def test_private_pages_are_served_all_the_same_and_the_log_tells(run, small):
    running = run(small)
    page = next(p for p, path in enumerate(small.path) if path.startswith("/private/") and small.born[p] == small.start)
    assert running.get(page).status == 200
    assert running.living.requests().page.tolist() == [page]


@pytest.mark.parametrize("day", [0, 5, 13])
def test_the_sitemap_is_true_unless_it_lies(run, small, day):
    running = run(small, now=small.start + day * DAY)
    now = running.clock.now()
    for host in range(2):
        pages = [
            page
            for page in np.flatnonzero(small.host == host)
            if small.alive(page, now) and not small.path[page].startswith("/private/")
        ]
        entries = sitemap_of(running, host)
        assert set(entries) == {running.urls[page] for page in pages}
        for page in pages:
            lastmod, frequency = entries[running.urls[page]]
            assert lastmod == np.floor(small.modified(page, now))
            assert 1 / 8 < FREQUENCY[frequency] * small.rate[page] < 8


def test_lying_entries_are_the_ones_that_were_dealt(run, small):
    running = run(small, FaultProfile(lying_maps=0.7), now=small.start + 10 * DAY)
    entries = sitemap_of(running) | sitemap_of(running, 1)
    met = set()
    for page, url in enumerate(running.urls):
        if url not in entries:
            continue
        lie = running.living.faults_of(page).map_lie
        met.add(lie)
        lastmod, frequency = entries[url]
        match lie:
            case SitemapLie.NONE:
                assert lastmod == np.floor(small.modified(page, running.clock.now()))
            case SitemapLie.STALE:
                assert (lastmod, frequency) == (np.floor(small.born[page]), "never")
            case SitemapLie.FRESH:
                assert (lastmod, frequency) == (np.floor(running.clock.now()), "always")
    assert met == set(SitemapLie)


def test_large_sites_have_several_sitemaps(run):
    web = tree_site("big", np.full(1_203, 1e-6), start=0.0, end=DAY, rng=np.random.default_rng(0))
    running = run(web)
    index = running.client.get(f"{running.living.seeds()[0]}sitemap.xml").body
    assert index.count(b"<sitemap>") == 3
    assert len(sitemap_of(running)) == 1_203
    assert running.client.get(f"{running.living.seeds()[0]}sitemap-3.xml").status == 404
    assert running.client.get(f"{running.living.seeds()[0]}sitemap-x.xml").status == 404


def test_whoever_comes_by_address_gets_the_list_of_hosts(run, small):
    running = run(small)
    answer = running.client.get(f"http://127.0.0.1:{running.living.port}/")
    assert answer.status == 200
    assert all(home.encode() in answer.body for home in running.living.seeds())
    assert running.client.get(f"http://127.0.0.1:{running.living.port}/robots.txt").status == 404
    assert running.living.requests().host.tolist() == ["127.0.0.1"] * 2


def test_seeds_are_pages_even_where_the_root_is_none(run, small):
    running = run(small)
    assert running.living.seeds() == [f"http://{host}/" for host in running.living.hosts()]
    rootless = replace(small, path=["/docs" + path for path in small.path])
    running = run(rootless)
    assert running.living.seeds() == [f"http://{host}/docs/" for host in running.living.hosts()]
    assert [running.client.get(seed).status for seed in running.living.seeds()] == [200, 200]
