"""Recorded sites come back to life as they were."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from selectolax.lexbor import LexborHTMLParser

from recrawl.errors import InputError
from recrawl.simulate.virtual_web import PageKind
from recrawl.urls import address
from recrawl_testweb import load_recorded, load_recorded_sources

EXTRACT = Path(__file__).parent.parent / "data" / "recorded"


@pytest.fixture(scope="module")
def web():
    return load_recorded(EXTRACT, "jekylldocs")


@pytest.fixture(scope="module")
def rows():
    """The tables as plain rows, read without the code under test."""
    tables = {name: pq.read_table(EXTRACT / f"{name}.parquet").to_pylist() for name in ("pages", "events", "edges")}
    tables["pages"].sort(key=lambda row: (row["depth"], row["page_id"]))
    return tables


def test_births_deaths_and_changes_are_those_recorded(web, rows):
    assert len(web) == len(rows["pages"]) == 120
    place = {row["page_id"]: index for index, row in enumerate(rows["pages"])}
    for row in rows["pages"]:
        page = place[row["page_id"]]
        assert web.born[page] == row["first_seen"]
        assert web.died[page] == (np.inf if row["deleted_at"] is None else row["deleted_at"])
        assert len(web.lifetimes.row(page)) == 2 * row["n_lives"] - (row["deleted_at"] is None)
        assert len(web.changes.row(page)) == row["n_changes"] + row["n_lives"] - 1
        changed = [e["t"] for e in rows["events"] if e["page_id"] == row["page_id"] and e["kind"] == "mod"]
        assert set(changed) <= set(web.changes.row(page).tolist())
    assert web.unexplained_links() == 0
    assert np.isnan(web.rate).all()
    assert web.hosts == ("jekylldocs.living.test",)


def test_the_replay_shows_pages_and_links_as_they_came_and_went(run, web, rows):
    running = run(web)
    place = {row["page_id"]: index for index, row in enumerate(rows["pages"])}
    statuses, shown_links = set(), set()
    for now in np.linspace(web.start, web.end, 7):
        running.clock.advance_to(float(now))
        for row in rows["pages"]:
            page = place[row["page_id"]]
            answer = running.get(page)
            statuses.add(answer.status)
            past = [e["kind"] for e in rows["events"] if e["page_id"] == row["page_id"] and e["t"] <= now]
            last = next((kind for kind in reversed(past) if kind != "mod"), None)
            assert answer.status == {None: 404, "add": 200, "del": 410}[last]
            if answer.status != 200:
                continue
            links = {
                address(node.attributes["href"], base=running.urls[page]).url
                for node in LexborHTMLParser(answer.body).css("a")
            }
            recorded = {
                running.urls[place[edge["dst"]]]
                for edge in rows["edges"]
                if edge["src"] == row["page_id"] != edge["dst"]
                and edge["t_add"] <= now
                and (edge["t_rem"] is None or now < edge["t_rem"])
            }
            assert links == recorded
            shown_links |= {(page, link, now) for link in links}
    assert statuses == {200, 404, 410}
    assert len(shown_links) > 100


def test_a_page_that_returned_is_there_again_in_a_new_version(run, web):
    page = int(np.flatnonzero(web.lifetimes.counts() > 2)[0])
    _, died, returned = web.lifetimes.row(page)[:3]
    running = run(web, now=np.nextafter(died, 0))
    before = running.get(page)
    running.clock.advance_to(died)
    gone = running.get(page)
    running.clock.advance_to(returned)
    after = running.get(page)
    assert [before.status, gone.status, after.status] == [200, 410, 200]
    assert before.headers["etag"] != after.headers["etag"]


def test_a_span_and_a_number_of_pages_cut_the_site(web):
    cut = load_recorded(EXTRACT, "jekylldocs", start=1.4e9, end=1.5e9, max_pages=40)
    assert len(cut) == 40
    assert (cut.start, cut.end) == (1.4e9, 1.5e9)
    assert cut.path[0] == "/"
    assert cut.changes.times.max() <= 1.5e9
    assert np.all(cut.born <= 1.5e9)
    assert np.all(cut.died > 1.4e9)
    assert cut.links.added.max() <= 1.5e9 < web.links.added.max()
    for page, path in enumerate(cut.path):
        whole = web.path.index(path)
        assert cut.version(page, 1.45e9) == web.version(whole, 1.45e9)
        targets = {cut.path[target] for target in cut.links_at(page, 1.45e9)}
        assert targets == {web.path[t] for t in web.links_at(whole, 1.45e9)} & set(cut.path)


def test_faults_of_the_data_say_what_to_do(tmp_path):
    with pytest.raises(InputError, match=r"pages\.parquet: This file is missing"):
        load_recorded(tmp_path, "jekylldocs")
    with pytest.raises(InputError, match=r"There are: \['jekylldocs'\]"):
        load_recorded(EXTRACT, "elsewhere")
    with pytest.raises(InputError, match="No page was there"):
        load_recorded(EXTRACT, "jekylldocs", start=0.0, end=1.0)
    with pytest.raises(InputError, match="is empty"):
        load_recorded(EXTRACT, "jekylldocs", start=2.0, end=1.0)


@pytest.mark.big
def test_all_recorded_sites_load_with_every_link_explained(data_folder):
    documents = data_folder / "documents"
    counts = pq.read_table(documents / "pages.parquet", columns=["site"])["site"].value_counts().to_pylist()
    for row in counts:
        site = load_recorded(documents, row["values"])
        assert len(site) == row["counts"]
        assert site.unexplained_links() == 0
        assert len(set(site.path)) == len(site)


@pytest.mark.big
def test_recorded_data_sources_are_served_in_their_format(run, data_folder):
    web = load_recorded_sources(data_folder / "data-sources", "cisagov/kev-data")
    assert sorted(web.kind.tolist()) == [PageKind.JSON, PageKind.CSV]
    running = run(web, now=web.end)
    kinds = {running.get(page).headers["content-type"].partition(";")[0] for page in range(len(web))}
    assert kinds == {"application/json", "text/csv"}
