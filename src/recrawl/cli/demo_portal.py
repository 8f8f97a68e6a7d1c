"""``recrawl demo --serve --data``: an open-data portal whose sources really change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recrawl.living.quirks import Quirks
    from recrawl.living.web import LivingWeb
    from recrawl.simulate.web import VirtualWeb

MEDIAN, SPREAD = 30.0, 0.7
"""Seconds between two changes of the median source, and the spread of the logarithm."""
SELDOM = 86_400.0
"""Seconds between two changes of the page that lists the sources."""
TOPICS = (
    "harbour", "market", "library", "weather", "railway", "theatre", "garden", "council", "school", "river", "museum",
    "bakery",
)  # fmt: skip
SETTINGS = {
    "fetch.contact": "me@example.org",
    "fetch.allow_networks": "127.0.0.1",
    "fetch.idle_timeout": "2s",
    "politeness.min_delay": "100ms",
    "politeness.ip_delay": "100ms",
    "politeness.factor": "1",
    "politeness.retry": "2s",
    "schedule.budget": "5/s",
    "schedule.new_share": "1",
    "schedule.min_interval": "8s",
    "schedule.objective": "changes",
    "crawl.scope": "page",
}
"""For a portal whose hour lasts ten seconds, on a server that does not mind being asked."""
QUERY = "SELECT ?thing ?when { ?thing <http://purl.org/dc/terms/modified> ?when }"
"""Its answer changes whenever any thing does."""


def portal(sources: int, start: float, end: float, seed: int) -> VirtualWeb:
    """One host on the loopback address: JSON, CSV and RDF in turn, each changing by chance at a rate of its own.

    Page 0 lists them all.
    """
    import numpy as np

    from recrawl.living.server import IP
    from recrawl.simulate.sites import lognormal_rates, tree_site
    from recrawl.simulate.web import PageKind

    rng = np.random.default_rng(seed)
    rate = np.append(1 / SELDOM, lognormal_rates(sources, median=1 / MEDIAN, sigma=SPREAD, rng=rng))
    web = tree_site("portal", rate, start=start, end=end, rng=rng, outdegree=sources)
    kinds = (PageKind.JSON, PageKind.CSV, PageKind.RDF)
    kind = np.array([PageKind.HTML, *(kinds[number % len(kinds)] for number in range(sources))], np.uint8)
    paths = ["/", *map(source_path, range(sources))]
    titles = ["Portal", *(path.strip("/").removeprefix("id/").partition(".")[0].capitalize() for path in paths[1:])]
    return replace(web, hosts=(IP,), kind=kind, path=paths, title=titles)


def source_path(number: int) -> str:
    """Where a source is.

    >>> [source_path(number) for number in (0, 1, 2, 12)]
    ['/harbour.json', '/market.csv', '/id/library', '/harbour-2.json']
    """
    round_, topic = divmod(number, len(TOPICS))
    name = TOPICS[topic] + (f"-{round_ + 1}" if round_ else "")
    return (f"/{name}.json", f"/{name}.csv", f"/id/{name}")[number % 3]


def quirks() -> Quirks:
    """As portals are: many sources say when they were generated, at every request anew, and some have no ETag."""
    from recrawl.living.quirks import Quirks

    return Quirks(noise=0.6, no_validators=0.4)


def orders(living: LivingWeb) -> list[str]:
    """What to do in another terminal."""
    from recrawl.living.endpoint import PATH

    home, *urls = living.urls()
    plain = [url for url in urls if "/id/" not in url]
    things = [url for url in urls if "/id/" in url]
    return [
        f"init monitor {' '.join(f'--set {key}={value}' for key, value in SETTINGS.items())}",
        f"add -w monitor {' '.join(plain)}",
        f"add -w monitor --access rdf {' '.join(things)}",
        f'add -w monitor --access sparql {home.rstrip("/")}{PATH} --option "query={QUERY}"',
        "run -w monitor --once --for 8s",
    ]
