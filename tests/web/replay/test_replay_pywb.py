"""An independent client and an independent replay: pywb reads our CDX and TimeMaps, and replays our archive."""

import http.client
import json
import subprocess
import sys

import pytest

from recrawl.web.dashboard.access_control import AccessGuard
from recrawl.web.replay.pywb_replay import PywbGate
from recrawl.web.replay.workspace_archive import time_travel
from recrawl.web.servers import bound

HOME = "http://site.example/"
GUARD = AccessGuard("a-secret-of-many-letters")
HOURS = ["20240101000000", "20240101010000", "20240101020000", "20240101050000"]

CLIENT = """
import json, sys
from pywb.warcserver.index.indexsource import MementoIndexSource, RemoteIndexSource
from pywb.utils.canonicalize import canonicalize
base, url = sys.argv[1:]
memento = MementoIndexSource.init_from_string(f"memento+{base}archive/")
cdx = RemoteIndexSource.init_from_string(f"cdx+{base}archive/cdx")
def listed(source, **more):
    params = {"url": url, "key": canonicalize(url).encode(), "closest": "", **more}
    return [[line["timestamp"], line["url"], line.get("load_url", "")] for line in source.load_index(params)]
print(json.dumps({
    "timemap": listed(memento),
    "timegate": listed(memento, closest="20240101012000"),
    "cdx": listed(cdx, closest="20240101012000"),
}))
"""


def test_its_clients_read_our_timemap_timegate_and_index(server):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CLIENT, server.base, HOME], capture_output=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout.splitlines()[-1])
    assert [line[0] for line in found["timemap"]] == HOURS
    assert all(line[1] == HOME for line in found["timemap"])
    assert "20240101010000" in [line[0] for line in found["timegate"]]
    assert [line[0] for line in found["cdx"]] == [HOURS[1], HOURS[2], HOURS[0], HOURS[3]]
    assert found["cdx"][0][2] == f"{server.base}archive/20240101010000id_/{HOME}"


@pytest.fixture(scope="module")
def travel(server, serve_app):
    """Both servers of ``recrawl serve --replay``, for whoever has shown the token."""
    with (
        bound("127.0.0.1", 0) as behind,
        time_travel(server.place, GUARD, "127.0.0.1", behind, replay=0) as ready,
    ):
        endings = [serve_app(app, listening) for app, listening in ready.apps]
        yield ready
        for end in endings:
            end()


def ask(address, path, **headers):
    """Status, headers and text of an answer; with the cookie of who has shown the token, unless another is given."""
    authority, _, rest = address.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(authority, timeout=60)
    try:
        given = {"Cookie": f"{GUARD.pass_name}={GUARD.proof}"} | headers
        connection.request("GET", path if path.startswith("/") else f"/{rest}{path}", headers=given)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize(("timestamp", "text"), [(time, "first") for time in HOURS[:3]] + [(HOURS[3], "second")])
def test_it_replays_responses_and_both_kinds_of_revisit_at_their_own_time(travel, timestamp, text):
    status, headers, page = ask(travel.replay, f"{timestamp}mp_/{HOME}")
    assert status == 200
    hour = int(timestamp[8:10])
    assert headers["Memento-Datetime"] == f"Mon, 01 Jan 2024 {hour:02}:00:00 GMT"
    assert text in page
    assert f'href="/archive/{timestamp}mp_/{HOME}q?a=1&b=2#there"' in page
    assert headers["X-Recrawl-Parts"] == "2/3"


def test_it_frames_pages_with_a_banner_that_asks_us(travel):
    status, _, frame = ask(travel.replay, f"{HOURS[0]}/{HOME}")
    assert status == 200
    facts = travel.archive.removesuffix("archive/") + "api/memento"
    assert f'data-api="{facts}"' in frame
    assert '<script src="' in frame
    assert "<script>" not in frame
    status, _, script = ask(travel.replay, "/static/replay-banner.js")
    assert status == 200
    assert "textContent" in script
    status, headers, told = ask(travel.archive, f"/api/memento?url={HOME}&at=2024")
    assert status == 200
    assert json.loads(told)["parts"]["count"] == 3
    origin = travel.replay.removesuffix("/archive/")
    assert headers["Access-Control-Allow-Origin"] == origin


def test_an_evil_address_stays_text_in_the_frame(travel):
    evil = "http://site.example/?%22%3E%3Cscript%3Ealert(1)%3C/script%3E%3C/script%3E"
    _, _, frame = ask(travel.replay, f"{HOURS[0]}/{evil}")
    assert "<script>alert" not in frame


def test_a_page_without_scripts_leads_to_the_one_with_them(travel):
    _, _, page = ask(travel.archive, f"{HOURS[0]}/{HOME}")
    assert f'href="{travel.replay}{HOURS[0]}/{HOME}"' in page


def test_nobody_but_pywb_knows_where_it_asks(travel):
    """Others on this machine could ask there without the token otherwise, and even write."""
    _, inside = travel.apps[0]
    address = "http://{}:{}/".format(*inside.getsockname())
    for path in ("/", "/archive/cdx?url=site.example", f"/archive/{HOURS[0]}id_/{HOME}", f"/timegate/{HOME}"):
        assert ask(address, path)[0] == 404
    connection = http.client.HTTPConnection(*inside.getsockname(), timeout=60)
    connection.request("POST", "/archive/delete", "x")
    assert connection.getresponse().status == 401
    connection.close()


def test_strangers_see_neither(travel):
    assert ask(travel.replay, f"{HOURS[0]}/{HOME}", Cookie="")[0] == 403
    assert ask(travel.replay, f"{HOURS[0]}/{HOME}", Cookie=f"{GUARD.pass_name}=wrong")[0] == 403
    assert ask(travel.archive, f"{HOURS[0]}/{HOME}", Cookie="")[0] == 401
    assert PywbGate(None, "")._lets_in({"HTTP_HOST": "127.0.0.1:8082"})
    assert not PywbGate(None, "")._lets_in({"HTTP_HOST": "evil.example"})
