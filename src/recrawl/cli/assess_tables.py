"""The tables of ``recrawl assess``: by crawl, section, page and sub-site, as columns. Times are ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recrawl.assess.archive_quality import Tally, crawl_blur, tally, weighted_mean
from recrawl.assess.statement_json import iso
from recrawl.cli.assess_answer import Answer
from recrawl.model import FloatArray, IntArray
from recrawl.time import DAY

LEAST_GAIN = 1.0
"""Coherent pages more, below which a sub-site is not worth a capture of its own."""

Columns = Mapping[str, Sequence[Any]]


def crawls(found: Answer) -> Columns:
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


def sections(found: Answer) -> Columns:
    """Every section, the one that blurs the archive most first: by its ``blur`` times the weight of its pages."""
    quality, label, count = found.quality, found.section, len(found.sections)
    pages = np.bincount(label, minlength=count)
    looks = np.bincount(label[quality.looks.row_of_look()], minlength=count)
    predicted, achieved, distance = (
        weighted_mean(value, quality.weight, label, count)
        for value in (quality.predicted, quality.achieved, quality.distance)
    )
    heavy = np.bincount(label, quality.weight, count)
    order = worst_first(achieved * heavy, distance * heavy)
    columns: dict[str, Sequence[Any]] = {
        "section": found.sections,
        "pages": pages.tolist(),
        "looks": looks.tolist(),
        **_counted(tally(quality, quality.consecutive, label[quality.consecutive.row], count)),
        "distance": distance.tolist(),
        "blur_predicted": predicted.tolist(),
        "blur": achieved.tolist(),
        "blur_total": (achieved * heavy).tolist(),
    }
    return _ordered(columns, order)


def pages(found: Answer, most: int | None = None) -> Columns:
    """Every page, or ``most`` of them, the one that blurs the archive most first: by its ``blur`` times its weight."""
    quality, seen = found.quality, found.shown
    looks = quality.looks
    rows = worst_first(quality.achieved * quality.weight, quality.distance * quality.weight)[:most]
    counted = _counted(tally(quality, quality.consecutive, quality.consecutive.row, len(looks)))
    return {
        "url": [found.urls[row] for row in rows.tolist()],
        "looks": np.diff(looks.offsets)[rows].tolist(),
        "first_look": _times(looks.time[looks.offsets[:-1]][rows]),
        "last_look": _times(looks.time[looks.offsets[1:] - 1][rows]),
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


def subsites(found: Answer) -> Columns:
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


def _counted(counts: Tally) -> dict[str, Sequence[Any]]:
    return {
        "captures": counts.captures.tolist(),
        "coherent": [
            None if lost else value
            for value, lost in zip(counts.coherent.tolist(), counts.not_known.tolist(), strict=True)
        ],
        "changed": counts.changed.tolist(),
        "links_changed": counts.links.tolist(),
        "missing": counts.missing.tolist(),
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
