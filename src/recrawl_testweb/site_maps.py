"""What a host says about itself: robots.txt, sitemap index and sitemaps, and the list of all hosts."""

from __future__ import annotations

from html import escape

import numpy as np

from recrawl.model import AnyArray, FloatArray, IntArray
from recrawl.simulate.virtual_web import VirtualWeb
from recrawl.time import DAY, HOUR, WEEK, to_iso
from recrawl_testweb.fault_injection import AssignedFaults, FaultProfile, SitemapLie

SITEMAP_SIZE = 500
"""URLs in one sitemap."""
_NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_FREQUENCIES = ("always", "hourly", "daily", "weekly", "monthly", "yearly", "never")
_BOUNDS = np.array([10 * 60.0, 6 * HOUR, 3 * DAY, 2 * WEEK, 90 * DAY, 1000 * DAY])
"""Mean gap between changes up to which each frequency but the last is named."""


def robots_txt(fault_profile: FaultProfile, sitemap: str) -> str:
    """Rules for all crawlers, and where the sitemap index is."""
    delay = f"Crawl-delay: {fault_profile.crawl_delay:g}\n" if fault_profile.crawl_delay else ""
    rules = "".join(f"Disallow: {prefix}\n" for prefix in fault_profile.disallow) or "Disallow:\n"
    return f"User-agent: *\n{delay}{rules}\nSitemap: {sitemap}\n"


def hosts_page(seed_scope: dict[str, str]) -> str:
    """A page that lists all hosts, for anyone who comes by address instead of by name."""
    items = "".join(f'<li><a href="{escape(url)}">{escape(name)}</a></li>\n' for name, url in seed_scope.items())
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>A test web</title>\n</head>\n'
        f"<body>\n<h1>A test web</h1>\n<ul>\n{items}</ul>\n</body>\n</html>\n"
    )


class Sitemaps:
    """The sitemaps of all hosts: every page of the host that is there and not disallowed, by page number."""

    def __init__(self, web: VirtualWeb, fault_profile: FaultProfile, dealt: AssignedFaults, urls: list[str]) -> None:
        self._web = web
        self._dealt = dealt
        self._urls = urls
        open_to_all = np.array([not path.startswith(fault_profile.disallow) for path in web.path], dtype=np.bool_)
        self._pages = [np.flatnonzero((web.host == host) & open_to_all) for host in range(len(web.hosts))]

    def index(self, host: int, home: str, now: float) -> str:
        """The sitemap index of a host. O(pages of the host)."""
        items = []
        for number, pages in enumerate(self._parts(host, now)):
            latest = to_iso(float(self._last_modified(pages, now).max(initial=self._web.start)))
            items.append(f"<sitemap><loc>{home}sitemap-{number}.xml</loc><lastmod>{latest}</lastmod></sitemap>\n")
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex {_NAMESPACE}>\n{"".join(items)}</sitemapindex>\n'

    def sitemap(self, host: int, number: int, now: float) -> str | None:
        """One sitemap of a host; ``None`` if there is none of that number. O(pages of the host)."""
        parts = self._parts(host, now)
        if not 0 <= number < len(parts):
            return None
        pages = parts[number]
        rows = zip(pages.tolist(), self._last_modified(pages, now).tolist(), self._frequency(pages), strict=True)
        items = "".join(
            f"<url><loc>{escape(self._urls[page])}</loc><lastmod>{to_iso(modified)}</lastmod>"
            f"<changefreq>{frequency}</changefreq></url>\n"
            for page, modified, frequency in rows
        )
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {_NAMESPACE}>\n{items}</urlset>\n'

    def _parts(self, host: int, now: float) -> list[IntArray]:
        pages = self._pages[host]
        pages = pages[self._web.alive(pages, now)]
        return [pages[first : first + SITEMAP_SIZE] for first in range(0, max(len(pages), 1), SITEMAP_SIZE)]

    def _last_modified(self, pages: IntArray, now: float) -> FloatArray:
        lie = self._dealt.map_lie[pages]
        truth = np.where(lie == SitemapLie.STALE, self._web.born[pages], self._web.modified(pages, now))
        return np.where(lie == SitemapLie.FRESH, now, truth)

    def _frequency(self, pages: IntArray) -> AnyArray:
        """The frequency nearest to each page's true rate; over its whole recorded life where λ is unknown."""
        web = self._web
        lived = np.minimum(web.died[pages], web.end) - web.born[pages]
        counted = np.maximum(web.changes.counts()[pages], 1e-9) / np.maximum(lived, 1.0)
        rate = np.where(np.isnan(web.rate[pages]), counted, web.rate[pages])
        with np.errstate(divide="ignore"):
            level = np.searchsorted(_BOUNDS, 1.0 / rate)
        lie = self._dealt.map_lie[pages]
        level = np.where(lie == SitemapLie.STALE, len(_FREQUENCIES) - 1, np.where(lie == SitemapLie.FRESH, 0, level))
        return np.array(_FREQUENCIES)[level]
