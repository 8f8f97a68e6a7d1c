"""The frontier as plain HTTP and JSON, on a real server."""

import json
import urllib.error
import urllib.request

import pytest

from recrawl.app.workspace.workspace import make_workspace
from recrawl.crawl.clock import RealClock
from recrawl.web.dashboard.access_control import AccessGuard
from recrawl.web.dashboard.dashboard_app import make_app, wired

CLOCK = RealClock()


@pytest.fixture(scope="module")
def call(served, tmp_path_factory):
    """``call(name, **body)`` gives status and answer."""
    flags = {"schedule.budget": "1000/s", "politeness.min_delay": "0s", "schedule.discovery_share": "1"}
    place = make_workspace(tmp_path_factory.mktemp("calls") / "ws", flags)
    guard = AccessGuard()
    wires = wired(place, guard, CLOCK.now)
    with served(make_app(wires.site)) as port:

        def post(name, body=None, kind="application/json", token=guard.write_token, **more):
            data = body if isinstance(body, bytes) else json.dumps(more if body is None else body).encode()
            headers = {"content-type": kind} | ({"authorization": f"Bearer {token}"} if token else {})
            request = urllib.request.Request(f"http://127.0.0.1:{port}/api/frontier/{name}", data, headers)
            try:
                with urllib.request.urlopen(request, timeout=120) as answer:
                    return answer.status, json.loads(answer.read())
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, json.loads(error.read())

        yield post
    wires.close()


def test_urls_go_round(call):
    urls = [f"http://a.example/{number}" for number in range(3)]
    status, told = call(
        "seen", discovered=[{"url": urls[0], "metadata": {"depth": ["1"]}}, *({"url": u} for u in urls[1:])]
    )
    assert (status, told) == (200, {"visits": [], "discovered": ["ok"] * 3})
    assert call("seen", discovered=[{"url": urls[0]}, {"url": "mailto:x"}])[1]["discovered"] == ["skipped"] * 2
    status, found = call("next", urls=2, lease=3_600)
    assert status == 200
    assert [one["url"] for one in found["urls"]] == urls[:2]
    assert found["urls"][0]["metadata"] == {"depth": ["1"]}
    assert found["urls"][0]["etag"] is None
    visits = [
        {"url": urls[0], "status": 200, "etag": '"1"', "last_modified": "Mon, 01 Jan 2024 00:00:00 GMT"},
        {"url": urls[1], "metadata": {"fetch.statusCode": ["404"]}, "refetch": 0},
    ]
    assert call("seen", visits=visits)[1]["visits"] == ["ok", "ok"]
    assert [one["url"] for one in call("next", key="a.example")[1]["urls"]] == urls[2:]


def test_there_are_only_crawls_that_somebody_sent_urls_for(call):
    assert call("next", crawl="nobody-made-it")[0] == 404


def test_a_change_needs_the_token(call):
    for name in ("next", "seen"):
        assert call(name, token="")[0] == 401
        assert call(name, token="wrong")[0] == 401


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"{}", "text/plain", 415),
        ({"visits": {}}, "application/json", 400),
        ({"visits": [{}]}, "application/json", 400),
        ({"visits": [{"url": ""}]}, "application/json", 400),
        ({"visits": [{"url": "http://a.example/", "status": True}]}, "application/json", 400),
        ({"visits": [{"url": "http://a.example/", "seconds": -1}]}, "application/json", 400),
        ({"visits": [{"url": "http://a.example/", "other": 1}]}, "application/json", 400),
        ({"discovered": [{"url": "http://a.example/", "metadata": {"a": "b"}}]}, "application/json", 400),
        ({"crawl": "../x"}, "application/json", 400),
        (b" " * 9_000_000, "application/json", 413),
    ],
)
def test_what_makes_no_sense_is_refused(call, body, kind, status):
    found, told = call("seen", body, kind)
    assert found == status
    assert told["error"]
