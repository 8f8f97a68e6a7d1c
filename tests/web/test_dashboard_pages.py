"""The pages of the dashboard and their JSON twins over a real workspace: what they tell is what the store holds."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
import math
import uuid
from html.parser import HTMLParser
from time import monotonic, sleep  # noqa: TID251 - waiting for what is worked out behind the scenes

import feedparser
import numpy as np
import pytest

from recrawl.app.workspace.workspace import make_workspace
from recrawl.crawl.clock import RealClock
from recrawl.detect.explanation import Explanation
from recrawl.formats.warc.archived_bytes import ArchivedBytes, imported_into
from recrawl.model import Outcome, Verdict, Visits
from recrawl.time import DAY, to_iso
from recrawl.transfer.archive_import import Importer
from recrawl.transfer.import_sources import ImportSources
from recrawl.transfer.payload_classifier import PayloadClassifier
from recrawl.web.dashboard.access_control import AccessGuard
from recrawl.web.dashboard.dashboard_app import make_app, wired

URL = "http://page.example/<script>alert(1)</script>"
SILENT = "http://b.example/silent"
EVIL = "</td><script>alert(2)</script><img src=x onerror=alert(3)>"
VERSIONS = (
    f"<title>{EVIL}</title><p>We open at nine. The fee is 3 EUR. It is 10:00:00",
    f"<title>{EVIL}</title><p>We open at nine. The fee is 3 EUR. It is 10:00:01",
    (
        f"<title>{EVIL}</title><p>We open at nine. The fee is 4 EUR. &lt;script&gt;alert(4)&lt;/script&gt; "
        "<a href='/new?<b>'>Why?</a>"
    ),
)
PATHS = ("/", "/changes", "/hosts", "/pages", "/captures", "/policies", "/settings")


def _record(date: str, html: str) -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + html.encode()
    digest = base64.b32encode(hashlib.sha1(html.encode(), usedforsecurity=False).digest()).decode()
    fields = {
        "WARC-Type": "response",
        "WARC-Record-ID": f"<{uuid.uuid4().urn}>",
        "WARC-Target-URI": URL,
        "WARC-Date": date,
        "WARC-Payload-Digest": f"sha1:{digest}",
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(block)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return gzip.compress(f"WARC/1.1\r\n{lines}\r\n".encode() + block + b"\r\n\r\n")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Three versions of a page that would like to run scripts, and 130 others with visits, some of which failed."""
    folder = tmp_path_factory.mktemp("dashboard")
    made, clock = make_workspace(folder / "archive", {"schedule.budget": 50.0}), RealClock()
    now = clock.now()
    archive = folder / "crawl.warc.gz"
    with archive.open("wb") as file:
        for age, html in zip((3, 2, 1), VERSIONS, strict=True):
            file.write(_record(to_iso(now - age * DAY), html))
    with made.open_store() as store:
        importer = Importer(store, clock)
        list(ImportSources(store, importer, clock, made.warc).bring(archive))
        importer.judge()
        standards = made.configuration.settings.detect.standards()
        PayloadClassifier(store, ArchivedBytes(made.warc, imported_into(store)).read, 0.0, standards).judge(
            store.unread()
        )
        _fill(store, now)
    return made


def _fill(store, now):
    rng = np.random.default_rng(3)
    urls = [f"http://{host}.example/{section}/{number}" for host in "ab" for section in "xy" for number in range(32)]
    pages = store.discover([*urls, "http://a.example/%22onmouseover=alert(5)"], now - 20 * DAY)
    silent = store.discover([SILENT], now - 20 * DAY)
    store.lease("me", now, 1_000, per_host=1_000, ttl=DAY)
    page = np.repeat(pages[:-1], 6)
    time = now - DAY * (16.0 - 2.5 * np.tile(np.arange(6), len(pages) - 1)) - rng.uniform(0, 3600, len(page))
    verdict = np.where(np.tile(np.arange(6), len(pages) - 1) == 0, Verdict.UNKNOWN, Verdict.UNCHANGED)
    verdict[(verdict == Verdict.UNCHANGED) & (rng.random(len(page)) < 0.3)] = Verdict.CHANGED
    outcome = np.full(len(page), Outcome.FETCHED)
    failed = (page % 17 == 0) & (np.tile(np.arange(6), len(pages) - 1) == 5)
    outcome[failed], verdict[failed] = Outcome.SERVER_ERROR, Verdict.UNKNOWN
    status = np.where(failed, 503, 200)
    visits = Visits.of(page, time, outcome=outcome, verdict=verdict, status=status, cost=0.2)
    store.record(visits, due=now + rng.uniform(-3, 9, len(page)) * DAY, worker="me")
    store.record(Visits.of(silent, [now - DAY], outcome=Outcome.UNREACHABLE), due=np.array([now + DAY]), worker="me")


@pytest.fixture(scope="module")
def dashboard(place, served):
    wires = wired(place, AccessGuard(), RealClock().now)
    with served(make_app(wires.site)) as port:
        yield port, wires.site
    wires.close()


@pytest.fixture(scope="module")
def get(dashboard, ask):
    """The JSON of a path."""

    def fetch(path):
        status, headers, text = ask(dashboard[0], path)
        assert (status, headers["content-type"]) == (200, "application/json"), text
        return json.loads(text)

    return fetch


def until(observation, wanted):
    """What ``observation`` says once it is as wanted."""
    end = monotonic() + 120
    while not wanted(found := observation()):
        assert monotonic() < end, found
        sleep(0.05)
    return found


@pytest.fixture(scope="module")
def surveyed(get):
    """What the overview says when all of it is worked out."""

    def known(found):
        return all(found[part]["facts"] is not None for part in ("counts", "work", "plan"))

    return until(lambda: get("/api/overview"), known)


class Markup(HTMLParser):
    """What a browser would make of a page, as far as scripts are concerned."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.inline, self.handlers, self.links, self.ids = [], [], [], []
        self._script = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        told = dict(attrs)
        self.handlers += [name for name in told if name.startswith(("on", "hx-on"))]
        self.links += [value for name, value in told.items() if name in {"href", "src", "action", "hx-get"}]
        self.ids += [told["id"]] if "id" in told else []
        self._script = tag == "script" and "src" not in told and "json" not in (told.get("type") or "")

    def handle_data(self, data):
        if self._script:
            self.inline.append(data)


@pytest.fixture(scope="module")
def evil(place):
    with place.open_store() as store:
        return store.find(URL).id


def test_no_page_lets_an_archive_run_anything(dashboard, ask, surveyed, evil):
    port, _ = dashboard
    assert surveyed
    for path in (
        *PATHS,
        "/pages?search=script",
        f"/pages/{evil}",
        f"/pages/{evil}/visit",
        "/pages?search=%3Cscript%3E",
    ):
        status, headers, text = ask(port, path, accept="text/html")
        assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8"), path
        page = Markup(text)
        assert (page.inline, page.handlers) == ([], []), path
        assert "<script>alert" not in text, path
        assert EVIL not in text, path
        assert all(link.startswith(("/", "#", "data:,", "http://page.example/", "?")) for link in page.links), (
            page.links
        )
        assert len(set(page.ids)) == len(page.ids), path


def test_the_menu_names_the_pages(dashboard):
    _, site = dashboard
    menu = {view.path: view.menu for view in site.views if view.menu}
    assert menu == {path: (path[1:] or "overview").capitalize() for path in PATHS}


def test_every_page_has_a_twin_with_what_it_promises(dashboard, get, surveyed, evil):
    assert surveyed
    _, site = dashboard
    said = get("/openapi.json")["paths"]
    for view in site.views:
        assert view.api in said
        if ("{" in view.api and "{page}" not in view.api) or view.media_type != "application/json":
            continue
        found = get(view.api.format(page=evil))
        assert set(view.keys) <= set(found), view.api


def test_the_overview_tells_what_the_store_holds(place, surveyed):
    counts, work, plan = (surveyed[part]["facts"] for part in ("counts", "work", "plan"))
    with place.open_store() as store:
        held = store.counts(surveyed["now"])
    assert (counts["pages"], counts["visits"], counts["changed"]) == (held.pages, held.visits, held.changed)
    assert sum(counts["activity"]["visits"]) == held.visits
    assert (work["due"], work["budget_per_day"], work["workers"]) == (held.due, 50.0, [])
    assert 0 < plan["fresh"] < 1
    assert plan["price"] > 0
    assert [row[0] for row in plan["budget_rows"]] == ["10% less", "as it is", "10% more"]
    freshness = [plan["budgets"][name]["freshness"] for name in ("less", "now", "more")]
    assert freshness == sorted(freshness)
    dues = [one["due"] for one in plan["next"]]
    assert dues == sorted(dues)


def test_changes_are_listed_with_a_sentence_and_their_difference(get, ask, dashboard, evil):
    found = get("/api/changes?period=week&host=page.example")
    assert [one["event"] for one in found["changes"]] == ["changed", "added"]
    change = found["changes"][0]
    assert change["page"] == evil
    assert "3 EUR" in change["summary"]
    assert "4 EUR" in change["summary"]
    status, _, text = ask(dashboard[0], change["difference"], accept="text/html")
    assert status == 200
    assert "We open at nine" in text
    all_of_week = get("/api/changes?period=week&limit=7")
    assert len(all_of_week["changes"]) == 7 < all_of_week["total"]
    times = [one["time"] for one in all_of_week["changes"]]
    assert times == sorted(times, reverse=True)
    assert {one["event"] for one in get("/api/changes?period=year&event=failing&limit=200")["changes"]} == {"failing"}
    assert get("/api/changes?host=nowhere.example") | {"changes": [], "total": 0} == get(
        "/api/changes?host=nowhere.example"
    )


def test_feeds_are_valid_and_lead_to_the_difference(dashboard, ask):
    port = dashboard[0]
    status, headers, text = ask(port, "/feeds/changes.atom?period=week&host=page.example")
    assert (status, headers["content-type"]) == (200, "application/atom+xml")
    feed = feedparser.parse(text)
    assert not feed.bozo
    assert len(feed.entries) == 2
    assert feed.entries[0].link.startswith(f"http://127.0.0.1:{port}/pages/")
    assert ask(port, feed.entries[0].link.partition(str(port))[2], accept="text/html")[0] == 200
    status, headers, text = ask(port, "/feeds/changes.json?period=week&host=page.example")
    assert (status, headers["content-type"]) == (200, "application/feed+json")
    told = json.loads(text)
    assert [item["id"] for item in told["items"]] == [entry.id for entry in feed.entries]
    assert ask(port, "/feeds/changes.atom?period=century")[0] == 400


def test_hosts_are_listed_with_their_pages(place, get):
    found = until(lambda: get("/api/hosts?sort=name"), lambda told: told["hosts"])
    assert [one["name"] for one in found["hosts"]] == ["a.example", "b.example", "page.example"]
    with place.open_store() as store:
        pages = store.pages()
    assert sum(one["pages"] for one in found["hosts"]) == len(pages)
    assert sum(one["failing"] for one in found["hosts"]) > 0
    first = get("/api/hosts?sort=pages&limit=1")
    second = get(f"/api/hosts?sort=pages&limit=1&after={first['next']}")
    assert first["hosts"][0]["pages"] >= second["hosts"][0]["pages"]
    assert first["hosts"] != second["hosts"]
    assert get("/api/hosts?search=PAGE.")["total"] == 1


def _walk(get, query):
    """All rows of a list, screen by screen."""
    found, after = [], ""
    while after is not None:
        told = get(f"/api/pages?limit=50&{query}&after={after}")
        found += told["pages"]
        after = told["next"]
    return found


@pytest.mark.parametrize("sort", ["url", "url-down", "due", "due-last", "newest", "oldest", "rate", "-rate", "worth"])
def test_every_order_lists_every_page_once(place, get, surveyed, sort):
    assert surveyed
    with place.open_store() as store:
        pages = store.pages()
    believed = sort in {"rate", "-rate", "worth"}
    wanted = pages.id[(pages.importance > 0) | (not believed)].tolist()
    rows = _walk(get, f"sort={sort}")
    assert sorted(row["id"] for row in rows) == wanted
    if sort.startswith("due"):
        dues = [math.inf if row["due"] is None else row["due"] for row in rows]
        assert dues == sorted(dues, reverse=sort == "due-last")
    if sort == "rate":
        every = [math.inf if row["belief"]["every"] is None else row["belief"]["every"] for row in rows]
        assert every == sorted(every)


def test_pages_are_found_by_text_host_and_state(place, get):
    with place.open_store() as store:
        failing = set(store.failing(1000).page.tolist())
    assert {row["id"] for row in _walk(get, "state=failing")} == failing != set()
    rows = _walk(get, "host=b.example&search=/X/1")
    assert {row["url"] for row in rows} == {f"http://b.example/x/{n}" for n in (1, *range(10, 20))}
    assert {row["host"] for row in rows} == {"b.example"}
    assert _walk(get, "host=nowhere") == _walk(get, "host=nowhere&sort=due") == []
    assert _walk(get, "search=%25") == [row for row in _walk(get, "sort=url") if "%" in row["url"]]


def test_rows_tell_visits_and_changes_of_each_page(place, get):
    rows = _walk(get, "host=a.example")
    with place.open_store() as store:
        for row in rows[::9]:
            visits = store.visits(pages=np.array([row["id"]]))
            assert row["visits"] == len(visits)
            assert row["changes"] == (visits.verdict == Verdict.CHANGED).sum()


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/api/pages/999999", 404, "no page 999999"),
        ("/api/pages/x", 400, "not a number"),
        ("/api/pages/9223372036854775808", 400, "must be"),
        ("/api/pages?after=nonsense!", 400, "not a position in this list"),
        ("/api/pages?after=WyJhXHUwMDAwIiwgMV0", 400, "not a position in this list"),
        ("/api/pages?after=" + base64.b64encode(b"[" * 1_400).decode(), 400, "not a position in this list"),
        ("/api/pages?limit=100000", 400, "must be 1 to 200"),
        ("/api/pages?sort=chance", 400, "sort is 'chance'"),
    ],
)
def test_what_is_not_there_is_said(dashboard, ask, path, status, says):
    found, _, text = ask(dashboard[0], path)
    assert found == status
    assert says in json.loads(text)["error"]
    found, headers, text = ask(dashboard[0], path.removeprefix("/api"), accept="text/html")
    assert (found, headers["content-type"]) == (status, "text/html; charset=utf-8")


def test_a_page_tells_its_visits_and_what_was_believed(get, surveyed, evil):
    assert surveyed
    found = until(lambda: get(f"/api/pages/{evil}"), lambda told: told["belief"] and told["next"])
    assert found["page"]["url"].startswith("http://page.example/")
    assert [one["verdict"] for one in found["visits"]] == ["changed", "unchanged", "unknown"]
    belief = found["belief"]
    assert belief["time"] == sorted(one["time"] for one in found["visits"])[1:]  # one look says nothing of rates
    for low, middle, high in zip(belief["shortest"], belief["every"], belief["longest"], strict=True):
        assert low < middle < high
    assert found["next"]["why"]


def test_a_page_that_never_answered_is_not_waited_for(dashboard, place, get, ask, surveyed):
    """Nothing is believed of it, now or later: nobody is told to wait, and the page does not ask again and again."""
    assert surveyed
    with place.open_store() as store:
        silent = store.find(SILENT).id
    found = until(lambda: get(f"/api/pages/{silent}"), lambda told: told["belief"] is not None)
    assert (found["belief"]["time"], found["page"]["failed"]) == ([], found["page"]["visits"])
    text = ask(dashboard[0], f"/pages/{silent}")[2]
    assert "is not known: this needs two" in text
    assert "being worked out" not in text


def test_a_visit_is_explained_without_comparing_all_lines(get, evil, monkeypatch):
    """Side by side has a limit; the difference for terminals has none, and nobody here reads it."""
    monkeypatch.setattr(Explanation, "diff", lambda *_: pytest.fail("all lines are compared"))
    assert get(f"/api/pages/{evil}/visit?changed=true")["side_by_side"]


def test_a_visit_is_explained_with_both_versions(get, ask, dashboard, evil):
    found = get(f"/api/pages/{evil}/visit?changed=true")
    assert (found["verdict"], found["later"]) == ("changed", None)
    edited = [row for row in found["side_by_side"] if row["side"] == "edited"]
    marked = [text for row in edited for side in ("before", "after") for text, differs in row[side] if differs]
    assert {"3", "4"} <= set(marked)
    before = get(f"/api/pages/{evil}/visit?at={found['earlier']}")
    assert before["verdict"] == "unchanged"
    assert before["noise"] == [{"rule": "clock with seconds", "text": "10:00:01"}]
    _, _, text = ask(dashboard[0], f"/pages/{evil}/visit")
    assert "<mark>4</mark>" in text
    assert "&lt;script&gt;alert(4)" in text


def test_an_empty_workspace_says_what_to_do_next(tmp_path, served, ask):
    wires = wired(make_workspace(tmp_path / "new", {}), AccessGuard(), RealClock().now)
    with served(make_app(wires.site)) as port:
        text = until(lambda: ask(port, "/", accept="text/html")[2], lambda page: "There are no pages yet" in page)
        assert "recrawl add" in text
        assert "recrawl add" in ask(port, "/pages")[2]
        assert "recrawl add" in until(lambda: ask(port, "/hosts")[2], lambda page: "Counting pages" not in page)
        told = until(lambda: json.loads(ask(port, "/api/overview")[2])["plan"], lambda plan: plan["error"])
        assert "no page to plan for" in told["error"]
        assert "being worked out" not in ask(port, "/", accept="text/html")[2]
        assert "recrawl compare -w " in ask(port, "/policies", accept="text/html")[2]
    wires.close()


def test_questions_do_not_wait_for_each_other(dashboard, ask):
    """Many at once: each gets a store of its own, or waits for one."""

    async def many():
        return await asyncio.gather(
            *(asyncio.to_thread(ask, dashboard[0], f"/api/pages?limit={n}") for n in range(1, 30))
        )

    for number, (status, _, text) in enumerate(asyncio.run(many()), start=1):
        assert (status, len(json.loads(text)["pages"])) == (200, number)
