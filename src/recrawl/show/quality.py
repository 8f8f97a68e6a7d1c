"""The statement about a capture in words: of one just made, or of one as it is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from recrawl.assess.statement import LIKELY, Statement
from recrawl.assess.statement_json import Names, outcome_counts, statement_json
from recrawl.model.words import counted
from recrawl.show.words import period, some_named, valid_period
from recrawl.time import format_duration


def statement_words(said: Statement, names: Names, most: int = 5) -> list[str]:
    """Lines that say how good a capture is, at most ``most`` pages named a line.

    ``names`` gives the URLs of page ids.
    """
    return stored_words(statement_json(said, names, most), most)


def stored_words(said: Mapping[str, Any], most: int = 5) -> list[str]:
    """The same of a statement as ``statement_json`` writes it: nothing else is looked up."""
    if not said["pages"]:
        return ["There are no pages to speak of."]
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
        by = "given up by the strategy" if named else f"chance to stay unchanged below {LIKELY:.0%}"
        lines.append(f"Hopeless ({by}): {some_named(hopeless['pages'][:most], hopeless['count'])}.")
    return lines


def _blur_words(said: Mapping[str, Any]) -> list[str]:
    if not said["pagesWithRate"]:
        return ["Blur: not known, as no page has a known rate of change."]
    predicted, achieved = said["blur"]["predicted"], said["blur"]["achieved"]
    line = f"Blur: {predicted['average']:.3g} expected changes a page between a moment asked for and what is shown"
    if achieved is not None:
        line += f"; {achieved['average']:.3g} given what the revisits found"
    if said["pagesWithRate"] < said["pages"]:
        line += f" (of {counted(said['pagesWithRate'], 'page')} whose rate is known)"
    return [f"{line}."]


def _coherence_words(said: Mapping[str, Any], joint: Mapping[str, Any] | None) -> list[str]:
    if not any(outcome_counts(said).values()):
        return ["Coherence: not known, as no page was seen twice."]
    itself = f" ({said['seenOnce']:,} of them seen once, which needs no revisit)" if said["seenOnce"] else ""
    line = (
        f"Coherence: {counted(said['coherent'], 'page')} unchanged from visit to revisit{itself}, "
        f"{said['changed']:,} changed, {said['missing']:,} missing, {said['unknown']:,} not seen again"
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
