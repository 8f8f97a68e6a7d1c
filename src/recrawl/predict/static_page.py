"""SP: what one look at a page, and its URL, say about it (papers 002, 003 and 004)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recrawl.model import FloatArray, IntArray
from recrawl.predict.feature_table import Column, Feature, Group
from recrawl.predict.names import buckets
from recrawl.predict.online_features import online_features
from recrawl.predict.page_versions import STATE, PageVersions, picked
from recrawl.predict.related_pages import SingleArray
from recrawl.predict.url_features import url_features

SIGNS = ("tilde", "underline", "question", "semicolon", "colon", "comma", "percent")
"""Special symbols that a URL may have (SHARC 6.3)."""


def url_columns(urls: Sequence[str]) -> list[Column]:
    """What the URLs say: depths, length, symbols, and their parts as names. O(characters), one at a time in Python."""
    found = url_features(urls)
    # The media type is a matter of the answer, not of the URL.
    parts = [online_features(url if "://" in url else f"http://{url}", "") for url in urls]
    numbers = {
        "path_depth": found.path_depth,
        "domain_depth": found.domain_depth,
        "directory_level": found.directory_level,
        "url_characters": found.characters,
        "url_digits": found.digits,
        "url_arguments": found.arguments,
        "url_is_directory": found.is_directory,
    }
    columns: list[Column] = [(Feature(name, Group.SP), column) for name, column in numbers.items()]
    for sign in SIGNS:
        has = np.fromiter((getattr(part, f"has_{sign}") for part in parts), np.float64, len(parts))
        columns.append((Feature(f"url_has_{sign}", Group.SP), has))
    names = {
        "segment1": [part.segment1 for part in parts],
        "segment2": [part.segment2 for part in parts],
        "segment3": [part.segment3 for part in parts],
        "top_level_domain": [part.domain.rpartition(".")[2] for part in parts],
    }
    columns += [(Feature(name, Group.SP, categorical=True), _named(values)) for name, values in names.items()]
    return columns


def version_columns(versions: PageVersions, row: IntArray) -> list[Column]:
    """What the last look at each page found; ``row`` is its row, −1 where there was none."""
    columns: list[Column] = [(Feature(name, Group.SP), picked(getattr(versions, name), row)) for name in STATE]
    mime = picked(versions.mime, row)
    columns.append((Feature("mime", Group.SP, categorical=True), np.where(mime >= 0, mime, np.nan)))
    return columns


def semantic_columns(reduced: SingleArray) -> list[Column]:
    """The reduced semantic vector, a column an axis; unknown where a page has no text."""
    silent = ~reduced.any(axis=1)
    return [
        (Feature(f"semantic_{axis:02}", Group.SP), np.where(silent, np.nan, reduced[:, axis]))
        for axis in range(reduced.shape[1])
    ]


def _named(values: Sequence[str]) -> FloatArray:
    code = buckets(values)
    return np.where(code >= 0, code, np.nan)
