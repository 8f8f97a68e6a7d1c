"""How good an archive is, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recrawl.assess.archive_quality import ArchiveQuality, Tally, tally, weighted_mean
from recrawl.assess.deduplication import Deduplication
from recrawl.assess.joint_validity import JointValidity
from recrawl.assess.shown import Shown
from recrawl.model import FloatArray, IntArray
from recrawl.model.words import counted
from recrawl.show.words import listed, period, valid_period
from recrawl.time import format_duration, to_iso

_NAMED = 5
"""Sites that a warning names."""


def archive_words(quality: ArchiveQuality) -> list[str]:
    """What there is, how far away copies are, and what came of captures that were seen again."""
    looks = quality.looks
    sites = len(np.unique(quality.site))
    gone = int(looks.gone.sum())
    there = f"{counted(len(looks.time) - gone, 'capture')} of {counted(len(looks), 'page')} on {counted(sites, 'site')}"
    when = f"{period(quality.start, quality.end)} ({format_duration(quality.end - quality.start)})"
    nothing = f" Besides, {counted(gone, 'look')} found no page." if gone else ""
    lines = [f"{there}, {when}, in {counted(len(quality.rounds), 'crawl')}.{nothing}"]
    if quality.end > quality.start:
        lines.append(_blur_words(quality))
    if looks.is_log():
        return [*lines, "This is a log of changes, not a row of captures: crawls and their coherence mean little here."]
    everything = tally(quality, quality.consecutive, quality.consecutive.round, 1)
    return [*lines, _again_words(everything)]


def _blur_words(quality: ArchiveQuality) -> str:
    distance, predicted, achieved = (
        _mean(value, quality.weight) for value in (quality.distance, quality.predicted, quality.achieved)
    )
    line = f"Asked for any moment of that time, a page shows a copy {format_duration(distance)} away on average"
    if np.isnan(achieved):
        return f"{line}. How blurred that is, nobody knows: no two captures of a page could be compared."
    middle = float(np.nanmedian(quality.achieved))
    return (
        f"{line}. Its blur, the changes expected in between, is {middle:.3g} for the middle page and {achieved:.3g} on "
        f"average, given what all captures found; {predicted:.3g} by the rates alone."
    )


def _again_words(counts: Tally) -> str:
    judged = int(counts.judged()[0])
    if not judged:
        return "No capture could be compared with a later one of the same page: nothing is proved to be coherent."
    lost = bool(counts.not_known[0])
    coherent = "" if lost else f"{int(counts.coherent[0]):,} unchanged in between (coherent), "
    line = (
        f"{counted(judged, 'capture')} could be compared with the next of the same page: "
        f"{coherent}{int(counts.changed[0]):,} changed, "
        f"{int(counts.missing[0]):,} gone; {int(counts.unseen[0]):,} not seen again"
    )
    if lost:
        return f"{line}. How many were unchanged in between (coherent) is not known."
    if counts.expected_of[0]:
        line += f". Of {int(counts.expected_of[0]):,} judged, {counts.expected[0]:.1f} were expected to be coherent"
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
            f"{counted(compared, 'capture')} has the digest of the one before, and {counted(absent, 'time')} a page of "
            "an earlier crawl is not listed. Captures that found a page unchanged seem to be left out (wget leaves "
            "revisit records out of its CDX). So how many captures are coherent is not known, and pages change less "
            "often than the rates say. The WARC files, or an index with revisit records, would tell."
        )
    if len(possible):
        compared = int(found.comparisons[possible].sum())
        lines.append(
            f"Warning: of {listed(possible, names, _NAMED)} none of {counted(compared, 'capture')} has the digest of "
            "the one before. Either these pages differ at every download, as pages with a counter or a date do, or the "
            "index leaves out captures that found a page unchanged. Then more are coherent than stated."
        )
    return lines


def shown_words(seen: Shown, chance: FloatArray, joint: JointValidity, urls: Sequence[str], most: int = 5) -> list[str]:
    """What is shown for one moment, how far its parts are apart, and whether they were ever valid together."""

    def names(rows: IntArray) -> list[str]:
        return [urls[row] for row in rows.tolist()]

    there = seen.there()
    if not bool(there.any()):
        return ["There is nothing to show."]
    at = float(seen.at[0])
    time = seen.time[there]
    proved = int(seen.proved().sum())
    pages = int(there.sum())
    lines = [
        f"For {to_iso(at)} it shows {counted(pages, 'page')}, captured "
        f"{period(float(time.min()), float(time.max()))} ({format_duration(float(np.ptp(time)))} apart); "
        f"{proved:,} provably as they were then{_expected(chance[there])}"
        + (f", {counted(int((~there).sum()), 'page')} not at all" if not bool(there.all()) else "")
        + "."
    ]
    inside = int(joint.inside.sum())
    span = valid_period(joint.start, joint.end)
    if inside == pages:
        return [*lines, f"All of them were valid together {span}."]
    breaking = np.flatnonzero(there & ~joint.inside)
    broken = f"The others, {counted(len(breaking), 'page')}: {listed(breaking, names, most)}."
    best = f"at best {counted(inside, 'page')}, {span}"
    return [*lines, f"No instant is known at which all were valid together; {best}. {broken}"]


def _expected(chance: FloatArray) -> str:
    known = chance[~np.isnan(chance)]
    if not len(known):
        return ""
    unknown = len(chance) - len(known)
    return f", {known.sum():.1f} in expectation" + (f" ({unknown:,} seen once: not known)" if unknown else "")


def _mean(value: FloatArray, weight: FloatArray) -> float:
    return float(weighted_mean(value, weight, np.zeros(len(value), np.int64), 1)[0])
