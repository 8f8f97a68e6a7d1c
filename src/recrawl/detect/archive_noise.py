"""Noise of an archive that others made, learned across its own captures.

A crawl asks for a page again to tell noise from change (:mod:`recrawl.detect.learned_noise`). An archive cannot be
asked again, but it has many captures of many pages: what differs in nearly every capture of nearly every page that has
it, as a counter in a footer does, is noise. Captures of a page within seconds, which an import merges into one visit,
serve as confirmations.

Rules of this file:
 1. Versions of a page are compared in the order of time, each with the one before.
 2. Which parts differ anywhere on the host is found first, then how often each of them differed and stayed: so a page
    that was compared early counts, too.
 3. What is noise decides :meth:`NoiseEvidence.noise_of` with ``unconfirmed``. Where confirmations are too few for that
    to decide, the other comparisons do, unless confirmations mostly agreed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from recrawl.detect.comparison import NEAR, Compared, compared_parts
from recrawl.detect.fingerprint import Fingerprint
from recrawl.detect.learned_noise import HostNoise, NoiseEvidence, evidence
from recrawl.detect.noise_keys import NoiseKey, split_key

FEWEST_PAGES = 3
"""Pages with several versions below which no noise of a host can be learned."""


@dataclass(frozen=True, slots=True)
class NoisyPart:
    """A part of a host's pages that was learned to be noise."""

    key: int
    pages: int
    """Pages on which it differed, of those looked at."""
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
    """Pages that were looked at."""


def archive_noise(host: int, versions: Mapping[int, Sequence[Fingerprint]], moments: float) -> ArchiveNoise:
    """What is noise on a host, by the versions of its pages, which come by time.

    Versions at most ``moments`` seconds apart are confirmations. O(parts of all versions).
    """
    pairs = [(page, *both) for page, several in versions.items() for both in pairwise(several)]
    watched = frozenset(
        key for _, before, after in pairs for key in compared_parts(before, after, frozenset()).differed
    )
    near, far = list[tuple[int, Compared, float]](), list[tuple[int, Compared, float]]()
    for page, before, after in pairs:
        found = compared_parts(before, after, watched)
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
    return ArchiveNoise(noise, _parts(mask, [*near, *far]), len(versions))


def _mostly_agreed(near: Sequence[tuple[int, Compared, float]]) -> frozenset[int]:
    """Keys that stayed in at least half of the confirmations."""
    counts: dict[int, int] = {}
    for _, compared, _ in near:
        for key in compared.differed | compared.same:
            counts[key] = counts.get(key, 0) + (-1 if key in compared.differed else 1)
    return frozenset(key for key, count in counts.items() if count >= 0)


def _parts(mask: frozenset[int], comparisons: Sequence[tuple[int, Compared, float]]) -> tuple[NoisyPart, ...]:
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
