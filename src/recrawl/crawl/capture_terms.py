"""What users may choose of a capture by name. Loads nothing, so that help is quick."""

from __future__ import annotations

import enum

DEFAULT_THRESHOLD = 0.95
"""τ of the thesis, and the best one tried for most of the strategies that ask for it; about 0.8 is better for
``sharc-threshold`` (``docs/explanation/experiments/sharc-threshold.md``)."""


class RateSource(enum.StrEnum):
    """Where the change rates come from that a strategy is told."""

    KNOWN = "known"
    """What visits taught, as ``recrawl rates`` has it; else what sitemaps claim, else what pages around do."""
    BELIEF = "belief"
    """What visits taught, as ``recrawl rates`` has it (claims about pages seen weigh in); else what pages around do."""
    SITEMAP = "sitemap"
    """What sitemaps claim (SHARC Definition 6.1, literal reading), else the pages around."""
    SITEMAP_CORRECTED = "sitemap-corrected"
    """The same, read as the text of the thesis wants it (reading 003.36): pages change about 58 times as often."""
    AROUND = "around"
    """What the pages of the same section and host do, for every page."""
    EQUAL = "equal"
    """The same for all pages: what is expected of a page of which nothing is known."""
