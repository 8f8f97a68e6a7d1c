"""What ``recrawl capture`` prints: the statement about a capture, and the list of all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from recrawl.assess.statement_json import outcome_counts
from recrawl.cli.options import command_in
from recrawl.cli.tables import print_json, print_table, shown_time
from recrawl.crawl.capture_course import Course, course_of
from recrawl.crawl.capture_order import CaptureOrder
from recrawl.crawl.capture_quality import CaptureReport, report_json, report_of
from recrawl.errors import InputError, StoreError
from recrawl.model.words import counted
from recrawl.show.quality import stored_words
from recrawl.show.words import some_named

if TYPE_CHECKING:
    from pathlib import Path

    from recrawl.store.base import Store
    from recrawl.store.site_values import SiteCapture

_NAMED = 10
"""Pages named in each line."""


def print_report(store: Store, report: CaptureReport, json_output: bool) -> None:
    """The statement, as words or as it is stored."""
    if json_output:
        print_json(json.loads(report.capture.statement))
        return
    for line in report_lines(store, report):
        typer.echo(line)


def report_lines(store: Store, report: CaptureReport) -> list[str]:
    """The statement about a finished capture in words, a line each."""
    return stored_lines(report.capture, report_json(report, store.urls))


def stored_lines(capture: SiteCapture, stored: Mapping[str, Any]) -> list[str]:
    """The same from the statement as it is stored: nothing else is looked up, however many pages there are."""
    order = CaptureOrder.from_json(capture.terms)
    found = counted(stored["pagesFound"], "page")
    lines = [f"Capture {capture.id} of {capture.site} by {order.strategy}: {found} found."]
    lines += stored_words(stored["quality"], _NAMED)
    plan = stored["plan"]
    if plan is not None:
        lines.append(
            f"Plan of {counted(plan['pages'], 'page')}: expected coherence {plan['expectedCoherence']:.6g} by weight, "
            f"proven bound {plan['bound']:.6g}, gap {plan['gap']:.3%}."
        )
    for key, what in (
        ("failed", "Not captured, as every try failed"),
        ("refused", "Not captured, as robots.txt forbids it"),
        ("gone", "Not there"),
    ):
        if stored[key]["count"]:
            lines.append(f"{what}: {some_named(stored[key]['pages'][:_NAMED], stored[key]['count'])}.")
    return lines


def print_stated(store: Store, folder: Path, number: int, json_output: bool) -> None:
    """The statement about a finished capture of the workspace in a folder."""
    known = {capture.id: capture for capture in store.site_captures()}
    if number not in known:
        remedy = f"See all with: {command_in(folder, 'capture --list')}"
        raise InputError(f"There is no capture {number} in this workspace.", remedy)
    if not known[number].is_finished:
        raise InputError(
            f"Capture {number} is not finished.", f"Go on with it: {command_in(folder, 'capture --resume')}"
        )
    capture = known[number]
    print_report(store, report_of(store, capture, _course(store, capture)), json_output)


def print_captures(store: Store, json_output: bool) -> None:
    """Every capture of the workspace, oldest first."""
    captures = store.site_captures()
    if json_output:
        print_json([_row(capture) for capture in captures])
        return
    rows = [
        (
            str(capture.id),
            capture.site,
            CaptureOrder.from_json(capture.terms).strategy,
            shown_time(capture.started),
            shown_time(capture.finished) if capture.is_finished else "unfinished",
            *_counts(capture),
        )
        for capture in captures
    ]
    columns = ("id", "site", "strategy", "started", "finished", "pages", "coherent", "changed", "missing")
    print_table(columns, rows, right=("id", "pages", "coherent", "changed", "missing"))


def _course(store: Store, capture: SiteCapture) -> Course | None:
    """The course that a finished capture took; ``None``, and a word of it, if this recrawl would take another."""
    try:
        return course_of(capture, store.site_log(capture.id))
    except StoreError:
        typer.echo(
            f"Capture {capture.id} was made by another version of recrawl, whose strategy went another way: "
            "which pages that gave up is only in what was stored (--json).",
            err=True,
        )
        return None


def _row(capture: SiteCapture) -> dict[str, object]:
    return {
        "id": capture.id,
        "site": capture.site,
        "terms": json.loads(capture.terms),
        "delay": capture.delay,
        "started": capture.started,
        "finished": capture.finished,
        "statement": json.loads(capture.statement) if capture.statement else None,
    }


def _counts(capture: SiteCapture) -> tuple[str, ...]:
    if not capture.statement:
        return ("–",) * 4
    quality = json.loads(capture.statement)["quality"]
    counts = outcome_counts(quality["coherence"]).values()
    return str(quality["pages"]), *("–" if count is None else str(count) for count in counts)
