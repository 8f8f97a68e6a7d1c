"""Features as of a time: nothing of the future moves them, nor the order in which pages are told."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.predict.feature_extraction import FeatureEvidence, FeatureOptions, look_around, page_features
from recrawl.predict.page_versions import COLUMNS, PageTexts, PageVersions, TimedLinks
from recrawl.predict.related_pages import learn_semantics
from recrawl.predict.static_features import FeatureGroup
from recrawl.time import DAY

NOW = 100 * DAY
WORDS = ["wave", "tide", "ship", "harbour", "sail", "function", "loop", "compiler", "bread", "butter", "oven", "flour"]
OPTIONS = FeatureOptions(period=7 * DAY, history=3, rate_periods=5)


def found_on(rng, count):
    """Columns of versions, any plausible values."""
    columns = {name: rng.integers(0, 50, count).astype(float) for name in COLUMNS}
    return columns | {
        "changed": rng.random(count) < 0.5,
        "text_quality": rng.random(count),
        "mime": rng.integers(0, 5, count),
    }


def joined(first, second):
    """Versions of two evidences as one."""
    page, time = (np.concatenate([getattr(part, name) for part in (first, second)]) for name in ("page", "time"))
    columns = {name: np.concatenate([getattr(part, name) for part in (first, second)]) for name in COLUMNS}
    return PageVersions.of(page, time, columns, complete=first.complete)


def evidence_of(seed, begin, end, *, pages=12, observations=80):
    """Pages of three hosts with looks, links and texts between two times."""
    rng = np.random.default_rng(seed)
    ids = np.arange(pages) * 7 + 3
    removed = rng.uniform(begin, end + 30 * DAY, observations)
    return FeatureEvidence(
        page=ids,
        urls=tuple(f"http://h{one % 3}.test/{'' if one < 3 else f'a_b/{one}/p{one}.html'}" for one in range(pages)),
        versions=PageVersions.of(
            rng.choice(ids, observations),
            rng.uniform(begin, end, observations),
            found_on(rng, observations),
            complete=True,
        ),
        links=TimedLinks(
            rng.choice(ids, observations),
            rng.choice(ids, observations),
            rng.uniform(begin, end, observations),
            removed,
            rng.random(observations) < 0.7,
        ),
        texts=PageTexts.of(
            rng.choice(ids, 30), rng.uniform(begin, end, 30), [" ".join(rng.choice(WORDS, 6)) for _ in range(30)]
        ),
    )


def with_future(past, seed, begin):
    """The same evidence, and whatever may happen from ``begin`` on."""
    later = evidence_of(seed, begin, begin + 60 * DAY)
    links = (past.links, later.links)
    texts = (past.texts, later.texts)
    names = ("source", "target", "added", "removed", "internal")
    # A link that is still there may go, at any time from then on.
    gone = np.where(past.links.removed < begin, past.links.removed, begin + 5.0)
    known = replace(past.links, removed=gone)
    links = TimedLinks(*(np.concatenate([getattr(known, name), getattr(later.links, name)]) for name in names))
    page, time = (np.concatenate([getattr(part, name) for part in texts]) for name in ("page", "time"))
    return replace(
        past,
        versions=joined(past.versions, later.versions),
        links=links,
        texts=PageTexts.of(page, time, [*past.texts.text, *later.texts.text]),
    )


@pytest.fixture(scope="module")
def semantics():
    rng = np.random.default_rng(0)
    return learn_semantics([" ".join(rng.choice(WORDS, 6)) for _ in range(40)], rng)


def features(evidence, semantics, **options):
    how = replace(OPTIONS, **options)
    around = look_around(evidence, NOW, semantics, np.random.default_rng(1), neighbours=3)
    return page_features(evidence, NOW, around, how)


@given(seed=st.integers(0, 10_000), future=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_no_feature_sees_the_future(semantics, seed, future):
    past = evidence_of(seed, NOW - 60 * DAY, NOW)
    before, after = features(past, semantics), features(with_future(past, future, NOW), semantics)
    assert before.names == after.names
    assert np.array_equal(before.values, after.values, equal_nan=True)


def test_the_past_does_move_them(semantics):
    """The guard of the test above: the same things a moment earlier are seen."""
    past = evidence_of(1, NOW - 60 * DAY, NOW)
    before = features(past, semantics)
    after = features(with_future(past, 2, NOW - 61 * DAY), semantics)
    moved = {
        feature.group
        for feature, one, other in zip(before.columns, before.values.T, after.values.T, strict=True)
        if not np.array_equal(one, other, equal_nan=True)
    }
    assert moved == set(FeatureGroup)


def test_only_the_printed_form_looks_ahead_and_only_at_related_pages(semantics):
    past = evidence_of(3, NOW - 60 * DAY, NOW)
    more = with_future(past, 4, NOW)
    before, after = features(past, semantics, literal=True), features(more, semantics, literal=True)
    moved = [
        name
        for name, one, other in zip(before.names, before.values.T, after.values.T, strict=True)
        if not np.array_equal(one, other, equal_nan=True)
    ]
    assert moved == ["near_internal_link_change_rate", "near_external_link_change_rate"]


@given(seed=st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_the_order_of_the_evidence_does_not_matter(semantics, seed):
    told = evidence_of(seed, NOW - 60 * DAY, NOW)
    rng = np.random.default_rng(seed)
    rows, edges, read = (rng.permutation(len(part)) for part in (told.versions, told.links, told.texts))
    shuffled = replace(
        told,
        versions=PageVersions.of(
            told.versions.page[rows],
            told.versions.time[rows],
            {name: getattr(told.versions, name)[rows] for name in COLUMNS},
            complete=True,
        ),
        links=TimedLinks(
            *(getattr(told.links, name)[edges] for name in ("source", "target", "added", "removed", "internal"))
        ),
        texts=PageTexts.of(told.texts.page[read], told.texts.time[read], [told.texts.text[one] for one in read]),
    )
    one, other = features(told, semantics), features(shuffled, semantics)
    assert np.allclose(one.values, other.values, rtol=1e-5, atol=1e-6, equal_nan=True)


def test_renumbered_pages_have_the_same_features(semantics):
    told = evidence_of(5, NOW - 60 * DAY, NOW)
    told = replace(told, texts=PageTexts.of(told.page, np.zeros(12), [" ".join(WORDS[: one + 1]) for one in range(12)]))
    place = np.random.default_rng(2).permutation(12)  # page i becomes page place[i]
    new = dict(zip(told.page.tolist(), told.page[place].tolist(), strict=True))
    back = np.argsort(place)

    def rename(ids):
        return np.array([new[one] for one in ids.tolist()])

    versions = told.versions
    renumbered = replace(
        told,
        urls=tuple(told.urls[one] for one in back),
        versions=PageVersions.of(
            rename(versions.page), versions.time, {name: getattr(versions, name) for name in COLUMNS}, complete=True
        ),
        links=replace(told.links, source=rename(told.links.source), target=rename(told.links.target)),
        texts=PageTexts.of(rename(told.texts.page), told.texts.time, told.texts.text),
    )
    one, other = features(told, semantics), features(renumbered, semantics)
    assert np.allclose(one.values, other.values[place], rtol=1e-5, atol=1e-6, equal_nan=True)


def test_other_pages_and_times_have_the_same_schema(semantics):
    small = evidence_of(6, NOW - 20 * DAY, NOW, pages=3, observations=2)
    assert features(small, semantics).schema == features(evidence_of(7, 0, NOW), semantics).schema
    assert features(small, semantics, history=2).schema != features(small, semantics).schema


def test_a_new_site_of_three_pages_without_text_links_or_a_second_version(semantics):
    site = FeatureEvidence(
        np.array([1, 2, 3]),
        ("http://new.test/", "http://new.test/a", "new.test/b"),
        PageVersions.of([1, 2], [NOW - DAY, NOW - DAY], {"images": [2, 0], "changed": False}),
        TimedLinks(*(np.empty(0, kind) for kind in (np.int64, np.int64, float, float, bool))),
        PageTexts.of([], [], []),
    )
    table = features(site, semantics)
    assert table.column("images").tolist()[:2] == [2.0, 0.0]
    assert np.isnan(table.column("images")[2])
    assert table.column("pagerank").tolist() == pytest.approx([1.0, 1.0, 1.0])
    assert table.column("trustrank").tolist() == pytest.approx([3.0, 0.0, 0.0])
    assert table.column("days_known").tolist()[:2] == [1.0, 1.0]
    assert np.isnan(table.column("days_since_change")).all()
    assert np.isnan(table.column("near_internal_link_change_rate")).all()
    assert table.column("directory_level").tolist() == [1, 1, 1]


def test_no_pages_have_no_features(semantics):
    nothing = FeatureEvidence(np.empty(0, np.int64), (), PageVersions.of([], []), texts=PageTexts.of([], [], []))
    assert features(nothing, semantics).values.shape[0] == 0


def test_without_texts_or_links_their_features_are_left_out():
    told = replace(evidence_of(8, 0, NOW), texts=None, links=None)
    assert {column.group for column in page_features(told, NOW, None, OPTIONS).columns} == {
        FeatureGroup.SP,
        FeatureGroup.DP,
    }


def test_no_history_leaves_only_rates_of_related_pages(semantics):
    told = evidence_of(9, 0, NOW)
    dynamic = features(told, semantics, history=0).of_groups({FeatureGroup.DP, FeatureGroup.DN})
    assert dynamic.names == (
        "near_internal_link_change_rate",
        "near_external_link_change_rate",
        "near_content_change_rate",
    )


def test_dynamic_features_by_hand():
    """One page, looked at each week; lag 1 is the latest."""
    week = 7 * DAY
    versions = PageVersions.of(
        [5] * 4,
        NOW - np.array([3.5, 2.5, 1.5, 0.5]) * week,
        {
            "text_size": [10, 20, 30, 40],
            "new_internal": [9, 1, 0, 2],
            "new_external": [9, 0, 0, 0],
            "changed": [False, True, False, True],
        },
        complete=True,
    )
    told = FeatureEvidence(np.array([5]), ("http://a.test/",), versions)
    table = page_features(told, NOW, None, replace(OPTIONS, history=4))
    row = dict(zip(table.names, table.values[0].tolist(), strict=True))
    assert [row[f"text_size_{lag}"] for lag in (1, 2, 3)] == [30, 20, 10]
    assert np.isnan(row["text_size_4"])
    assert [row[f"new_internal_{lag}"] for lag in (1, 2, 3)] == [2, 0, 1]
    assert np.isnan(row["new_internal_4"])
    assert row["new_internal_mean"] == 1.0
    assert row["internal_link_change_rate"] == pytest.approx(2 / 3)
    assert row["external_link_change_rate"] == 0.0
    assert row["content_change_rate"] == pytest.approx(2 / 3)
    assert row["days_known"] == 24.5
    assert row["days_since_change"] == 3.5
    assert row["change_per_day"] == pytest.approx(2 / 24.5)
    assert row["days_since_new_internal"] == 3.5
    assert np.isnan(row["days_since_new_external"])
    assert row["new_external_per_day"] == 0.0


@pytest.mark.parametrize(
    ("page", "urls", "looked"), [([2, 1], 2, [1]), ([1, 1], 2, [1]), ([1, 2], 1, [1]), ([1, 2], 2, [3])]
)
def test_evidence_that_does_not_fit_together_is_refused(page, urls, looked):
    with pytest.raises(ValueError, match="page"):
        FeatureEvidence(np.array(page), ("http://a.test/",) * urls, PageVersions.of(looked, [0.0]))


def test_surroundings_of_a_later_time_or_of_other_pages_are_refused(semantics):
    told = evidence_of(10, 0, NOW)
    later = look_around(told, NOW + 1.0, semantics, np.random.default_rng(1))
    with pytest.raises(ValueError, match="later time"):
        page_features(told, NOW, later)
    with pytest.raises(ValueError, match="other pages"):
        page_features(told.of_pages(told.page > 20), NOW + 1.0, later)


def test_fewer_pages_have_the_same_features_of_their_own():
    told = evidence_of(11, 0, NOW)
    some = told.page > 20
    whole, part = page_features(told, NOW, None, OPTIONS), page_features(told.of_pages(some), NOW, None, OPTIONS)
    page = {FeatureGroup.SP, FeatureGroup.DP}
    assert np.array_equal(whole.of_groups(page).values[some], part.of_groups(page).values, equal_nan=True)
