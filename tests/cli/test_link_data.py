"""Evidence for the prediction of new links, read from the tables of a data set."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recrawl.app.predict.model_data import link_data
from recrawl.errors import InputError
from recrawl.predict.static_features import text_quality

EVENTS = [
    # site, page, t, kind, bulk, missing, net_int, net_ext, size
    ("b", 4, 10, "add", False, False, 9, 9, 100),
    ("b", 4, 20, "mod", False, False, 2, 0, 120),
    ("b", 4, 30, "del", False, False, 0, 0, 0),
    ("b", 4, 40, "add", False, False, 7, 7, 130),
    ("a", 4, 12, "add", False, False, 3, 3, 50),
    ("a", 1, 15, "add", False, False, 1, 0, 10),
    ("a", 1, 25, "mod", False, True, 0, 0, 0),
    ("a", 1, 35, "mod", False, False, 0, 1, 11),
    ("a", 1, 36, "mod", True, False, 5, 5, 12),
]


@pytest.fixture
def folder(tmp_path):
    def write(name, **columns):
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")

    write(
        "pages", site=["b", "a", "a"], page_id=[4, 4, 1], url=["http://b.test/4", "http://a.test/4", "http://a.test/"]
    )
    site, page, time, kind, bulk, missing, internal, external, size = (
        list(column) for column in zip(*EVENTS, strict=True)
    )
    zero = [0] * len(EVENTS)
    write(
        "events",
        site=pa.array(site).dictionary_encode(),
        page_id=page,
        t=time,
        kind=pa.array(kind).dictionary_encode(),
        bulk=bulk,
        missing=missing,
        net_int=internal,
        net_ext=external,
        size=size,
        text_len=zero,
        n_links_int=zero,
        n_links_ext=zero,
        n_images=zero,
        n_tables=zero,
    )
    write("edges", site=["a"], src=[1], dst=[4], t_add=[16], t_rem=pa.array([None], pa.int64()))
    write(
        "texts", site=["a", "b"], page_id=[1, 4], t_ref=[22, 22], title=["Home", None], text=["to be or to be", "x y"]
    )
    return tmp_path


def test_pages_are_told_apart_by_site(folder):
    data = link_data(folder)
    assert data.evidence.urls == ("http://a.test/", "http://a.test/4", "http://b.test/4")
    assert data.sites == ("a", "b")
    assert data.site.tolist() == [0, 0, 1]


def test_versions(folder):
    versions = link_data(folder).evidence.versions
    assert versions.complete
    assert versions.page.tolist() == [0, 0, 0, 0, 1, 2, 2, 2]
    assert versions.time.tolist() == [15, 25, 35, 36, 12, 10, 20, 40]
    # What was not read is unknown, but for links: nobody counted any.
    np.testing.assert_array_equal(versions.content_size, [10, np.nan, 11, 12, 50, 100, 120, 130])
    # The links of a page that is new, or came back, are not new links; nor are those of a bulk edit.
    assert versions.new_internal.tolist() == [0, 0, 0, 0, 0, 0, 2, 0]
    assert versions.new_external.tolist() == [0, 0, 1, 0, 0, 0, 0, 0]
    assert versions.changed.tolist() == [False, True, True, False, False, False, True, False]


def test_the_quality_of_a_text_belongs_to_the_version_it_was_read_from(folder):
    quality = link_data(folder).evidence.versions.text_quality
    home, other = text_quality("Home to be or to be"), text_quality("x y")
    np.testing.assert_allclose(quality, [home, home, home, home, np.nan, np.nan, other, other])


def test_links_and_texts(folder):
    evidence = link_data(folder).evidence
    assert (evidence.links.source.tolist(), evidence.links.target.tolist()) == ([0], [1])
    assert np.isnan(evidence.links.removed).all()
    assert evidence.texts.last_of(evidence.page) == ["Home to be or to be", "", " x y"]


@pytest.mark.parametrize(
    ("time", "alive"), [(10, [0, 0, 0]), (13, [0, 1, 1]), (30, [1, 1, 1]), (31, [1, 1, 0]), (41, [1, 1, 1])]
)
def test_which_pages_are_there(folder, time, alive):
    assert link_data(folder).alive(float(time)).tolist() == [bool(one) for one in alive]


def test_some_sites_only(folder):
    data = link_data(folder, ["b"])
    assert data.evidence.urls == ("http://b.test/4",)
    assert len(data.evidence.links) == 0
    with pytest.raises(InputError, match="no site 'z'"):
        link_data(folder, ["z", "b"])


def test_missing_tables_and_columns_are_named(folder):
    (folder / "texts.parquet").unlink()
    with pytest.raises(InputError, match=r"texts.parquet is missing"):
        link_data(folder)
    unread = link_data(folder, texts=False).evidence
    assert unread.texts is None
    assert np.isnan(unread.versions.text_quality).all()
    pq.write_table(pa.table({"site": ["a"]}), folder / "texts.parquet")
    with pytest.raises(InputError, match="no column 'page_id'"):
        link_data(folder)
