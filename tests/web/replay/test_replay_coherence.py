"""Coherent replay through the real server: which copies a page is shown with, and what is said of them."""

import http.client
import json
from importlib import resources

import pytest

from recrawl.time import DAY, to_http_date, to_timestamp14
from recrawl.web.dashboard.access_control import AccessGuard
from recrawl.web.replay.workspace_archive import time_travel
from recrawl.web.servers import bound

START = 1_704_067_200.25
"""2024-01-01 00:00:00.25, when the page is captured."""
HOME = "http://site.example/"
PAGE = (
    b"<html><head><link rel=stylesheet href=/s.css><style>p {x: url(/inline.png)} a > b {y: url(#z)}</style></head>"
    b"<body class=x><img src=/a.png srcset='/a.png 1x, /big.png 2x'><img src=/b.png><img src=/moved.png>"
    b"<p style='background: url(/styled.png)'>hello</p><a href=/b.png>click</a></body></html>"
)
SHEET = b"@import url('/t.css'); p > q {background: url(/bg.png)} /* url(/no.png) */"
AT = "20240101000000"


def head(status, kind, modified=None, *lines):
    said = [] if modified is None else [f"Last-Modified: {to_http_date(START + modified)}"]
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Type: {kind}", *said, *lines, "", ""]).encode()


@pytest.fixture(scope="module")
def server(make_server, make_builder):
    made = make_server(filled=False)
    with made.place.open_store() as store:
        build = make_builder(made.place, store)
        build.visit(HOME, 0, head("200 OK", "text/html"), PAGE)
        # The nearest copy is the old one; the later one says that it was there before the page.
        build.visit(f"{HOME}a.png", -100, head("200 OK", "image/png"), b"old a")
        build.visit(f"{HOME}a.png", 3600, head("200 OK", "image/png", -50), b"a")
        # The nearest copy was made after the page.
        build.visit(f"{HOME}b.png", -DAY, head("200 OK", "image/png"), b"old b")
        build.visit(f"{HOME}b.png", 10, head("200 OK", "image/png", 5), b"new b")
        # The same before and after.
        build.visit(f"{HOME}s.css", -30, head("200 OK", "text/css"), SHEET)
        build.visit(f"{HOME}s.css", 20, head("200 OK", "text/css"), SHEET)
        build.visit(f"{HOME}t.css", 30, head("200 OK", "text/css", -500), b"r {s: url(deep.png)}")
        build.visit(f"{HOME}bg.png", 40, head("200 OK", "image/png"), b"bg")
        build.visit(f"{HOME}deep.png", 41, head("200 OK", "image/png", -500), b"deep")
        build.visit(f"{HOME}inline.png", 42, head("200 OK", "image/png", -500), b"inline")
        build.visit(f"{HOME}moved.png", 50, head("301 Moved", "text/html", -500, "Location: /target.png"))
        build.visit(f"{HOME}target.png", -70, head("200 OK", "image/png"), b"old target")
        build.visit(f"{HOME}target.png", 51, head("200 OK", "image/png", -60), b"target")
        # Not in the page. In the second of the page the server had no answer.
        build.visit(f"{HOME}busy.png", -9, head("200 OK", "image/png"), b"busy")
        build.visit(f"{HOME}busy.png", 0, head("503 Busy", "text/html"), b"come back")
        build.visit(f"{HOME}frame.html", -100, head("200 OK", "text/html"), b"old <img src=/a.png>")
        build.visit(f"{HOME}frame.html", 3600, head("200 OK", "text/html", -50), b"frame <img src=/a.png>")
        build.close()
    return made


def place(server, path, after, modifier="if_"):
    return f"{server.base}archive/{to_timestamp14(START + after)}{modifier}/{HOME}{path}"


@pytest.mark.parametrize(
    ("path", "after", "state"),
    [
        ("a.png", 3600, "prima facie coherent"),
        ("b.png", -DAY, "possibly coherent"),
        ("bg.png", 40, "possibly violative"),
        ("target.png", 51, "prima facie coherent"),
    ],
)
@pytest.mark.parametrize("modifier", ["if_", "im_", "js_"])
def test_what_stands_in_a_page_is_the_copy_that_goes_with_it(server, path, after, state, modifier):
    answer = server.ask(f"archive/{AT}{modifier}/{HOME}{path}")
    assert (answer.status, answer.header("location")) == (302, place(server, path, after, modifier))
    assert answer.header("x-recrawl-coherence") == state
    there = server.ask(answer.header("location").removeprefix(server.base))
    assert there.status == 200
    assert there.header("memento-datetime") == to_http_date(START + after)


def test_who_asks_for_bytes_or_for_a_page_gets_the_nearest_as_ever(server):
    raw = server.ask(f"archive/{AT}id_/{HOME}a.png")
    assert raw.header("location") == place(server, "a.png", -100, "id_")
    assert raw.header("x-recrawl-coherence") is None
    assert server.ask(f"archive/{AT}/{HOME}a.png").body == b"old a"
    gate = server.ask(f"archive/{HOME}a.png", accept_datetime=to_http_date(START))
    assert gate.header("location") == place(server, "a.png", -100, "")


def test_a_style_sheet_leads_on_at_the_time_of_the_page(server):
    answer = server.ask(f"archive/{AT}cs_/{HOME}s.css")
    assert answer.status == 200
    assert answer.header("content-type") == "text/css; charset=utf-8"
    assert answer.header("content-location") == place(server, "s.css", 20, "cs_")
    assert answer.header("x-recrawl-coherence") == "prima facie coherent"
    base = f"{server.base}archive/{AT}"
    assert answer.text == (
        f"@import url('{base}cs_/{HOME}t.css'); p > q {{background: url({base}if_/{HOME}bg.png)}} /* url(/no.png) */"
    )
    imported = server.ask(f"archive/{AT}cs_/{HOME}t.css")
    assert imported.text == f"r {{s: url({base}if_/{HOME}deep.png)}}"
    assert "sandbox" in imported.header("content-security-policy")


def test_a_redirect_in_a_page_leads_on_at_the_time_of_the_page(server):
    answer = server.ask(f"archive/{AT}if_/{HOME}moved.png")
    assert (answer.status, answer.header("location")) == (301, f"{server.base}archive/{AT}if_/{HOME}target.png")
    # Of itself it leads to the copy nearest to its own time, as ever.
    alone = server.ask(f"archive/{to_timestamp14(START + 50)}id_/{HOME}moved.png")
    assert alone.header("location") == place(server, "target.png", 50, "id_")


def test_addresses_in_styles_of_the_page_lead_into_the_archive(server):
    page = server.ask(f"archive/{AT}/{HOME}").text
    base = f"{server.base}archive/{AT}"
    assert f"<style>p {{x: url({base}if_/{HOME}inline.png)}} a > b {{y: url(#z)}}</style>" in page
    assert f'style="background: url({base}if_/{HOME}styled.png)"' in page
    assert f'href="{base}cs_/{HOME}s.css"' in page
    assert f'srcset="{base}if_/{HOME}a.png 1x, {base}if_/{HOME}big.png 2x"' in page
    assert f'<a href="{base}/{HOME}b.png">' in page


STATES = {
    "prima facie coherent": 6,  # a.png, s.css, t.css, deep.png, inline.png, moved.png → target.png
    "possibly coherent": 1,  # b.png
    "possibly violative": 1,  # bg.png
    "prima facie violative": 0,
    "missing": 1,  # styled.png
    "not known": 0,
}


def test_the_page_says_what_could_not_be_proved(server):
    answer = server.ask(f"archive/{AT}/{HOME}")
    said = ", ".join(f"{count} {state}" for state, count in STATES.items())
    assert answer.header("x-recrawl-parts-coherence") == said
    assert answer.header("x-recrawl-parts") == "8/9"
    assert 0 < float(answer.header("x-recrawl-parts-damage")) < 0.2
    told = "Existed as shown: not proved (6 prima facie coherent, 1 possibly coherent, 1 possibly violative, 1 missing)"
    assert told in answer.text
    assert "Memento damage: 0.1" in answer.text


def facts(server, more=""):
    return json.loads(server.ask(f"api/memento?url={HOME}&at={AT}{more}").text)["parts"]


def test_programs_are_told_of_every_part(server):
    found = facts(server)
    assert (found["rule"], found["coherence"], found["count"], found["archived"]) == ("coherent", STATES, 9, 8)
    assert found["missing"] == [f"{HOME}styled.png"]
    by_url = {one["url"].removeprefix(HOME): one for one in found["list"]}
    assert by_url["a.png"]["uri"] == place(server, "a.png", 3600, "")
    assert by_url["a.png"]["coherence"] == "prima facie coherent"
    assert by_url["target.png"]["uri"] == place(server, "target.png", 51, "")
    assert by_url["b.png"]["coherence"] == "possibly coherent"


def test_the_nearest_rule_can_be_asked_about_for_comparison(server):
    """a.png and target.png are then provably of another time, b.png too."""
    found = facts(server, "&rule=nearest")
    assert found["rule"] == "nearest"
    by_url = {one["url"].removeprefix(HOME): one["coherence"] for one in found["list"]}
    assert (by_url["a.png"], by_url["b.png"]) == ("prima facie violative", "prima facie violative")
    refused = server.ask(f"api/memento?url={HOME}&rule=best")
    assert (refused.status, refused.text) == (400, "rule is 'best'; write coherent or nearest.\n")


def test_a_page_whose_parts_are_all_proved_says_so(make_server, build_visits):
    odd = make_server(filled=False)
    build_visits(odd.place, HOME, head("200 OK", "text/html"), b"<img src=a.png>")
    build_visits(odd.place, f"{HOME}a.png", head("200 OK", "image/png"), b"a", after=(-10, 10))
    answer = odd.ask(f"archive/{AT}/{HOME}")
    assert "Existed as shown: yes, provably" in answer.text
    assert answer.header("x-recrawl-parts-damage") == "0.000"


def test_a_page_with_a_part_of_another_time_says_so(make_server, build_visits):
    odd = make_server(filled=False)
    build_visits(odd.place, HOME, head("200 OK", "text/html"), b"<img src=a.png>")
    build_visits(odd.place, f"{HOME}a.png", head("200 OK", "image/png", 5), b"a", after=(10,))
    assert "Existed as shown: no, parts are from another time (1 prima facie violative)" in (
        odd.ask(f"archive/{AT}/{HOME}").text
    )


def test_a_page_made_to_harm_is_shown_without_its_parts(make_server, build_visits):
    odd = make_server(filled=False)
    build_visits(odd.place, HOME, head("200 OK", "text/html"), b"<div>" * 50_000 + b"<img src=a.png>")
    answer = odd.ask(f"archive/{AT}/{HOME}")
    assert answer.status == 200
    assert answer.header("x-recrawl-parts") is None


@pytest.mark.parametrize(
    ("path", "after"),
    [("a.png", [3600]), ("b.png", [-DAY]), ("s.css", [20]), ("busy.png", [-9]), ("styled.png", []), ("", [0])],
)
def test_the_index_names_the_part_that_is_shown_in_a_page(server, path, after):
    """What pywb asks for parts. It sorts lines by distance itself, so the others must not be among them."""
    asked = f"archive/cdx?url={HOME}{path}&closest={AT}&sort=closest&filter=!statuscode:5..&fl=timestamp"
    lines = server.ask(f"{asked}&embedded=true").text.split()
    assert lines == [to_timestamp14(START + one) for one in after]
    if path == "a.png":
        nearest = [to_timestamp14(START + one) for one in (-100, 3600)]
        assert server.ask(asked).text.split() == server.ask(f"{asked}&embedded=").text.split() == nearest


@pytest.fixture(scope="module")
def pywb(server, serve_app):
    """Asks pywb, as ``recrawl serve --replay`` starts it, for a path; follows nothing."""

    def ask(path):
        authority, _, rest = ready.replay.removeprefix("http://").partition("/")
        connection = http.client.HTTPConnection(authority, timeout=60)
        try:
            connection.request("GET", f"/{rest}{path}")
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode("latin-1")
        finally:
            connection.close()

    with (
        bound("127.0.0.1", 0) as behind,
        time_travel(server.place, AccessGuard(), "127.0.0.1", behind, replay=0) as ready,
    ):
        endings = [serve_app(app, listening) for app, listening in ready.apps]
        yield ask
        for end in endings:
            end()


def test_pywb_shows_the_parts_that_go_with_the_page(pywb):
    _, _, page = pywb(f"{AT}mp_/{HOME}")
    assert f"/archive/{AT}im_/{HOME}a.png" in page
    for path, after, text in (("a.png", 3600, "a"), ("b.png", -DAY, "old b"), ("target.png", 51, "target")):
        status, headers, body = pywb(f"{AT}im_/{HOME}{path}")
        assert (status, body) == (200, text)
        assert headers["Memento-Datetime"] == to_http_date(START + after)
    # A page of another time leads to its own time, so that its parts are asked for at that time.
    status, headers, _ = pywb(f"20240101000500mp_/{HOME}")
    assert status == 307
    assert headers["Location"].endswith(f"/archive/{AT}mp_/{HOME}")


def test_in_pywb_style_sheets_and_redirects_lead_on_at_the_time_of_the_page(pywb):
    status, headers, sheet = pywb(f"{AT}cs_/{HOME}s.css")
    assert (status, headers["Memento-Datetime"]) == (200, to_http_date(START + 20))
    assert f"/archive/{AT}cs_/{HOME}t.css" in sheet
    assert f"/archive/{AT}oe_/{HOME}bg.png" in sheet
    status, headers, _ = pywb(f"{AT}im_/{HOME}moved.png")
    assert status == 301
    assert headers["Location"].endswith(f"/archive/{AT}im_/{HOME}target.png")


def test_in_pywb_a_frame_is_a_page_of_its_own_time(pywb):
    status, headers, _ = pywb(f"{AT}if_/{HOME}frame.html")
    assert status == 307
    there = to_timestamp14(START + 3600)
    assert headers["Location"].endswith(f"/archive/{there}if_/{HOME}frame.html")
    status, _, frame = pywb(f"{there}if_/{HOME}frame.html")
    assert status == 200
    assert f"/archive/{there}im_/{HOME}a.png" in frame


def test_the_line_above_a_page_of_pywb_tells_of_coherence(server):
    assert facts(server)["existed_as_shown"].startswith("not proved (6 prima facie coherent, 1 possibly coherent,")
    script = (resources.files("recrawl.web") / "assets" / "replay-banner.js").read_text("utf-8")
    assert "facts.parts.existed_as_shown" in script
    assert "rule" not in script  # the parts are chosen by the rule that is the default
