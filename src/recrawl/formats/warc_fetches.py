"""How long each fetch took, as Heritrix notes it in the metadata records of its WARC files.

Beside a response or revisit it writes ``fetchTimeMs``, the way from the seed (``hopsFromSeed``) and ``seed`` for the
seeds themselves. Fetches without an answer leave no record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from recrawl.formats.captures import Report
from recrawl.formats.warc_fields import parse_date, target_of, text_of_bytes
from recrawl.formats.warc_reader import opened
from recrawl.formats.warc_stream import Window, records

_HEAD = 1 << 12
_MILLISECONDS = re.compile("[0-9]{1,12}")
"""Bytes of a metadata record that are read: outlinks follow what is wanted."""


class TimedFetch(NamedTuple):
    """One fetch that was answered."""

    url: str
    began: float
    """Seconds since the epoch, to the second."""
    seconds: float
    hops: str
    """The way from the seed, a letter a hop (conventions L2); empty for a seed."""


def read_fetches(path: Path, report: Report) -> Iterator[TimedFetch]:
    """The fetches of a file in its order; records without times are passed over.

    Raises:
        InputError: the file cannot be read.
    """
    with opened(path) as file:
        for record, _ in records(Window(file), str(path), report):
            headers = record.headers
            if (headers.get("WARC-Type") or "").strip().lower() != "metadata":
                continue
            noted = _fields(record.reader.read(_HEAD))
            began, took = parse_date(headers.get("WARC-Date") or ""), noted.get("fetchTimeMs", "")
            target = headers.get_bytes(b"WARC-Target-URI")
            if began is not None and target and _MILLISECONDS.fullmatch(took):
                yield TimedFetch(target_of(target), began, int(took) / 1000.0, noted.get("hopsFromSeed", ""))


def _fields(block: bytes) -> dict[str, str]:
    r"""The first value of each field.

    >>> _fields(b"seed: \r\nfetchTimeMs: 14\r\nfetchTimeMs: 15\r\n")
    {'seed': '', 'fetchTimeMs': '14'}
    """
    found: dict[str, str] = {}
    for line in text_of_bytes(block).splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip(), value.strip())
    return found
