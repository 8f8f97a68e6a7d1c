"""The OpenAPI document against the server it describes, with requests that schemathesis makes up."""

import json
from urllib.parse import urlsplit

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import positive_data_acceptance

EXAMPLES = 6
BUSY = 503
"""Said, with a remedy, while something is still being worked out, or when the store does not answer in time."""
NOT_PROMISED = [positive_data_acceptance]
"""That a text makes sense can be more than its type says: the place in a list, the name of a host, a duration."""


@pytest.fixture(scope="module")
def document(served_copy):
    answer = requests.get(served_copy.at("/openapi.json"), timeout=60)
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


@pytest.fixture(scope="module")
def schema(served_copy, document):
    return schemathesis.openapi.from_dict(document, config=SchemathesisConfig())


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


def test_every_answer_is_as_the_document_says(schema, served_copy):
    """Whatever is asked: never an error of the server, and only answers that are described."""
    base = served_copy.dashboard.rstrip("/")
    checked = 0
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def holds(case):
            answer = case.call(base_url=base, timeout=60)
            busy = [not_a_server_error] if answer.status_code == BUSY else []
            case.validate_response(answer, excluded_checks=[*NOT_PROMISED, *busy])

        given(case=operation.as_strategy())(holds)()
        checked += 1
    assert checked >= 15


def test_no_order_is_taken_without_the_token_of_a_form(served_copy, document):
    for path in document["paths"]:
        if path.startswith("/actions/"):
            for origin in ({}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
                answer = requests.post(served_copy.at(path), headers=origin, data={"csrf": "0" * 64}, timeout=60)
                assert answer.status_code == 403, path
                assert json.loads(answer.text)["error"]


def test_a_token_is_asked_for_beyond_this_machine(made_workspace, dashboard):
    with dashboard(made_workspace, "--host", "0.0.0.0") as running:
        port = urlsplit(running.dashboard).port
        token = urlsplit(running.dashboard).query.partition("=")[2]
        here = f"http://127.0.0.1:{port}/"
        assert len(token) >= 16
        assert requests.get(f"{here}api/captures", timeout=60).status_code == 401
        assert requests.get(f"{here}?token=wrong", timeout=60).status_code == 401
        bearer = {"Authorization": f"Bearer {token}"}
        assert requests.get(f"{here}api/captures", headers=bearer, timeout=60).status_code == 200
        with requests.Session() as session:
            session.get(f"{here}?token={token}", timeout=60)
            assert session.get(f"{here}api/captures", timeout=60).status_code == 200
