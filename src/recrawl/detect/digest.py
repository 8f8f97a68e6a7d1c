"""Digests: what stays of a version once it is gone."""

from __future__ import annotations

import hashlib


def digest(body: bytes) -> bytes:
    """SHA-1 of a decoded body, 20 bytes. It names versions; it does not defend against forgers."""
    return hashlib.sha1(body, usedforsecurity=False).digest()


def text_digest(text: str) -> bytes:
    """SHA-1 of a text or of data in canonical form, after noise was removed."""
    return digest(text.encode("utf-8", "surrogatepass"))
