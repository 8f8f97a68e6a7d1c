"""One version of a page as text: HTML, Turtle, N-Triples, JSON or CSV.

Text holds marks where noise goes; ``with_noise`` fills them for one request. A page without noise has no
marks, and its text depends on the version and its links only.

What pages say: readable sentences that depend on a key, and how they change from version to version.

A page has a few paragraphs of a few sentences. Change number v rewrites one sentence: paragraph v mod P,
and in it the sentences in turn. Now and then a change is large and rewrites all of them. Half of the
pages also open with dated notes about their latest changes. So two versions in a row never read the same,
and the text of a version is known without going through the ones before.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple

from recrawl.model import FloatArray
from recrawl.time import to_iso
from recrawl_testweb.fault_injection import PageFaults, PageNoise
from recrawl_testweb.seeded_rng import SeededRng, mix

NOTES = 3
"""Dated notes a page shows at most."""


class CharsetNames(NamedTuple):
    """Names that a charset can write, and that look wrong when decoded as another one."""

    people: Sequence[str]
    places: Sequence[str]


PLAIN = CharsetNames(
    ("Anna Berg", "Tom Reed", "Ruth Okoro", "Peter Lang", "Mina Shah", "Carl Young", "Ines Duarte", "Olga Petrova"),
    ("the old town", "Northbridge", "the lower valley", "Eastfield", "the harbour district", "Millbrook"),
)
_UNICODE = CharsetNames(
    ("Zoë Łukasik", "Ольга Петрова", "José Ñúñez", "Þóra Ægisdóttir", "李小龙", "Νίκος Ανδρέου"),
    ("Kraków", "Αθήνα", "Reykjavík", "Москва", "São Paulo", "東京"),
)
_WESTERN = CharsetNames(
    ("Zoë Brûlé", "José Núñez", "Jürgen Weiß", "Søren Ødegård", "Françoise Lefèvre"),
    ("Málaga", "Besançon", "Tromsø", "Würzburg", "São Luís"),
)
_WINDOWS = CharsetNames(
    ("Zoë “Bee” Brûlé", "Šimon’s brother Žan", "Jürgen Weiß – the elder", "Françoise Œuvrard"),
    ("Málaga’s market", "the “Grand Café”", "Žilina", "the €2 shop"),
)
_JAPANESE = CharsetNames(
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


def article(seed: int, page: int, version: int, changes: FloatArray, tongue: CharsetNames) -> Article:
    """What a page says in a version. ``changes`` are the times of its changes up to then, ascending."""
    seeded = SeededRng(seed, page)
    paragraphs, dated, phase = 3 + seeded.below(4), seeded.below(2) == 0, seeded.below(9)
    large = (version + phase) // 9
    key = mix(seed, page, large)
    body = tuple(
        _paragraph(key, slot, (version - slot + paragraphs) // paragraphs, tongue) for slot in range(paragraphs)
    )
    if not dated:
        return Article((), body)
    latest = range(version, max(version - NOTES, 0), -1)
    return Article(tuple((float(changes[v - 1]), sentence(mix(seed, page, -v), tongue)) for v in latest), body)


def sentence(key: int, tongue: CharsetNames) -> str:
    """One sentence, always the same for the same key.

    >>> sentence(7, PLAIN) == sentence(7, PLAIN), sentence(7, PLAIN).endswith(".")
    (True, True)
    """
    seeded = SeededRng(key)
    reason = seeded.pick(_REASONS)
    return seeded.pick(_SHAPES).format(
        person=seeded.pick(tongue.people),
        place=seeded.pick(tongue.places),
        thing=seeded.pick(_THINGS),
        act=seeded.pick(_ACTS),
        reason=reason,
        reason_capital=reason.capitalize(),
        number=f"{seeded.below(90_000) + 100:,}",
    )


def long_date(when: float) -> str:
    """A date and time as a reader sees it.

    >>> long_date(0.0)
    '1 January 1970, 00:00:00'
    """
    moment = datetime.fromtimestamp(when, UTC)
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}, {moment:%H:%M:%S}"


def _paragraph(key: int, slot: int, edits: int, tongue: CharsetNames) -> str:
    count = 2 + mix(key, slot) % 3
    turns = ((edits - place + count) // count for place in range(count))
    return " ".join(sentence(mix(key, slot, place, turn), tongue) for place, turn in enumerate(turns))


_CLOCK, _NONCE, _BANNER = "\x00clock\x00", "\x00nonce\x00", "\x00banner\x00"
_BANNERS = (
    "Fresh bread every morning at the corner bakery.",
    "Win two tickets for the harbour concert!",
    "Learn the accordion in ten evenings.",
    "Umbrellas, repaired while you wait.",
    "This space could be yours.",
)
_RELATED, _COUNTER, _QUOTE = "\x00related\x00", "\x00counter\x00", "\x00quote\x00"
_RELATED_LINKS = 3
_QUOTED = (
    "The tide",
    "A closed door",
    "Good bread",
    "The second bell",
    "An honest ladder",
    "Slow rain",
    "A borrowed coat",
)
_SAYS = (
    "waits for nobody",
    "teaches patience",
    "is half the work",
    "asks no questions",
    "has two ends",
    "knows the way",
)
_ROWS = 12
"""Rows of a CSV page and readings of a JSON page."""


class PageLink(NamedTuple):
    """A link as its page shows it."""

    href: str
    text: str


class PageSubject(NamedTuple):
    """All that the text of a page depends on."""

    seed: int
    page: int
    version: int
    url: str
    title: str
    changes: FloatArray
    """Times of the changes up to this version."""
    modified: float
    links: Sequence[PageLink]
    fault_profile: PageFaults

    def tongue(self) -> CharsetNames:
        """Names in the page's charset; every other UTF-8 page keeps to ASCII."""
        if self.fault_profile.charset == "utf-8" and mix(self.seed, self.page, 2) % 2:
            return PLAIN
        return TONGUES[self.fault_profile.charset]


def html(subject: PageSubject) -> str:
    """A page for people: navigation, dated notes, paragraphs."""
    said = article(subject.seed, subject.page, subject.version, subject.changes, subject.tongue())
    fault_profile = subject.fault_profile
    meta = (
        ""
        if fault_profile.in_header or fault_profile.charset == "utf-16"
        else f'<meta charset="{fault_profile.charset}">\n'
    )
    links = "".join(f'<li><a href="{escape(link.href)}">{escape(link.text)}</a></li>\n' for link in subject.links)
    banner = f'<aside class="banner"><p>{_BANNER}</p></aside>\n' if PageNoise.BANNER in fault_profile.noise else ""
    title = escape(subject.title)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{meta}<title>{title}</title>\n'
        f"{_hidden_nonce(fault_profile)}</head>\n<body>\n{banner}<nav>\n<ul>\n{links}</ul>\n</nav>\n<main>\n<h1>{title}</h1>\n{_said(said)}</main>\n"
        f"{_odd_noise(subject)}"
        f"<footer>\n<p>All on this page is made up.</p>\n{_clock_line(fault_profile)}</footer>\n</body>\n</html>\n"
    )


def turtle(subject: PageSubject) -> str:
    """The page's thing in Turtle."""
    rows = [f"    {predicate} {value} ;" for predicate, value in _facts(subject)]
    comment = f"# served {_CLOCK} {_NONCE}\n" if subject.fault_profile.noise else ""
    return (
        f"{comment}@prefix dct: <http://purl.org/dc/terms/> .\n@prefix ex: <http://vocabulary.living.test/> .\n\n"
        f"<{subject.url}> a ex:Thing ;\n" + "\n".join(rows)[:-1] + ".\n"
    )


def n_triples(subject: PageSubject) -> str:
    """The same statements in N-Triples; noise shuffles nothing but adds a comment."""
    names = {"dct:": "http://purl.org/dc/terms/", "ex:": "http://vocabulary.living.test/"}
    lines = [f"<{subject.url}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{names['ex:']}Thing> ."]
    for predicate, value in _facts(subject):
        prefix, _, name = predicate.partition(":")
        lines.append(f"<{subject.url}> <{names[prefix + ':']}{name}> {value} .")
    comment = f"# served {_CLOCK} {_NONCE}\n" if subject.fault_profile.noise else ""
    return comment + "\n".join(lines) + "\n"


def json_text(subject: PageSubject) -> str:
    """Readings that change, and the links, as JSON; noise says when it was generated."""
    table: dict[str, object] = {"title": subject.title, "modified": to_iso(subject.modified)}
    if subject.fault_profile.noise:
        table["generated"] = _CLOCK
        table["request"] = _NONCE
    table["readings"] = [{"station": station, "value": value} for station, value in _readings(subject)]
    table["note"] = sentence(mix(subject.seed, subject.page, subject.version), subject.tongue())
    table["links"] = [link.href for link in subject.links]
    return json.dumps(table, ensure_ascii=False, indent=1).replace("\\u0000", "\x00") + "\n"


def csv_text(subject: PageSubject) -> str:
    """Readings that change as CSV; noise is a last line that says when it was generated."""
    rows = "".join(f"{station},{value}\r\n" for station, value in _readings(subject))
    noise = f"generated {_CLOCK} {_NONCE},\r\n" if subject.fault_profile.noise else ""
    return f"station,value\r\n{rows}{noise}"


def with_noise(text: str, *, now: float, key: int) -> str:
    """Fill the marks for one request: the time, a number used once, a banner, and noise that looks like content."""
    seeded = SeededRng(key)
    nonce = f"{seeded.below(1 << 60):015x}"
    text = text.replace(_CLOCK, to_iso(now)).replace(_NONCE, nonce).replace(_BANNER, seeded.pick(_BANNERS))
    text = text.replace(_COUNTER, f"{10_000 + seeded.below(90_000):,}")
    text = text.replace(_QUOTE, f"{seeded.pick(_QUOTED)} {seeded.pick(_SAYS)}.")
    before, mark, rest = text.partition(_RELATED)
    if not mark:
        return text
    box, _, after = rest.partition(_RELATED)
    items = box.splitlines(keepends=True)
    chosen = "".join(items.pop(seeded.below(len(items))) for _ in range(min(_RELATED_LINKS, len(items))))
    return before + chosen + after


def _odd_noise(subject: PageSubject) -> str:
    """What differs on each request and says so nowhere. Until a request comes, all links are in the box."""
    noise, parts = subject.fault_profile.noise, []
    if PageNoise.RELATED in noise and subject.links:
        links = "".join(
            f'<li><a href="{escape(link.href)}">More on {escape(link.text)}</a></li>\n' for link in subject.links
        )
        parts.append(
            f'<div class="more">\n<h3>You may also like</h3>\n<ul>\n{_RELATED}{links}{_RELATED}</ul>\n</div>\n'
        )
    if PageNoise.QUOTE in noise:
        parts.append(f'<blockquote class="wisdom"><p>{_QUOTE}</p></blockquote>\n')
    if PageNoise.COUNTER in noise:
        parts.append(f'<p class="readers">Read by {_COUNTER} people so far.</p>\n')
    return "".join(parts)


def _hidden_nonce(fault_profile: PageFaults) -> str:
    return f'<meta name="csrf-token" content="{_NONCE}">\n' if PageNoise.NONCE in fault_profile.noise else ""


def _clock_line(fault_profile: PageFaults) -> str:
    return f"<p>Page served at {_CLOCK}</p>\n" if PageNoise.CLOCK in fault_profile.noise else ""


def _said(said: Article) -> str:
    notes = "".join(
        f'<p><time datetime="{to_iso(when)}">{long_date(when)}</time> {escape(what)}</p>\n' for when, what in said.notes
    )
    body = "".join(f"<p>{escape(paragraph)}</p>\n" for paragraph in said.paragraphs)
    return f'<section class="latest">\n<h2>Latest</h2>\n{notes}</section>\n{body}' if notes else body


def _facts(subject: PageSubject) -> list[tuple[str, str]]:
    """Predicate (prefixed) and object of each statement about the page's thing."""
    moment = f'"{to_iso(subject.modified)}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    facts = [("dct:title", json.dumps(subject.title, ensure_ascii=False)), ("dct:modified", moment)]
    facts += [(f"ex:{station}", f'"{value}"') for station, value in _readings(subject)]
    facts += [("dct:references", f"<{link.href}>") for link in subject.links]
    return facts


def _readings(subject: PageSubject) -> list[tuple[str, int]]:
    """Values of a few stations; each version moves one of them, in turn."""
    turns = ((subject.version - place + _ROWS) // _ROWS for place in range(_ROWS))
    return [
        (f"station-{place}", 1000 * turn + mix(subject.seed, subject.page, place, turn) % 1000)
        for place, turn in enumerate(turns)
    ]
