"""Noise of archives that other crawlers made: learned across their own captures, and where a live crawl starts from.

A crawl fetches a page again to separate noise from change. An archive cannot be fetched again, but it has many captures
of many pages: what differs in nearly every capture of nearly every page that has it, as a counter in a footer does, is
noise. Captures of a page within seconds, which an import merges into one visit, serve as confirmations.

Rules of this file:
 1. Versions of a page are compared in the order of time, each with the one before.
 2. Which parts differ anywhere on the host is found first, then how often each of them differed and stayed: so a page
    that was compared early counts, too.
 3. Captures with one digest, and revisit records, are comparisons in which nothing differed: the strongest evidence
    against noise. Where their bytes are not available, they may have every part.
 4. :meth:`NoiseEvidence.noise_of` with ``unconfirmed`` decides what is noise. Where confirmations are too few for that
    to decide, the other comparisons do, unless confirmations mostly agreed.
 5. A live crawl of the host masks these parts from its first visit on, until its own confirmations say otherwise
    (:func:`with_archived`). A box with the latest news differs in every monthly capture, and agrees moments apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise

import numpy as np

from recrawl.detect.comparison import NEAR, PartComparison, compared_parts, nothing_differed
from recrawl.detect.fingerprint import Fingerprint
from recrawl.detect.noise.learned_noise import STILL_AFTER, STILL_SHARE, HostNoise, NoiseEvidence, evidence
from recrawl.detect.noise.noise_keys import NoiseKey, split_key
from recrawl.model.noise_counts import WHOLE_HOST

ARCHIVE_NOISE = "archive-noise"
"""The name under which the store keeps what archives taught."""
FEWEST_PAGES = 3
"""Compared pages below which no noise of a host can be learned."""


@dataclass(frozen=True, slots=True)
class ArchivedVersion:
    """What an archive holds of a page at one time."""

    time: float
    """Seconds since the epoch."""
    content: int
    """A number of the page's contents: the same for captures that are known to be equal; 0 if that is not known."""
    fingerprint: Fingerprint | None
    """What the bytes say; ``None`` if they are not available."""


@dataclass(frozen=True, slots=True)
class NoisyPart:
    """A part of a host's pages that was learned to be noise."""

    key: int
    pages: int
    """Pages on which it differed, of those observed."""
    differed: int
    """Comparisons in which it differed …"""
    compared: int
    """… of those in which both versions had it."""

    @property
    def place(self) -> NoiseKey:
        """Path, position and kind of difference."""
        return split_key(self.key)


@dataclass(frozen=True, slots=True)
class ArchiveNoise:
    """What is noise on a host of an archive, and the evidence for it."""

    noise: HostNoise
    parts: tuple[NoisyPart, ...]
    """On most pages first."""
    pages: int
    """Pages that were compared."""


def archive_noise(host: int, versions: Mapping[int, Sequence[ArchivedVersion]], moments: float) -> ArchiveNoise:
    """What is noise on a host, by the versions of its pages, which come by time.

    Versions at most ``moments`` seconds apart are confirmations. O(parts of all versions).
    """
    pairs = [(page, *both) for page, several in versions.items() for both in pairwise(several)]
    watched = frozenset[int]().union(
        *(one.differed for _, old, new in pairs if (one := _compared(old, new)) is not None)
    )
    near, far = list[tuple[int, PartComparison, float]](), list[tuple[int, PartComparison, float]]()
    for page, before, after in pairs:
        found = _compared(before, after, watched)
        if found is None:
            continue
        gap = after.time - before.time
        if gap <= moments:
            near.append((page, replace(found, gap=min(gap, 0.5 * NEAR)), after.time))
        else:
            far.append((page, replace(found, gap=max(gap, NEAR)), after.time))
    confirmed, others = (
        [evidence(host, page, time, compared) for page, compared, time in some] for some in (near, far)
    )
    both = NoiseEvidence.concat([*confirmed, *others]).noise_of(host, unconfirmed=True)
    alone = NoiseEvidence.concat(others).noise_of(host, unconfirmed=True)
    agreed = _mostly_agreed(near)
    mask = both.mask | (alone.mask - agreed)
    noise = replace(both, mask=mask)
    return ArchiveNoise(noise, _parts(mask, [*near, *far]), len({page for page, *_ in (*near, *far)}))


def are_compared(several: Sequence[ArchivedVersion]) -> bool:
    """Whether any two of a page's versions that follow each other can be compared."""
    return any(_compared(*both) is not None for both in pairwise(several))


def _compared(
    before: ArchivedVersion, after: ArchivedVersion, watched: frozenset[int] = frozenset()
) -> PartComparison | None:
    """What two versions teach; ``None`` if they cannot be compared."""
    gap, old, new = after.time - before.time, before.fingerprint, after.fingerprint
    if before.content == after.content != 0:
        known = old or new
        return PartComparison(frozenset(), watched, gap) if known is None else nothing_differed(known, watched, gap)
    return None if old is None or new is None else compared_parts(old, new, watched)


def _mostly_agreed(near: Sequence[tuple[int, PartComparison, float]]) -> frozenset[int]:
    """Keys that stayed in at least half of the confirmations."""
    counts: dict[int, int] = {}
    for _, compared, _ in near:
        for key in compared.differed | compared.same:
            counts[key] = counts.get(key, 0) + (-1 if key in compared.differed else 1)
    return frozenset(key for key, count in counts.items() if count >= 0)


def _parts(mask: frozenset[int], comparisons: Sequence[tuple[int, PartComparison, float]]) -> tuple[NoisyPart, ...]:
    pages: dict[int, set[int]] = {key: set() for key in mask}
    differed, compared = dict.fromkeys(mask, 0), dict.fromkeys(mask, 0)
    for page, found, _ in comparisons:
        for key in (found.differed | found.same) & mask:
            compared[key] += 1
        for key in found.differed & mask:
            differed[key] += 1
            pages[key].add(page)
    parts = [NoisyPart(key, len(pages[key]), differed[key], compared[key]) for key in mask]
    return tuple(sorted(parts, key=lambda part: (-part.pages, -part.differed, part.key)))


@dataclass(frozen=True, slots=True)
class NoisePartReport:
    """A part that was not compared in imported captures, for reports and as evidence for live visits."""

    text: str
    """From one capture; empty if no available one has it."""
    kind: str
    pages: int
    """Pages on which it differed …"""
    pages_read: int
    """… of this many that were read to learn it."""
    differed: int
    compared: int
    key: int = 0
    """By which it is masked (``noise_keys``); 0 if it was learned before keys were stored."""


ReportsByHost = dict[str, list[NoisePartReport]]


def pack_reports(reports: ReportsByHost) -> bytes:
    """What archives taught, by name of the host, as the store keeps it."""
    told = {host: [asdict(part) for part in parts] for host, parts in reports.items()}
    return json.dumps(told, ensure_ascii=False).encode("utf-8", "backslashreplace")


def unpack_reports(data: bytes | None) -> ReportsByHost:
    """What :func:`pack_reports` made; nothing if there is none."""
    told = json.loads(data) if data else {}
    return {host: [NoisePartReport(**part) for part in parts] for host, parts in told.items()}


def with_archived(noise: HostNoise, host: int, parts: Sequence[NoisePartReport]) -> HostNoise:
    """What live visits and imported archives together show to be noise on a host. O(rows of the host).

    A part that only archives show to be noise is masked from the first live visit on, and audited as often as noise
    that may have stopped (``HostNoise.uncertain``). It is no longer masked once the live confirmations are likelier if
    it is content, after one agreement, or once it stays from visit to visit. Then live evidence alone decides.
    """
    mine = noise.rows.take(noise.rows.page == WHOLE_HOST)
    content = (mine.near > 0) & (mine.log_odds(mine.near) < 0.0)
    content |= (mine.far >= STILL_AFTER) & (mine.far_differed < STILL_SHARE * mine.far)
    refuted = noise.mask | frozenset(mine.part[content].tolist())
    added = [part for part in parts if part.key and part.key not in refuted]
    if not added:
        return noise
    columns = {one.name: np.zeros(len(added), np.int64) for one in fields(NoiseEvidence)}
    columns |= {
        "host": np.full(len(added), host, np.int64),
        "part": np.array([part.key for part in added], np.int64),
        "far": np.array([part.compared for part in added], np.int64),
        "far_differed": np.array([part.differed for part in added], np.int64),
    }
    keys = frozenset(part.key for part in added)
    return replace(
        noise,
        mask=noise.mask | keys,
        watched=noise.watched | keys,
        uncertain=noise.uncertain | keys,
        rows=NoiseEvidence.concat([noise.rows, NoiseEvidence(**columns)]),
    )
