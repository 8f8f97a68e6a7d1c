"""``recrawl demo --serve``: a site that really changes, for the reader to crawl, and the truth about it afterwards.

What a workspace found of the changes of a served site: recall and precision, against the truth.

``recrawl demo --serve --data``: an open-data portal whose sources really change.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import typer

from recrawl.app.display import command_name

if TYPE_CHECKING:
    from recrawl.assess.truth_scores import ChangeReport
    from recrawl.model import FloatArray
    from recrawl.simulate.virtual_web import VirtualWeb
    from recrawl.store.base import Store
    from recrawl_testweb.fault_injection import FaultProfile
    from recrawl_testweb.virtual_web_server import VirtualWebServer


KINDS = ("HTML", "RDF", "JSON", "CSV")
"""As :class:`recrawl.simulate.virtual_web.PageKind` numbers them."""
QUERIES = "SPARQL"


class ChangingSource(NamedTuple):
    """Something that changes, and when it did."""

    url: str
    kind: str
    changes: FloatArray
    """Seconds since the epoch, ascending."""


def sources(living: VirtualWebServer, until: float) -> list[ChangingSource]:
    """All pages of the site and all queries that its endpoint was asked, with their changes up to ``until``."""
    web = living.truth().web
    rows = [web.changes.row(page) for page in range(len(web))]
    found = [
        ChangingSource(url, KINDS[kind], row[row <= until])
        for url, kind, row in zip(living.urls(), web.kind.tolist(), rows, strict=True)
    ]
    log = living.requests()
    asked = dict.fromkeys(f"http://{host}:{living.port}{path}" for host, path in zip(log.host, log.path, strict=True))
    for url in asked:
        changes = living.answer_changes(url, until)
        if changes is not None:
            found.append(ChangingSource(url, QUERIES, changes))
    return found


def write_truth(found: list[ChangingSource], file: Path) -> None:
    """One line a change: the URL and the exact time (ISO 8601, UTC)."""
    import csv
    from datetime import UTC, datetime

    with file.open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out)
        table.writerow(("url", "time"))
        for source in found:
            for when in source.changes.tolist():
                table.writerow((source.url, datetime.fromtimestamp(when, UTC).isoformat(timespec="microseconds")))
    typer.echo(f"Wrote {file}.")


def tell_verdict(found: list[ChangingSource], start: float, folder: Path) -> None:
    """Print what the workspace in ``folder`` found, by kind of source, from its first to its last observation."""
    from recrawl.app.workspace.workspace import open_workspace
    from recrawl.cli.tables import print_table
    from recrawl.time import format_duration

    with open_workspace(folder, {}).open_store() as store:
        reports = _reported(store, found, start)
    rows = []
    for name, pages, report in reports:
        counts = (pages, report.total, report.detections, report.true_detections)
        shares = (_share(report.recall), _share(report.precision))
        rows.append((name, *map(str, counts), *shares, str(report.lost), format_duration(report.mean_delay)))
    headings = ("source", "visited", "changes", "reported", "true", "recall", "precision", "never seen", "seen after")
    typer.echo(f"\nChanges that {folder} found, from its first observation to its last:")
    print_table(headings, rows, right=headings[1:])


def _reported(store: Store, found: list[ChangingSource], start: float) -> list[tuple[str, int, ChangeReport]]:
    """Kind, pages and report, for each kind that was visited and for all."""
    from recrawl.assess.truth_scores import PageLifetimes, assess_changes
    from recrawl.model.arrays import offsets_of

    known = {
        page.id: source for source in found if (page := store.find(source.url)) is not None and page.url == source.url
    }
    visits = store.visits().sorted()
    answered = visits.take(visits.answered())
    if not len(answered):
        return []
    first, last = float(answered.time.min()), float(answered.time.max())
    seen = {page: known[page] for page in np.unique(answered.page).tolist() if page in known}
    reports = []
    for kind in (*dict.fromkeys(source.kind for source in seen.values()), None):
        pages = np.array([page for page, source in seen.items() if kind in (None, source.kind)], np.int64)
        times = [seen[page].changes for page in pages.tolist()]
        row = np.repeat(np.arange(len(pages)), [len(some) for some in times])
        truth = PageLifetimes.of(pages, offsets_of(row, len(pages)), np.concatenate([np.empty(0), *times]), birth=start)
        report = assess_changes(truth, visits.take(np.isin(visits.page, pages)), first, last)
        reports.append((kind or "all", len(pages), report))
    return reports


def _share(share: float) -> str:
    return "–" if share != share else f"{share:.0%}"  # noqa: PLR0124 - NaN: there was nothing to find


PORTAL_MEDIAN, PORTAL_SPREAD = 30.0, 0.7
"""Seconds between two changes of the median source, and the spread of the logarithm."""
SELDOM = 86_400.0
"""Seconds between two changes of the page that lists the sources."""
TOPICS = (
    "harbour", "market", "library", "weather", "railway", "theatre", "garden", "council", "school", "river", "museum",
    "bakery",
)  # fmt: skip
PORTAL_SETTINGS = {
    "fetch.contact": "me@example.org",
    "fetch.allow_networks": "127.0.0.1",
    "fetch.idle_timeout": "2s",
    "politeness.min_delay": "100ms",
    "politeness.ip_delay": "100ms",
    "politeness.factor": "1",
    "politeness.retry": "2s",
    "schedule.budget": "5/s",
    "schedule.discovery_share": "1",
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

    from recrawl.simulate.sites import lognormal_rates, tree_site
    from recrawl.simulate.virtual_web import PageKind
    from recrawl_testweb.loopback_server import IP

    rng = np.random.default_rng(seed)
    rate = np.append(1 / SELDOM, lognormal_rates(sources, median=1 / PORTAL_MEDIAN, sigma=PORTAL_SPREAD, rng=rng))
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


def fault_profile() -> FaultProfile:
    """As portals are: many sources say when they were generated, at every request again, and some have no ETag."""
    from recrawl_testweb.fault_injection import FaultProfile

    return FaultProfile(noise=0.6, no_validators=0.4)


def orders(living: VirtualWebServer) -> list[str]:
    """What to do in another terminal."""
    from recrawl_testweb.sparql_endpoint import PATH

    home, *urls = living.urls()
    plain = [url for url in urls if "/id/" not in url]
    things = [url for url in urls if "/id/" in url]
    return [
        f"init monitor {' '.join(f'--set {key}={value}' for key, value in PORTAL_SETTINGS.items())}",
        f"add -w monitor {' '.join(plain)}",
        f"add -w monitor --access rdf {' '.join(things)}",
        f'add -w monitor --access sparql {home.rstrip("/")}{PATH} --option "query={QUERY}"',
        "run -w monitor --once --for 8s",
    ]


HOURS = 24.0
"""For which changes are planned; then the site stands still."""
MEDIAN, SPREAD = 40.0, 1.5
"""Seconds between two changes of the median page, and the spread of the logarithm."""
PAGES_SHOWN = 10
SETTINGS = {
    "fetch.contact": "me@example.org",
    "fetch.allow_networks": "127.0.0.1",
    "politeness.min_delay": "100ms",
    "politeness.ip_delay": "100ms",
    "politeness.factor": "1",
    "schedule.budget": "2/s",
    "schedule.min_interval": "2s",
}
"""For pages that change within a minute, on a server that does not mind being asked."""
ORDERS = (
    f"init my-archive {' '.join(f'--set {key}={value}' for key, value in SETTINGS.items())}",
    "add -w my-archive {home}",
    "run -w my-archive --for 2min",
    "rates -w my-archive --limit 10",
)
"""What to do in another terminal."""


def serve_site(  # noqa: PLR0913 - what to serve, where, and what to say of it
    pages: int, port: int, seed: int, *, data: bool = False, evaluate: Path | None = None, truth: Path | None = None
) -> None:
    """Serve until interrupted, then tell how often pages really changed.

    ``data`` serves an open-data portal. ``evaluate`` is a workspace to tell what it found, ``truth`` a file for all
    changes.
    """
    from recrawl.crawl.clock import RealClock
    from recrawl.errors import require
    from recrawl.time import HOUR
    from recrawl_testweb.fault_injection import FaultProfile
    from recrawl_testweb.virtual_web_server import serve

    clock = RealClock()
    start = clock.now()
    if data:
        require("pyoxigraph", "crawl")  # the endpoint needs it
    web = portal(pages, start, start + HOURS * HOUR, seed) if data else site(pages, start, seed)
    announce = _announce_portal if data else _announce
    living = serve(
        web,
        clock,
        port=port,
        fault_profile=fault_profile() if data else FaultProfile.none(),
        seed=seed,
        announce=announce,
    )
    end = clock.now()
    report_truth(living, start, end)
    if evaluate is None and truth is None:
        return
    found = sources(living, end)
    if truth is not None:
        write_truth(found, truth)
    if evaluate is not None:
        tell_verdict(found, start, evaluate)


def site(pages: int, start: float, seed: int) -> VirtualWeb:
    """One site on the loopback address whose pages change by chance, each at a rate of its own."""
    import numpy as np

    from recrawl.simulate.sites import lognormal_rates, tree_site
    from recrawl.time import HOUR
    from recrawl_testweb.loopback_server import IP

    rng = np.random.default_rng(seed)
    rate = lognormal_rates(pages, median=1 / MEDIAN, sigma=SPREAD, rng=rng)
    web = tree_site("site", rate, start=start, end=start + HOURS * HOUR, rng=rng)
    return replace(web, hosts=(IP,))


def _announce(living: VirtualWebServer) -> None:
    home = living.seeds()[0]
    typer.echo(f"A site of {len(living.urls())} changing pages is at {home}\n\nIn another terminal:\n")
    for order in ORDERS:
        typer.echo(f"  {command_name()} {order.format(home=home)}")
    typer.echo("\nCtrl-C ends it and prints the true changes.")


def _announce_portal(living: VirtualWebServer) -> None:

    home, *urls = living.urls()
    typer.echo(f"A portal of {len(urls)} changing sources is at {home}\n\nIn another terminal:\n")
    for order in orders(living):
        typer.echo(f"  {command_name()} {order}")
    typer.echo("\nCtrl-C ends it and prints the true changes.")


def report_truth(living: VirtualWebServer, start: float, end: float) -> None:
    """Some pages, from the one that changes most often to the one that changes least."""
    import numpy as np

    from recrawl.cli.tables import print_table
    from recrawl.time import format_duration

    truth, requests = living.truth(), living.requests()
    asked = np.bincount(requests.page[requests.page >= 0], minlength=len(truth.urls))
    order = np.argsort(-truth.web.rate, kind="stable")
    chosen = order[np.linspace(0, len(order) - 1, min(PAGES_SHOWN, len(order))).astype(int)]
    rows = []
    for page in chosen.tolist():
        times = truth.web.changes.row(page)
        changed = int(((times > start) & (times <= end)).sum())
        every = format_duration(1 / float(truth.web.rate[page]))
        rows.append((truth.urls[page], every, str(changed), str(int(asked[page]))))
    typer.echo(f"\nTrue changes of some pages, after {format_duration(end - start)} and {len(requests):,} requests:")
    print_table(("page", "changes about every", "changed", "requests"), rows, right=("changed", "requests"))
