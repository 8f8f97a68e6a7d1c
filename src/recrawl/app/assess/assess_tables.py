"""The tables of ``recrawl assess`` as columns: by crawl, section, page and sub-site. Times are ISO 8601 in UTC.

Also composite coherence (pages with their page requisites), and the pages of an archive as a tree in GraphML, whole or
with unchanged parts folded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.app.assess.assessment import ArchiveAssessment
from recrawl.app.assess.site_pages import links_among
from recrawl.assess.archive_quality import CaptureCounts, crawl_blur, last_change_classes, tally, weighted_mean
from recrawl.assess.blur_coherence import iso
from recrawl.assess.composite_coherence import STATE_WORDS, CoherenceState, CompositeSummary
from recrawl.assess.site_structure import ChangeClass, CollapsedTree, collapse, spanning_tree, unfolded
from recrawl.errors import require
from recrawl.formats.atomic_files import complete_file
from recrawl.formats.graphml import write_graphml
from recrawl.formats.warc.archive_folder import ArchiveFolder
from recrawl.formats.warc.archived_bytes import ArchivedBytes
from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray
from recrawl.model.plurals import counted
from recrawl.store.base import HistoryStore
from recrawl.time import DAY
from recrawl.transfer.composite_reader import MOST_PAGES, CompositeFindings, composites_of
from recrawl.urls import surt

if TYPE_CHECKING:
    from recrawl.store.base import Store


NOT_KNOWN = "Composite coherence (whether pages existed as shown, with their page requisites) is not known: "


def composed_in(
    store: Store, pages: IntArray, folder: Path | ArchiveFolder | None, most: int = MOST_PAGES
) -> CompositeFindings | None:
    """The pages of a store whose archive files lie in a folder; ``None`` if nothing is known, or there is no folder."""
    if folder is None:
        return None
    return composites_of(store, pages, ArchivedBytes.of(folder, store), most)


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


LEAST_GAIN = 1.0
"""Coherent pages more, below which a sub-site is not worth a capture of its own."""

Columns = Mapping[str, Sequence[Any]]


def crawls(found: ArchiveAssessment) -> Columns:
    """Every crawl, the one with most pages that changed or went first; of equal ones the later."""
    quality = found.quality
    rounds = quality.rounds
    counts = tally(quality, quality.pairs, quality.pairs.round, len(rounds))
    columns: dict[str, Sequence[Any]] = {
        "site": [found.sites[site] for site in rounds.site.tolist()],
        "from": _times(rounds.start),
        "until": _times(rounds.end),
        "pages": counts.captures.tolist(),
        "new": counts.new.tolist(),
        **_counted(counts),
        "blur_predicted": crawl_blur(quality).tolist(),
    }
    return _ordered(columns, np.lexsort((-rounds.start, -counts.captures, -counts.changed - counts.missing)))


def sections(found: ArchiveAssessment) -> Columns:
    """Every section, the one that blurs the archive most first: by its ``blur`` times the weight of its pages."""
    quality, label, count = found.quality, found.section, len(found.sections)
    pages = np.bincount(label, minlength=count)
    observations = np.bincount(label[quality.observations.row_of_observation()], minlength=count)
    predicted, achieved, distance = (
        weighted_mean(value, quality.weight, label, count)
        for value in (quality.predicted, quality.achieved, quality.distance)
    )
    heavy = np.bincount(label, quality.weight, count)
    order = worst_first(achieved * heavy, distance * heavy)
    columns: dict[str, Sequence[Any]] = {
        "section": found.sections,
        "pages": pages.tolist(),
        "observations": observations.tolist(),
        **_counted(tally(quality, quality.consecutive, label[quality.consecutive.row], count)),
        "distance": distance.tolist(),
        "blur_predicted": predicted.tolist(),
        "blur": achieved.tolist(),
        "blur_total": (achieved * heavy).tolist(),
    }
    return _ordered(columns, order)


def pages(found: ArchiveAssessment, most: int | None = None) -> Columns:
    """Every page, or ``most`` of them, the one that blurs the archive most first: by its ``blur`` times its weight."""
    quality, seen = found.quality, found.shown
    observations = quality.observations
    rows = worst_first(quality.achieved * quality.weight, quality.distance * quality.weight)[:most]
    counted = _counted(tally(quality, quality.consecutive, quality.consecutive.row, len(observations)))
    return {
        "url": [found.urls[row] for row in rows.tolist()],
        "observations": np.diff(observations.offsets)[rows].tolist(),
        "first_observed": _times(observations.time[observations.offsets[:-1]][rows]),
        "last_observed": _times(observations.time[observations.offsets[1:] - 1][rows]),
        **_ordered(counted, rows),
        "changes_per_day": (quality.rate * DAY)[rows].tolist(),
        "low": (found.low * DAY)[rows].tolist(),
        "high": (found.high * DAY)[rows].tolist(),
        "distance": quality.distance[rows].tolist(),
        "blur_predicted": quality.predicted[rows].tolist(),
        "blur": quality.achieved[rows].tolist(),
        "blur_total": (quality.achieved * quality.weight)[rows].tolist(),
        "shown": _times(seen.time[rows]),
        "shown_away": seen.away()[rows].tolist(),
        "valid_from": _times(seen.first[rows]),
        "valid_until": _times(seen.last[rows]),
        "proved": seen.proved()[rows].tolist(),
        "expected_changes": seen.expected[rows].tolist(),
        "chance_unchanged": found.chance[rows].tolist(),
        "valid_with_most": found.together.inside[rows].tolist(),
    }


def subsites(found: ArchiveAssessment) -> Columns:
    """The parts of every site that gain a page or more by being captured alone, best first in a site."""
    rows = [
        (
            found.sites[parts.site],
            " ".join(parts.sections[section] for section in parts.found.members[place].tolist()),
            int(parts.found.pages[place]),
            float(parts.found.alone[place]),
            float(parts.found.gain()[place]),
            float(parts.found.usual[place]),
            parts.found.whole,
            float(parts.found.lasts()[place]),
        )
        for parts in found.parts
        for place in np.flatnonzero(parts.found.gain() >= LEAST_GAIN).tolist()
    ]
    names = ("site", "sections", "pages", "coherent_alone", "gain", "usual_gain", "coherent_whole", "seconds")
    return {name: [row[column] for row in rows] for column, name in enumerate(names)}


def worst_first(blur: FloatArray, distance: FloatArray) -> IntArray:
    """By falling blur; where none is known, by falling distance, after the others.

    >>> worst_first(np.array([1.0, np.nan, 2.0]), np.array([0.0, 5.0, 0.0])).tolist()
    [2, 0, 1]
    """
    known = ~np.isnan(blur)
    return np.lexsort((-np.nan_to_num(distance), -np.where(known, blur, 0.0), ~known))


def first_rows(columns: Columns, count: int) -> Columns:
    """The first rows of a table."""
    return {name: values[:count] for name, values in columns.items()}


def _counted(counts: CaptureCounts) -> dict[str, Sequence[Any]]:
    """What became of captures; not known, and no 0, where none of them was seen again."""
    judged = counts.judged() > 0

    def known(values: IntArray, where: BoolArray) -> list[int | None]:
        return [value if told else None for value, told in zip(values.tolist(), where.tolist(), strict=True)]

    return {
        "captures": counts.captures.tolist(),
        "coherent": known(counts.coherent, judged & ~counts.not_known),
        "changed": known(counts.changed, judged),
        "links_changed": known(counts.links, judged),
        "missing": known(counts.missing, judged),
        "unseen": counts.unseen.tolist(),
        "expected_coherent": [
            value if of and not lost else None
            for value, of, lost in zip(
                counts.expected.tolist(), counts.expected_of.tolist(), counts.not_known.tolist(), strict=True
            )
        ],
    }


def _ordered(columns: Columns, order: IntArray) -> Columns:
    rows = order.tolist()
    return {name: [values[row] for row in rows] for name, values in columns.items()}


def _times(values: FloatArray) -> list[str | None]:
    return [iso(value) for value in values.tolist()]


def write_trees(
    store: HistoryStore, found: ArchiveAssessment, *, folded: Path | None, whole: Path | None
) -> list[Path]:
    """Write the spanning tree with its unchanged parts folded, and as it is; return the files."""
    observations = found.quality.observations
    keys = [surt(url) or url for url in found.urls]
    parent = spanning_tree(
        keys, observations.time[observations.offsets[:-1]], *links_among(store, observations.page), found.recorded.via
    )
    change = last_change_classes(found.quality)
    if folded is not None:
        _write(found, parent, change, collapse(parent, change), folded)
    if whole is not None:
        _write(found, parent, change, unfolded(len(parent)), whole)
    return [file for file in (folded, whole) if file is not None]


def _write(found: ArchiveAssessment, parent: IntArray, change: AnyArray, tree: CollapsedTree, file: Path) -> None:
    """Write what is drawn of a tree; pages have their class, a colour and a size."""
    pa = require("pyarrow", "columns")
    drawn = tree.nodes()
    source, target = tree.edges(parent)
    with_leaf = np.flatnonzero(tree.folded)
    leaf = len(parent) + np.arange(len(with_leaf))
    classes = [ChangeClass(int(change[node])) for node in drawn] + [ChangeClass.UNCHANGED] * len(leaf)
    sizes = tree.folded[with_leaf].tolist()
    nodes = pa.record_batch(
        {
            "id": pa.array(np.concatenate([drawn, leaf])),
            "label": pa.array([found.urls[node] for node in drawn] + [f"{count} unchanged" for count in sizes]),
            "class": pa.array([one.name.lower() for one in classes]),
            "colour": pa.array([one.colour for one in classes]),
            "pages": pa.array([1] * len(drawn) + sizes),
            "folded": pa.array([False] * len(drawn) + [True] * len(leaf)),
        }
    )
    edges = pa.record_batch(
        {
            "source": pa.array(np.concatenate([source, with_leaf])),
            "target": pa.array(np.concatenate([target, leaf])),
        }
    )
    with complete_file(file) as stream:
        write_graphml(stream, [nodes], [edges])
