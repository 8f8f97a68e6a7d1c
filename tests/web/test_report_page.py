"""The page of a report: whole in one file, and nothing from an archive can act in it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.web.html_templates import InlineAssets, LinkedAssets, data_block, environment, hashed, json_text
from recrawl.web.report.report_page import (
    Column,
    ColumnKind,
    Figure,
    ReportExtras,
    ReportPage,
    ReportTable,
    Section,
    Tile,
    report_html,
    report_json,
)

HOSTILE = '"></script><script>alert(1)</script><img src=x onerror=alert(2)>\u2028&amp;'


class Elements(HTMLParser):
    """Every element with its attributes, and the text of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._inside = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
            self._inside = True

    def handle_endtag(self, tag):
        if tag == "script":
            self._inside = False

    def handle_data(self, data):
        if self._inside:
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)


def report(text: str = "words") -> ReportPage:
    table = ReportTable(
        "rows", text, [Column(text, ColumnKind.URL, [text, "b"]), Column("n", ColumnKind.NUMBER, [1.5, None])]
    )
    figure = Figure("curve", text, "chart", {"x": {"title": text}, "y": {}, "series": []}, text)
    section = Section(text, "first", [text], [figure], [table], [Tile(text, text, text)], [text])
    return ReportPage(text, text, 0.0, "1.0", [section])


def test_everything_is_inside_and_only_our_scripts_may_run():
    page = Elements(report_html(report()))
    for tag, attributes in page.found:
        assert tag not in {"link", "iframe", "object", "base", "form"}
        assert "src" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        if tag == "a":
            assert str(attributes["href"]).startswith("#")
    policy = next(str(one["content"]) for tag, one in page.found if one.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    run = [text for attributes, text in page.scripts if not attributes]
    assert len(run) == 4
    for text in run:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_what_an_archive_says_stays_text():
    harmless, hostile = (Elements(report_html(report(text))) for text in ("words", HOSTILE))
    assert [tag for tag, _ in hostile.found] == [tag for tag, _ in harmless.found]
    names = {name for _, attributes in hostile.found for name in attributes}
    assert not any(name.startswith("on") for name in names)
    blocks = {one["id"]: json.loads(text) for one, text in hostile.scripts if one.get("type") == "application/json"}
    assert blocks["data-rows"]["columns"][0]["values"] == [HOSTILE, "b"]
    assert blocks["data-curve"]["data"]["x"]["title"] == HOSTILE


@given(st.recursive(st.text() | st.floats() | st.booleans() | st.integers(-(2**53), 2**53), st.lists))
def test_data_comes_back_as_it_went_in(value):
    def finite(one):
        if isinstance(one, list):
            return [finite(part) for part in one]
        return None if isinstance(one, float) and not np.isfinite(one) else one

    text = json_text(value)
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text) == finite(value)


def test_much_data_is_packed():
    values = [f"http://example.org/page-{number}" for number in range(20_000)]
    block = data_block("data-much", {"urls": values, "rate": np.array([1.0, np.nan])})
    [(attributes, text)] = Elements(block).scripts
    assert attributes == {"type": "application/gzip+json", "id": "data-much"}
    read = json.loads(gzip.decompress(base64.b64decode(text)))
    assert read == {"urls": values, "rate": [1.0, None]}
    assert len(block) < 0.3 * len(json_text(values))


def test_figures_of_other_kinds_bring_their_scripts_and_only_if_they_are_there():
    extras = ReportExtras({"site-graph": ["graph_data.js"], "chart": ["graph_marks.js"]})
    scripts = [text for attributes, text in Elements(report_html(report(), extras)).scripts if not attributes]
    assert len(scripts) == 5


def test_without_figures_there_is_no_charting_library():
    plain = ReportPage("t", "a", 0.0, "1", [Section("s", "s", ["Nothing yet."])])
    assert len(report_html(plain)) < 100_000


def test_the_twin_holds_every_word_and_column():
    twin = report_json(report("text"))
    assert twin["schema"] == "recrawl-report/1"
    assert json.loads(json.dumps(twin)) == twin
    [section] = twin["sections"]
    assert section["tables"][0]["columns"][1]["values"] == [1.5, None]
    assert section["figures"][0]["kind"] == "chart"


def test_linked_files_are_found_by_the_hash_of_their_content():
    assets = LinkedAssets("/a/")
    assert assets.script("charts.js") == f'<script src="/a/{hashed("charts.js")}" defer></script>'
    found = assets.find(hashed("vendor/echarts.min.js"))
    assert found is not None
    assert found[1].startswith("text/javascript")
    for name in ("charts.js", "../html.py", "charts.000000000000.js", ""):
        assert assets.find(name) is None


def test_templates_name_what_they_miss():
    import jinja2

    with pytest.raises(jinja2.UndefinedError):
        environment(InlineAssets()).from_string("{{ nothing }}").render()
