"""Dashboard and time travel on a real PostgreSQL: every answer is that of the same workspace on SQLite."""

import json
import re

import numpy as np
import pytest

from recrawl.store.store_values import FoundPages
from recrawl.time import HOUR
from recrawl.web.dashboard.access_control import AccessGuard
from recrawl.web.dashboard.dashboard_app import make_app, wired

HOME = "http://site.example/"
NOW = 1_704_067_200.25 + 10 * HOUR
QUALITY = {
    "pages": 1,
    "coherence": {"coherent": 1, "changed": 0, "missing": 0, "unknown": 0},
    "blur": {"achieved": None, "predicted": {"average": 0.5}},
}
TRAVELS = (
    f"archive/{HOME}",
    f"archive/20240101030000/{HOME}",
    f"archive/20240101000000id_/{HOME}",
    f"archive/20240101000000if_/{HOME}style.css",
    f"archive/20240101000000id_/{HOME}nowhere",
    f"archive/timemap/link/{HOME}",
    f"archive/timemap/json/{HOME}",
    f"archive/timemap/cdxj/{HOME}",
    f"archive/cdx?url={HOME}*&output=json",
    f"archive/cdx?url={HOME}&closest=20240101020000&limit=1",
    "archive/cdx?url=site.example&matchType=domain&filter=statuscode:200&collapse=digest&fl=urlkey,timestamp",
    f"archive/cdx?url={HOME}*&showNumPages=true",
    f"api/memento?url={HOME}&at=20240101030000",
)
TEMPERED = ("date", "etag", "last-modified", "set-cookie")
"""Headers that depend on when, or by whom, they are sent."""


def captured(place):
    """Two captures of one page, of which the second is finished: every page of the dashboard has something to show."""
    with place.open_store() as store:
        [home] = store.discover([HOME], NOW).tolist()
        found = FoundPages(np.array([home]), np.array([-1]), np.array([1e-5]), np.ones(1))
        terms = json.dumps({"strategy": "bfs"})
        numbers = [store.begin_site_capture(HOME, terms, delay=1.0, now=NOW + n, known=found) for n in (0, 1)]
        store.finish_site_capture(numbers[1], json.dumps({"observations": 1, "quality": QUALITY}), NOW + 2)
        return home, *numbers


@pytest.fixture(scope="module")
def both(make_server, new_database):
    """The same workspace twice: on SQLite, and on PostgreSQL. With the page and the capture to ask for."""
    postgres = new_database()
    servers = [make_server(), make_server(settings={"store.location": postgres})]
    assert len({captured(server.place) for server in servers}) == 1
    assert servers[1].place.store == postgres
    return servers


def alike(server, text):
    """A text without what differs between two servers of the same: addresses and names of files."""
    text = text.replace(f"127.0.0.1:{server.port}", "HERE").replace(str(server.place.folder), "WORKSPACE")
    text = re.sub(r"postgres(ql)?://[^\"<\s]+|WORKSPACE/recrawl\.db", "STORE", text)
    return re.sub(r'(\d+"?,? "?\d+"?,? "?)?[\w~-]+-\d{17}-[\w~-]+\.warc\.gz', "PLACE", text)


@pytest.mark.parametrize("path", TRAVELS)
def test_time_travel_answers_alike(both, path):
    told = []
    for server in both:
        answer = server.ask(path, Accept_Datetime="Mon, 01 Jan 2024 03:00:00 GMT")
        headers = [(name, alike(server, value)) for name, value in answer.headers if name.lower() not in TEMPERED]
        told.append((answer.status, headers, alike(server, answer.body.decode("latin-1"))))
    assert told[0] == told[1]
    assert told[1][0] in {200, 302} or "nowhere" in path


def test_every_page_of_the_dashboard_and_its_twin_open(both, served, ask):
    sites = [wired(server.place, AccessGuard(), lambda: NOW + HOUR) for server in both]
    with served(make_app(sites[0].site)) as sqlite, served(make_app(sites[1].site)) as postgres:
        named = {"page": 1, "capture": 1}
        for site in sites:
            for one in site.kept:
                one.begin().result(120)  # what is worked out behind the scenes
        for view in sites[0].site.views:
            told = [ask(port, view.api.format(**named)) for port in (sqlite, postgres)]
            assert [status for status, _, _ in told] == [200, 200], (view.api, told)
            if view.media_type.endswith("json"):
                keys = [set(json.loads(text)) for _, _, text in told]
                assert keys[0] == keys[1] >= set(view.keys), view.api
            if view.path.startswith(("/pages", "/hosts", "/captures")):
                plain = [
                    re.sub(r'"(believed_)?at":[\d.]+|"running":\w+', "", alike(server, text))
                    for server, (_, _, text) in zip(both, told, strict=True)
                ]
                assert plain[0] == plain[1], view.api
            if view.template:
                status, headers, text = ask(postgres, view.path.format(**named), accept="text/html")
                assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8"), view.path
                assert "<h1" in text or "<h2" in text
    for site in sites:
        site.close()
