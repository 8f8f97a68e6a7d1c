"""What a workspace found of the changes of a served site: recall and precision, against the truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import typer

if TYPE_CHECKING:
    from recrawl.assess.changes import ChangeReport
    from recrawl.living.web import LivingWeb
    from recrawl.model import FloatArray
    from recrawl.store.base import Store

KINDS = ("HTML", "RDF", "JSON", "CSV")
"""As :class:`recrawl.simulate.web.PageKind` numbers them."""
QUERIES = "SPARQL"


class Source(NamedTuple):
    """Something that changes, and when it did."""

    url: str
    kind: str
    changes: FloatArray
    """Seconds since the epoch, ascending."""


def sources(living: LivingWeb, until: float) -> list[Source]:
    """All pages of the site and all queries that its endpoint was asked, with their changes up to ``until``."""
    web = living.truth().web
    rows = [web.changes.row(page) for page in range(len(web))]
    found = [
        Source(url, KINDS[kind], row[row <= until])
        for url, kind, row in zip(living.urls(), web.kind.tolist(), rows, strict=True)
    ]
    log = living.requests()
    asked = dict.fromkeys(f"http://{host}:{living.port}{path}" for host, path in zip(log.host, log.path, strict=True))
    for url in asked:
        changes = living.answer_changes(url, until)
        if changes is not None:
            found.append(Source(url, QUERIES, changes))
    return found


def write_truth(found: list[Source], file: Path) -> None:
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


def tell_verdict(found: list[Source], start: float, folder: Path) -> None:
    """Print what the workspace in ``folder`` found, by kind of source, from its first to its last look."""
    from recrawl.cli.tables import print_table
    from recrawl.cli.workspace import open_workspace
    from recrawl.time import format_duration

    with open_workspace(folder, {}).open_store() as store:
        reports = _judged(store, found, start)
    rows = []
    for name, pages, report in reports:
        counts = (pages, report.total, report.detections, report.true_detections)
        shares = (_share(report.recall), _share(report.precision))
        rows.append((name, *map(str, counts), *shares, str(report.lost), format_duration(report.mean_delay)))
    headings = ("source", "visited", "changes", "reported", "true", "recall", "precision", "never seen", "seen after")
    typer.echo(f"\nWhat {folder} found of them between its first look and its last:")
    print_table(headings, rows, right=headings[1:])


def _judged(store: Store, found: list[Source], start: float) -> list[tuple[str, int, ChangeReport]]:
    """Kind, pages and report, for each kind that was visited and for all."""
    from recrawl.assess.changes import assess_changes
    from recrawl.assess.lives import Lives
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
        truth = Lives.of(pages, offsets_of(row, len(pages)), np.concatenate([np.empty(0), *times]), birth=start)
        report = assess_changes(truth, visits.take(np.isin(visits.page, pages)), first, last)
        reports.append((kind or "all", len(pages), report))
    return reports


def _share(share: float) -> str:
    return "–" if share != share else f"{share:.0%}"  # noqa: PLR0124 - NaN: there was nothing to find
