"""What is known of a page when it is found, and when it was looked at once: what its prior is made of.

Only features that any page has from the start are taken, as they were then. So a model learns from old pages exactly
what it will be asked about new ones, and nothing that came later can leak into it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from recrawl.model import IntArray
from recrawl.predict.feature_table import FeatureTable, table_of
from recrawl.predict.page_versions import PageVersions
from recrawl.predict.static_page import url_columns, version_columns
from recrawl.urls import host_of


def first_sight(page: IntArray, urls: Sequence[str], versions: PageVersions | None = None) -> FeatureTable:
    """The features of pages, ascending ids, at the first look at each; unknown where there was none. O(characters)."""
    looks = PageVersions.of([], []) if versions is None else versions
    starts = looks.offsets(page)
    first = np.where(starts[1:] > starts[:-1], starts[:-1], -1)
    return table_of(page, np.inf, [*url_columns(urls), *version_columns(looks, first)])


def when_found(table: FeatureTable) -> FeatureTable:
    """Only what is known before the first look."""
    return table.only([feature.name for feature, _ in url_columns(())])


def site_ids(urls: Sequence[str]) -> IntArray:
    """A number for the host of each URL: the same in every workspace. 63 bits of a hash.

    >>> one, other, same = site_ids(["http://a.org/x", "http://b.org/", "http://a.org/y"]).tolist()
    >>> one == same, one == other
    (True, False)
    """
    hosts = [host_of(url) or "" for url in urls]
    known = {host: _number(host) for host in set(hosts)}
    return np.fromiter((known[host] for host in hosts), np.int64, len(hosts))


def _number(host: str) -> int:
    return int.from_bytes(hashlib.blake2b(host.encode(), digest_size=8).digest()) >> 1
