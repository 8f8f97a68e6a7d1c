"""Every parameter of every question, against what the server's own OpenAPI document says of it."""

import http.client
import json
import time
from pathlib import Path
from urllib.parse import quote

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import positive_data_acceptance

from recrawl.app.workspace.workspace import make_workspace
from recrawl.crawl.clock import RealClock
from recrawl.model import Outcome, Verdict, Visit, Visits
from recrawl.web.dashboard.access_control import AccessGuard
from recrawl.web.dashboard.dashboard_app import make_app, wired
from recrawl.web.dashboard.routes import Parameter, RefusedError

BUSY = 503
MORE_THAN_A_TYPE = {"/actions/settings/limit", "/actions/settings/reset", "/actions/settings/host"}
"""Orders whose texts are a setting, its value or a host: whether one makes sense is more than a schema can say."""
PROCESSES = {"/actions/captures/begin", "/actions/policies/compare"}
"""Orders that begin work in other processes, which is not to be done for any text that comes to mind."""
CHANGED, STEADY, NEVER = 1, 2, 3
"""Pages: one that changed, one that did not, one that was never visited."""


@pytest.fixture(scope="module")
def asked(served, tmp_path_factory, ask):
    """Asks a dashboard of three pages as who may look and act: ``asked(path)`` gives status and what was said."""
    place = make_workspace(tmp_path_factory.mktemp("api") / "ws", {})
    with place.open_store() as store:
        store.discover([f"http://example.org/{number}" for number in (1, 2, 3)], 1_000.0)
        observations = [(CHANGED, Verdict.CHANGED), (STEADY, Verdict.UNCHANGED)]
        for at, said in ((2_000.0, [Verdict.UNKNOWN] * 2), (3_000.0, [verdict for _, verdict in observations])):
            rows = [
                Visit(page, at, Outcome.FETCHED, one, status=200)
                for (page, _), one in zip(observations, said, strict=True)
            ]
            store.record(Visits.from_rows(rows))
    guard = AccessGuard()
    wires = wired(place, guard, RealClock().now)
    wires.begin(patience=0.0)
    with served(make_app(wires.site)) as port:

        def one(path, method="GET", body=None, **headers):
            answer = ask(port, path, method, body, authorization=f"Bearer {guard.write_token}", **headers)
            is_json = answer[1]["content-type"].endswith("json")
            return answer[0], json.loads(answer[2]) if is_json else answer[2]

        one.port, one.bearer = port, {"Authorization": f"Bearer {guard.write_token}"}
        for _ in range(600):  # what is worked out behind the scenes is there
            if one("/api/pages?sort=worth")[0] == one("/readyz")[0] == 200:
                break
            time.sleep(0.1)
        yield one
    wires.close()


@pytest.fixture(scope="module")
def document(asked):
    return asked("/openapi.json")[1]


def test_a_question_about_changes_is_answered_or_there_is_no_such_visit(asked):
    status, said = asked(f"/api/pages/{CHANGED}/visit?changed=true")
    assert (status, said["time"], said["verdict"]) == (200, 3_000.0, "changed")
    assert asked(f"/api/pages/{STEADY}/visit?changed=false")[0] == 200
    for path in (f"{STEADY}/visit?changed=true", f"{NEVER}/visit", f"{CHANGED}/visit?at=1500", "99/visit"):
        status, said = asked(f"/api/pages/{path}")
        assert (status, "--" in said["error"] + said["remedy"]) == (404, False), said


@pytest.mark.parametrize("text", ["true", "True", "TRUE", "1", "on", "yes", "Yes"])
def test_a_yes_is_a_yes_however_a_program_writes_it(asked, text):
    assert asked(f"/api/pages/{CHANGED}/visit?changed={text}")[1]["verdict"] == "changed"


@pytest.mark.parametrize("text", ["false", "False", "0", "off", "no", ""])
def test_and_a_no_a_no(text):
    assert Parameter("changed", "", "boolean", default=False).parse(text) is False


@pytest.mark.parametrize("text", ["maybe", "2", "truefalse", "null", "t", " ", "[]"])
def test_what_is_neither_is_refused(asked, text):
    status, said = asked(f"/api/pages/{CHANGED}/visit?changed={quote(text)}")
    assert (status, "not true or false" in said["error"]) == (400, True)


@pytest.mark.parametrize(
    ("text", "value"), [("7", 7), ("7.0", 7), ("7e0", 7), (" 7 ", 7), ("-0", 0), ("1e3", 1_000), ("007", 7)]
)
def test_whole_numbers_are_read_as_json_means_them(text, value):
    found = Parameter("n", "", "integer").parse(text)
    assert (found, type(found)) == (value, int)


@pytest.mark.parametrize(
    "text", ["7.5", "1_000", "٣", "0x1f", "nan", "inf", "1e400", "--1", "+1", "", "1" * 5_000, "1e20", "9" * 30, "1,5"]
)
def test_what_is_no_whole_number_is_refused(text):
    with pytest.raises(RefusedError):
        Parameter("n", "", "integer", required=True).parse(text)


def test_ends_of_ranges_are_in_them(asked, document):
    """Of every number in the document: the ends of its range are taken, and what lies beyond is refused."""
    tried = 0
    for path, methods in document["paths"].items():
        for one in methods.get("get", {}).get("parameters", []):
            schema = one["schema"]
            if schema["type"] not in {"integer", "number"} or one["in"] != "query":
                continue
            place = path.replace("{page}", "1").replace("{capture}", "1")
            for end, away in ((schema["minimum"], -1), (schema["maximum"], 1)):
                assert asked(f"{place}?{one['name']}={end}")[0] in {200, 404, BUSY}, (path, one["name"], end)
                beyond = end + away if abs(end) < 2**53 else end * 2
                assert asked(f"{place}?{one['name']}={beyond}")[0] == 400, (path, one["name"], beyond)
                tried += 1
    assert tried >= 10


def test_every_choice_is_taken_and_none_other(asked, document):
    tried = 0
    for path, methods in document["paths"].items():
        for one in methods.get("get", {}).get("parameters", []):
            for choice in one["schema"].get("enum", []):
                status, said = asked(f"{path}?{one['name']}={choice}")
                assert status in {200, BUSY}, (path, one["name"], choice, said)
                tried += 1
            if "enum" in one["schema"]:
                assert asked(f"{path}?{one['name']}=no-such-choice")[0] == 400
    assert tried >= 20


def test_nothing_is_said_twice(asked):
    status, said = asked("/api/pages?limit=5&limit=6")
    assert (status, said["error"]) == (400, "'limit' is given more than once.")


def test_an_order_for_a_host_without_a_name_is_not_one_for_the_whole_crawl(asked):
    status, said = asked("/actions/settings/host", "POST", {"host": "", "paused": "true"})
    assert (status, said["error"]) == (400, "host is missing.")
    assert asked("/api/settings")[1]["paused"] is False


def test_a_place_in_a_list_is_what_the_answer_before_said(asked):
    first = asked("/api/pages?limit=2")[1]
    assert len(first["pages"]) == 2
    rest = asked(f"/api/pages?limit=2&after={first['next']}")[1]
    assert len(rest["pages"]) == 1
    assert asked("/api/pages?after=%2B%2F%3D")[0] == 400


def test_orders_are_taken_as_forms_and_as_json(asked, document):
    path = "/actions/settings/host"
    content = document["paths"][path]["post"]["requestBody"]["content"]
    assert set(content) == {"application/json", "application/x-www-form-urlencoded"}
    held = lambda: asked("/api/settings")[1]["paused_hosts"]  # noqa: E731 - asked three times
    connection = http.client.HTTPConnection("127.0.0.1", asked.port, timeout=60)
    order = json.dumps({"host": "example.org", "paused": True})
    connection.request("POST", path, order, {**asked.bearer, "content-type": "application/json"})
    assert (connection.getresponse().status, held()) == (200, ["example.org"])
    connection.close()
    assert asked(path, "POST", {"host": "example.org", "paused": "false"})[0] == 200
    assert held() == []


def test_whatever_the_document_allows_is_not_refused(asked, document):
    """Requests that schemathesis makes up from the document: answered, or there is no such thing, and as described."""
    seen = set()
    config = SchemathesisConfig()
    for found in schemathesis.openapi.from_dict(document, config=config).get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=12,
            derandomize=True,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def holds(case):
            if case.path == "/api/pages" and (case.query or {}).get("after"):
                case.query.pop("after")  # only an answer knows what may stand there
            answer = case.call(base_url=f"http://127.0.0.1:{asked.port}", timeout=60, headers=asked.bearer)
            excused = [not_a_server_error] if answer.status_code == BUSY else []
            excused += [positive_data_acceptance] if case.path in MORE_THAN_A_TYPE else []
            case.validate_response(answer, excluded_checks=excused)
            seen.add(case.path)

        if operation.path not in PROCESSES:
            given(case=operation.as_strategy())(holds)()
    assert seen == set(document["paths"]) - PROCESSES


def test_the_reference_lists_every_request_with_its_parameters_and_keys(document):
    """Whoever reads the page of the documentation misses nothing that the server has."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "http-api.md").read_text("utf-8")
    listed = page[page.index("\n## Dashboard\n") : page.index("\n## Speed\n")]
    for path, operations in document["paths"].items():
        if "post" in operations:
            [row] = [line for line in listed.splitlines() if line.startswith(f"| `{path}` |")]
            form = operations["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
            assert all(f"`{name}`" in row for name in form if name != "csrf"), path
            continue
        if path in {"/healthz", "/readyz"}:
            assert f"`GET {path}`" in listed
            continue
        [_, section] = listed.split(f"### `GET {path}`\n")
        section = section.partition("\n### ")[0]
        [(kind, answer)] = operations["get"]["responses"]["200"]["content"].items()
        keys = answer["schema"].get("required", [])
        assert keys or kind != "application/json", f"{path} does not say what it answers"
        for name in [*(one["name"] for one in operations["get"]["parameters"]), *keys]:
            assert f"| `{name}` |" in section, (path, name)
