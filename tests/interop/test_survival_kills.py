"""A crawl that is killed a hundred times: nothing acknowledged is lost, nothing else is there, and others can read it.

``recrawl run`` itself is killed, at random moments, its own start included. The server's log is the witness of what was
asked for, warcio and pywb are the judges of what was written.
"""

from __future__ import annotations

import base64
import signal
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import apsw
import numpy as np
import pytest
import yaml
from killed_crawls import ALL, Site, Starter, a_site, a_starter, rows, until
from warcio.archiveiterator import ArchiveIterator

from recrawl.model import Outcome, Verdict
from recrawl.store.open import open_store
from recrawl.time import to_timestamp14

resource = pytest.importorskip("resource", reason="processes are forked here, and this system cannot")
CONCURRENCY = 8
LOOKS = 2
"""Most requests for one page that a process which is killed can cost: a visit, and its second look."""
SETTINGS = {
    "fetch": {"contact": "me@example.org", "allow_networks": "127.0.0.0/8"},
    "politeness": {"factor": 0.0, "min_delay": 0.0, "ip_delay": 0.0},
    "schedule": {"policy": "uniform", "budget": "2000/s"},
    "crawl": {"concurrency": CONCURRENCY, "scope": "host"},
}


@pytest.fixture
def site():
    try:
        with a_site() as place:
            yield place
    except OSError:
        pytest.skip("hosts are addresses of loopback here, and this system has but one")


@pytest.fixture(scope="module")
def starter(tmp_path_factory):
    with a_starter(tmp_path_factory.mktemp("starter")) as started:
        yield started


@dataclass
class Crawl:
    """A workspace whose crawl is killed again and again."""

    folder: Path
    location: str
    site: Site
    starter: Starter
    rng: np.random.Generator
    unacknowledged: int = 0
    """Requests that were made and not acknowledged when a process was killed."""

    def begin(self):
        return self.starter.start("run", "-w", self.folder)

    def kill_some(self, times, workers=1):
        """Kill so many processes, at random moments; what was acknowledged before stays as it was."""
        with open_store(self.location) as store:
            known = rows(store.visits())
            for _ in range(times // workers):
                before = len(self.site.log)
                alive = [self.begin() for _ in range(workers)]
                if self.rng.random() < 0.9:
                    self.until(lambda before=before: len(self.site.log) > before)
                for process in alive:
                    time.sleep(self.rng.random() * 0.15)
                    assert self.starter.end(process, signal.SIGKILL) == -signal.SIGKILL, self.starter.said()
                self.site.until_all_is_read()
                now_known = rows(store.visits())
                assert now_known.items() >= known.items()
                lost = self.lost(store, before, [page for page, _ in now_known.keys() - known.keys()])
                # Whoever begins after another was killed takes over its pages, and is killed with them.
                assert all(0 <= requests <= LOOKS * workers for requests in lost.values()), lost
                self.unacknowledged += lost.total()
                known = now_known

    def lost(self, store, before, acknowledged):
        """By URL, requests since there were so many that are none of these visits."""
        asked = Counter(request.url for request in self.site.log[before:])
        asked.subtract(store.urls(np.array(acknowledged, np.int64)))
        return asked

    def finish(self):
        """Let it run undisturbed for a moment, then ask it to stop, as systemd and docker do."""
        before = len(self.site.log)
        process = self.begin()
        self.until(lambda: len(self.site.log) > before + 100)
        with open_store(self.location) as store:
            self.until(lambda: len(np.unique(store.visits().page)) == ALL)
        assert self.starter.end(process, signal.SIGTERM) == 11, self.starter.said()

    def until(self, so):
        until(so, self.starter.said)


def made(starter, site, folder, location, seed):
    for order in (("init", folder, "--store", location), ("add", "-w", folder, *site.seed_scope)):
        assert starter.end(starter.start(*order)) == 0, starter.said()
    text = yaml.safe_dump(SETTINGS | {"store": {"location": location}})  # without comments it is read in no time
    (folder / "recrawl.yaml").write_text(text, encoding="utf-8")
    place = str(folder / location) if "://" not in location else location
    return Crawl(folder, place, site, starter, np.random.default_rng(seed))


def check(crawl, *, long=True):
    """What is acknowledged is archived, what is archived is acknowledged, and the server saw both.

    In a crawl that was ``long`` some page changed.
    """
    with open_store(crawl.location) as store:
        visits, pages = store.visits(), store.pages()
        url_of = dict(zip(pages.id.tolist(), store.urls(pages.id), strict=True))
        captures = {(row.warc_file, row.warc_offset): row for row in store.captures(pages.id)}
        assert store.counts(time.time()).leased == 0  # noqa: TID251 - as the crawler
    assert len(np.unique(visits.page)) == ALL
    assert set(visits.outcome.tolist()) <= {Outcome.FETCHED, Outcome.NOT_MODIFIED}
    assert (visits.verdict == Verdict.CHANGED).any() or not long
    assert len(crawl.site.log) - len(visits) == crawl.unacknowledged
    asked = Counter(request.url for request in crawl.site.log)
    seen = Counter(url_of[page] for page in visits.page.tolist())
    assert all(asked[url] >= seen[url] for url in asked)

    folder = crawl.folder / "warc"
    assert not list(folder.glob("*.open"))
    assert len(captures) == len(visits)
    found = set()
    for file in folder.glob("*.warc.gz"):
        with file.open("rb") as stream:
            records = ArchiveIterator(stream, check_digests="raise")
            for record in records:
                url = record.rec_headers.get_header("WARC-Target-URI", "")
                if record.rec_type not in {"response", "revisit"} or url.endswith("/robots.txt"):
                    continue
                row = captures[file.name, records.get_record_offset()]
                assert url == url_of[row.page]
                assert record.rec_headers.get_header("WARC-Payload-Digest") == f"sha1:{b32(row.digest)}"
                record.content_stream().read()
                assert records.get_record_length() == row.warc_length
                found.add((row.warc_file, row.warc_offset))
    assert found == set(captures)
    return captures, url_of


def b32(digest):
    return base64.b32encode(digest).decode()


def test_forty_kills_lose_nothing(site, starter, tmp_path, tool, pywb):
    crawl = made(starter, site, tmp_path / "w", "recrawl.db", seed=1)
    crawl.kill_some(35)
    crawl.kill_some(5, workers=2)
    crawl.finish()
    captures, url_of = check(crawl)
    files = sorted((tmp_path / "w" / "warc").glob("*.warc.gz"))
    checked = tool("warcio", "check", *files)
    assert checked.returncode == 0, checked.stdout
    connection = apsw.Connection(str(tmp_path / "w" / "recrawl.db"))
    assert connection.pragma("integrity_check") == "ok"
    connection.close()
    base = pywb(tmp_path / "w" / "warc")
    for row in np.random.default_rng(2).choice(list(captures.values()), 10, replace=False):
        with urllib.request.urlopen(f"{base}/{to_timestamp14(row.time)}id_/{url_of[row.page]}", timeout=30) as reply:
            assert reply.read().startswith(b"<html><body><p>word")


needs_prlimit = pytest.mark.skipif(
    not hasattr(resource, "prlimit"), reason="limits of another process stand in for a full disk"
)


@needs_prlimit
def test_a_full_disk_is_waited_out(site, starter, tmp_path):
    """The system lets no file grow any more; then there is room again."""
    crawl = made(starter, site, tmp_path / "w", "recrawl.db", seed=5)
    process = crawl.begin()
    crawl.until(lambda: len(site.log) > 100)
    [written] = (tmp_path / "w" / "warc").glob("*.open")
    resource.prlimit(process, resource.RLIMIT_FSIZE, (written.stat().st_size, resource.RLIM_INFINITY))
    crawl.until(lambda: "waiting for" in log_of(crawl))
    crawl.until(site.is_quiet)
    stands = len(site.log)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    crawl.until(lambda: len(site.log) > stands + 100)
    assert starter.end(process, signal.SIGTERM) == 11, starter.said()
    assert "storage works again" in log_of(crawl)
    crawl.finish()
    check(crawl, long=False)


@needs_prlimit
def test_a_disk_that_stays_full_ends_the_run_with_a_code_of_its_own(site, starter, tmp_path):
    crawl = made(starter, site, tmp_path / "w", "recrawl.db", seed=5)
    process = crawl.begin()
    crawl.until(lambda: len(site.log) > 100)
    [written] = (tmp_path / "w" / "warc").glob("*.open")
    resource.prlimit(process, resource.RLIMIT_FSIZE, (written.stat().st_size, resource.RLIM_INFINITY))
    crawl.until(lambda: "waiting for" in log_of(crawl))
    assert starter.end(process, signal.SIGTERM) == 3, starter.said()
    site.until_all_is_read()
    with open_store(crawl.location) as store:
        crawl.unacknowledged = len(site.log) - len(store.visits())
    crawl.finish()
    check(crawl, long=False)


def log_of(crawl):
    return (crawl.folder / "recrawl.log").read_text(encoding="utf-8")


def test_kills_on_postgresql_lose_nothing(site, starter, tmp_path, new_database):
    crawl = made(starter, site, tmp_path / "w", new_database(), seed=3)
    crawl.kill_some(6)
    crawl.kill_some(4, workers=2)
    crawl.finish()
    check(crawl)
