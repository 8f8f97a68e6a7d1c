"""``recrawl add`` with access methods and feeds, and ``recrawl run`` with what was added."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from recrawl.store.open import open_store

HURRY = [
    part
    for key in (
        "politeness.min_delay=0",
        "politeness.ip_delay=0",
        "politeness.factor=0",
        "fetch.contact=me@example.org",
        "fetch.allow_networks=127.0.0.1",
    )
    for part in ("--set", key)
]
QUERY = "SELECT ?s { ?s ?p ?o }"
RESULTS = json.dumps({"head": {"vars": ["s"]}, "results": {"bindings": [{"s": {"type": "literal", "value": "x"}}]}})


@pytest.fixture
def site():
    """A host with an endpoint, linked data and a feed."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            home = f"http://127.0.0.1:{self.server.server_port}"
            asked.append(self.path)
            answers = {
                "/sparql": ("application/sparql-results+json", RESULTS),
                "/thing": ("text/turtle", "<a> <b> <c> ."),
                "/news/feed.json": (
                    "application/feed+json",
                    json.dumps({"version": "https://jsonfeed.org/version/1", "items": [{"url": f"{home}/news/1"}]}),
                ),
                "/news/1": ("text/html", "<p>News."),
            }
            kind, body = answers.get(self.path.partition("?")[0], ("text/plain", ""))
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        server.home, server.asked = f"http://127.0.0.1:{server.server_port}", asked
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def workspace(run, tmp_path):
    assert run("init", "w").returncode == 0
    return tmp_path / "w"


def sources(workspace):
    with open_store(str(workspace / "recrawl.db")) as store:
        return [(method, json.loads(options)) for method, options in store.sources().values()]


def test_sources_of_every_kind_are_added_and_visited(run, workspace, site, tmp_path):
    (tmp_path / "all.rq").write_text(QUERY + "\n")
    (tmp_path / "own.csv").write_text("a,b\n")
    allow = ("--set", f"fetch.allow_files={tmp_path}")
    add = ("add", "-w", "w")
    said = run(
        *add, "--access", "sparql", f"{site.home}/sparql", "--option", "query=@all.rq", "--option", "page_size=5"
    )
    assert said.stdout == "Added 1 page; 0 known already.\n"
    assert "ORDER BY" in said.stderr
    assert run(*add, "--access", "rdf", f"{site.home}/thing").returncode == 0
    assert run(*add, *allow, "--access", "file", f"file://{tmp_path}/own.csv").returncode == 0
    assert run(*add, "--feed", f"{site.home}/news/feed.json").stdout == "Added 1 feed; 0 known already.\n"
    assert sources(workspace) == [
        ("sparql", {"endpoint": f"{site.home}/sparql", "query": QUERY, "page_size": "5"}),
        ("rdf", {}),
        ("file", {"path": f"{tmp_path}/own.csv"}),
        ("feed", {"home": "yes"}),
    ]
    ran = run("run", "-w", "w", "--once", "--for", "60s", *HURRY, *allow)
    assert ran.returncode == 0, ran.stderr
    paths = [path.partition("?")[0] for path in site.asked]
    assert sorted(paths) == ["/news/1", "/news/feed.json", "/robots.txt", "/sparql", "/thing"]
    with open_store(str(workspace / "recrawl.db")) as store:
        visits = store.visits()
        assert visits.status.tolist() == [200] * 4
    explained = run("explain", "-w", "w", f"file://{tmp_path}/own.csv")
    assert "no earlier version to compare with" in explained.stdout, "a file is known by the name it was added under"


def test_http_takes_a_method_back_and_no_method_leaves_it(run, workspace):
    run("add", "-w", "w", "--access", "rdf", "http://a.example/", "--option", "accept=text/csv")
    run("add", "-w", "w", "http://a.example/")
    assert sources(workspace) == [("rdf", {"accept": "text/csv"})]
    assert run("add", "-w", "w", "--access", "http", "http://a.example/").stdout == "Added 0 pages; 1 known already.\n"
    assert sources(workspace) == []


def test_a_query_that_differs_only_in_case_is_refused_and_the_first_one_stays(run, workspace):
    query = 'SELECT * { ?s ?p "%s" }'
    endpoint = ("add", "-w", "w", "--access", "sparql", "http://a.example/")
    run(*endpoint, "--option", f"query={query % 'Bee'}")
    assert run(*endpoint, "--option", f"query={query % 'Bee'}").stdout == "Added 0 pages; 1 known already.\n"
    said = run(*endpoint, "--option", f"query={query % 'bee'}")
    assert said.returncode == 1
    assert "another source" in said.stderr
    assert [options["query"] for _, options in sources(workspace)] == [query % "Bee"]


def test_nothing_is_added_in_a_dry_run(run, workspace):
    said = run("add", "-w", "w", "--dry-run", "--access", "sparql", "http://a.example/", "--option", f"query={QUERY}")
    assert said.stdout == "Would add 1 page; 0 known already.\n"
    assert sources(workspace) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--access", "gopher", "http://a.example/"), "There is no access method 'gopher'. There are: http, rdf"),
        (("--option", "a=b", "http://a.example/"), "The access method http has no options."),
        (("--access", "rdf", "--option", "accept", "http://a.example/"), "'accept' is not an option. Write NAME=VALUE"),
        (("--access", "sparql", "http://a.example/"), "needs the option query"),
        (("--access", "sparql", "--option", "query=@none.rq", "http://a.example/"), "none.rq"),
        (("--access", "rdf", "ftp://a.example/"), "is not an http(s) URL"),
        (("--access", "file", "file:///etc/passwd"), "/etc/passwd is not in a folder of fetch.allow_files."),
        (("--set", "fetch.allow_files=/etc", "--access", "file", "file:///etc/none"), "/etc/none is not a file."),
        (("--set", "fetch.allow_files=etc", "--access", "file", "file:///etc/passwd"), "not an absolute path"),
        (("--feed", "--access", "rdf", "http://a.example/"), "exclude each other"),
    ],
)
def test_what_cannot_be_added_is_refused_with_words(run, workspace, arguments, words):
    said = run("add", "-w", "w", *arguments)
    assert said.returncode in (1, 4)
    assert words in " ".join(said.stderr.split())
    assert sources(workspace) == []


def test_a_crawl_does_not_set_out_without_a_method_that_a_page_needs(run, workspace):
    run("add", "-w", "w", "http://a.example/")
    with open_store(str(workspace / "recrawl.db")) as store:
        store.set_source(store.pages().id, "gone")
    said = run("run", "-w", "w", "--once", *HURRY)
    assert said.returncode == 4
    assert "There is no access method 'gone'." in said.stderr
