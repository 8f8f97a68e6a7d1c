"""Digests as sources write them, in the one form the store keeps.

Archives write SHA-1 in base32, others in hexadecimal, newer ones SHA-256 or MD5, with or without a name before it. Two
digests tell something about each other only if they are of one algorithm; and then it must not matter how they were
written.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence

import numpy as np

from recrawl.model import AnyArray

_BYTES = {"md5": 16, "sha1": 20, "sha224": 28, "sha256": 32, "sha384": 48, "sha512": 64}
_BY_BYTES = {size: name for name, size in _BYTES.items()}
_HEX = re.compile(r"[0-9a-fA-F]+")
_BASE32 = re.compile(r"[A-Za-z2-7]+=*")
_CAPITALS = re.compile(r"[A-Z2-7]+")
_SHA1_BASE32 = 32
_BAD = 255
_VALUES = np.full(256, _BAD, np.uint8)  # of each letter of base32
_VALUES[np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", np.uint8)] = np.arange(32)


def digest_bytes(text: str) -> bytes:
    """A digest as the store keeps it: SHA-1 as its 20 bytes, another as its name and hexadecimal, empty for none.

    What is in no known form stays as it is.

    >>> digest_bytes("sha1:" + "A" * 32) == digest_bytes("0" * 40) == bytes(20)
    True
    >>> digest_bytes("SHA-256:" + "AB" * 32)[:11], digest_bytes("-"), digest_bytes("v7")
    (b'sha256:abab', b'', b'v7')
    """
    name, colon, value = text.rpartition(":")
    if value in ("", "-"):
        return b""
    name = name.lower().replace("-", "").replace("_", "")
    raw = _decoded(value, _BYTES.get(name)) if name in _BYTES or not colon else None
    if raw is None:
        return text.encode()
    algorithm = _BY_BYTES[len(raw)]
    return raw if algorithm == "sha1" else f"{algorithm}:{raw.hex()}".encode()


def _decoded(value: str, size: int | None) -> bytes | None:
    """The bytes of a digest that has this size; of any known size if ``None``."""
    sizes = (size,) if size else tuple(_BY_BYTES)
    bare = value.rstrip("=")
    in_base32 = _BASE32.fullmatch(value) and any(len(bare) == -(-8 * one // 5) for one in sizes)
    # 32 letters are a SHA-1 in base32 or an MD5 in hexadecimal: base32 is written in capitals.
    if _HEX.fullmatch(value) and len(value) // 2 in sizes and not (in_base32 and _CAPITALS.fullmatch(value)):
        return bytes.fromhex(value) if len(value) % 2 == 0 else None
    return base64.b32decode(bare.upper() + "=" * (-len(bare) % 8)) if in_base32 else None


def digest_column(column: Sequence[str]) -> list[bytes]:
    """The same for a column. SHA-1 in base32, which indexes are full of, is decoded all at once. O(n)."""
    usual = [row for row, text in enumerate(column) if len(text) == _SHA1_BASE32 and text.isascii()]
    found: list[bytes | None] = [None] * len(column)
    if usual:
        letters = np.frombuffer("".join([column[row] for row in usual]).encode(), np.uint8).reshape(-1, _SHA1_BASE32)
        values = _VALUES[letters]
        whole = (values != _BAD).all(axis=1)
        data = _joined(values).tobytes()
        for place, (row, good) in enumerate(zip(usual, whole.tolist(), strict=True)):
            if good:
                found[row] = data[20 * place : 20 * place + 20]
    return [digest_bytes(text) if known is None else known for text, known in zip(column, found, strict=True)]


def _joined(values: AnyArray) -> AnyArray:
    """Rows of 32 numbers below 32 as rows of 20 bytes: eight numbers are five bytes."""
    eights = values.reshape(-1, 8).astype(np.uint64)
    word = np.zeros(len(eights), np.uint64)
    for place in range(8):
        word = (word << np.uint64(5)) | (eights[:, place] & np.uint64(31))
    return np.ascontiguousarray(word.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 3:]).reshape(len(values), -1)
