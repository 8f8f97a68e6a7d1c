"""What pages say: readable sentences that depend on a key, and how they change from version to version.

A page has a few paragraphs of a few sentences. Change number v rewrites one sentence: paragraph v mod P,
and in it the sentences in turn. Every so often a change is large and rewrites all of them. Half of the
pages also open with dated notes about their latest changes. So two versions in a row never read the same,
and the text of a version is known without going through the ones before.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from recrawl.living.dice import Dice, mix
from recrawl.model import FloatArray

NOTES = 3
"""Dated notes a page shows at most."""


class Tongue(NamedTuple):
    """Names that a charset can write, and that look wrong when decoded as another one."""

    people: Sequence[str]
    places: Sequence[str]


PLAIN = Tongue(
    ("Anna Berg", "Tom Reed", "Ruth Okoro", "Peter Lang", "Mina Shah", "Carl Young", "Ines Duarte", "Olga Petrova"),
    ("the old town", "Northbridge", "the lower valley", "Eastfield", "the harbour district", "Millbrook"),
)
_UNICODE = Tongue(
    ("Zoë Łukasik", "Ольга Петрова", "José Ñúñez", "Þóra Ægisdóttir", "李小龙", "Νίκος Ανδρέου"),
    ("Kraków", "Αθήνα", "Reykjavík", "Москва", "São Paulo", "東京"),
)
_WESTERN = Tongue(
    ("Zoë Brûlé", "José Núñez", "Jürgen Weiß", "Søren Ødegård", "Françoise Lefèvre"),
    ("Málaga", "Besançon", "Tromsø", "Würzburg", "São Luís"),
)
_WINDOWS = Tongue(
    ("Zoë “Bee” Brûlé", "Šimon’s brother Žan", "Jürgen Weiß – the elder", "Françoise Œuvrard"),
    ("Málaga’s market", "the “Grand Café”", "Žilina", "the €2 shop"),
)
_JAPANESE = Tongue(
    ("山田太郎", "佐藤花子", "鈴木一郎", "高橋ゆき"),
    ("東京", "大阪の市場", "京都", "北海道"),
)
TONGUES = {
    "utf-8": _UNICODE,
    "utf-16": _UNICODE,
    "iso-8859-1": _WESTERN,
    "windows-1252": _WINDOWS,
    "shift_jis": _JAPANESE,
}
"""By charset; a page in another one, or in plain ASCII, uses ``PLAIN``."""

_THINGS = (
    "reading room", "ferry timetable", "garden wall", "annual report", "night train", "visitor centre", "water meter",
    "stone bridge", "choir rehearsal", "bicycle path", "market hall", "weather mast", "school kitchen",
    "map collection", "swimming pool", "clock tower", "seed library", "fire station", "tram depot", "film archive",
)  # fmt: skip
_ACTS = (
    "has been repaired", "will open a week early", "was measured again", "is closed for cleaning", "won a small prize",
    "needs two more volunteers", "was moved to the first floor", "has a new timetable", "attracted more visitors",
    "was discussed by the council", "is on loan until spring", "passed its inspection", "got a fresh coat of paint",
)  # fmt: skip
_REASONS = (
    "because of the dry summer", "after a long debate", "thanks to a private gift", "in spite of the rain",
    "as the law now requires", "ahead of the festival", "following a survey of readers",
    "for the first time since 1987",
)  # fmt: skip
_SHAPES = (
    "{person} writes that the {thing} in {place} {act} {reason}.",
    "The {thing} {act}, and {number} people came to see it in {place}.",
    "In {place} the {thing} {act}; {person} counted {number} entries.",
    "{reason_capital}, the {thing} {act}, says {person}.",
    "About {number} letters reached {person} when the {thing} in {place} {act}.",
    "The budget for the {thing} in {place} is now {number}, {person} reports, since it {act}.",
)
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


class Article(NamedTuple):
    """The readable part of one version of a page."""

    notes: tuple[tuple[float, str], ...]
    """When and what, newest first."""
    paragraphs: tuple[str, ...]


def article(seed: int, page: int, version: int, changes: FloatArray, tongue: Tongue) -> Article:
    """What a page says in a version. ``changes`` are the times of its changes up to then, ascending."""
    dice = Dice(seed, page)
    paragraphs, dated, phase = 3 + dice.below(4), dice.below(2) == 0, dice.below(9)
    large = (version + phase) // 9
    key = mix(seed, page, large)
    body = tuple(
        _paragraph(key, slot, (version - slot + paragraphs) // paragraphs, tongue) for slot in range(paragraphs)
    )
    if not dated:
        return Article((), body)
    latest = range(version, max(version - NOTES, 0), -1)
    return Article(tuple((float(changes[v - 1]), sentence(mix(seed, page, -v), tongue)) for v in latest), body)


def sentence(key: int, tongue: Tongue) -> str:
    """One sentence, always the same for the same key.

    >>> sentence(7, PLAIN) == sentence(7, PLAIN), sentence(7, PLAIN).endswith(".")
    (True, True)
    """
    dice = Dice(key)
    reason = dice.pick(_REASONS)
    return dice.pick(_SHAPES).format(
        person=dice.pick(tongue.people),
        place=dice.pick(tongue.places),
        thing=dice.pick(_THINGS),
        act=dice.pick(_ACTS),
        reason=reason,
        reason_capital=reason.capitalize(),
        number=f"{dice.below(90_000) + 100:,}",
    )


def long_date(when: float) -> str:
    """A date and time as a reader sees it.

    >>> long_date(0.0)
    '1 January 1970, 00:00:00'
    """
    moment = datetime.fromtimestamp(when, UTC)
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}, {moment:%H:%M:%S}"


def _paragraph(key: int, slot: int, edits: int, tongue: Tongue) -> str:
    count = 2 + mix(key, slot) % 3
    turns = ((edits - place + count) // count for place in range(count))
    return " ".join(sentence(mix(key, slot, place, turn), tongue) for place, turn in enumerate(turns))
