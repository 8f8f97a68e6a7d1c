"""The named choices of a capture. Imports nothing heavy, so that help is quick."""

from __future__ import annotations

import enum

DEFAULT_THRESHOLD = 0.95
"""τ of the thesis, and the best one tried for most of the strategies that use it; about 0.8 is better for
``sharc-threshold`` (``docs/explanation/experiments/sharc-threshold.md``)."""


class RateSource(enum.StrEnum):
    """Where the change rates for a strategy come from."""

    KNOWN = "known"
    """From visits, as in ``recrawl rates``; else from sitemaps, else from neighbouring pages."""
    BELIEF = "belief"
    """From visits, as in ``recrawl rates`` (claims about visited pages count); else from neighbouring pages."""
    SITEMAP = "sitemap"
    """From sitemaps (SHARC Definition 6.1, literal reading); else from neighbouring pages."""
    SITEMAP_CORRECTED = "sitemap-corrected"
    """The same, in the reading that the text of the thesis suggests (003.36): about 58 times the rates."""
    NEIGHBOURS = "neighbours"
    """From the pages of the same section and host, for every page."""
    EQUAL = "equal"
    """The same rate for all pages: that of a page about which nothing is known."""


class Requisites(enum.StrEnum):
    """Which page requisites (images, style sheets, scripts, fonts, frames) belong to a capture."""

    ANY = "any"
    """Those of any host."""
    SCOPE = "scope"
    """Those in the scope of the site."""
    NONE = "none"


class WeightSource(enum.StrEnum):
    """What the weight of a page is."""

    IMPORTANCE = "importance"
    """Its importance in the workspace; 1 without one."""
    PRIORITY = "priority"
    """What a sitemap says last (``priority``), in units of the 0.5 that a page without it has."""


DEFAULT_STRATEGY = "sharc-selective-online"
"""If the pages of the site are not known."""
PLANNED_STRATEGY = "sharc-selective"
"""If the workspace knows them."""
OBSERVED_STRATEGY = "sharc-offline"
"""If an observation interval is given."""
