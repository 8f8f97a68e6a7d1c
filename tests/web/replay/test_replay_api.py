"""The requests of the replay server that the HTTP API reference lists, with parameters that schemathesis makes up."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import positive_data_acceptance

DIGITS = {"type": "string", "pattern": "^[0-9]{1,14}$"}
TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0, "maximum": 30}
TIME = {"type": "string", "enum": ["2023", "20240101", "20240101010000", "2025"]}
FIELDS = {"type": "string", "enum": ["urlkey", "timestamp", "original,statuscode", "digest,length,offset,filename"]}
FLAG = {"type": "string", "enum": ["true", "false"]}
URL = {
    "type": "string",
    "enum": ["http://site.example/", "site.example/dir/*", "*.example", "http://none.example/", ""],
}
CDX = {
    "url": URL,
    "matchType": {"type": "string", "enum": ["exact", "prefix", "host", "domain"]},
    "from": TIME,
    "to": TIME,
    "limit": {"type": "integer", "minimum": -30, "maximum": 30},
    "offset": COUNT,
    "sort": {"type": "string", "enum": ["reverse", "closest"]},
    "closest": TIME,
    "embedded": FLAG,
    "filter": {"type": "string", "enum": ["statuscode:200", "!=mime:text/html", "~url:.*", "(", ""]},
    "fl": FIELDS,
    "collapse": {"type": "string", "enum": ["digest", "timestamp:10", "nothing"]},
    "resolveRevisits": FLAG,
    "output": {"type": "string", "enum": ["text", "json", "ndjson", "cdxj", "link"]},
    "showResumeKey": FLAG,
    "page": COUNT,
    "pageSize": COUNT,
    "showNumPages": FLAG,
}
"""All parameters but those that only an answer knows: the key to go on with, and keys of pages."""
REQUESTS = {
    "/": {"url": URL, "at": TEXT},
    "/archive/": {"url": URL, "at": DIGITS},
    "/api/memento": {"url": URL, "at": TEXT, "rule": {"type": "string", "enum": ["coherent", "nearest"]}},
    "/archive/cdx": CDX,
    "/cdx/search/cdx": CDX,
}
ANSWERS = {status: {"description": status} for status in ("200", "302", "400", "404")}


def document():
    paths = {
        path: {
            "get": {
                "parameters": [{"name": name, "in": "query", "schema": schema} for name, schema in parameters.items()],
                "responses": ANSWERS,
            }
        }
        for path, parameters in REQUESTS.items()
    }
    return {"openapi": "3.1.0", "info": {"title": "replay", "version": "1"}, "paths": paths}


@pytest.mark.parametrize("path", REQUESTS)
def test_whatever_is_asked_is_answered_or_refused_in_a_sentence(server, path):
    """Never an error of the server, whatever stands in the parameters."""
    [operation] = [
        found.ok()
        for found in schemathesis.openapi.from_dict(document(), config=SchemathesisConfig()).get_all_operations()
        if found.ok().path == path
    ]
    statuses = set()

    @settings(
        max_examples=60,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def holds(case):
        answer = case.call(base_url=server.base.rstrip("/"), timeout=60, allow_redirects=False)
        case.validate_response(answer, excluded_checks=[positive_data_acceptance])
        assert answer.status_code != 400 or answer.text.strip()
        statuses.add(answer.status_code)

    given(case=operation.as_strategy())(holds)()
    assert statuses & {200, 302, 404}
