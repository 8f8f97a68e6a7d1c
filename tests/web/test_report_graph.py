"""The data of site graph, scatter plot and area plots, from a real store, and that nothing in it can act."""

import json

import numpy as np
import pytest

from recrawl.app.assess.assessment import SitePages, media_types, pages_of_archive, pages_of_capture
from recrawl.assess.archive_quality import archive_quality
from recrawl.assess.crawl_segmentation import segment_crawls
from recrawl.assess.observations import Observations
from recrawl.assess.site_structure import ROOT, ChangeClass
from recrawl.model import ChangeKind, Outcome, Verdict, Visits
from recrawl.store.open import open_store
from recrawl.store.store_values import CaptureColumns, FoundPages, SiteProgress, SiteStep
from recrawl.time import DAY
from recrawl.web.html_templates import data_block, json_text
from recrawl.web.report.holdings import areas_section
from recrawl.web.report.site_graph import (
    KIND,
    SCRIPTS,
    front_coded,
    graph_data,
    graph_section,
    page_columns,
    scatter_section,
)

START = 1_700_000_000.0
EVIL = "http://a.org/x/<script>alert(1)</script>&\u2028"
URLS = [
    "http://a.org/",
    "http://a.org/news/",
    "http://a.org/news/1",
    "http://a.org/news/2",
    "http://a.org/old/",
    "http://a.org/old/1",
    "http://a.org/old/2",
    "http://a.org/logo.png",
]
TYPES = ["text/html"] * 7 + ["image/png"]
ANSWERS = {1: "links", 2: "content", 3: "gone"}
"""What the second crawl found, by place in the list; everything else it found unchanged."""


@pytest.fixture
def store(tmp_path):
    with open_store(str(tmp_path / "recrawl.db"), create=True) as opened:
        yield opened


@pytest.fixture
def crawled(store):
    """Two crawls of a site, a week apart, with links, and media types of their captures."""
    page = store.discover(URLS, START)
    for crawl in range(2):
        time = START + 7 * DAY * crawl + 10.0 * np.arange(len(page))
        found = [ANSWERS.get(place, "same") if crawl else "first" for place in range(len(page))]
        verdicts = {"first": Verdict.UNKNOWN, "same": Verdict.UNCHANGED}
        kinds = {"links": ChangeKind.CONTENT | ChangeKind.LINKS, "content": ChangeKind.CONTENT}
        store.record(
            Visits.of(
                page,
                time,
                outcome=[Outcome.GONE if one == "gone" else Outcome.FETCHED for one in found],
                verdict=[verdicts.get(one, Verdict.CHANGED) for one in found],
                kinds=[kinds.get(one, ChangeKind.NONE) for one in found],
            )
        )
        store.add_captures(
            CaptureColumns(
                page,
                time,
                np.full(len(page), 200),
                [f"{one}; charset=utf-8" for one in TYPES],
                [b""] * len(page),
                np.full(len(page), 9),
                [""] * len(page),
                np.zeros(len(page), np.int64),
                np.zeros(len(page), np.int64),
            )
        )
    source, target = np.array([0, 0, 1, 1, 4, 4, 0]), np.array([1, 4, 2, 3, 5, 6, 7])
    store.record_links(page[source], page[target], START + 10.0 * source)
    return page


@pytest.fixture
def quality(store, crawled):
    observations = Observations.from_visits(store.visits())
    site = np.zeros(len(observations), np.int64)
    rate = np.full(len(observations), 1 / DAY)
    return archive_quality(
        observations, rate, np.ones(len(observations)), site, rounds=segment_crawls(observations, site)
    )


@pytest.fixture
def pages(store, quality):
    observations = quality.observations
    return pages_of_archive(store, quality, store.urls(observations.page), np.full(len(observations), ROOT))


def decoded(coded):
    """What the script does with front-coded texts."""
    before, out = "", []
    for shared, rest in zip(coded["shared"], coded["rest"], strict=True):
        before = before[:shared] + rest
        out.append(before)
    return out


def test_pages_come_by_address_with_what_became_of_them(pages):
    assert pages.urls == sorted(URLS)
    found = dict(zip(pages.urls, pages.change.tolist(), strict=True))
    assert found["http://a.org/news/"] == ChangeClass.LINKS
    assert found["http://a.org/news/1"] == ChangeClass.CONTENT
    assert found["http://a.org/news/2"] == ChangeClass.MISSING
    assert found["http://a.org/old/1"] == ChangeClass.UNCHANGED
    above = {url: None if up == ROOT else pages.urls[up] for url, up in zip(pages.urls, pages.parent, strict=True)}
    assert above["http://a.org/"] is None
    assert above["http://a.org/old/2"] == "http://a.org/old/"
    assert pages.mime[pages.urls.index("http://a.org/logo.png")] == "image/png"
    news = pages.urls.index("http://a.org/news/1")
    assert pages.changed_at[news] == START + 7 * DAY + 20
    assert pages.captures[news] == 2


def test_the_graph_folds_what_did_not_change(pages):
    data = graph_data(pages, "/pages/{id}")
    urls = decoded(data["pages"]["url"])
    assert urls == pages.urls
    drawn = {url for url, one in zip(urls, data["drawn"], strict=True) if one}
    assert drawn == {"http://a.org/", "http://a.org/news/", "http://a.org/news/1", "http://a.org/news/2"}
    assert [
        (urls[page], count) for page, count in zip(data["folded"]["page"], data["folded"]["pages"], strict=True)
    ] == [("http://a.org/", 4)]
    again = json.loads(json_text(data))
    assert again["pages"]["change"] == pages.change.tolist()
    assert again["pages"]["changed"][0] is None  # the front page never changed
    assert again["versions"] == "/pages/{id}"
    section = graph_section(pages)
    assert section.figures[0].kind == KIND in SCRIPTS
    assert "4 pages lie in parts where nothing changed" in section.words[0]
    page, state, *_, found_on = section.tables[0].columns
    assert dict(zip(page.values, state.values, strict=True)) == {
        "http://a.org/news/": "links",
        "http://a.org/news/1": "content",
        "http://a.org/news/2": "missing",
    }
    assert set(found_on.values) == {"http://a.org/", "http://a.org/news/"}


def test_the_scatter_has_a_cell_for_each_directory_and_type(pages):
    section = scatter_section(pages)
    data = section.figures[0].data
    assert data["directories"] == ["/", "/news/", "/old/"]
    assert data["types"] == ["image/png", "text/html"]
    cell = {
        url: (data["directories"][row], data["types"][column])
        for url, row, column in zip(pages.urls, data["directory"], data["type"], strict=True)
    }
    assert cell["http://a.org/old/1"] == ("/old/", "text/html")
    assert cell["http://a.org/logo.png"] == ("/", "image/png")
    assert data["pagesOf"] == KIND
    assert "100% of 3 pages" in section.words[0]
    alone = scatter_section(pages, shares_pages=False).figures[0].data
    assert decoded(alone["pages"]["url"]) == pages.urls


def test_the_directory_with_most_changes_is_never_one_without_any():
    """The largest directory did not change; smaller ones did."""
    urls = [*(f"http://a.org/calm/{page}" for page in range(10)), *(f"http://a.org/news/{page}" for page in range(4))]
    change = np.array([ChangeClass.UNCHANGED] * 10 + [ChangeClass.CONTENT, ChangeClass.UNCHANGED] * 2)
    nothing = np.full(len(urls), np.nan)
    ones = np.ones(len(urls), np.int64)
    root = np.full(len(urls), ROOT)
    pages = SitePages(np.arange(len(urls)), urls, change, nothing, nothing, nothing, ones, [""] * len(urls), root)
    [said] = scatter_section(pages).words
    assert "The highest share of changed pages is in /news/: 50% of 4 pages." in said
    assert "Nothing changed in /calm/." in said


def test_directories_beyond_the_most_frequent_are_one():
    urls = [f"http://a.org/d{one:02}/{page}" for one in range(40) for page in range(1 + (one < 20))]
    nothing = np.full(len(urls), np.nan)
    pages = SitePages(
        np.arange(len(urls)),
        urls,
        np.full(len(urls), ChangeClass.UNSEEN),
        nothing,
        nothing,
        nothing,
        np.ones(len(urls), np.int64),
        [""] * len(urls),
        np.full(len(urls), ROOT),
    )
    data = scatter_section(pages).figures[0].data
    assert len(data["directories"]) == 31
    assert data["directories"][-1] == "all others"
    assert np.bincount(data["directory"])[-1] == len(urls) - 20 * 2 - 10
    assert data["types"] == ["not known"]


def test_areas_count_links_pages_and_images(store, quality):
    mime = media_types(store, quality.observations.page)
    section = areas_section(store, quality, ["a.org"], mime)
    by_name = {figure.name: figure for figure in section.figures}
    assert set(by_name) == {"areas-links", "areas-html", "areas-images"}
    html = {one["name"]: one["y"].tolist() for one in by_name["areas-html"].data["series"]}
    assert html == {"unchanged": [4], "changed": [2], "new": [0], "deleted": [1]}
    images = {one["name"]: one["y"].tolist() for one in by_name["areas-images"].data["series"]}
    assert images["unchanged"] == [1]
    links = {one["name"]: one["y"].tolist() for one in by_name["areas-links"].data["series"]}
    assert links == {"unchanged": [5], "changed": [0], "new": [0], "deleted": [2]}
    assert section.words[0].startswith("2 crawls of a.org")
    assert "other files" in section.words[1]


def test_one_crawl_has_nothing_to_compare(store):
    page = store.discover(URLS[:1], START)
    store.record(Visits.of(page, [START]))
    observations = Observations.from_visits(store.visits())
    site = np.zeros(1, np.int64)
    alone = archive_quality(
        observations, np.full(1, np.nan), np.ones(1), site, rounds=segment_crawls(observations, site)
    )
    assert areas_section(store, alone, ["a.org"], [""]).figures == ()


def test_a_site_that_is_looked_at_all_the_time_is_compared_by_stretches_of_time(store):
    page = store.discover(URLS, START)
    hours = np.tile(24 * np.arange(20), len(page)) + np.repeat(3 * np.arange(len(page)), 20)  # never a pause
    verdict = np.where(np.arange(160) % 20 == 7, Verdict.CHANGED, Verdict.UNCHANGED)
    verdict[::20] = Verdict.UNKNOWN
    store.record(Visits.of(np.repeat(page, 20), START + 3_600.0 * hours, verdict=verdict))
    observations = Observations.from_visits(store.visits())
    site = np.arange(len(page)) % 2
    quality = archive_quality(
        observations, np.full(8, 1 / DAY), np.ones(8), site, rounds=segment_crawls(observations, site)
    )
    assert len(quality.rounds) == 2
    section = areas_section(store, quality, ["a.org", "b.org"], ["text/html"] * 8)
    assert section.words[0].startswith("All 2 hosts together: each stretch of 1 d is compared")
    choices = section.figures[0].data["choices"]
    assert [one["name"] for one in choices] == ["all 2 hosts", "a.org", "b.org"]
    assert choices[2]["words"].startswith("b.org was observed continuously: each stretch of 1 d is compared")
    for part in (choices[1:], choices[:1]):
        changed = [sum(series["y"][series["y"] > 0]) for one in part for series in one["series"][1:2]]
        assert sum(changed) == 8
    counts = {one["name"]: one["y"].tolist() for one in section.figures[0].data["series"]}
    assert sum(counts["changed"]) == 8
    assert sum(counts["unchanged"]) == 8 * 20 - 8 - 8  # every look but the changes and those of the first stretch
    assert not any(counts["deleted"])


def test_nothing_in_an_address_leaves_the_data(pages):
    evil = SitePages(
        pages.page[:1],
        [EVIL],
        pages.change[:1],
        pages.rate[:1],
        pages.changed_at[:1],
        pages.seen_at[:1],
        pages.captures[:1],
        ["text/<b>"],
        np.array([ROOT]),
    )
    block = data_block("data-site-graph", {"kind": KIND, "data": graph_data(evil)})
    inside = block.partition(">")[2].rpartition("</script>")[0]
    assert not set("<>&\u2028") & set(inside)
    assert decoded(json.loads(inside)["data"]["pages"]["url"]) == [EVIL]


def test_addresses_beyond_ascii_are_whole():
    urls = ["http://a.org/\U0001f600/1", "http://a.org/\U0001f600/2", "http://a.org/é", "http://a.org/f"]
    coded = front_coded(urls)
    assert decoded(coded) == urls
    assert coded["shared"] == [0, 0, 0, 0]  # characters that JavaScript counts otherwise are never cut through
    assert front_coded(["http://a.org/ab", "http://a.org/ac"])["shared"] == [0, 14]


def test_a_site_without_pages_says_so():
    none = np.empty(0, np.int64)
    nothing = SitePages(none, [], none, np.empty(0), np.empty(0), np.empty(0), none, [], none)
    assert graph_section(nothing).figures == ()
    assert scatter_section(nothing).figures == ()
    assert page_columns(nothing)["url"] == {"shared": [], "rest": []}
    assert len(graph_data(nothing)["folded"]["page"]) == 0


def capture(store, *, revisits):
    """A capture of four pages: three visited, of which one changed; one found and never visited."""
    page = store.discover(URLS[:4], START)
    known = FoundPages(page[:1], np.array([-1]), np.array([1e-6]), np.ones(1))
    number = store.begin_site_capture(URLS[0], "{}", delay=1.0, now=START, known=known)
    steps = [(0, False, Verdict.UNKNOWN), (1, False, Verdict.UNKNOWN), (2, False, Verdict.UNKNOWN)]
    steps += [(1, True, Verdict.CHANGED), (0, True, Verdict.UNCHANGED)] if revisits else []
    for place, (which, again, verdict) in enumerate(steps):
        time = START + place
        found = FoundPages(page[1:4], np.array([0, 0, 1]), np.full(3, 1e-6), np.ones(3))
        none = FoundPages(*(np.empty(0, np.int64),) * 2, np.empty(0), np.empty(0))
        step = SiteStep(place, which, again, time, int(Outcome.FETCHED), int(verdict))
        progress = SiteProgress(number, step, none if place else found, 4 if place else 1)
        store.record(Visits.of(page[[which]], [time], verdict=verdict, kinds=ChangeKind.CONTENT), site=progress)
    return number


def test_a_capture_shows_what_its_revisits_found(store):
    pages = pages_of_capture(store, capture(store, revisits=True))
    found = dict(zip(pages.urls, pages.change.tolist(), strict=True))
    assert found == {
        URLS[0]: ChangeClass.UNCHANGED,
        URLS[1]: ChangeClass.CONTENT,
        URLS[2]: ChangeClass.UNCHANGED,  # the innermost: visit and revisit in one
        URLS[3]: ChangeClass.UNSEEN,
    }
    assert [None if up == ROOT else pages.urls[up] for up in pages.parent] == [None, URLS[0], URLS[0], URLS[1]]
    assert pages.rate.tolist() == [1e-6] * 4


def test_a_capture_without_revisits_is_judged_by_the_next_look(store):
    number = capture(store, revisits=False)
    assert set(pages_of_capture(store, number).change.tolist()) == {ChangeClass.UNSEEN}
    page = store.find(URLS[1])
    store.record(Visits.of([page.id], [START + DAY], outcome=Outcome.GONE))
    later = pages_of_capture(store, number)
    assert later.change[later.urls.index(URLS[1])] == ChangeClass.MISSING


def test_a_capture_that_has_not_begun_has_its_seed(store):
    page = store.discover(URLS[:1], START)
    known = FoundPages(page, np.array([-1]), np.array([1e-6]), np.ones(1))
    pages = pages_of_capture(store, store.begin_site_capture(URLS[0], "{}", delay=1.0, now=START, known=known))
    assert pages.urls == URLS[:1]
    assert graph_data(pages)["drawn"].tolist() == [1]


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "1 page without links to other pages."),
        (
            2,
            (
                "2 pages, drawn as the tree in which they were discovered. 1 page lies in a part where nothing "
                "changed and "
                "is folded into 1 disc; 1 page remains: changed and uncompared pages, and the paths to them."
            ),
        ),
    ],
)
def test_of_one_page_it_speaks_as_of_one(count, words):
    few = SitePages(
        np.arange(count),
        [f"http://a.org/{number}" for number in range(count)],
        np.full(count, ChangeClass.UNCHANGED),
        *(np.zeros(count) for _ in range(3)),
        np.ones(count, np.int64),
        ["text/html"] * count,
        np.array([ROOT, 0][:count]),
    )
    assert graph_section(few).words[0] == words
