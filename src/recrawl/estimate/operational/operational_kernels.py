r"""Operational time in compiled kernels: by the calendar of clusters and the age of pages, one observation at a time.

The results equal those of ``operational_time`` and ``operational_factors``, which work on whole arrays, for the two
factors that policies use. The kernels are for frequent calls with few observations, and for very many pages at once.

Imported only where numba is installed: without it the same functions run as plain Python, slowly.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.model import BoolArray, FloatArray, IntArray
from recrawl.model.compiled import compiled_now

_SMALLEST_X = 1e-300


@compiled_now
def _bin(begin: float, width: float, bins: int, t: float) -> int:
    return int(min(max(math.floor((t - begin) / width), -1), bins))


@compiled_now
def _between(  # noqa: PLR0913, PLR0917 - a table is four of them
    factor: FloatArray, passed: FloatArray, begin: float, width: float, cluster: int, start: float, end: float
) -> float:
    """Operational seconds by the calendar of a cluster; time passes at the usual pace before and after the bins."""
    bins = factor.shape[1]
    first, last = _bin(begin, width, bins, start), _bin(begin, width, bins, end)
    speed = factor[cluster, first] if 0 <= first < bins else 1.0
    if first == last:
        return speed * (end - start)
    out = speed * (begin + (first + 1) * width - start)
    speed = factor[cluster, last] if 0 <= last < bins else 1.0
    # totals are subtracted first, so that a short gap keeps its digits beside them
    return float(out + (passed[cluster, last] - passed[cluster, first + 1] + speed * (end - (begin + last * width))))


@compiled_now
def _step(edges: FloatArray, born: float, at: float) -> int:
    """The step of a page at ``at``; the last one where nobody knows when it was born."""
    if not math.isfinite(born):
        return len(edges) + 1
    step = 0
    while step < len(edges) and edges[step] <= at - born:
        step += 1
    return step


@compiled_now
def _leaves(edges: FloatArray, born: float, step: int, start: float, end: float) -> float:
    """When a page leaves its step, at ``end`` at the latest."""
    return max(min(end, born + edges[step]), start) if step < len(edges) else end


@compiled_now
def between(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    cluster: IntArray,
    start: FloatArray,
    end: FloatArray,
    factor: FloatArray,
    passed: FloatArray,
    begin: float,
    width: float,
    out: FloatArray,
) -> None:
    """Operational seconds by the calendar alone."""
    for i in range(len(cluster)):
        out[i] = _between(factor, passed, begin, width, cluster[i], start[i], end[i])


@compiled_now
def elapsed(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    row: IntArray,
    start: FloatArray,
    end: FloatArray,
    cluster: IntArray,
    born: FloatArray,
    edges: FloatArray,
    ages: FloatArray,
    factor: FloatArray,
    passed: FloatArray,
    begin: float,
    width: float,
    out: FloatArray,
) -> None:
    """Operational seconds by calendar and age: ``ages`` are the factors of the steps that ``edges`` part."""
    for i in range(len(row)):
        birth, home, now = born[row[i]], cluster[row[i]], start[i]
        step = _step(edges, birth, now)
        out[i] = 0.0
        while True:
            stop = _leaves(edges, birth, step, now, end[i])
            out[i] += _between(factor, passed, begin, width, home, now, stop) * ages[step]
            if stop >= end[i]:
                break
            now, step = stop, step + 1


@compiled_now
def paces(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    row: IntArray, at: FloatArray, born: FloatArray, edges: FloatArray, ages: FloatArray, out: FloatArray
) -> None:
    """The factor of the age that each page has at ``at``."""
    for i in range(len(row)):
        out[i] = ages[_step(edges, born[row[i]], at[i])]


@compiled_now
def learn(  # noqa: PLR0913, PLR0917 - a kernel is one loop over plain arrays
    row: IntArray,
    start: FloatArray,
    end: FloatArray,
    changed: BoolArray,
    rates: FloatArray,
    cluster: IntArray,
    born: FloatArray,
    edges: FloatArray,
    ages: FloatArray,
    factor: FloatArray,
    passed: FloatArray,
    begin: float,
    width: float,
    age_changes: FloatArray,
    age_exposure: FloatArray,
    bin_changes: FloatArray,
    bin_exposure: FloatArray,
) -> None:
    """Add the evidence of observations to the changes and the exposure of age steps and calendar bins.

    An observation counts at most with its information (``schedule.learning.page_clocks.informative``). Bins beyond
    those of ``factor`` pass at the usual pace. Empty tables of bins or steps stay unchanged.
    """
    bins, more = factor.shape[1], bin_changes.shape[1]
    for i in range(len(row)):
        birth, home = born[row[i]], cluster[row[i]]
        x, now = 0.0, start[i]
        step = first_step = _step(edges, birth, now)
        while True:
            stop = _leaves(edges, birth, step, now, end[i])
            x += rates[i] * (_between(factor, passed, begin, width, home, now, stop) * ages[step])
            if stop >= end[i]:
                break
            now, step = stop, step + 1
        heard = math.exp(-x) if changed[i] else 1.0
        found = 1.0 + 1.0 / -math.expm1(-max(x, _SMALLEST_X)) if changed[i] else 0.0
        now, step = start[i], first_step
        while True:
            stop = _leaves(edges, birth, step, now, end[i])
            weight = rates[i] * ages[step] * heard
            if len(age_changes):
                exposure = weight * _between(factor, passed, begin, width, home, now, stop)
                age_changes[step] += found * exposure
                age_exposure[step] += exposure / ages[step]
            if more:
                first, last = _bin(begin, width, more, now), _bin(begin, width, more, stop)
                for number in range(max(first, 0), min(last, more - 1) + 1):
                    edge = begin + number * width
                    seconds = max(min(stop, edge + width) - max(now, edge), 0.0)
                    speed = factor[home, number] if number < bins else 1.0
                    bin_exposure[home, number] += weight * seconds
                    bin_changes[home, number] += speed * found * weight * seconds
            if stop >= end[i]:
                break
            now, step = stop, step + 1


@compiled_now
def spread(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    cluster: IntArray,
    start: FloatArray,
    end: FloatArray,
    begin: float,
    width: float,
    weight: FloatArray,
    found: FloatArray,
    factor: FloatArray,
    changes: FloatArray,
    exposure: FloatArray,
) -> None:
    """Add pieces of gaps to the bins they cover: exposure, and the changes expected under the factors as held."""
    bins, held = changes.shape[1], factor.shape[1]
    for i in range(len(cluster)):
        c = cluster[i]
        first, last = _bin(begin, width, bins, start[i]), _bin(begin, width, bins, end[i])
        for number in range(max(first, 0), min(last, bins - 1) + 1):
            edge = begin + number * width
            exposed = weight[i] * max(min(end[i], edge + width) - max(start[i], edge), 0.0)
            speed = factor[c, number] if number < held else 1.0
            exposure[c, number] += exposed
            changes[c, number] += speed * found[i] * exposed


@compiled_now
def smoothed(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    changes: FloatArray,
    exposure: FloatArray,
    host: IntArray,
    hosts: int,
    persistence: float,
    own_strength: float,
    site_strength: float,
    limit: float,
    out: FloatArray,
) -> None:
    """The factor of each cluster and bin, from counts smoothed over neighbouring bins (``cluster_intensity``)."""
    clusters, bins = changes.shape
    found, exposed = np.empty((clusters, bins)), np.empty((clusters, bins))
    site_found, site_exposed = np.zeros((hosts, bins)), np.zeros((hosts, bins))
    for c in range(clusters):
        _smooth(changes[c], persistence, found[c])
        _smooth(exposure[c], persistence, exposed[c])
        for b in range(bins):
            site_found[host[c], b] += found[c, b]
            site_exposed[host[c], b] += exposed[c, b]
    for c in range(clusters):
        for b in range(bins):
            site = (site_strength + site_found[host[c], b]) / (site_strength + site_exposed[host[c], b])
            site = min(max(site, 1.0 / limit), limit)
            own = (own_strength * site + found[c, b]) / (own_strength + exposed[c, b])
            out[c, b] = min(max(own, 1.0 / limit), limit)


@compiled_now
def _smooth(counts: FloatArray, persistence: float, out: FloatArray) -> None:
    """Σ_k φ^|k| · counts(b + k)."""
    fading = 0.0
    for b in range(len(counts)):
        fading = counts[b] + persistence * fading
        out[b] = fading
    fading = 0.0
    for b in range(len(counts) - 1, -1, -1):
        out[b] += persistence * fading
        fading = counts[b] + persistence * fading
