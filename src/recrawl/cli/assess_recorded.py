"""What a workspace has on record about the captures it made itself, beside the visits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.assess.collapse import ROOT
from recrawl.assess.looks import NOWHERE, Looks
from recrawl.assess.rounds import Rounds, known_rounds
from recrawl.model import ANSWERED, BoolArray, IntArray, Outcome
from recrawl.store.base import Store
from recrawl.store.site_values import SiteCapture, SiteLog


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the recorded steps of captures say about looks and pages, row by row."""

    captures: int
    """Finished captures, each of which has a statement of its own."""
    capture: IntArray
    """The capture each look was made for, from 0; ``NOWHERE`` if for none."""
    once: BoolArray
    """Looks that are visit and revisit in one: the innermost page of a capture with revisits."""
    via: IntArray
    """Row of the page on which each page was found, as the first capture that knows has it; ``ROOT`` if none does."""

    def rounds(self, looks: Looks, site: IntArray, found: Rounds) -> Rounds:
        """The crawls that were found, where every capture on record is one, with its visits and revisits."""
        return known_rounds(looks, site, np.where(self.capture == NOWHERE, found.of_look, len(found) + self.capture))


def recorded(store: Store, looks: Looks) -> Recorded:
    """Look up every capture of the store. O(pages and steps of captures), and a logarithm more."""
    from recrawl.crawl.capture_order import CaptureOrder

    captures = store.site_captures()
    capture, once = np.full(len(looks.time), NOWHERE), np.zeros(len(looks.time), np.bool_)
    via = np.full(len(looks), ROOT)
    for number, one in enumerate(captures):
        log = store.site_log(one.id)
        step = np.array([step.number for step in log.steps], np.int64)
        place = looks.find(log.found.page[step], np.array([step.time for step in log.steps], np.float64))
        capture[_meanwhile(one, log, looks) & (capture == NOWHERE)] = number
        capture[place[place != NOWHERE]] = number
        if one.is_finished and CaptureOrder.from_json(one.terms).revisits:
            alone = place[_seen_once(log, step)]
            once[alone[alone != NOWHERE]] = True
        _note_parents(log, looks, via)
    return Recorded(sum(one.is_finished for one in captures), capture, once, via)


def _meanwhile(capture: SiteCapture, log: SiteLog, looks: Looks) -> BoolArray:
    """Looks at its pages while a capture was made: second looks, which tell noise from change, are no steps of it."""
    times = [step.time for step in log.steps]
    if not times:
        return np.zeros(len(looks.time), np.bool_)
    until = capture.finished if capture.is_finished else max(times)
    inside = (looks.time >= min(times)) & (looks.time <= until)
    inside[inside] = np.isin(looks.page[looks.row_of_look()[inside]], log.found.page)
    return inside


def _seen_once(log: SiteLog, number: IntArray) -> IntArray:
    """Steps that found a page which nobody revisited, though others were."""
    again = np.zeros(len(log.found), np.bool_)
    again[[step.number for step in log.steps if step.revisit]] = True
    there = np.array([step.outcome <= ANSWERED and step.outcome != Outcome.GONE for step in log.steps], np.bool_)
    return np.flatnonzero(there & ~again[number])


def _note_parents(log: SiteLog, looks: Looks, via: IntArray) -> None:
    """Write the rows of parents into ``via``, where none stands yet."""
    found = log.found
    row = np.searchsorted(looks.page, found.page)
    known = np.append(looks.page, -1)[row] == found.page
    told = (found.via >= 0) & known & known[found.via]
    told[told] = via[row[told]] == ROOT
    via[row[told]] = row[found.via[told]]
