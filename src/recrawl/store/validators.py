"""Validators of pages, between the vocabulary's values and the columns of the table ``page``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from recrawl.model import Validators
from recrawl.store.database import Column


def to_columns(values: Sequence[Validators]) -> list[Column]:
    """One column a field, in the order of the statements."""
    return [
        [_storable(value.etag) for value in values],
        [_storable(value.last_modified) for value in values],
        [value.digest for value in values],
        [value.text_digest for value in values],
        [_storable(value.mime) for value in values],
        np.array([value.gone for value in values], np.int16),
        np.array([value.links_read_at for value in values], np.float64),
    ]


def no_validators(count: int) -> list[Column]:
    """The columns of so many pages that said nothing yet: as ``to_columns`` makes them, without looking at each."""
    none = Validators()
    return [
        [none.etag] * count,
        [none.last_modified] * count,
        [none.digest] * count,
        [none.text_digest] * count,
        [none.mime] * count,
        np.full(count, none.gone, np.int16),
        np.full(count, none.links_read_at, np.float64),
    ]


def from_row(row: Sequence[Any]) -> Validators:
    """The validators in one row of these columns."""
    etag, last_modified, digest, text_digest, mime, gone, links_read_at = row
    return Validators(etag, last_modified, digest, text_digest, mime, bool(gone), links_read_at)


def _storable(text: str) -> str:
    """A header's value, or nothing if it holds a NUL: no server would take it back, and PostgreSQL keeps none."""
    return "" if "\0" in text else text
