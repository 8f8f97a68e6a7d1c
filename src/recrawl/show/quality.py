"""The statement about a capture in words."""

from __future__ import annotations

from recrawl.assess.statement import LIKELY, Statement
from recrawl.assess.statement_json import Names
from recrawl.show.words import counted, listed, period, valid_period
from recrawl.time import format_duration


def statement_words(said: Statement, names: Names, most: int = 5) -> list[str]:
    """Lines that say how good a capture is, at most ``most`` pages named a line.

    ``names`` gives the URLs of page ids.
    """
    if not said.pages:
        return ["There are no pages to speak of."]
    took = format_duration(said.end - said.start)
    lines = [f"{counted(said.pages, 'page')}, {period(said.start, said.end)} ({took})."]
    lines += _blur_words(said)
    lines += _coherence_words(said)
    for pages, what in ((said.changed, "Changed"), (said.missing, "Missing"), (said.apart(), "Valid at other times")):
        if len(pages):
            lines.append(f"{what}: {listed(pages, names, most)}.")
    if len(said.hopeless):
        by = "given up by the strategy" if said.hopeless_named else f"chance to stay unchanged below {LIKELY:.0%}"
        lines.append(f"Hopeless ({by}): {listed(said.hopeless, names, most)}.")
    return lines


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
    itself = f" ({said.seen_once:,} of them seen once, which needs no revisit)" if said.seen_once else ""
    line = (
        f"Coherence: {counted(len(said.coherent), 'page')} unchanged from visit to revisit{itself}, "
        f"{len(said.changed):,} changed, {len(said.missing):,} missing, {len(said.unknown):,} not seen again"
    )
    if said.expected_of:
        line += f"; {said.expected_coherence:.1f} of {said.expected_of:,} expected, {said.coherent_of_them:,} found"
    return [f"{line}.", *_together_words(said)]


def _together_words(said: Statement) -> list[str]:
    if not len(said.coherent):
        return []
    which = "All coherent pages" if said.joint.complete else f"{int(said.joint.inside.sum()):,} of the coherent pages"
    return [f"{which} were valid together {valid_period(said.joint.start, said.joint.end)}."]
