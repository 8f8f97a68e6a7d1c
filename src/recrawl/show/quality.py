"""The statement about a capture in words."""

from __future__ import annotations

from recrawl.assess.statement import LIKELY, Statement
from recrawl.assess.statement_json import Names
from recrawl.model import IntArray
from recrawl.show.archive_quality import counted
from recrawl.time import format_duration, to_iso


def statement_words(said: Statement, names: Names, most: int = 5) -> list[str]:
    """Lines that say how good a capture is, at most ``most`` pages named a line.

    ``names`` gives the URLs of page ids.
    """
    if not said.pages:
        return ["There are no pages to speak of."]
    lines = [f"{counted(said.pages, 'page')}, {to_iso(said.start)} to {to_iso(said.end)} ({_span(said)})."]
    lines += _blur_words(said)
    lines += _coherence_words(said)
    for pages, what in ((said.changed, "Changed"), (said.missing, "Missing"), (said.apart(), "Valid at other times")):
        if len(pages):
            lines.append(f"{what}: {_listed(pages, names, most)}.")
    if len(said.hopeless):
        by = "given up by the strategy" if said.hopeless_named else f"chance to stay unchanged below {LIKELY:.0%}"
        lines.append(f"Hopeless ({by}): {_listed(said.hopeless, names, most)}.")
    return lines


def _span(said: Statement) -> str:
    return format_duration(said.end - said.start)


def _blur_words(said: Statement) -> list[str]:
    if not said.rated:
        return ["Blur: not known, as no page has a known rate of change."]
    line = (
        f"Blur: {said.predicted_blur.average:.3g} expected changes a page between a moment asked for and what is shown"
    )
    if said.achieved_blur is not None:
        line += f"; {said.achieved_blur.average:.3g} given what the revisits found"
    if said.rated < said.pages:
        line += f" (of the {said.rated:,} pages whose rate is known)"
    return [f"{line}."]


def _coherence_words(said: Statement) -> list[str]:
    judged = len(said.coherent) + len(said.changed) + len(said.missing)
    if not judged:
        return ["Coherence: not known, as no page was seen twice."]
    line = (
        f"Coherence: {counted(len(said.coherent), 'page')} unchanged from visit to revisit, "
        f"{len(said.changed):,} changed, {len(said.missing):,} missing, {len(said.unknown):,} not seen twice"
    )
    if said.expected_of:
        line += f"; {said.expected_coherence:.1f} of {said.expected_of:,} expected, {said.coherent_of_them:,} found"
    return [f"{line}.", *_together_words(said)]


def _together_words(said: Statement) -> list[str]:
    if not len(said.coherent):
        return []
    which = "All coherent pages" if said.joint.complete else f"{int(said.joint.inside.sum()):,} of the coherent pages"
    if said.joint.start == said.joint.end:
        return [f"{which} were valid together at {to_iso(said.joint.start)}."]
    return [f"{which} were valid together from {to_iso(said.joint.start)} to {to_iso(said.joint.end)}."]


def _listed(pages: IntArray, names: Names, most: int) -> str:
    rest = len(pages) - most
    return ", ".join(names(pages[:most])) + (f" and {rest:,} more" if rest > 0 else "")
