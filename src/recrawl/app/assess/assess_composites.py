"""Composite coherence for ``recrawl assess``, reports and packages: pages with their page requisites."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recrawl.assess.capture_statement import iso
from recrawl.assess.composite_coherence import STATE_WORDS, CoherenceState, CompositeSummary
from recrawl.formats.warc.archived_bytes import ArchivedBytes, imported_into
from recrawl.model import IntArray
from recrawl.model.plurals import counted
from recrawl.transfer.composite_reader import MOST_PAGES, CompositeFindings, composites_of

if TYPE_CHECKING:
    from recrawl.store.base import Store

NOT_KNOWN = "Composite coherence (whether pages existed as shown, with their page requisites) is not known: "


def composed_in(store: Store, pages: IntArray, folder: Path | None, most: int = MOST_PAGES) -> CompositeFindings | None:
    """The pages of a store whose archive files lie in a folder; ``None`` if nothing is known, or there is no folder."""
    if folder is None:
        return None
    return composites_of(store, pages, ArchivedBytes(folder, imported_into(store)), most)


def composite_words(composed: CompositeFindings | None) -> list[str]:
    """What is to be said, in sentences."""
    if composed is None:
        return [f"{NOT_KNOWN}no bytes of a captured page can be read here."]
    said = composed.summary()
    some = "" if composed.whole else "a sample of "
    lines = [
        f"Composite coherence: checked {some}{counted(said.pages, 'captured page')}; "
        f"{said.embedding:,} {'has' if said.embedding == 1 else 'have'} page requisites."
        + (f" {counted(composed.unread, 'page')} could not be read." if composed.unread else "")
    ]
    if not said.embedding:
        return lines
    total = sum(said.resources.values())
    told = [state for state in CoherenceState if said.resources[state] or state is not CoherenceState.NOT_KNOWN]
    states = ", ".join(f"{said.resources[state]:,} {STATE_WORDS[state]}" for state in told)
    lines.append(f"{counted(total, 'page requisite')}: {states}.")
    lines.append(
        f"{_share(said, said.coherent)} are proved to have existed as shown, as far as archived; at most "
        f"{_share(said, said.not_violative)} did; {_share(said, said.violative)} are proved not to have existed."
    )
    lines.append(
        f"{_share(said, said.complete)} complete; {_share(said, said.coherent_complete)} both complete and provably "
        f"coherent, at most {_share(said, said.not_violative_complete)}."
    )
    damage = "not known" if said.damage is None else f"{said.damage:.3f}"
    completeness = "not known" if said.completeness is None else f"{said.completeness:.1%}"
    lines.append(f"On average {completeness} of the page requisites are archived; mean memento damage {damage}.")
    if away := said.resources[CoherenceState.NOT_KNOWN]:
        lines.append(
            f"{counted(away, 'page requisite')} without bytes here: {'it is' if away == 1 else 'they are'} listed by "
            "an archive "
            "and counted as archived."
        )
    if said.cut:
        lines.append(f"{counted(said.cut, 'page')} with more page requisites than are checked: counted as incomplete.")
    return lines


def _share(said: CompositeSummary, count: int) -> str:
    share = said.share(count)
    return f"{count:,} of {said.embedding:,} pages" + ("" if share is None else f" ({share:.1%})")


def composite_columns(composed: CompositeFindings | None, most: int | None = None) -> dict[str, Sequence[Any]]:
    """Captured pages with page requisites, most damaged first."""
    if composed is None:
        rows: list[int] = []
    else:
        embedded = composed.found.embedded()
        rows = [row for row in composed.found.worst_first().tolist() if embedded[row]][:most]
    names = ("url", "captured", "state", "embedded", "archived", *_STATE_COLUMNS.values(), "completeness", "damage")
    if composed is None:
        return {name: [] for name in names}
    found, state, damage = composed.found, composed.found.state(), composed.found.damage()
    completeness, archived = composed.found.completeness(), composed.found.archived()
    lines = [
        (
            composed.urls[row],
            iso(float(found.time[row])),
            STATE_WORDS[CoherenceState(int(state[row]))],
            int(found.counts[row].sum()),
            int(archived[row]),
            *(int(found.counts[row, one]) for one in _STATE_COLUMNS),
            float(completeness[row]),
            None if damage[row] != damage[row] else float(damage[row]),
        )
        for row in rows
    ]
    return {name: [line[column] for line in lines] for column, name in enumerate(names)}


_STATE_COLUMNS = {state: STATE_WORDS[state].replace(" ", "_") for state in CoherenceState}
