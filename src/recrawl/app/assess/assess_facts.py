"""What ``recrawl assess`` reports: in words, as plain values, and as tables.

Tables are columns by crawl, section, page and sub-site; times are ISO 8601 in UTC. Also composite coherence (pages with
their page requisites), and the pages of an archive as a tree in GraphML, whole or with unchanged parts folded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.app.assess.archive_reading import TemporaryArchive, row_of
from recrawl.app.assess.assessment import ArchiveAssessment, links_among
from recrawl.app.display import listed, period, rows_of, valid_period
from recrawl.app.site_capture import statement_words
from recrawl.assess.archive_quality import (
    ArchiveQuality,
    CaptureCounts,
    crawl_blur,
    last_change_classes,
    tally,
    usual_delay,
    weighted_mean,
)
from recrawl.assess.blur_coherence import RevisitResult, iso, statement_json
from recrawl.assess.composite_coherence import STATE_WORDS, CoherenceState, CompositeSummary
from recrawl.assess.crawl_segmentation import Deduplication, deduplication, segment_crawls
from recrawl.assess.observations import JointValidity, Observations
from recrawl.assess.replay_selection import SelectedCopies
from recrawl.assess.site_structure import ChangeClass, CollapsedTree, collapse, spanning_tree, unfolded
from recrawl.errors import counted, require
from recrawl.formats.atomic_files import complete_file
from recrawl.formats.graphml import NodeDrawing, write_graphml
from recrawl.formats.warc.archive_folder import ArchiveFolder
from recrawl.formats.warc.archived_bytes import ArchivedBytes
from recrawl.model import AnyArray, BoolArray, FloatArray, IntArray
from recrawl.store.base import HistoryStore, Store
from recrawl.time import DAY, format_duration, to_iso
from recrawl.transfer.archive_noise_learning import noise_json, noise_words
from recrawl.transfer.composite_reader import MOST_PAGES, CompositeFindings, composite_facts, composites_of
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
        f"{_share(said, said.coherent)} are proved to have existed as shown, as far as archived; "
        f"{_share(said, said.violative)} are proved not to have existed; {_share(said, said.not_violative)} have "
        "archived page requisites and none of them violative."
    )
    if said.bare:
        lines.append(
            f"Of {_share(said, said.bare)} no page requisite is archived: whether they existed as shown is not known."
        )
    lines.append(
        f"{_share(said, said.complete)} complete; {_share(said, said.coherent_complete)} both complete and provably "
        f"coherent, {_share(said, said.not_violative_complete)} complete without a violative part."
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
    """Write what is drawn of a tree; pages have their class, and yEd draws them as the thesis does (SHARC 8.5)."""
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
        write_graphml(stream, [nodes], [edges], NodeDrawing("colour", "pages", "label"))


_NAMED = 5
"""Sites that a warning names."""


def archive_words(quality: ArchiveQuality) -> list[str]:
    """What there is, how far away copies are, and what came of captures that were seen again."""
    observations = quality.observations
    sites = len(np.unique(quality.site))
    gone = int(observations.gone.sum())
    captures, pages = counted(len(observations.time) - gone, "capture"), counted(len(observations), "page")
    there = f"{captures} of {pages} on {counted(sites, 'site')}"
    when = f"{period(quality.start, quality.end)} ({format_duration(quality.end - quality.start)})"
    nothing = f" In addition, {counted(gone, 'observation')} found no page." if gone else ""
    lines = [f"{there}, {when}, in {counted(len(quality.rounds), 'crawl')}.{nothing}"]
    if quality.end > quality.start:
        lines.append(_blur_words(quality))
    if observations.is_log():
        return [
            *lines,
            "This is a log of changes, not a series of captures: crawls and coherence have little meaning here.",
        ]
    everything = tally(quality, quality.consecutive, quality.consecutive.round, 1)
    return [*lines, _again_words(everything)]


def _blur_words(quality: ArchiveQuality) -> str:
    distance, predicted, achieved = (
        _mean(value, quality.weight) for value in (quality.distance, quality.predicted, quality.achieved)
    )
    line = f"For a random time in this period, the shown copy of a page is {format_duration(distance)} away on average"
    if np.isnan(achieved):
        return f"{line}. Blur is not known: no two captures of a page could be compared."
    known = quality.achieved[~np.isnan(quality.achieved)]
    middle = float(np.median(known))
    if len(known) < len(quality.achieved):
        pages = "page whose rate is" if len(known) == 1 else "pages whose rates are"
        whose = f"Blur (the expected changes in between) of the {len(known):,} {pages} known: "
    else:
        whose = "Blur (the expected changes in between): "
    return (
        f"{line}. {whose}median {middle:.3g} and mean {achieved:.3g}, given the results of all captures; "
        f"{predicted:.3g} from the rates alone."
    )


def _again_words(counts: CaptureCounts) -> str:
    judged = int(counts.judged()[0])
    if not judged:
        return "No capture could be compared with a later one of the same page: no page is proved coherent."
    lost = bool(counts.not_known[0])
    coherent = "" if lost else f"{int(counts.coherent[0]):,} unchanged (coherent), "
    line = (
        f"{counted(judged, 'capture')} could be compared with the next capture of the page: "
        f"{coherent}{int(counts.changed[0]):,} changed, "
        f"{int(counts.missing[0]):,} gone; {int(counts.unseen[0]):,} not observed again"
    )
    if lost:
        return f"{line}. The number of unchanged (coherent) captures is not known."
    if counts.expected_of[0]:
        line += f". Of {int(counts.expected_of[0]):,} with a known rate, {counts.expected[0]:.1f} were expected to be "
        line += "coherent"
        line += f" and {int(counts.coherent_of_them[0]):,} are"
    return f"{line}."


def deduplication_words(found: Deduplication, sites: Sequence[str]) -> list[str]:
    """Warnings about sites whose index leaves out captures that found a page unchanged, as it seems, or may do so."""

    def names(rows: IntArray) -> list[str]:
        return [sites[row] for row in rows.tolist()]

    certain = np.flatnonzero(found.certain())
    possible = np.flatnonzero(found.suspected & ~found.certain())
    lines = []
    if len(certain):
        compared, absent = int(found.comparisons[certain].sum()), int(found.absent[certain].sum())
        lines.append(
            f"Warning: the index of {listed(certain, names, _NAMED)} seems to be deduplicated: none of "
            f"{counted(compared, 'capture')} has the digest of the previous one, and {counted(absent, 'time')} a page "
            "of an earlier crawl is missing. Unchanged captures seem to be left out, as in the CDX of wget, which has "
            "no revisit records. The number of coherent captures is not known, and the true rates and blur are lower "
            "than the estimates. Use the WARC files or an index with revisit records."
        )
    if len(possible):
        compared = int(found.comparisons[possible].sum())
        lines.append(
            f"Warning: in {listed(possible, names, _NAMED)} none of {counted(compared, 'capture')} has the digest of "
            "the previous one. Either these pages differ at every download, as pages with a counter or a date do, or "
            "the index leaves out unchanged captures. Then more captures are coherent than stated, and the true rates "
            "are lower."
        )
    return lines


def index_warnings(store: Store, pages: IntArray | None = None, most: int | None = None) -> list[str]:
    """The same warnings for a store into which archives were imported. O(visits · log visits).

    For some pages by id, or for all; nothing is read if the store holds more than ``most`` visits.
    """
    if not store.import_sources() or (most is not None and store.counts(0.0).visits > most):
        return []
    observations = Observations.from_visits(store.visits(pages=pages))
    observations = observations.take(np.flatnonzero(~np.isin(observations.page, store.resources())))
    hosts, site = np.unique(store.pages(observations.page).host, return_inverse=True)
    found = deduplication(observations, segment_crawls(observations, site), site)
    return deduplication_words(found, list(store.hosts(hosts).name))


def shown_words(
    seen: SelectedCopies, chance: FloatArray, joint: JointValidity, urls: Sequence[str], most: int = 5
) -> list[str]:
    """What is shown for one moment, how far its parts are apart, and whether they were ever valid together."""

    def names(rows: IntArray) -> list[str]:
        return [urls[row] for row in rows.tolist()]

    there = seen.there()
    if not bool(there.any()):
        return ["No page has a capture to show."]
    at = float(seen.at[0])
    time = seen.time[there]
    proved = int(seen.proved().sum())
    pages = int(there.sum())
    lines = [
        f"For {to_iso(at)} the archive shows {counted(pages, 'page')}, captured "
        f"{period(float(time.min()), float(time.max()))} ({format_duration(float(np.ptp(time)))} apart); "
        f"{proved:,} proved for that time{_expected(chance[there])}"
        + (f", {counted(int((~there).sum()), 'page')} without a copy" if not bool(there.all()) else "")
        + "."
    ]
    unread = int((seen.covered() & ~seen.readable).sum())
    if unread:
        lines.append(
            f"For {counted(unread, 'page')} more, the index lists the shown version at that time, or before and after "
            "it. This is not a proof: the bytes cannot be read here."
        )
    inside = int(joint.inside.sum())
    span = valid_period(joint.start, joint.end)
    if inside == pages:
        proof = "" if bool(seen.readable[there].all()) else ", according to the index"
        return [*lines, f"All of them were valid together {span}{proof}."]
    breaking = np.flatnonzero(there & ~joint.inside)
    broken = f"Not valid then, {counted(len(breaking), 'page')}: {listed(breaking, names, most)}."
    best = f"at best {counted(inside, 'page')}, {span}"
    return [*lines, f"There is no known instant at which all were valid together; {best}. {broken}"]


def _expected(chance: FloatArray) -> str:
    known = chance[~np.isnan(chance)]
    if not len(known):
        return ""
    unknown = len(chance) - len(known)
    return f", {known.sum():.1f} in expectation" + (f" ({unknown:,} not known)" if unknown else "")


def _mean(value: FloatArray, weight: FloatArray) -> float:
    return float(weighted_mean(value, weight, np.zeros(len(value), np.int64), 1)[0])


SCHEMA = "recrawl-archive-quality/1"


def words(found: ArchiveAssessment, archive: TemporaryArchive | None) -> list[str]:
    """The statement about the archive, about what it shows, and about its last crawl that was seen again."""
    lines: list[str] = []
    for paragraph in paragraphs(found, archive):
        lines += [*([""] if lines else []), *paragraph]
    return lines


def paragraphs(found: ArchiveAssessment, archive: TemporaryArchive | None) -> list[list[str]]:
    """The same by topic: three paragraphs, and a fourth about the last crawl with a later crawl, if there is one."""
    lines = [*archive_words(found.quality), *deduplication_words(found.quality.deduplication, found.sites)]
    if archive is not None:
        taken = sum(1 for one in archive.brought if one.accepted)
        files = f"{taken:,} of {counted(len(archive.brought), 'file')} {'holds' if taken == 1 else 'hold'} captures."
        lines = [files, *lines]
    if found.left_out:
        lines.append(
            f"Left out: {counted(found.left_out, 'resource')} (robots.txt, style sheets, images and similar). Set "
            "archive.resources=pages to count them as pages."
        )
    lines += noise_words(found.noise)
    if merged := found.merged.words(None if archive is None else archive.merge_within):
        lines.append(merged)
    if found.recorded.captures:
        own = counted(found.recorded.captures, "capture")
        lines.append(f"The workspace holds the statements of {own} made here. List them with recrawl capture list.")
    said = [
        lines,
        shown_words(found.shown, found.chance, found.together, found.urls),
        composite_words(found.composed),
    ]
    crawl = last_judged(found)
    if crawl is not None and len(found.quality.rounds) > 1:
        title = f"The last crawl of {found.sites[found.quality.rounds.site[crawl]]} with a later crawl:"
        said.append([title, *statement_words(found.quality.of_crawl(crawl), found.names)])
    return said


def last_judged(found: ArchiveAssessment) -> int | None:
    """The last crawl, of the site with most pages, of which any page was seen again; ``None`` if there is none."""
    pairs, site = found.quality.pairs, found.quality.site
    judged = (pairs.found != RevisitResult.UNKNOWN) & ~found.quality.deduplication.certain()[site[pairs.row]]
    if not bool(judged.any()):
        return None
    pages = np.bincount(site)
    largest = pages[site[pairs.row[judged]]]
    return int(pairs.round[judged][largest == largest.max()].max())


def facts(found: ArchiveAssessment, archive: TemporaryArchive | None, most: int) -> dict[str, Any]:
    """Everything as JSON values, with at most ``limit`` rows of each table."""
    quality, seen = found.quality, found.shown
    crawl = last_judged(found)
    inside = found.together.inside
    breaking = np.flatnonzero(seen.there() & ~inside)
    known = found.chance[seen.there() & ~np.isnan(found.chance)]
    return {
        "schema": SCHEMA,
        "files": [] if archive is None else [_file(one) for one in archive.brought],
        "errors": [] if archive is None else [row_of(error) for error in archive.errors.first],
        "errorsCount": 0 if archive is None else archive.errors.count,
        "captures": int((~quality.observations.gone).sum()),
        "looksInVain": int(quality.observations.gone.sum()),
        "pages": len(quality.observations),
        "leftOut": found.left_out,
        "sites": found.sites,
        "from": iso(quality.start),
        "until": iso(quality.end),
        "crawlsCount": len(quality.rounds),
        "capturesOnRecord": found.recorded.captures,
        "noise": noise_json(found.noise),
        "merged": {**found.merged.as_json(), "within": None if archive is None else archive.merge_within},
        "deduplicated": _deduplicated(found),
        "words": words(found, archive),
        "shown": {
            "at": iso(found.at),
            "pages": int(seen.there().sum()),
            "proved": int(seen.proved().sum()),
            "agreedWithoutBytes": int((seen.covered() & ~seen.readable).sum()),
            "expectedUnchanged": float(known.sum()) if len(known) else None,
            "expectedUnchangedOf": len(known),
            "secondsApart": float(np.ptp(seen.time[seen.there()])) if bool(seen.there().any()) else None,
            "validTogether": {
                "pages": int(inside.sum()),
                "all": len(breaking) == 0 and bool(inside.any()),
                "proved": len(breaking) == 0 and bool(inside.any()) and bool(seen.readable[seen.there()].all()),
                "from": iso(found.together.start),
                "until": iso(found.together.end),
                "brokenBy": [found.urls[row] for row in breaking[:most].tolist()],
            },
        },
        "composites": composite_facts(found.composed),
        "worstComposites": rows_of(composite_columns(found.composed, most)),
        "lastCrawlSeenAgain": None if crawl is None else statement_json(quality.of_crawl(crawl), found.names, most),
        "delay": usual_delay(quality),
        "crawls": rows_of(first_rows(crawls(found), most)),
        "sections": rows_of(first_rows(sections(found), most)),
        "worstPages": rows_of(first_rows(pages(found), most)),
        "subsites": rows_of(first_rows(subsites(found), most)),
    }


def _deduplicated(found: ArchiveAssessment) -> list[dict[str, object]]:
    """Sites whose index seems to leave out captures that found a page unchanged, or may."""
    about = found.quality.deduplication
    return [
        {
            "site": found.sites[site],
            "comparisons": int(about.comparisons[site]),
            "repeats": 0,
            "absent": int(about.absent[site]),
            "coherenceKnown": not bool(about.certain()[site]),
        }
        for site in np.flatnonzero(about.suspected).tolist()
    ]


def _file(one: Any) -> dict[str, object]:  # noqa: ANN401 - a Brought; importing its package here would cost time
    return {"file": one.source, "format": one.format.value, "captures": one.accepted, "broken": one.broken}
