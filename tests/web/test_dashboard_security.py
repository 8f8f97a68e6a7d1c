"""Who may look and who may act: the gate before a real server, asked over real sockets."""

from __future__ import annotations

import asyncio
import http.client
import json

import pytest

from recrawl.errors import InputError, StoreError
from recrawl.web.dashboard.access_control import AccessGuard, is_loopback, name_of
from recrawl.web.dashboard.dashboard_app import DashboardSite, make_app
from recrawl.web.dashboard.routes import Action, ActionResult, Parameter, View

TOKEN = "a-token-for-tests-only"


def _site(guard):
    done = []
    refusals = {
        "input": InputError("That makes no sense.", "Say it otherwise."),
        "store": StoreError("The store is away.", "Bring it back."),
    }

    def answer(asked):
        if asked["fail"]:
            raise refusals[asked["fail"]]
        return {"number": asked["number"], "text": asked["text"]}

    def do(asked):
        done.append(asked["what"])
        return ActionResult("It is done.", "/api/thing")

    parameters = (
        Parameter("number", "A number.", "integer", default=1, least=0, most=10),
        Parameter("text", "A text.", default=""),
        Parameter("fail", "How to fail.", default="", choices=("", "input", "store")),
    )
    view = View(
        "/thing", "/api/thing", "Thing", "A thing.", answer, parameters=parameters, keys={"number": "As asked."}
    )
    action = Action("/actions/do", "Do it.", do, (Parameter("what", "What.", required=True, place="form"),))
    return DashboardSite("test", [view], actions=[action], guard=guard, clock=lambda: 1_000.0), done


@pytest.fixture(scope="module")
def local(served):
    site, done = _site(AccessGuard())
    with served(make_app(site)) as port:
        yield port, site.guard, done


@pytest.fixture(scope="module")
def remote(served):
    site, done = _site(AccessGuard(TOKEN))
    with served(make_app(site)) as port:
        yield port, site.guard, done


def session(ask, port, **headers):
    """A session cookie, as a browser gets it with the first page."""
    _, found, _ = ask(port, "/api/thing", **headers)
    return found["set-cookie"].partition(";")[0]


def test_every_answer_forbids_what_no_page_needs(local, ask):
    port, _, _ = local
    for path in ("/api/thing", "/openapi.json", "/nothing"):
        _, headers, _ = ask(port, path)
        policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == policy["script-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["object-src"] == "'none'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "10.0.0.1", "localhost.evil.example", ""])
def test_a_name_that_is_not_ours_is_turned_away(local, host, ask):
    port, _, _ = local
    status, _, text = ask(port, "/api/thing", host=host)
    assert (status, "names of this machine" in text) == (421, True)


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8080", "LOCALHOST"])
def test_names_of_this_machine_are_ours(local, host, ask):
    assert ask(local[0], "/api/thing", host=host)[0] == 200


def test_names_are_read_as_browsers_write_them():
    assert [name_of(one) for one in ("[::1]", "a.example:80", "")] == ["::1", "a.example", ""]
    assert not is_loopback("192.168.0.1")
    assert not is_loopback("127.0.0.1.evil.example")


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/api/thing?number=11", 400, "must be 0 to 10"),
        ("/api/thing?number=1.5", 400, "number"),
        ("/api/thing?number=nan", 400, "number"),
        ("/api/thing?number=" + "9" * 400, 400, "number"),
        ("/api/thing?numbr=1", 400, "no parameter 'numbr'"),
        ("/api/thing?fail=other", 400, "fail is 'other'"),
        ("/api/thing?text=a%00b", 400, "control characters"),
        ("/api/thing?text=" + "a" * 3000, 400, "longer than"),
        ("/api/thing?fail=input", 400, "That makes no sense."),
        ("/api/thing?fail=store", 503, "The store is away."),
        ("/api/nothing", 404, "nothing at this address"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(local, path, status, says, ask):
    found, headers, text = ask(local[0], path)
    assert found == status
    assert headers["content-type"] == "application/json"
    assert says in json.loads(text)["error"]


def test_texts_come_back_as_they_are(local, ask):
    _, _, text = ask(local[0], "/api/thing?text=%3Cscript%3E%F0%9F%98%80%ff")
    assert json.loads(text)["text"] == "<script>😀\ufffd"


def test_other_methods_are_refused(local, ask):
    shown = f"Bearer {local[1].write_token}"
    status, headers, _ = ask(local[0], "/api/thing", "POST", {}, authorization=shown)
    assert (status, set(headers["allow"].split(", "))) == (405, {"GET", "HEAD"})
    assert ask(local[0], "/actions/do")[0] == 405


def test_the_document_describes_every_question_and_order(local, ask):
    said = json.loads(ask(local[0], "/openapi.json")[2])
    assert said["openapi"].startswith("3.1")
    get = said["paths"]["/api/thing"]["get"]
    number = next(one for one in get["parameters"] if one["name"] == "number")
    assert number["schema"] == {"type": "integer", "default": 1, "minimum": 0, "maximum": 10}
    assert get["responses"]["200"]["content"]["application/json"]["schema"]["required"] == ["number"]
    assert "post" in said["paths"]["/actions/do"]
    assert "security" not in said


# -- actions ---------------------------------------------------------------------------------------


def act(ask, port, guard, cookie, token, **headers):
    """An order as a browser sends it that opened the printed address."""
    passed = f"{guard.pass_name}={guard.proof}; {cookie}"
    return ask(port, "/actions/do", "POST", {"what": "x", "csrf": token}, cookie=passed, **headers)


def test_an_action_needs_the_form_of_its_session(local, ask):
    port, guard, done = local
    cookie, other = session(ask, port), session(ask, port)
    token = guard.form_token(cookie.partition("=")[2])
    before = len(done)
    for cookie_sent, shown in (
        (cookie, ""),
        (cookie, "0" * 64),
        (other, token),
        ("", token),
        ("recrawl_session=", token),
    ):
        status, _, text = act(ask, port, guard, cookie_sent, shown)
        assert (status, len(done)) == (403, before)
        assert "not belong to this session" in json.loads(text)["error"]
    assert act(ask, port, guard, cookie, token)[0] == 200
    assert len(done) == before + 1


def test_an_action_of_another_site_is_refused(local, ask):
    port, guard, done = local
    cookie = session(ask, port)
    token = guard.form_token(cookie.partition("=")[2])
    before = len(done)
    for headers in (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"http://127.0.0.1:{port + 1}"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ):
        assert act(ask, port, guard, cookie, token, **headers)[0] == 403
    assert len(done) == before
    assert (
        act(ask, port, guard, cookie, token, origin=f"http://127.0.0.1:{port}", sec_fetch_site="same-origin")[0] == 200
    )


def test_people_are_led_back_and_programs_are_told(local, ask):
    port, guard, _ = local
    cookie = session(ask, port)
    token = guard.form_token(cookie.partition("=")[2])
    status, headers, _ = act(ask, port, guard, cookie, token, accept="text/html")
    assert (status, headers["location"]) == (303, "/api/thing")
    assert json.loads(act(ask, port, guard, cookie, token)[2]) == {"said": "It is done.", "back": "/api/thing"}


def test_forms_that_make_no_sense_are_refused(local, ask):
    port, guard, _ = local
    cookie = session(ask, port)
    token = guard.form_token(cookie.partition("=")[2])
    cookie = f"{guard.pass_name}={guard.proof}; {cookie}"
    status, _, text = ask(port, "/actions/do", "POST", {"csrf": token}, cookie=cookie)
    assert (status, json.loads(text)["error"]) == (400, "what is missing.")
    assert ask(port, "/actions/do", "POST", {"what": "a" * 70_000, "csrf": token}, cookie=cookie)[0] == 413
    assert ask(port, "/actions/do", "POST", {"what": "x"}, cookie=cookie, content_type="text/plain")[0] == 415


def test_no_form_grows_beyond_its_limit_whatever_it_says_of_its_length():
    """A body in chunks names no length: it is read up to the limit, and no further."""
    site, _ = _site(AccessGuard())
    read, sent = [], []

    async def receive():
        read.append(b"a" * 10_000)
        return {"type": "http.request", "body": read[-1], "more_body": True}

    async def send(message):
        sent.append(message)

    shown = (b"authorization", f"Bearer {site.guard.write_token}".encode())
    scope = {"type": "http", "method": "POST", "path": "/actions/do", "headers": [(b"host", b"localhost"), shown]}
    asyncio.run(make_app(site)({**scope, "query_string": b""}, receive, send))
    assert sent[0]["status"] == 413
    assert len(read) == 7


@pytest.mark.parametrize("body", ["[" * 60_000, '{"what": NaN}', '{"what": [1]}', "[]", "nothing", '{"what": null}'])
def test_json_that_makes_no_sense_is_refused(local, body):
    connection = http.client.HTTPConnection("127.0.0.1", local[0], timeout=60)
    shown = {"content-type": "application/json", "authorization": f"Bearer {local[1].write_token}"}
    connection.request("POST", "/actions/do", body, shown)
    status = connection.getresponse().status
    connection.close()
    assert status == (200 if "NaN" in body else 400)  # a number, at least, is understood


def test_session_cookies_are_out_of_reach_of_scripts_and_other_sites(local, ask):
    _, headers, _ = ask(local[0], "/api/thing")
    assert "HttpOnly" in headers["set-cookie"]
    assert "SameSite=Strict" in headers["set-cookie"]
    _, headers, _ = ask(local[0], "/api/thing", cookie=headers["set-cookie"].partition(";")[0])
    assert "set-cookie" not in headers


# -- with a token ------------------------------------------------------------------------------------


def test_without_the_token_nothing_is_told(remote, ask):
    port, _, _ = remote
    for path in ("/api/thing", "/openapi.json", "/", "/assets/look.css", "/nothing"):
        assert ask(port, path)[0] == 401
    assert ask(port, "/api/thing?token=wrong")[0] == 401
    assert ask(port, "/api/thing", authorization="Bearer wrong")[0] == 401
    assert ask(port, "/api/thing", authorization=f"Basic {TOKEN}")[0] == 401
    assert ask(port, "/actions/do", "POST", {"what": "x"})[0] == 401


def test_the_token_goes_from_the_address_into_a_cookie(remote, ask):
    port, _, _ = remote
    status, headers, _ = ask(port, f"/api/thing?number=3&token={TOKEN}")
    assert (status, headers["location"]) == (303, "/api/thing?number=3")
    cookie, _, rest = headers["set-cookie"].partition(";")
    assert "HttpOnly" in rest
    assert "SameSite=Strict" in rest
    assert TOKEN not in cookie
    status, _, text = ask(port, "/api/thing?number=3", cookie=cookie)
    assert (status, json.loads(text)["number"]) == (200, 3)


def test_the_way_back_never_leads_elsewhere(remote, ask):
    _, headers, _ = ask(remote[0], f"//evil.example/?token={TOKEN}")
    assert headers["location"].startswith("/evil.example/")


def test_programs_show_the_token_itself_and_need_no_form(remote, ask):
    port, _, done = remote
    before = len(done)
    assert ask(port, "/api/thing", authorization=f"Bearer {TOKEN}")[0] == 200
    assert ask(port, "/actions/do", "POST", {"what": "x"}, authorization=f"Bearer {TOKEN}")[0] == 200
    assert len(done) == before + 1


def test_who_may_look_may_not_act_without_a_form(remote, ask):
    port, guard, done = remote
    before = len(done)
    passed = f"{guard.pass_name}={guard.proof}"
    assert ask(port, "/api/thing", cookie=passed)[0] == 200
    assert ask(port, "/actions/do", "POST", {"what": "x"}, cookie=passed)[0] == 403
    assert len(done) == before


def test_with_a_token_the_server_may_have_any_name(remote, ask):
    port, _, _ = remote
    assert ask(port, "/api/thing", authorization=f"Bearer {TOKEN}", host="archive.example")[0] == 200
    assert json.loads(ask(port, "/openapi.json", authorization=f"Bearer {TOKEN}")[2])["security"] == [{"token": []}]


def test_assets_are_found_by_their_hash_alone(local, ask):
    port, _, _ = local
    from recrawl.web.html_templates import hashed

    status, headers, _ = ask(port, f"/assets/{hashed('dashboard.css')}")
    assert (status, "immutable" in headers["cache-control"]) == (200, True)
    assert headers["content-type"].startswith("text/css")
    for path in ("dashboard.css", "../html.py", "..%2fhtml.py", "vendor/../../html.py", "%2e%2e/%2e%2e/pyproject.toml"):
        assert ask(port, f"/assets/{path}")[0] == 404
