"""What ``recrawl assess`` has to say: in words, and as plain values for other programs.

How good an archive is, in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from recrawl.app.assess.archive_reading import TemporaryArchive, row_of
from recrawl.app.assess.assess_tables import (
    composite_columns,
    composite_words,
    crawls,
    first_rows,
    pages,
    sections,
    subsites,
)
from recrawl.app.assess.assessment import ArchiveAssessment
from recrawl.app.display import listed, period, rows_of, valid_period
from recrawl.app.site_capture import statement_words
from recrawl.assess.archive_quality import ArchiveQuality, CaptureCounts, tally, usual_delay, weighted_mean
from recrawl.assess.blur_coherence import RevisitResult, iso, statement_json
from recrawl.assess.crawl_segmentation import Deduplication, deduplication, segment_crawls
from recrawl.assess.observations import JointValidity, Observations
from recrawl.assess.replay_selection import SelectedCopies
from recrawl.model import FloatArray, IntArray
from recrawl.model.plurals import counted
from recrawl.store.base import Store
from recrawl.time import format_duration, to_iso
from recrawl.transfer.archive_noise_learning import noise_json, noise_words
from recrawl.transfer.composite_reader import composite_facts

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
