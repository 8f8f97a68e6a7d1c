"""The example of the documentation, installed as a package would be, and crawled with."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

from recrawl.crawl.visit.scope import HostScope
from recrawl.crawl.worker.crawl_assembly import WorkerSettings, live_crawl
from recrawl.fetch.access.access_methods import AccessMethods
from recrawl.model import Outcome, Verdict
from recrawl.schedule.policies.fixed_interval import FixedInterval
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.store.open import open_store
from recrawl.time import HOUR, VirtualClock

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "add-an-access-method.md"
START = 1.79e9


def blocks(language):
    found = re.findall(rf"^ *```{language}\n(.*?)^ *```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in found]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The package of the guide, found by its metadata as any installed one is."""
    folder = tmp_path / "site-packages"
    about = folder / "json_pages-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "json_pages.py").write_text(blocks("python")[0])
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: json-pages\nVersion: 1.0\n")
    [entry] = blocks("toml")
    (about / "entry_points.txt").write_text("[recrawl.access]\n" + entry.splitlines()[1].replace('"', "") + "\n")
    monkeypatch.syspath_prepend(str(folder))
    yield
    sys.modules.pop("json_pages", None)


@pytest.mark.usefixtures("installed")
def test_the_test_of_the_guide_passes():
    names = {}
    exec(compile(blocks("python")[1], str(GUIDE), "exec"), names)  # it asserts by itself
    assert names["exchange"].request.url == "http://example.org/api?page=2"


@pytest.mark.usefixtures("installed")
def test_a_method_of_another_package_is_crawled_with(tmp_path, site):
    clock = VirtualClock(START)

    def listed(number):
        value = 1 if clock.now() < START + 3 * HOUR else 5
        last = {"records": [{"id": 3}]}
        page = {"records": [{"id": 1, "value": value}, {"id": 2}], "next": "?page=2"} if number == 1 else last
        return 200, {"Content-Type": "application/json"}, json.dumps(page)

    site.answers["/api"] = lambda _asked: listed(1)
    site.answers["/api?page=2"] = lambda _asked: (502, {}, "") if clock.now() > START + 9 * HOUR else listed(2)

    async def run():
        source = AccessMethods().get("json-pages").source(f"{site.home}api", {"max_pages": "3"})
        host = site.home.split("/")[2]
        settings = WorkerSettings(
            budget=1.0,
            user_agent="guide/1.0 (+https://example.org/)",
            politeness=PolitenessRules(factor=0.0, shortest=5.0, longest=5.0),
            durable=False,
        )
        with open_store(str(tmp_path / "store.db"), create=True, durable=False) as store:
            page = store.discover([source.url], START)
            store.set_source(page, "json-pages", json.dumps(source.options))
            policy, scope = FixedInterval(2 * HOUR), HostScope(frozenset({host}))
            async with live_crawl(
                "one", policy, clock=clock, store=store, folder=tmp_path, scope=scope, settings=settings
            ) as driver:
                await driver.run(START + 10.1 * HOUR)
            return store.visits(pages=page), store.captures(page)

    visits, captures = asyncio.run(run())
    unchanged, changed = Verdict.UNCHANGED, Verdict.CHANGED
    assert visits.verdict.tolist() == [Verdict.UNKNOWN, unchanged, changed, unchanged, unchanged, Verdict.UNKNOWN]
    assert visits.outcome.tolist() == [Outcome.FETCHED] * 5 + [Outcome.SERVER_ERROR]
    assert len(captures) == 3
    assert site.paths() == ["/api", "/api?page=2"] * 6
