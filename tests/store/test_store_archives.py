"""Captures made elsewhere, claims, and marks of imports, in both engines."""

from __future__ import annotations

import math

import numpy as np
import pytest

from recrawl.store.values import Captures, Claims, ImportMark


def some_captures(page, time):
    n = len(page)
    return Captures(
        np.asarray(page),
        np.asarray(time, dtype=float),
        np.full(n, 200),
        ["text/html"] * n,
        [bytes([i]) * 20 for i in range(n)],
        np.full(n, -1),
        [f"{i}.warc.gz" for i in range(n)],
        np.arange(n),
        np.arange(n) + 7,
    )


def test_captures_are_noted_once_and_come_back_as_columns(store):
    pages = store.discover(["http://a.example/", "http://b.example/"], 0.0)
    captures = some_captures(pages[[1, 0, 1]], [3.0, 1.0, 2.0])
    assert store.add_captures(captures) == 3
    assert store.add_captures(captures) == 0
    found = store.capture_columns(pages)
    assert found.time.tolist() == [1.0, 2.0, 3.0]
    assert found.digest == [b"\x01" * 20, b"\x02" * 20, b"\x00" * 20]
    assert found.warc_file == ["1.warc.gz", "2.warc.gz", "0.warc.gz"]
    assert found.warc_length.tolist() == [8, 9, 7]
    assert len(store.capture_columns(pages[:0])) == 0


def test_captures_and_mark_are_one_transaction(store):
    pages = store.discover(["http://a.example/"], 0.0)
    mark = ImportMark("a.cdx", "f1", position=1, accepted=1)
    store.add_captures(some_captures(pages, [1.0]), mark)
    assert store.import_mark("a.cdx") == mark
    with pytest.raises(ValueError, match="page ids"):
        store.add_captures(some_captures([99], [1.0]), ImportMark("a.cdx", "f1", position=2))
    assert store.import_mark("a.cdx") == mark
    done = ImportMark("a.cdx", "f1", position=1, accepted=1, finished=True)
    store.set_import_mark(done)
    assert store.import_mark("a.cdx") == done
    assert store.import_mark("b.cdx") is None


def test_claims_are_kept_beside_the_truth(store):
    pages = store.discover(["http://a.example/", "http://b.example/"], 0.0)
    claims = Claims(
        pages,
        np.array([5.0, 5.0]),
        ["http://a.example/sitemap.xml"] * 2,
        np.array([4.0, -math.inf]),
        np.array([3, 0]),
        np.array([0.5, -1.0]),
    )
    assert store.add_claims(claims) == 2
    assert store.add_claims(claims) == 0
    found = store.claims(pages)
    assert found.lastmod.tolist() == [4.0, -math.inf]
    assert found.changefreq.tolist() == [3, 0]
    assert found.priority.tolist() == [0.5, -1.0]
    assert found.source == claims.source
    assert len(store.visits()) == 0
