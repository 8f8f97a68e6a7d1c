"""The statement about a site capture in words, a line each.

The statement about a capture in words: of one just made, or of one as it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recrawl.app.display import period, some_named, valid_period
from recrawl.assess.capture_statement import LIKELY, CaptureStatement, Names, outcome_counts, statement_json
from recrawl.crawl.site_capture.capture_course import CaptureReport, report_json
from recrawl.crawl.site_capture.capture_order import CaptureOrder
from recrawl.model.plurals import counted
from recrawl.time import format_duration

if TYPE_CHECKING:
    from recrawl.store.base import PageTable
    from recrawl.store.store_values import SiteCapture


def statement_words(said: CaptureStatement, names: Names, most: int = 5) -> list[str]:
    """Lines that say how good a capture is, at most ``most`` pages named a line.

    ``names`` gives the URLs of page ids.
    """
    return stored_words(statement_json(said, names, most), most)


def stored_words(said: Mapping[str, Any], most: int = 5) -> list[str]:
    """The same from a statement as ``statement_json`` writes it, without further look-ups."""
    if not said["pages"]:
        return ["The capture has no pages."]
    start, end = _seconds(said["from"]), _seconds(said["until"])
    coherence, joint = said["coherence"], said["validTogether"]
    lines = [f"{counted(said['pages'], 'page')}, {period(start, end)} ({format_duration(end - start)})."]
    lines += _blur_words(said)
    lines += _coherence_words(coherence, joint)
    apart: Sequence[str] = () if joint is None else joint["apart"]
    for pages, count, what in (
        (said["changedPages"], coherence["changed"], "Changed"),
        (said["missingPages"], coherence["missing"], "Missing"),
        (apart, 0 if joint is None else coherence["coherent"] - joint["pages"], "Valid at other times"),
    ):
        if count:
            lines.append(f"{what}: {some_named(pages[:most], count)}.")
    hopeless = said["hopeless"]
    if hopeless["count"]:
        named = hopeless["by"] == "strategy"
        by = "abandoned by the strategy" if named else f"probability of staying unchanged below {LIKELY:.0%}"
        lines.append(f"Hopeless ({by}): {some_named(hopeless['pages'][:most], hopeless['count'])}.")
    return lines


def _blur_words(said: Mapping[str, Any]) -> list[str]:
    if not said["pagesWithRate"]:
        return ["Blur: not known, because no page has a known change rate."]
    predicted, achieved = said["blur"]["predicted"], said["blur"]["achieved"]
    line = f"Blur: {predicted['average']:.3g} expected changes per page between a requested time and the shown copy"
    if achieved is not None:
        line += f"; {achieved['average']:.3g} given the results of the revisits"
    if said["pagesWithRate"] < said["pages"]:
        line += f" (of {counted(said['pagesWithRate'], 'page')} whose rate is known)"
    return [f"{line}."]


def _coherence_words(said: Mapping[str, Any], joint: Mapping[str, Any] | None) -> list[str]:
    if not any(outcome_counts(said).values()):
        return ["Coherence: not known, because no page was observed twice."]
    itself = f" ({said['seenOnce']:,} of them observed once, which needs no revisit)" if said["seenOnce"] else ""
    line = (
        f"Coherence: {counted(said['coherent'], 'page')} unchanged from visit to revisit{itself}, "
        f"{said['changed']:,} changed, {said['missing']:,} missing, {said['unknown']:,} not observed again"
    )
    if said["expectedOf"]:
        line += f"; {said['expected']:.1f} of {said['expectedOf']:,} expected, {said['coherentOfThem']:,} found"
    return [f"{line}.", *_together_words(joint)]


def _together_words(joint: Mapping[str, Any] | None) -> list[str]:
    if joint is None:
        return []
    which = "All coherent pages" if joint["allCoherentPages"] else f"{joint['pages']:,} of the coherent pages"
    return [f"{which} were valid together {valid_period(_seconds(joint['from']), _seconds(joint['until']))}."]


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


_NAMED = 10
"""Pages named in each line."""


def report_lines(store: PageTable, report: CaptureReport) -> list[str]:
    """The statement about a finished capture in words, a line each."""
    return stored_lines(report.capture, report_json(report, store.urls))


def stored_lines(capture: SiteCapture, stored: Mapping[str, Any]) -> list[str]:
    """The same from the stored statement, without further look-ups."""
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
        ("failed", "Not captured, because every attempt failed"),
        ("refused", "Not captured, because robots.txt forbids it"),
        ("gone", "Not found"),
    ):
        if stored[key]["count"]:
            lines.append(f"{what}: {some_named(stored[key]['pages'][:_NAMED], stored[key]['count'])}.")
    return lines
