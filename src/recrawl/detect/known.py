"""What is known of a page before it is visited again."""

from __future__ import annotations

from dataclasses import field

from recrawl.model import Validators
from recrawl.model.values import plain_value


@plain_value
class Known:
    """What we knew of a page before the capture."""

    validators: Validators = field(default_factory=Validators)
    gone: bool = False
    """The last answer was 404 or 410."""
    mime: str = ""
    links_last: frozenset[str] = frozenset()
    """SURT keys of the outlinks of the last version."""
    links_ever: frozenset[str] = frozenset()
    """SURT keys of all outlinks the page ever had."""
    fingerprint: bytes = b""
    """Of the last version that was a change, as packed; empty if none was kept."""
    links_read: bool = True
    """Whether the links of a version were ever read. If not, as where only digests are known, the two sets of links
    above say nothing, and no link can be called new."""
