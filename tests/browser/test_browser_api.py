"""The OpenAPI document against the server it describes, with requests that schemathesis makes up."""

import json
import shutil
from urllib.parse import urlsplit

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import positive_data_acceptance

from recrawl.app.workspace.workspace import open_workspace

EXAMPLES = 6
BUSY = 503
"""Said, with a remedy, while something is still being worked out, or when the store does not answer in time."""
NOT_PROMISED = [positive_data_acceptance]
"""That a text makes sense can be more than its type says: the place in a list, the name of a host, a duration."""


TOO_MUCH = {"/actions/captures/begin", "/actions/policies/compare"}
"""Orders that begin work in other processes, which is not to be done for any text that comes to mind."""
TOKEN = "0123456789-abcdefghij"


@pytest.fixture(scope="module")
def document(served):
    answer = requests.get(served.at("/openapi.json"), timeout=60)
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


@pytest.fixture(scope="module")
def guarded(made_workspace, dashboard, tmp_path_factory):
    """A dashboard that asks for a token, of a workspace of its own; its address on this machine."""
    folder = shutil.copytree(made_workspace.folder, tmp_path_factory.mktemp("guarded") / "ws")
    with dashboard(open_workspace(folder, {}), "--host", "0.0.0.0", "--token", TOKEN) as running:
        yield f"http://127.0.0.1:{urlsplit(running.dashboard).port}"


def checked(document, base, wanted, **options):
    """Ask for everything that is wanted, and hold the answers against the document; returns what was asked for."""
    asked = []
    for found in schemathesis.openapi.from_dict(document, config=SchemathesisConfig()).get_all_operations():
        operation = found.ok()
        if not wanted(operation.path):
            continue

        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def holds(case):
            answer = case.call(base_url=base, timeout=60, **options)
            busy = [not_a_server_error] if answer.status_code == BUSY else []
            case.validate_response(answer, excluded_checks=[*NOT_PROMISED, *busy])

        given(case=operation.as_strategy())(holds)()
        asked.append(operation.path)
    return asked


def test_every_page_and_order_is_in_the_document(document):
    paths = document["paths"]
    for path in (
        "/api/captures",
        "/api/captures/{capture}",
        "/api/policies",
        "/api/settings",
        "/api/pages",
        "/api/hosts",
    ):
        assert "get" in paths[path]
    orders = [path for path in paths if path.startswith("/actions/")]
    assert len(orders) >= 8
    assert all(set(paths[path]) == {"post"} for path in orders)


def test_every_answer_is_as_the_document_says(document, served):
    """Whatever is asked: never an error of the server, and only answers that are described."""
    asked = checked(document, served.dashboard.rstrip("/"), lambda _: True)
    assert set(asked) == set(document["paths"])


def test_every_order_of_who_may_give_it_is_answered_as_the_document_says(guarded):
    """Behind the gate, too: there an order is understood or refused, as described."""
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    described = requests.get(f"{guarded}/openapi.json", headers=bearer, timeout=60).json()
    orders = {path for path in described["paths"] if path.startswith("/actions/")} - TOO_MUCH
    assert set(checked(described, guarded, orders.__contains__, headers=bearer)) == orders


def test_no_order_is_taken_without_the_token(served, document):
    for path in document["paths"]:
        if path.startswith("/actions/"):
            for origin in ({}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
                answer = requests.post(served.at(path), headers=origin, data={"csrf": "0" * 64}, timeout=60)
                assert answer.status_code == 401, path
                assert json.loads(answer.text)["error"]


def test_a_token_is_asked_for_beyond_this_machine(guarded):
    assert requests.get(f"{guarded}/api/captures", timeout=60).status_code == 401
    assert requests.get(f"{guarded}/?token=wrong", timeout=60).status_code == 401
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert requests.get(f"{guarded}/api/captures", headers=bearer, timeout=60).status_code == 200
    with requests.Session() as session:
        session.get(f"{guarded}/?token={TOKEN}", timeout=60)
        assert session.get(f"{guarded}/api/captures", timeout=60).status_code == 200
