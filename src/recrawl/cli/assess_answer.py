"""What ``recrawl assess`` finds out about an archive, from its store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from recrawl.assess.archive_quality import ArchiveQuality, archive_quality, usual_delay
from recrawl.assess.joint_validity import JointValidity
from recrawl.assess.looks import NOWHERE, Looks
from recrawl.assess.rounds import NO_REVISIT, find_rounds, known_rounds, usual_period
from recrawl.assess.shown import Rule, Shown, shown
from recrawl.assess.shown_chance import chance_unchanged
from recrawl.assess.statement import Found
from recrawl.assess.subsites import Foreseen, SubSites, joined_sections, propose
from recrawl.cli.assess_recorded import Recorded, recorded
from recrawl.cli.knowledge import Expected, Knowledge, Span, learn, middle_of, section_labels
from recrawl.cli.rates_question import estimator_named
from recrawl.crawl.archive_noise import ToldPart, noise_in
from recrawl.crawl.composite_survey import Composed
from recrawl.crawl.merged_captures import MergedCaptures, merged_captures
from recrawl.errors import InputError
from recrawl.estimate.estimator import Estimator, Evidence
from recrawl.estimate.estimators import DEFAULT
from recrawl.model import Belief, FloatArray, IntArray
from recrawl.store.base import Store
from recrawl.time import MINUTE, WEEK

_HEAD_START = 0.125
FEWEST_PAGES = 20
"""A site with fewer pages is not worth cutting up."""
_MOST_SITES = 20
"""Sites for which sub-sites are sought: each costs a pass over everything."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of an archive."""

    at: float | None = None
    """For which moment it is looked at; the last capture if nobody says."""
    rule: Rule = Rule.NEAREST
    match: str | None = None
    """Part of a URL, or a pattern with ``*`` and ``?`` for a whole one."""
    pause: float | None = None
    by_file: bool = False
    """Whether each archive file is a crawl."""
    delay: float | None = None
    """Seconds between downloads of a capture to come; as in this archive if nobody says."""
    estimator: str = DEFAULT
    unhurried: bool = False
    """Whether gaps of less than a minute are no evidence of rates: in files that somebody else made."""
    pages: IntArray | None = None
    """Only these pages, by id, ascending; all if nobody says."""
    expected: Expected | None = None
    """What a model expects of pages, if there is one: as ``recrawl rates`` is told."""


class NothingToJudgeError(InputError):
    """There is no capture of what was asked about."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The sub-sites of one site."""

    site: int
    sections: list[str]
    found: SubSites


@dataclass(frozen=True, slots=True)
class Answer:
    """All that was found out. Columns are of pages, row by row."""

    quality: ArchiveQuality
    urls: list[str]
    sites: list[str]
    """Hosts, by the numbers of ``quality.site``."""
    section: IntArray
    sections: list[str]
    shown: Shown
    at: float
    chance: FloatArray
    """Probability that each page was then as it is shown; NaN where nobody knows how pages change."""
    together: JointValidity
    parts: list[Parts]
    recorded: Recorded
    merged: MergedCaptures
    """Captures that are no visits of their own."""
    noise: dict[str, list[ToldPart]]
    """Parts of pages that were not compared, by host."""
    left_out: int
    """Resources that were not judged: robots.txt, style sheets, pictures and the like."""
    low: FloatArray
    """Ends of the 90 % interval of each rate, per second; NaN where it is not known."""
    high: FloatArray
    composed: Composed | None = None
    """Captured pages with what they embed; ``None`` if nothing is known of them."""

    def names(self, pages: IntArray) -> list[str]:
        """URLs of page ids."""
        return [self.urls[row] for row in np.searchsorted(self.quality.looks.page, pages).tolist()]


def answer(store: Store, asked: Asked) -> Answer:
    """Look at everything the store knows, or at the pages asked about."""
    looks = Looks.from_visits(store.visits())
    urls = store.urls(looks.page)
    if asked.pages is not None:
        looks, urls = _only(looks, urls, np.isin(looks.page, asked.pages).tolist())
    if asked.match is not None:
        pattern = asked.match if set(asked.match) & set("*?[") else f"*{asked.match}*"
        looks, urls = _only(looks, urls, [fnmatchcase(url, pattern) for url in urls])
    # They have no rates either: see ``lesson_of``.
    pages_only = ~np.isin(looks.page, store.resources())
    left_out = int((~pages_only).sum())
    looks, urls = _only(looks, urls, pages_only.tolist())
    if not len(looks):
        raise NothingToJudgeError(
            "There is no capture to judge" + (f" of a page like {asked.match!r}." if asked.match else "."),
            "Set archive.resources=pages, and pictures and the like are pages, too."
            if left_out
            else "Crawl or import something first, or name files that hold captures: WARC, CDX, WACZ and all that "
            "recrawl import reads.",
        )
    pages = store.pages(looks.page)
    hosts, site = np.unique(pages.host, return_inverse=True)
    belief, rate, low, high = _belief(store, looks, asked)
    record = recorded(store, looks)
    if asked.by_file:
        rounds = known_rounds(looks, site, _files(store, looks))
    else:
        rounds = record.rounds(looks, site, find_rounds(looks, site, asked.pause))
    # Pages that only a capture of their site visits have no weight in the schedule; here they count like any other.
    weight = np.where(pages.importance > 0, pages.importance, 1.0)
    quality = archive_quality(looks, rate, weight, site, rounds=rounds, once=record.once, rule=asked.rule)
    at = quality.end if asked.at is None else asked.at
    seen = shown(looks, rate, at, asked.rule)
    chance = np.full(len(looks), np.nan)
    if belief is not None:
        chance = np.where(np.isnan(rate), np.nan, chance_unchanged(looks, seen, belief))
    section, sections = section_labels(urls)
    names = list(store.hosts(hosts).name)
    return Answer(
        quality,
        urls,
        names,
        section,
        sections,
        seen,
        at,
        chance,
        seen.joint(quality.weight),
        _parts(quality, section, sections, asked.delay),
        record,
        merged_captures(store, looks.page),
        noise_in(store, names),
        left_out,
        low,
        high,
    )


def _only(looks: Looks, urls: list[str], wanted: list[bool]) -> tuple[Looks, list[str]]:
    rows = np.flatnonzero(wanted)
    return looks.take(rows), [urls[row] for row in rows.tolist()]


def learned_for(store: Store, asked: Asked) -> Knowledge:
    """What is believed of pages: what ``recrawl rates`` says of a workspace. In files, quick gaps are no evidence."""
    chosen = estimator_named(asked.estimator)
    return learn(store, Span(), Unhurried(chosen) if asked.unhurried else chosen, asked.expected)


def _belief(store: Store, looks: Looks, asked: Asked) -> tuple[Belief | None, FloatArray, FloatArray, FloatArray]:
    """What is believed of each page, its rate, and the ends of its interval: none and NaN where nothing is known."""
    known = learned_for(store, asked)
    if not len(known.histories.gaps):
        nothing = np.full(len(looks), np.nan)
        return None, nothing, nothing, nothing
    rows = np.searchsorted(known.histories.page, looks.page)
    heard = without_quick_gaps(known.lesson.evidence) if asked.unhurried else known.lesson.evidence
    rate = np.where(heard.histories.counts() > 0, middle_of(known.belief, heard.histories), np.nan)[rows]
    low, high = (end[rows] for end in known.interval())
    return known.belief.take(rows), rate, np.minimum(low, rate), np.maximum(high, rate)


def without_quick_gaps(evidence: Evidence) -> Evidence:
    """The same without gaps of less than a minute, if there are longer ones. O(gaps).

    Two downloads of one moment that differ tell of a server, not of how often a page changes; taken for evidence they
    would mean a change every few seconds for years.
    """
    histories = evidence.histories
    kept = histories.gaps >= MINUTE
    if not kept.any():
        return evidence
    ends = np.append(0, np.cumsum(kept))[histories.offsets]
    slow = replace(histories, offsets=ends, gaps=histories.gaps[kept], changed=histories.changed[kept])
    return replace(evidence, histories=slow)


@dataclass(frozen=True, slots=True)
class Unhurried:
    """An estimator that is not told of gaps of less than a minute: in archives of others they are no evidence."""

    estimator: Estimator

    @property
    def name(self) -> str:
        """That of the estimator."""
        return self.estimator.name

    def __call__(self, evidence: Evidence) -> Belief:
        """What the estimator believes given the other gaps."""
        return self.estimator(without_quick_gaps(evidence))


def _files(store: Store, looks: Looks) -> IntArray:
    """A number for the archive file that holds each look; looks without one, as answers of 304 are, share another."""
    captures = store.capture_columns(looks.page)
    place = looks.find(captures.page, captures.time)
    _, number = np.unique(captures.warc_file, return_inverse=True)
    label = np.full(len(looks.time), -1)
    label[place[place != NOWHERE]] = number[place != NOWHERE]
    return label


def _parts(quality: ArchiveQuality, section: IntArray, sections: list[str], delay: float | None) -> list[Parts]:
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
            found.append(Parts(site, [sections[number] for number in numbers.tolist()], parts))
    return found


def _changes(quality: ArchiveQuality, inside: IntArray) -> tuple[IntArray, IntArray, Foreseen | None]:
    """Which of the pages inside changed in which period, and what was to be expected of them.

    Periods are those of the crawls, or weeks if there is a log of changes, which leaves no page alone for long.
    """
    looks, pairs = quality.looks, quality.consecutive
    place = np.full(len(looks), NO_REVISIT)
    place[inside] = np.arange(len(inside))
    length = WEEK if looks.is_log() else float(usual_period(looks.take(inside), np.zeros(len(inside), np.int64))[0])
    ours = np.flatnonzero((place[pairs.row] != NO_REVISIT) & (pairs.revisit != NO_REVISIT))
    seen, row = looks.time[pairs.revisit[ours]], pairs.row[ours]
    # A crawl begins well within a period, so that all of it falls into one though crawls are not quite punctual.
    period = np.floor((seen - quality.start) / length + _HEAD_START).astype(np.int64)
    changed = pairs.found[ours] == Found.CHANGED
    foreseen = None
    if not looks.is_log():
        changes = np.nan_to_num(quality.rate[row]) * (seen - looks.time[pairs.visit[ours]])
        foreseen = Foreseen(place[row], period, changes)
    return place[row[changed]], period[changed], foreseen
