"""What an answer says of its own sharpness, as headers and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.assess.composite import ChoiceRule, CoherenceState
from recrawl.assess.looks import Looks
from recrawl.assess.one_copy import FEW_LOOKS, looks_of_one, sharpness_of_one
from recrawl.assess.sharpness import Sharpness, Spread, sharpness, spread
from recrawl.model import Capture
from recrawl.show.timetravel.archive import Archive
from recrawl.show.timetravel.captures import Kept
from recrawl.show.timetravel.composite import ShownComposite, coherence_header
from recrawl.show.timetravel.replay import is_readable
from recrawl.store.base import Store
from recrawl.time import to_http_date, to_iso

MOST_PARTS = 300
"""Embedded parts of one page that are looked up."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a page embeds, and the copies that would be shown of it."""

    asked: int
    """Resources that the page embeds."""
    kept: tuple[Kept, ...]
    """Those that are archived: of each the copy that goes with the page best."""
    missing: tuple[str, ...]
    sharp: Sharpness
    spread: Spread
    """Of the page and its parts."""
    composite: ShownComposite
    """The states of the parts."""

    @property
    def states(self) -> list[CoherenceState]:
        """The state of each copy."""
        return [part.state for part in self.composite.parts if part.kept is not None]

    @property
    def together(self) -> bool:
        """Whether all of it, with no part missing or not looked up, was provably valid at one instant."""
        return self.spread.together and len(self.kept) == self.asked


def sharpness_of(
    archive: Archive, store: Store, kept: Sequence[Kept], at: float, *, first_readable: bool | None = None
) -> Sharpness:
    """What is known of these copies for a moment. O(visits of their pages).

    ``first_readable`` says whether the bytes of the first can be read, where that is known; of the others we look.
    """
    known = [] if first_readable is None else [first_readable]
    readable = [*known, *(is_readable(archive, store, one) for one in kept[len(known) :])]
    page, time = np.array([one.page for one in kept], np.int64), np.array([one.time for one in kept])
    visits = store.looks(np.unique(page))
    if len(kept) == 1 and len(visits) <= FEW_LOOKS:
        rates = archive.rates(store, visits)
        rate = float(rates[0]) if len(rates) else math.nan
        return sharpness_of_one(looks_of_one(visits), rate, kept[0].time, at, readable=readable[0])
    looks = Looks.from_visits(visits)
    return sharpness(looks, archive.rates(store, visits), page, time, at, readable=np.array(readable, np.bool_))


def parts_of(  # noqa: PLR0913, PLR0917 - the page, and how its parts are chosen
    archive: Archive, store: Store, kept: Kept, capture: Capture, at: float, rule: ChoiceRule = ChoiceRule.COHERENT
) -> Parts | None:
    """The parts of an HTML page that was read, and how far all lie apart; ``None`` if they cannot be read."""
    composite = archive.composer.page(store, kept, capture, rule, MOST_PARTS)
    if composite is None:
        return None
    found = tuple(part.kept for part in composite.parts if part.kept is not None)
    missing = tuple(part.url for part in composite.parts if part.kept is None)
    sharp = sharpness_of(archive, store, [kept, *found], at, first_readable=True)
    return Parts(composite.asked, found, missing, sharp, spread(sharp), composite)


def headers_of(sharp: Sharpness, parts: Parts | None = None) -> dict[str, str]:
    """The answer's sharpness in headers; the first copy is the answer itself.

    >>> given = Sharpness(*(np.array([value]) for value in (10.0, 4.0, 2.0, 9.0, 0.5, True)))
    >>> headers_of(given)["X-Recrawl-Distance"], headers_of(given)["X-Recrawl-Expected-Changes"]
    ('-6', '0.5')
    """
    told = {
        "X-Recrawl-Asked": to_http_date(float(sharp.at[0])),
        "X-Recrawl-Distance": f"{math.trunc(sharp.away()[0])}",
        "X-Recrawl-Provably-Valid": "yes" if sharp.proved()[0] else "no",
        "X-Recrawl-Valid-From": to_http_date(float(sharp.first[0])),
        "X-Recrawl-Valid-Until": to_http_date(float(sharp.last[0])),
    }
    if math.isfinite(sharp.expected[0]):
        told["X-Recrawl-Expected-Changes"] = f"{sharp.expected[0]:.3g}"
    if parts is not None:
        told["X-Recrawl-Parts"] = f"{len(parts.kept)}/{parts.asked}"
        told["X-Recrawl-Parts-Spread"] = f"{math.trunc(parts.spread.seconds)}"
        told["X-Recrawl-Parts-Together"] = "yes" if parts.together else "no"
        told["X-Recrawl-Parts-Coherence"] = coherence_header(parts.composite)
        if parts.composite.damage is not None:
            told["X-Recrawl-Parts-Damage"] = f"{parts.composite.damage:.3f}"
    return told


def as_json(sharp: Sharpness, row: int = 0) -> dict[str, Any]:
    """The same of one copy, for programs; what nobody knows is null."""
    expected = float(sharp.expected[row])
    return {
        "asked": to_iso(float(sharp.at[row])),
        "datetime": to_iso(float(sharp.time[row])),
        "distance_seconds": float(sharp.away()[row]),
        "expected_changes": expected if math.isfinite(expected) else None,
        "provably_valid": bool(sharp.proved()[row]),
        "valid_from": to_iso(float(sharp.first[row])),
        "valid_until": to_iso(float(sharp.last[row])),
    }
