"""What ``recrawl assess`` finds out about an archive, from its store.

That includes what a workspace has on record about its own captures beside the visits, and the pages of a site as its
graph and its scatter plot show them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import numpy as np

from recrawl.app.rates.belief_table import BeliefTable, Expected, VisitSpan, learn, section_labels
from recrawl.app.rates.rates_table import estimator_named
from recrawl.assess.archive_quality import ArchiveQuality, archive_quality, last_change_classes, usual_delay
from recrawl.assess.blur_coherence import RevisitResult
from recrawl.assess.crawl_segmentation import (
    NO_REVISIT,
    CrawlSegments,
    known_segments,
    pair,
    segment_crawls,
    usual_period,
)
from recrawl.assess.observations import NOWHERE, JointValidity, Observations, last_change, last_there, times_there
from recrawl.assess.replay_selection import SelectedCopies, SelectionRule, chance_unchanged, shown
from recrawl.assess.site_structure import (
    ROOT,
    ChangeClass,
    ExpectedByObservation,
    SubSites,
    joined_sections,
    propose,
    spanning_tree,
)
from recrawl.detect.noise.archive_noise import NoisePartReport
from recrawl.errors import InputError
from recrawl.estimate.estimators import DEFAULT
from recrawl.formats.warc.archive_folder import ArchiveFolder
from recrawl.formats.warc.archived_bytes import ArchivedBytes
from recrawl.model import ANSWERED, AnyArray, Belief, BoolArray, FloatArray, IntArray, Outcome
from recrawl.store.archived_copies import readable_copies
from recrawl.store.base import CaptureIndex, HistoryStore, Store
from recrawl.store.store_values import REVISIT, SiteCapture, SiteLog
from recrawl.time import WEEK
from recrawl.transfer.archive_noise_learning import noise_in
from recrawl.transfer.composite_reader import CompositeFindings
from recrawl.transfer.listed_captures import MergedCaptures, merged_captures
from recrawl.urls import surt

_PAGES_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class SitePages:
    """Pages as columns, by URL, so that neighbours are neighbours of the site too."""

    page: IntArray
    """Ids."""
    urls: list[str]
    change: AnyArray
    """:class:`~recrawl.assess.site_structure.ChangeClass`."""
    rate: FloatArray
    """Changes per second; NaN where not known."""
    changed_at: FloatArray
    """When it was last found changed, seconds since the epoch; NaN if never."""
    seen_at: FloatArray
    """When it was last found, NaN if never."""
    captures: IntArray
    """How often it was found."""
    mime: list[str]
    """Media types, empty where unknown."""
    parent: IntArray
    """Position of the page each hangs below, or ``ROOT``."""

    def __len__(self) -> int:
        return len(self.page)

    def by_url(self) -> SitePages:
        """The same in the order of URLs. O(n log n)."""
        order = np.array(sorted(range(len(self)), key=self.urls.__getitem__), np.int64)
        place = np.empty(len(order) + 1, np.int64)
        place[order], place[-1] = np.arange(len(order)), ROOT
        rows = order.tolist()
        return SitePages(
            self.page[order],
            [self.urls[row] for row in rows],
            self.change[order],
            self.rate[order],
            self.changed_at[order],
            self.seen_at[order],
            self.captures[order],
            [self.mime[row] for row in rows],
            place[self.parent[order]],
        )


def pages_of_archive(
    store: Store, quality: ArchiveQuality, urls: list[str], via: IntArray, mime: list[str] | None = None
) -> SitePages:
    """All pages of an archive with their last results.

    ``urls``, ``via`` (the page each was found on, or ``ROOT``) and ``mime`` (else it is looked up) are in the order of
    ``quality.observations``.
    """
    observations = quality.observations
    first = observations.time[observations.offsets[:-1]]
    keys = [surt(url) or url for url in urls]
    return SitePages(
        observations.page,
        urls,
        last_change_classes(quality),
        quality.rate,
        last_change(observations),
        last_there(observations),
        times_there(observations),
        media_types(store, observations.page) if mime is None else mime,
        spanning_tree(keys, first, *links_among(store, observations.page), via),
    ).by_url()


def pages_of_capture(store: Store, capture: int) -> SitePages:
    """The pages of one site capture with the results of their revisits, or of their next observations.

    Discovered pages without a visit are included, as not observed again.
    """
    log = store.site_log(capture)
    page, number = np.unique(log.found.page, return_index=True)
    started = min((step.time for step in log.steps), default=np.inf)
    observations = Observations.from_visits(store.visits(pages=page, since=started))
    row = np.searchsorted(page, observations.page)
    change = np.full(len(page), ChangeClass.UNSEEN)
    change[row] = _classes(log, observations)
    first, changed, seen = np.full(len(page), np.inf), np.full(len(page), np.nan), np.full(len(page), np.nan)
    first[row], changed[row], seen[row] = (
        observations.time[observations.offsets[:-1]],
        last_change(observations),
        last_there(observations),
    )
    captures = np.zeros(len(page), np.int64)
    captures[row] = times_there(observations)
    place = np.empty(len(log.found) + 1, np.int64)
    place[:-1], place[-1] = np.searchsorted(page, log.found.page), ROOT
    urls = store.urls(page)
    keys = [surt(url) or url for url in urls]
    via = place[log.found.parent[number]]
    parent = spanning_tree(keys, first, *links_among(store, page), via)
    return SitePages(
        page, urls, change, log.found.rate[number], changed, seen, captures, media_types(store, page), parent
    ).by_url()


def _classes(log: SiteLog, observations: Observations) -> AnyArray:
    """The result for each visited page, from its visit in the capture on."""
    step_page = log.found.page[[step.number for step in log.steps]] if log.steps else np.empty(0, np.int64)
    place = observations.find(step_page, np.array([step.time for step in log.steps], np.float64))
    ours = np.ones(len(observations.time), np.int64)
    ours[place[place != NOWHERE]] = 0
    revisited = np.array([step.revisit for step in log.steps], np.bool_)
    there = np.array([step.outcome <= ANSWERED and step.outcome != Outcome.GONE for step in log.steps], np.bool_)
    once = np.zeros(len(observations.time), np.bool_)
    if revisited.any():  # the innermost page is visit and revisit in one, if all others were revisited
        alone = there & ~revisited & ~np.isin(step_page, step_page[revisited]) & (place != NOWHERE)
        if int(alone.sum()) == 1:
            once[place[alone]] = True
    site = np.zeros(len(observations), np.int64)
    rounds = known_segments(observations, site, ours)
    pairs = pair(observations, rounds, site, once)
    captured = ours[pairs.visit] == 0
    classes = np.full(len(observations), ChangeClass.UNSEEN)
    classes[pairs.row[captured]] = pairs.change_classes()[captured]
    return classes


def links_among(store: HistoryStore, page: IntArray) -> tuple[IntArray, IntArray]:
    """Links among pages (ids, ascending), as positions: from where, and to where."""
    sources, targets = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for start in range(0, len(page), _PAGES_AT_ONCE):
        links = store.outlinks(page[start : start + _PAGES_AT_ONCE])
        inside = np.isin(links.target, page)
        sources.append(np.searchsorted(page, links.source[inside]))
        targets.append(np.searchsorted(page, links.target[inside]))
    return np.concatenate(sources), np.concatenate(targets)


def media_types(store: CaptureIndex, page: IntArray) -> list[str]:
    """The media type of each page as its last capture that names one has it, without parameters; empty if none does."""
    known: dict[int, str] = {}
    for start in range(0, len(page), _PAGES_AT_ONCE):
        captures = store.capture_columns(page[start : start + _PAGES_AT_ONCE])
        named = zip(captures.page.tolist(), captures.mime, strict=True)
        known.update((one, mime) for one, mime in named if mime and mime != REVISIT)
    return [known.get(one, "").partition(";")[0].strip().lower() for one in page.tolist()]


@dataclass(frozen=True, slots=True)
class RecordedCaptures:
    """The recorded steps of captures, matched with observations and pages, row by row."""

    captures: int
    """Finished captures, each of which has a statement of its own."""
    capture: IntArray
    """The capture that each observation belongs to, from 0; ``NOWHERE`` if to none."""
    once: BoolArray
    """Observations that are visit and revisit in one: the innermost page of a capture with revisits."""
    via: IntArray
    """Row of the page on which each page was found, as the first capture that knows has it; ``ROOT`` if none does."""

    def rounds(self, observations: Observations, site: IntArray, found: CrawlSegments) -> CrawlSegments:
        """The crawls that were found, where every capture on record is one, with its visits and revisits."""
        return known_segments(
            observations, site, np.where(self.capture == NOWHERE, found.of_observation, len(found) + self.capture)
        )


def recorded(store: HistoryStore, observations: Observations) -> RecordedCaptures:
    """Look up every capture of the store. O(pages and steps of captures), and a logarithm more."""
    from recrawl.crawl.site_capture.capture_order import CaptureOrder

    captures = store.site_captures()
    capture, once = np.full(len(observations.time), NOWHERE), np.zeros(len(observations.time), np.bool_)
    via = np.full(len(observations), ROOT)
    for number, one in enumerate(captures):
        log = store.site_log(one.id)
        step = np.array([step.number for step in log.steps], np.int64)
        place = observations.find(log.found.page[step], np.array([step.time for step in log.steps], np.float64))
        capture[_meanwhile(one, log, observations) & (capture == NOWHERE)] = number
        capture[place[place != NOWHERE]] = number
        if one.is_finished and CaptureOrder.from_json(one.terms).revisits:
            alone = place[_seen_once(log, step)]
            once[alone[alone != NOWHERE]] = True
        _note_parents(log, observations, via)
    return RecordedCaptures(sum(one.is_finished for one in captures), capture, once, via)


def _meanwhile(capture: SiteCapture, log: SiteLog, observations: Observations) -> BoolArray:
    """Observations of its pages during a capture that are not its steps: confirmation fetches."""
    times = [step.time for step in log.steps]
    if not times:
        return np.zeros(len(observations.time), np.bool_)
    until = capture.finished if capture.is_finished else max(times)
    inside = (observations.time >= min(times)) & (observations.time <= until)
    inside[inside] = np.isin(observations.page[observations.row_of_observation()[inside]], log.found.page)
    return inside


def _seen_once(log: SiteLog, number: IntArray) -> IntArray:
    """Steps that found a page without a revisit, in a capture with revisits."""
    again = np.zeros(len(log.found), np.bool_)
    again[[step.number for step in log.steps if step.revisit]] = True
    there = np.array([step.outcome <= ANSWERED and step.outcome != Outcome.GONE for step in log.steps], np.bool_)
    return np.flatnonzero(there & ~again[number])


def _note_parents(log: SiteLog, observations: Observations, via: IntArray) -> None:
    """Write the rows of parents into ``via``, where none stands yet."""
    found = log.found
    row = np.searchsorted(observations.page, found.page)
    known = np.append(observations.page, -1)[row] == found.page
    parent = found.parent
    told = (parent >= 0) & known & known[parent]
    told[told] = via[row[told]] == ROOT
    via[row[told]] = row[parent[told]]


_HEAD_START = 0.125
FEWEST_PAGES = 20
"""A site with fewer pages is not worth cutting up."""
_MOST_SITES = 20
"""Sites for which sub-sites are sought: each costs a pass over everything."""


@dataclass(frozen=True, slots=True)
class AssessmentQuestion:
    """The options of an assessment."""

    at: float | None = None
    """The requested time; by default that of the last capture."""
    rule: SelectionRule = SelectionRule.NEAREST
    match: str | None = None
    """Part of a URL, or a pattern with ``*`` and ``?`` for a whole one."""
    pause: float | None = None
    by_file: bool = False
    """Whether each archive file is a crawl."""
    delay: float | None = None
    """Seconds between downloads of a future capture; by default as in this archive."""
    estimator: str = DEFAULT
    pages: IntArray | None = None
    """Only these pages, by id, ascending; by default all."""
    expected: Expected | None = None
    """The predictions of the trained model, if there is one, as in ``recrawl rates``."""
    warc: Path | ArchiveFolder | None = None
    """Where archive files without a folder in their names lie; ``None`` if no bytes are to be read: nothing is proved
    then."""


class NothingToJudgeError(InputError):
    """There is no capture of the requested pages."""


@dataclass(frozen=True, slots=True)
class SiteSubsites:
    """The sub-sites of one site."""

    site: int
    sections: list[str]
    found: SubSites


@dataclass(frozen=True, slots=True)
class ArchiveAssessment:
    """All that was found out. Columns are of pages, row by row."""

    quality: ArchiveQuality
    urls: list[str]
    sites: list[str]
    """Hosts, by the numbers of ``quality.site``."""
    section: IntArray
    sections: list[str]
    shown: SelectedCopies
    at: float
    chance: FloatArray
    """Probability that each page was then as shown; NaN where the change rate is not known."""
    together: JointValidity
    parts: list[SiteSubsites]
    recorded: RecordedCaptures
    merged: MergedCaptures
    """Captures that are no visits of their own."""
    noise: dict[str, list[NoisePartReport]]
    """Parts of pages that were not compared, by host."""
    left_out: int
    """Resources that were left out: robots.txt, style sheets, images and similar."""
    low: FloatArray
    """Ends of the 90 % interval of each rate, per second; NaN where it is not known."""
    high: FloatArray
    composed: CompositeFindings | None = None
    """Captured pages with their page requisites; ``None`` if not known."""

    def names(self, pages: IntArray) -> list[str]:
        """URLs of page ids."""
        return [self.urls[row] for row in np.searchsorted(self.quality.observations.page, pages).tolist()]


def answer(store: Store, asked: AssessmentQuestion) -> ArchiveAssessment:
    """Assess all pages of the store, or the requested ones."""
    observations = Observations.from_visits(store.visits())
    urls = store.urls(observations.page)
    if asked.pages is not None:
        observations, urls = _only(observations, urls, np.isin(observations.page, asked.pages).tolist())
    if asked.match is not None:
        pattern = asked.match if set(asked.match) & set("*?[") else f"*{asked.match}*"
        observations, urls = _only(observations, urls, [fnmatchcase(url, pattern) for url in urls])
    # They have no rates either: see ``training_of``.
    pages_only = ~np.isin(observations.page, store.resources())
    left_out = int((~pages_only).sum())
    observations, urls = _only(observations, urls, pages_only.tolist())
    if not len(observations):
        raise NothingToJudgeError(
            "There is no capture to assess" + (f" of a page like {asked.match!r}." if asked.match else "."),
            "To count images and similar resources as pages, set archive.resources=pages."
            if left_out
            else "Crawl or import first, or give files with captures: WARC, CDX, WACZ and other formats of recrawl "
            "import.",
        )
    pages = store.pages(observations.page)
    hosts, site = np.unique(pages.host, return_inverse=True)
    belief, rate, low, high = _belief(store, observations, asked)
    record = recorded(store, observations)
    if asked.by_file:
        rounds = known_segments(observations, site, _files(store, observations))
    else:
        rounds = record.rounds(observations, site, segment_crawls(observations, site, asked.pause))
    # Pages that only a capture of their site visits have no weight in the schedule; here they count like any other.
    weight = np.where(pages.importance > 0, pages.importance, 1.0)
    quality = archive_quality(observations, rate, weight, site, rounds=rounds, once=record.once, rule=asked.rule)
    at = quality.end if asked.at is None else asked.at
    seen = shown(observations, rate, at, asked.rule)
    together = seen.joint(quality.weight)
    if asked.warc is not None:
        seen = seen.with_bytes(_readable(store, observations, seen, together, asked.warc))
    chance = np.full(len(observations), np.nan)
    # Where unchanged captures are not listed, nothing can be expected of times between captures.
    lost = quality.deduplication.certain()[site]
    seen = replace(seen, expected=np.where(lost & ~seen.covered(), np.nan, seen.expected))
    if belief is not None:
        chance = np.where(np.isnan(rate) | lost, np.nan, chance_unchanged(observations, seen, belief))
    section, sections = section_labels(urls)
    names = list(store.hosts(hosts).name)
    return ArchiveAssessment(
        quality,
        urls,
        names,
        section,
        sections,
        seen,
        at,
        chance,
        together,
        _parts(quality, section, sections, asked.delay),
        record,
        merged_captures(store, observations.page),
        noise_in(store, names),
        left_out,
        low,
        high,
    )


def _readable(
    store: Store, observations: Observations, seen: SelectedCopies, together: JointValidity, warc: Path | ArchiveFolder
) -> BoolArray:
    """Of which pages the bytes of what is shown can be read, as far as a statement depends on it; else false."""
    there = seen.there()
    every = bool((together.inside | ~there).all())
    asked = np.flatnonzero(there if every else seen.covered())
    archived = ArchivedBytes.of(warc, store)
    head = partial(archived.read, max_body=0)
    found = np.zeros(len(there), np.bool_)
    found[asked] = readable_copies(head, store, observations.page[asked], seen.first[asked], seen.time[asked])
    return found


def _only(observations: Observations, urls: list[str], wanted: list[bool]) -> tuple[Observations, list[str]]:
    rows = np.flatnonzero(wanted)
    return observations.take(rows), [urls[row] for row in rows.tolist()]


def learned_for(store: Store, asked: AssessmentQuestion) -> BeliefTable:
    """What is believed of pages: what ``recrawl rates`` says."""
    return learn(store, VisitSpan(), estimator_named(asked.estimator), asked.expected)


def _belief(
    store: Store, observations: Observations, asked: AssessmentQuestion
) -> tuple[Belief | None, FloatArray, FloatArray, FloatArray]:
    """What is believed of each page, its rate, and the ends of its interval: none and NaN where nothing is known."""
    known = learned_for(store, asked)
    if not len(known.histories.gaps):
        nothing = np.full(len(observations), np.nan)
        return None, nothing, nothing, nothing
    rows = np.searchsorted(known.histories.page, observations.page)
    low, high = (end[rows] for end in known.interval())
    return known.belief.take(rows), known.rate[rows], low, high


def _files(store: CaptureIndex, observations: Observations) -> IntArray:
    """The number of the archive file of each observation; observations without one, such as a 304, share another."""
    captures = store.capture_columns(observations.page)
    place = observations.find(captures.page, captures.time)
    _, number = np.unique(captures.warc_file, return_inverse=True)
    label = np.full(len(observations.time), -1)
    label[place[place != NOWHERE]] = number[place != NOWHERE]
    return label


def _parts(quality: ArchiveQuality, section: IntArray, sections: list[str], delay: float | None) -> list[SiteSubsites]:
    """Sub-sites of the largest sites that are large enough and of known rates, at the pace of a capture to come."""
    pace = usual_delay(quality) if delay is None else delay
    if not np.isfinite(pace) or bool(np.isnan(quality.rate).all()):
        return []
    found = []
    size = np.bincount(quality.site)
    largest = np.argsort(-size, kind="stable")[:_MOST_SITES]
    for site in np.sort(largest[size[largest] >= FEWEST_PAGES]).tolist():
        inside = np.flatnonzero((quality.site == site) & ~np.isnan(quality.rate))
        numbers, label = np.unique(section[inside], return_inverse=True)
        if len(numbers) == 1:
            continue
        parts = propose(label, quality.rate[inside], pace, joined_sections(label, *_changes(quality, inside)))
        if len(parts):
            found.append(SiteSubsites(site, [sections[number] for number in numbers.tolist()], parts))
    return found


def _changes(quality: ArchiveQuality, inside: IntArray) -> tuple[IntArray, IntArray, ExpectedByObservation | None]:
    """Which of the pages inside changed in which period, and what was to be expected of them.

    Periods are those of the crawls, or weeks if there is a log of changes, which leaves no page alone for long.
    """
    observations, pairs = quality.observations, quality.consecutive
    place = np.full(len(observations), NO_REVISIT)
    place[inside] = np.arange(len(inside))
    length = (
        WEEK
        if observations.is_log()
        else float(usual_period(observations.take(inside), np.zeros(len(inside), np.int64))[0])
    )
    ours = np.flatnonzero((place[pairs.row] != NO_REVISIT) & (pairs.revisit != NO_REVISIT))
    seen, row = observations.time[pairs.revisit[ours]], pairs.row[ours]
    # A crawl starts well within a period, so that it falls into one period even if crawls are not punctual.
    period = np.floor((seen - quality.start) / length + _HEAD_START).astype(np.int64)
    changed = pairs.found[ours] == RevisitResult.CHANGED
    foreseen = None
    if not observations.is_log():
        changes = np.nan_to_num(quality.rate[row]) * (seen - observations.time[pairs.visit[ours]])
        foreseen = ExpectedByObservation(place[row], period, changes)
    return place[row[changed]], period[changed], foreseen
