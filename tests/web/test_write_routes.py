"""Nothing is changed without the token: every route of every server that ``recrawl serve`` runs."""

import http.client
import json
import os
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from recrawl.app.workspace.workspace import make_workspace
from recrawl.crawl.clock import RealClock
from recrawl.web.dashboard.access_control import SAFE_METHODS, TOKEN_FILE, AccessGuard, stored_token
from recrawl.web.dashboard.dashboard_app import make_app, wired
from recrawl.web.dashboard.stale_cache import StorePool
from recrawl.web.replay.replay_app import time_travel_app
from recrawl.web.replay.workspace_archive import archive_of

METHODS = ("POST", "PUT", "PATCH", "DELETE", "CONNECT", "TRACE", "PROPFIND", "post")
LINE = "org,example)/ 20230101000000 http://example.org/ text/html 200 AAAA - - 10 20 other.warc.gz\n"
WRITES = {
    "dashboard": {
        "/actions/captures/begin",
        "/actions/captures/resume",
        "/actions/captures/stop",
        "/actions/policies/compare",
        "/actions/policies/stop",
        "/actions/settings/host",
        "/actions/settings/limit",
        "/actions/settings/pause",
        "/actions/settings/reset",
        "/actions/settings/resume",
        "/api/frontier/next",
        "/api/frontier/seen",
    },
    "archive": {"/archive", "/archive/delete"},
    "hidden": set(),
}
"""Every route that changes something. Whoever adds one adds it here, and sees that it needs the token."""


@pytest.fixture(scope="module")
def servers(served, tmp_path_factory):
    """Port, guard and application of each server, for a workspace on this machine without a token of its own."""
    place = make_workspace(tmp_path_factory.mktemp("routes") / "ws", {})
    guard, clock = AccessGuard(), RealClock()
    wires, stores = wired(place, guard, clock.now), StorePool(place.open_store)
    archive = archive_of(place, stores.one, clock)
    apps = {
        "dashboard": make_app(wires.site),
        "archive": time_travel_app(archive, guard),
        "hidden": time_travel_app(archive, hidden_below="word"),
    }
    with served(apps["dashboard"]) as one, served(apps["archive"]) as two, served(apps["hidden"]) as three:
        ports = dict(zip(apps, (one, two, three), strict=True))
        yield {name: (ports[name], guard, app, place) for name, app in apps.items()}
    wires.close()
    stores.close()


def paths(app):
    """Every path of an application, with something where a parameter stands."""
    fill = {"{page}": "1", "{capture}": "1", "{name:path}": "x", "{name}": "x", "{rest:path}": "http://example.org/"}
    found = {}
    for route in app.routes:
        path = route.path
        for name, value in fill.items():
            path = path.replace(name, value)
        assert "{" not in path, f"say above what stands for the parameter of {route.path}"
        found[path] = set(route.methods or ())
    return found


def contents(place):
    with place.open_store() as store:
        return store.controls(), len(store.pages()), len(store.visits()), len(store.site_captures())


@pytest.mark.parametrize("name", WRITES)
def test_every_route_that_writes_is_known(servers, name):
    app = servers[name][2]
    assert {path for path, methods in paths(app).items() if methods - SAFE_METHODS} == WRITES[name]


def strangers(port, guard):
    """What a program or a browser sends that does not know the token."""
    host = f"127.0.0.1:{port}"
    return [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer "},
        {"authorization": f"Basic {guard.write_token}"},
        {"authorization": guard.write_token},
        {"cookie": f"{guard.pass_name}=; recrawl_session={'0' * 32}"},
        {"cookie": f"{guard.pass_name}={'0' * 64}", "origin": f"http://{host}", "sec-fetch-site": "same-origin"},
        {"x-forwarded-for": "127.0.0.1", "x-real-ip": "127.0.0.1", "forwarded": "for=127.0.0.1"},
        {"cookie": f"{guard.pass_name}={guard.proof}", "origin": "http://evil.example"},
        {"cookie": f"{guard.pass_name}={guard.proof}", "origin": "null"},
        {"cookie": f"{guard.pass_name}={guard.proof}", "origin": "http://[bad"},
        {"cookie": f"{guard.pass_name}={guard.proof}", "sec-fetch-site": "cross-site"},
        {"cookie": f"{guard.pass_name}={guard.proof}", "sec-fetch-site": "same-site"},
        {"host": "evil.example", "authorization": f"Bearer {guard.write_token}"},
    ]


def send(connection, method, path, headers, body=LINE):
    connection.putrequest(method, path, skip_host="host" in headers)
    for key, value in {"content-length": str(len(body)), "accept": "*/*", **headers}.items():
        connection.putheader(key, value)
    connection.endheaders(body.encode())
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read()


@pytest.mark.parametrize("name", WRITES)
def test_no_route_takes_a_change_from_a_stranger(servers, name):
    """Every route with every method but those that only look, known to the route or not: so a new one is closed too."""
    port, guard, app, place = servers[name]
    before = contents(place)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    for path in {*paths(app), "/nothing/there", "/archive/../actions/settings/pause"}:
        for method in METHODS:
            for headers in strangers(port, guard) if method == "POST" else [{}]:
                status, _, said = send(connection, method, path, headers)
                assert status in {400, 401, 403, 421}, (method, path, headers, status, said)
    connection.close()
    assert contents(place) == before


@pytest.mark.parametrize("name", ["dashboard", "archive"])
@pytest.mark.parametrize("header", ["x-http-method-override", "x-http-method", "x-method-override"])
def test_looking_stays_looking_whatever_a_header_says(servers, name, header):
    port, _, _, place = servers[name]
    before = contents(place)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    for path in WRITES[name]:
        for asked in (path, f"{path}?_method=POST", f"{path}?method=delete"):
            send(connection, "GET", asked, {header: "POST"})
    connection.close()
    assert contents(place) == before


def test_who_opened_the_printed_address_can_give_orders_and_others_are_told_that_they_only_look(servers, ask):
    port, guard, _, place = servers["dashboard"]
    _, _, seen = ask(port, "/settings", accept="text/html")
    assert 'id="read-only"' in seen
    status, headers, _ = ask(port, f"/settings?token={guard.write_token}", accept="text/html")
    assert (status, headers["location"]) == (303, "/settings")
    passed = headers["set-cookie"].partition(";")[0]
    _, headers, seen = ask(port, "/settings", accept="text/html", cookie=passed)
    assert 'id="read-only"' not in seen
    session = headers["set-cookie"].partition(";")[0]
    form = {"csrf": guard.form_token(session.partition("=")[2])}
    assert f'value="{form["csrf"]}"' in seen
    both = f"{passed}; {session}"
    assert ask(port, "/actions/settings/pause", "POST", form, cookie=session)[0] == 401
    assert ask(port, "/actions/settings/pause", "POST", {}, cookie=both)[0] == 403
    assert ask(port, "/actions/settings/pause", "POST", form, cookie=both, accept="text/html")[0] == 303
    assert "paused" in contents(place)[0]
    assert ask(port, "/actions/settings/resume", "POST", {}, authorization=f"Bearer {guard.write_token}")[0] == 200
    assert "paused" not in contents(place)[0]


def test_what_is_asked_for_is_said_as_the_standards_have_it(servers, ask):
    status, headers, text = ask(servers["dashboard"][0], "/actions/settings/pause", "POST", {})
    assert (status, headers["www-authenticate"], headers["content-type"]) == (
        401,
        'Bearer realm="recrawl"',
        "application/json",
    )
    assert "recrawl serve printed" in json.loads(text)["remedy"]


# -- health checks -----------------------------------------------------------------------------------


@pytest.fixture
def watched(served, tmp_path, monkeypatch):
    """A dashboard that asks everybody for the token, and its workspace; its health is probed often."""
    monkeypatch.setattr("recrawl.crawl.control.health.PROBE_EVERY", 0.1)
    place = make_workspace(tmp_path / "ws", {})
    guard = AccessGuard("a-token-for-tests-only")
    wires = wired(place, guard, RealClock().now)
    wires.begin(patience=0.0)
    with served(make_app(wires.site)) as port:
        yield port, guard, place
    wires.close()


def until_ready(ask, port, status, **headers):
    for _ in range(1_200):
        answer = ask(port, "/readyz", **headers)
        if answer[0] == status:
            return json.loads(answer[2])
        time.sleep(0.1)
    raise AssertionError(answer)


def test_a_store_that_is_away_makes_the_server_not_ready_and_tells_strangers_no_more(watched, ask):
    port, guard, place = watched
    bearer = {"authorization": f"Bearer {guard.token}"}
    facts = until_ready(ask, port, 200, **bearer)
    assert (facts["status"], facts["reasons"], facts["store_up"], facts["last_visit"]) == ("ok", [], True, None)
    assert facts["disk_free_bytes"] > 0
    assert json.loads(ask(port, "/readyz")[2]) == {"status": "ok"}
    file = place.folder / "recrawl.db"
    file.rename(place.folder / "elsewhere.db")
    facts = until_ready(ask, port, 503, **bearer)
    assert (facts["status"], facts["store_up"]) == ("failing", False)
    assert "The store is out of reach" in facts["reasons"][0]
    assert json.loads(ask(port, "/readyz")[2]) == {"status": "failing"}
    assert ask(port, "/healthz")[0] == 503
    assert json.loads(ask(port, "/healthz")[2]) == {"status": "failing"}
    assert "The store is out of reach" in json.loads(ask(port, "/healthz", **bearer)[2])["reasons"][0]
    (place.folder / "elsewhere.db").rename(file)
    until_ready(ask, port, 200, **bearer)
    assert ask(port, "/healthz")[0] == 200
    for path in ("/readyz/", "/healthz/../api/pages", "/readyz%2f..%2fapi/pages", "//healthz"):
        assert ask(port, path)[0] in {401, 404}, path
    assert ask(port, "/readyz", "POST", {})[0] == 401


# -- the token of a workspace ------------------------------------------------------------------------


def test_the_token_of_a_workspace_is_for_its_owner_alone_and_stays(tmp_path):
    token = stored_token(tmp_path)
    file = tmp_path / TOKEN_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(token) >= 32
    assert stored_token(tmp_path) == file.read_text().strip() == token
    assert [path.name for path in tmp_path.iterdir()] == [TOKEN_FILE]
    file.unlink()
    assert stored_token(tmp_path) != token


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602, 0o666])
def test_a_token_that_others_could_read_or_write_is_made_anew(tmp_path, mode):
    token = stored_token(tmp_path)
    (tmp_path / TOKEN_FILE).chmod(mode)
    assert stored_token(tmp_path) != token
    assert stat.S_IMODE((tmp_path / TOKEN_FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "short", "a" * 400, "with spaces in it, at least 16", "\x00" * 20])
def test_a_file_without_a_token_is_replaced(tmp_path, text):
    (tmp_path / TOKEN_FILE).write_text(text)
    (tmp_path / TOKEN_FILE).chmod(0o600)
    assert len(stored_token(tmp_path)) == 32


def test_a_link_to_another_file_is_not_followed(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("a-token-of-somebody-else\n")
    elsewhere.chmod(0o600)
    (tmp_path / TOKEN_FILE).symlink_to(elsewhere)
    assert stored_token(tmp_path) != "a-token-of-somebody-else"
    assert elsewhere.read_text() == "a-token-of-somebody-else\n"
    assert not (tmp_path / TOKEN_FILE).is_symlink()


def test_servers_that_start_together_have_one_token(tmp_path):
    begin = threading.Barrier(8)
    with ThreadPoolExecutor(8) as together:
        found = list(together.map(lambda _: (begin.wait(), stored_token(tmp_path))[1], range(8)))
    assert set(found) == {stored_token(tmp_path)}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_has_a_token_too(tmp_path):
    tmp_path.chmod(0o500)
    assert len(stored_token(tmp_path)) == 32
    tmp_path.chmod(0o700)
