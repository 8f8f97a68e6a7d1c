"""Archived content acts on nothing; strangers get nothing; packages come in ranges."""

import re
import zipfile
from io import BytesIO

import pytest

from recrawl.web.dashboard.access_control import AccessGuard

HOME = "http://site.example/"
SECRET = "a-secret-of-many-letters"


@pytest.fixture(scope="session")
def guarded(make_server):
    made = make_server(guard=AccessGuard(SECRET))
    made.guard_token = SECRET
    return made


@pytest.mark.parametrize("modifier", ["", "id_", "mp_", "if_", "js_", "cs_", "im_"])
@pytest.mark.parametrize("place", [("20240101000000", ""), ("20240101000100", "dir/one"), ("20240101000040", "gone")])
def test_archived_bytes_come_in_a_sandbox_and_nobody_guesses_what_they_are(server, modifier, place):
    timestamp, path = place
    answer = server.ask(f"archive/{timestamp}{modifier}/{HOME}{path}")
    policy = answer.header("content-security-policy")
    assert policy.startswith("sandbox ")
    assert "allow-scripts" not in policy
    assert "allow-forms" not in policy
    assert "script-src 'none'" in policy
    assert answer.header("x-content-type-options") == "nosniff"
    assert answer.header("set-cookie") is None
    assert answer.header("content-type")
    assert answer.header("access-control-allow-origin") is None
    assert answer.header("cross-origin-resource-policy") == "same-origin"


def test_what_named_no_type_gets_a_harmless_one(server):
    answer = server.ask(f"archive/20240101000100id_/{HOME}dir/one")
    assert answer.header("content-type") == "application/octet-stream"


def test_a_page_to_look_at_has_a_banner_and_leads_nowhere_else(server):
    answer = server.ask(f"archive/20240101000000/{HOME}")
    assert answer.header("content-type") == "text/html; charset=utf-8"
    assert answer.header("content-encoding") is None
    page = answer.text
    assert page.count('id="recrawl-banner"') == 1
    assert page.index("<body") < page.index("recrawl-banner") < page.index("logo.png")
    base = f"{server.base}archive/20240101000000"
    assert f'src="{base}if_/{HOME}logo.png"' in page
    assert f'href="{base}cs_/{HOME}style.css"' in page
    assert f'href="{base}/{HOME}q?a=1&amp;b=2#there"' in page
    assert "<base" not in page


def test_no_page_can_hide_the_banner_or_lead_it_astray(make_server, build_visits):
    odd = make_server(filled=False)
    pages = {
        "a": b"<script>'<body>'</script><!-- <body> --><body title='a>b'>text",
        "b": b"",
        "c": b"<p>no body",
        "d": b"<frameset><frame src=/x></frameset>",
    }
    for name, page in pages.items():
        build_visits(odd.place, f"{HOME}{name}", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", page)
        shown = odd.ask(f"archive/20240101000000/{HOME}{name}").text
        if name == "d":
            assert f'src="{odd.base}archive/20240101000000if_/{HOME}x"' in shown
        else:
            assert re.search(r'<body[^<]*><details id="recrawl-banner"', shown), shown


@pytest.mark.parametrize("page", [b"<div>" * 60_000, b"not gzip at all"], ids=["deep", "broken"])
def test_a_page_made_to_harm_a_parser_is_shown_raw(make_server, build_visits, page):
    odd = make_server(filled=False)
    encoding = b"Content-Encoding: gzip\r\n" if b"gzip" in page else b""
    build_visits(odd.place, HOME, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + encoding + b"\r\n", page)
    answer = odd.ask(f"archive/20240101000000/{HOME}")
    assert answer.body == page
    assert answer.header("content-security-policy").startswith("sandbox ")
    assert answer.header("x-recrawl-parts") is None


def test_a_frame_has_no_banner_and_raw_bytes_never_have(server):
    for modifier in ("if_", "id_"):
        assert b"recrawl-banner" not in server.ask(f"archive/20240101000000{modifier}/{HOME}").body


EVIL_URL = f"{HOME}?<script>alert(1)</script>\"onmouseover=alert(1)&'x"


def test_evil_in_addresses_and_headers_stays_text(make_server, build_visits):
    evil = make_server(filled=False)
    odd = b"X-Split: a\x0bSet-Cookie: b\r\nBad Name: x\r\nX-Nul: a\x00b\r\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + odd + b"\r\n"
    build_visits(evil.place, EVIL_URL, head, b"<title><script>alert(1)</script></title><body>x</body>")
    [line] = evil.ask("archive/cdx?url=*.site.example&fl=original,timestamp").text.splitlines()
    url, timestamp = line.split(" ")
    page = evil.ask(f"archive/{timestamp}/{url}")
    assert page.status == 200
    banner = page.text[page.text.index("<details") : page.text.index("</details>")]
    assert "<script" not in banner
    assert '"onmouseover' not in banner
    assert "'x" not in banner
    for name, value in page.headers:
        assert not set(value) & set("\r\n\x00\x0b"), name
    assert page.header("x-archive-orig-x-split") == "a Set-Cookie: b"
    assert page.header("x-archive-orig-bad name") is None
    assert page.header("set-cookie") is None
    link = page.header("link")
    assert link.count("<") == link.count(">") == link.count("; rel=")


@pytest.mark.parametrize(
    "path",
    [
        "archive/../../etc/passwd",
        "archive/20240101000000id_/../../../etc/passwd",
        "archive/20240101000000id_/file:///etc/passwd",
        "archive/%2e%2e/%2e%2e/etc/passwd",
        "archive.wacz/../recrawl.db",
        "../recrawl.db",
        "/etc/passwd",
    ],
)
def test_no_path_leads_out_of_the_archive(server, path):
    answer = server.ask(path)
    assert answer.status in {400, 404}
    assert b"root:" not in answer.body


def test_a_name_that_is_not_this_machines_is_turned_away(server):
    assert server.ask("archive/cdx?url=x", Host="evil.example").status == 421
    assert server.ask(f"archive/cdx?url={HOME}", Host="localhost").status == 200


def test_with_a_token_nobody_looks_without_it(guarded):
    assert guarded.ask(f"archive/cdx?url={HOME}").status == 401
    assert guarded.ask(f"archive/{HOME}?token={SECRET}").status == 401
    assert guarded.ask("/?token=wrong-wrong-wrong").status == 401
    assert guarded.ask(f"archive/cdx?url={HOME}", Authorization=f"Bearer {SECRET}").status == 200
    let_in = guarded.ask(f"/?token={SECRET}")
    assert (let_in.status, let_in.header("location")) == (303, "/")
    cookie = let_in.header("set-cookie")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert guarded.ask(f"archive/cdx?url={HOME}", Cookie=cookie.partition(";")[0]).status == 200


@pytest.mark.parametrize("path", ["archive", "archive/delete"])
def test_nobody_writes_from_another_site_or_without_the_token(server, guarded, path):
    line = f"example,site)/ 20230101000000 {HOME} text/html 200 {'A' * 32} - - 10 20 other.warc.gz\n"
    for headers in ({}, {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}):
        assert server.ask(path, "POST", line, **headers).status == 401
    for one, token in ((guarded, SECRET), (server, server.guard.write_token)):
        cookie = one.ask(f"/?token={token}").header("set-cookie").partition(";")[0]
        refused = one.ask(path, "POST", line, Cookie=cookie)
        assert (refused.status, refused.header("www-authenticate")) == (401, 'Bearer realm="recrawl"')
    assert guarded.ask(path, "POST", line, Authorization="Bearer wrong").status == 401


@pytest.mark.parametrize("form", ["text", "cdxj"])
@pytest.mark.parametrize("way", ["{folder}/", "../../{name}/warc/", "{folder}/../warc/"])
def test_no_line_that_is_sent_leads_out_of_the_folder_of_archive_files(server, make_server, form, way):
    """The bytes of another workspace on the same machine stay there, whatever file a line names."""
    other = make_server(filled=False)
    folder = server.place.warc
    line = server.ask(f"archive/cdx?url={HOME}dir/one&output={form}").text
    [name] = [file.name for file in folder.glob("*.warc.gz")]
    path = way.format(folder=folder, name=f"../{server.place.folder.parent.name}/{server.place.folder.name}")
    assert other.send("archive", line.replace(name, f"{path}{name}")).text == "Added 1 records\n"
    answer = other.ask(f"archive/20240101000100id_/{HOME}dir/one")
    assert answer.status == 404
    assert "not in this workspace" in answer.text


def test_too_much_at_once_is_refused(server, monkeypatch):
    monkeypatch.setattr("recrawl.web.replay.replay_app.LARGEST_INGEST", 100)
    assert server.send("archive", "x" * 200).status == 413


def test_a_package_comes_whole_or_in_ranges_for_the_one_site_that_replays_it(server):
    whole = server.ask("archive.wacz", Origin="https://replayweb.page")
    assert whole.header("content-type") == "application/wacz"
    assert int(whole.header("content-length")) == len(whole.body)
    assert whole.header("accept-ranges") == "bytes"
    assert whole.header("access-control-allow-origin") == "https://replayweb.page"
    assert "Content-Range" in whole.header("access-control-expose-headers")
    names = zipfile.ZipFile(BytesIO(whole.body)).namelist()
    assert {"datapackage.json", "pages/pages.jsonl"} <= set(names)
    part = server.ask("archive.wacz", Range="bytes=10-29")
    assert part.status == 206
    assert part.body == whole.body[10:30]
    assert part.header("content-range") == f"bytes 10-29/{len(whole.body)}"
    asked = server.ask("archive.wacz", "HEAD")
    assert (asked.body, asked.header("content-length")) == (b"", str(len(whole.body)))
    before = server.ask("archive.wacz", "OPTIONS", Origin="https://replayweb.page")
    assert (before.status, before.header("access-control-allow-headers")) == (204, "Range")


def test_an_archive_without_bytes_has_no_package(make_server):
    answer = make_server(filled=False).ask("archive.wacz")
    assert answer.status == 400
    assert answer.text.strip()


def test_the_start_names_what_there_is(server):
    assert server.ask("/").status == 200
    assert f'"timegate":"{server.base}archive/{{url}}"' in server.ask("/").text


@pytest.mark.parametrize("path", ["/", "archive", "archive/"])
def test_a_browser_gets_a_start_page_with_pages_and_a_form(server, path):
    """`recrawl serve` prints one of these addresses, so each must show something."""
    page = server.ask(path, Accept="text/html,application/xhtml+xml")
    assert (page.status, page.header("content-type")) == (200, "text/html; charset=utf-8")
    assert f'href="{server.base}archive/{HOME}"' in page.text
    assert f'href="{server.base}archive/timemap/link/{HOME}"' in page.text
    assert "None" not in page.text
    assert "<script" not in page.text
    assert server.ask(path).header("content-type") == "application/json"


def test_the_form_of_the_start_page_leads_to_a_copy(server):
    latest = server.ask(f"archive/?url={HOME}&at=")
    assert (latest.status, latest.header("location")) == (302, f"{server.base}archive/{HOME}")
    dated = server.ask("?url=site.example&at=2024-01-01")
    assert (dated.status, dated.header("location")) == (302, f"{server.base}archive/20240101000000/{HOME}")
    assert server.ask(dated.header("location").removeprefix(server.base)).status == 200
    assert server.ask("?url=javascript:alert(1)").status == 400
    assert server.ask(f"?url={HOME}&at=yesterday").status == 400


def test_a_start_page_without_pages_says_so(make_server):
    page = make_server(filled=False).ask("archive/", Accept="text/html")
    assert (page.status, "Nothing is archived yet." in page.text) == (200, True)


def test_the_token_is_taken_at_every_address_of_the_start_page(guarded):
    let_in = guarded.ask(f"archive/?token={SECRET}")
    assert (let_in.status, let_in.header("location")) == (303, "/archive/")
    cookie = let_in.header("set-cookie").partition(";")[0]
    assert guarded.ask("archive/", Cookie=cookie, Accept="text/html").status == 200
