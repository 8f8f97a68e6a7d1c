"""What pages say, which links they show, and that both follow the truth."""

import csv
import io
import json
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from recrawl.simulate.virtual_web import PageKind
from recrawl.time import DAY
from recrawl.urls import address
from recrawl_testweb import FaultProfile


def visible(body):
    tree = LexborHTMLParser(body)
    for nav in tree.css("nav"):
        nav.decompose()
    return tree.body.text(separator=" ", strip=True)


def targets(body, base):
    return {address(node.attributes["href"], base=base).url for node in LexborHTMLParser(body).css("a")}


def of_kind(web, kind):
    return np.flatnonzero(web.kind == kind).tolist()


def test_a_new_version_reads_differently_and_the_same_version_the_same(run, small):
    running = run(small)
    html = [page for page in of_kind(small, PageKind.HTML) if not np.isfinite(small.died[page])]
    page = max(html, key=lambda page: len(small.changes.row(page)))
    texts = [visible(running.get(page).body)]
    for time in small.changes.row(page)[:20]:
        running.clock.advance_to(np.nextafter(time, -np.inf))
        assert visible(running.get(page).body) == texts[-1]
        running.clock.advance_to(time)
        texts.append(visible(running.get(page).body))
    assert len(set(texts)) == len(texts) > 15


def test_changes_are_small_and_sometimes_large(run, small):
    running = run(small)
    page = max(of_kind(small, PageKind.HTML), key=lambda page: len(small.changes.row(page)))
    kept = []
    before = None
    for time in small.changes.row(page)[:20]:
        running.clock.advance_to(time)
        sentences = set(LexborHTMLParser(running.get(page).body).css_first("main").text(separator=" ").split(". "))
        if before is not None:
            kept.append(len(sentences & before) / len(before))
        before = sentences
    assert max(kept) > 0.6
    assert min(kept) < 0.3


def test_links_are_those_of_the_truth_at_every_time(run, small):
    running = run(small)
    html = of_kind(small, PageKind.HTML)
    seen = set()
    for day in (0, 3, 7, 13):
        running.clock.advance_to(small.start + day * DAY)
        now = running.clock.now()
        for page in html:
            if not small.state(page, now).alive:
                continue
            shown = targets(running.get(page).body, running.urls[page])
            expected = {running.urls[target] for target in small.links_at(page, now).tolist()}
            assert shown == expected
            seen.add((page, tuple(sorted(shown))))
    assert len(seen) > len(html)


def test_all_pages_that_are_there_can_be_reached_from_the_seeds(run, usual):
    running = run(usual)
    todo, found = list(running.living.seeds()), set()
    while todo:
        url = todo.pop()
        if url in found:
            continue
        found.add(url)
        answer = running.client.get(url)
        if answer.status == 200 and answer.headers["content-type"].startswith("text/html"):
            todo.extend(targets(answer.body, url))
    there = usual.alive(np.arange(len(usual)), usual.start)
    assert {url for url, alive in zip(running.urls, there, strict=True) if alive} <= found


def test_not_yet_born_is_404_and_dead_is_410(run, small):
    running = run(small)
    late = int(np.argmax(small.born))
    dying = int(np.flatnonzero(np.isfinite(small.died))[0])
    assert small.born[late] > small.start
    assert running.get(late).status == 404
    running.clock.advance_to(np.nextafter(small.died[dying], -np.inf))
    assert running.get(dying).status == (200 if small.born[dying] <= running.clock.now() else 404)
    running.clock.advance_to(small.died[dying])
    assert running.get(dying).status == 410
    running.clock.advance_to(small.born[late])
    assert running.get(late).status in {200, 410}
    assert running.client.get(running.living.seeds()[0] + "no-such-page").status == 404


def test_rdf_is_negotiated_and_says_the_same_in_both_notations(run, small):
    running = run(small)
    page = next(p for p in of_kind(small, PageKind.RDF) if small.state(p, small.start).alive)
    html = running.get(page, Accept="text/html,*/*;q=0.8")
    turtle = running.get(page, Accept="text/turtle")
    triples = running.get(page, Accept="application/n-triples, text/html;q=0.1")
    kinds = [answer.headers["content-type"] for answer in (html, turtle, triples)]
    assert kinds == ["text/html; charset=utf-8", "text/turtle; charset=utf-8", "application/n-triples"]
    assert len({answer.headers["etag"] for answer in (html, turtle, triples)}) == 3
    lines = triples.body.decode().splitlines()
    assert all(line.startswith(f"<{running.urls[page]}> <http") and line.endswith(" .") for line in lines)
    objects = sorted(line.split("> ", 2)[2].removesuffix(" .") for line in lines if "rdf-syntax-ns" not in line)
    statements = [line.strip() for line in turtle.body.decode().splitlines() if line.startswith("    ")]
    assert sorted(line.split(" ", 1)[1].rstrip(" ;.") for line in statements) == objects
    assert "Accept" in html.headers["vary"]


def test_data_pages_change_with_their_version(run, small):
    for kind, read in (
        (PageKind.JSON, lambda body: json.loads(body)["readings"]),
        (PageKind.CSV, lambda body: list(csv.reader(io.StringIO(body.decode())))),
        (PageKind.RDF, lambda body: body),
    ):
        page = next(p for p in of_kind(small, kind) if len(small.changes.row(p)) > 3 and small.born[p] == small.start)
        running = run(small)
        bodies = [read(running.get(page, Accept="text/turtle").body)]
        for time in small.changes.row(page)[:4]:
            running.clock.advance_to(time)
            bodies.append(read(running.get(page, Accept="text/turtle").body))
        assert len(bodies) > 3
        assert all(before != after for before, after in pairwise(bodies))


def test_json_lists_its_links_and_csv_is_a_table(run, small):
    running = run(small)
    page = next(p for p in of_kind(small, PageKind.JSON) if small.born[p] == small.start)
    answer = running.get(page)
    assert answer.headers["content-type"] == "application/json"
    links = [address(link, base=running.urls[page]).url for link in json.loads(answer.body)["links"]]
    assert links == [running.urls[target] for target in small.links_at(page, small.start)]
    page = next(p for p in of_kind(small, PageKind.CSV) if small.born[p] == small.start)
    rows = list(csv.reader(io.StringIO(running.get(page).body.decode())))
    assert rows[0] == ["station", "value"]
    assert all(len(row) == 2 and row[1].isdecimal() for row in rows[1:])


def test_dated_notes_carry_the_true_dates(run, small):
    running = run(small, now=small.end)
    dated = 0
    for page in of_kind(small, PageKind.HTML):
        answer = running.get(page)
        if answer.status != 200:
            continue
        stamps = [node.attributes["datetime"] for node in LexborHTMLParser(answer.body).css("time")]
        shown = [datetime.fromisoformat(stamp).replace(tzinfo=UTC).timestamp() for stamp in stamps]
        assert shown == np.floor(small.changes.row(page)[::-1][: len(shown)]).tolist()
        dated += bool(shown)
    assert dated > 10


def test_the_seed_decides_the_words(run, small):
    bodies = [run(small, seed=seed).get(1) for seed in (1, 1, 2)]
    texts = [LexborHTMLParser(answer.body).css_first("main").text() for answer in bodies]
    assert texts[0] == texts[1] != texts[2]
    assert bodies[0].headers["etag"] == bodies[1].headers["etag"] != bodies[2].headers["etag"]


def test_links_to_moved_pages_lead_there_by_a_redirect(run, small):
    running = run(small, FaultProfile(redirects=0.5))
    moved = [p for p in running.pages(lambda traits: traits.redirect) if small.born[p] == small.start and p > 0]
    statuses, relative = set(), set()
    for page in moved:
        parent = next(s for s, t in zip(*small.links_between(small.start), strict=True) if t == page)
        shown = targets(running.get(int(parent)).body, running.urls[int(parent)]) if small.kind[parent] == 0 else set()
        old = running.urls[page].replace("/", "\0", 2).replace("/", "/moved/", 1).replace("\0", "/")
        assert not shown or (old in shown and running.urls[page] not in shown)
        answer = running.client.get(old)
        statuses.add(answer.status)
        relative.add(answer.headers["location"].startswith("/"))
        assert answer.status == running.living.faults_of(page).redirect
        assert address(answer.headers["location"], base=old).url == running.urls[page]
    assert statuses == {301, 302, 307, 308}
    assert relative == {True, False}
    straight = next(iter(running.pages(lambda traits: not traits.redirect)))
    assert running.client.get(f"http://{running.living.hosts()[0]}/moved{small.path[straight]}").status == 404
