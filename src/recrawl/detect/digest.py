"""Digests: what stays of a version once it is gone."""

from __future__ import annotations

import hashlib
import json

from recrawl.errors import InputError


def digest(body: bytes) -> bytes:
    """SHA-1 of a decoded body, 20 bytes. It names versions; it does not defend against forgers."""
    return hashlib.sha1(body, usedforsecurity=False).digest()


def text_digest(text: str) -> bytes:
    """SHA-1 of a text, after noise was removed."""
    return digest(text.encode("utf-8", "surrogatepass"))


def canonical_json(text: str) -> str:
    r"""The same JSON with keys sorted and no spaces, so that two spellings of one value are equal.

    Numbers compare as Python reads them, of a doubled key the last counts. Order in lists is content.

    >>> canonical_json('{"b": 1, "a": [1.50, "\u00e9"]}')
    '{"a":[1.5,"é"],"b":1}'
    """
    try:
        return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is not JSON ({error})") from error


def canonical_lines(text: str) -> str:
    r"""The same lines without the spaces and line ends that editors and platforms add. Order is content.

    >>> canonical_lines("a,b \r\n1,2\r\n\r\n")
    'a,b\n1,2'
    """
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip("\n")
