"""One version of a page as text: HTML, Turtle, N-Triples, JSON or CSV.

Text holds marks where noise goes; ``with_noise`` fills them for one request. A page without noise has no
marks, and its text depends on the version and its links only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from recrawl.living.dice import Dice, mix
from recrawl.living.prose import PLAIN, TONGUES, Article, Tongue, article, long_date, sentence
from recrawl.living.quirks import Noise, PageQuirks
from recrawl.model import FloatArray
from recrawl.time import to_iso

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


class Link(NamedTuple):
    """A link as its page shows it."""

    href: str
    text: str


class Subject(NamedTuple):
    """All that the text of a page depends on."""

    seed: int
    page: int
    version: int
    url: str
    title: str
    changes: FloatArray
    """Times of the changes up to this version."""
    modified: float
    links: Sequence[Link]
    quirks: PageQuirks

    def tongue(self) -> Tongue:
        """Names in the page's charset; every other UTF-8 page keeps to ASCII."""
        if self.quirks.charset == "utf-8" and mix(self.seed, self.page, 2) % 2:
            return PLAIN
        return TONGUES[self.quirks.charset]


def html(subject: Subject) -> str:
    """A page for people: navigation, dated notes, paragraphs."""
    said = article(subject.seed, subject.page, subject.version, subject.changes, subject.tongue())
    quirks = subject.quirks
    meta = "" if quirks.in_header or quirks.charset == "utf-16" else f'<meta charset="{quirks.charset}">\n'
    links = "".join(f'<li><a href="{escape(link.href)}">{escape(link.text)}</a></li>\n' for link in subject.links)
    banner = f'<aside class="banner"><p>{_BANNER}</p></aside>\n' if Noise.BANNER in quirks.noise else ""
    title = escape(subject.title)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{meta}<title>{title}</title>\n'
        f"{_hidden_nonce(quirks)}</head>\n<body>\n{banner}<nav>\n<ul>\n{links}</ul>\n</nav>\n<main>\n<h1>{title}</h1>\n{_said(said)}</main>\n"
        f"{_odd_noise(subject)}"
        f"<footer>\n<p>All on this page is made up.</p>\n{_clock_line(quirks)}</footer>\n</body>\n</html>\n"
    )


def turtle(subject: Subject) -> str:
    """The page's thing in Turtle."""
    rows = [f"    {predicate} {value} ;" for predicate, value in _facts(subject)]
    comment = f"# served {_CLOCK} {_NONCE}\n" if subject.quirks.noise else ""
    return (
        f"{comment}@prefix dct: <http://purl.org/dc/terms/> .\n@prefix ex: <http://vocabulary.living.test/> .\n\n"
        f"<{subject.url}> a ex:Thing ;\n" + "\n".join(rows)[:-1] + ".\n"
    )


def n_triples(subject: Subject) -> str:
    """The same statements in N-Triples; noise shuffles nothing but adds a comment."""
    names = {"dct:": "http://purl.org/dc/terms/", "ex:": "http://vocabulary.living.test/"}
    lines = [f"<{subject.url}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{names['ex:']}Thing> ."]
    for predicate, value in _facts(subject):
        prefix, _, name = predicate.partition(":")
        lines.append(f"<{subject.url}> <{names[prefix + ':']}{name}> {value} .")
    comment = f"# served {_CLOCK} {_NONCE}\n" if subject.quirks.noise else ""
    return comment + "\n".join(lines) + "\n"


def json_text(subject: Subject) -> str:
    """Readings that change, and the links, as JSON; noise says when it was generated."""
    table: dict[str, object] = {"title": subject.title, "modified": to_iso(subject.modified)}
    if subject.quirks.noise:
        table["generated"] = _CLOCK
        table["request"] = _NONCE
    table["readings"] = [{"station": station, "value": value} for station, value in _readings(subject)]
    table["note"] = sentence(mix(subject.seed, subject.page, subject.version), subject.tongue())
    table["links"] = [link.href for link in subject.links]
    return json.dumps(table, ensure_ascii=False, indent=1).replace("\\u0000", "\x00") + "\n"


def csv_text(subject: Subject) -> str:
    """Readings that change as CSV; noise is a last line that says when it was generated."""
    rows = "".join(f"{station},{value}\r\n" for station, value in _readings(subject))
    noise = f"generated {_CLOCK} {_NONCE},\r\n" if subject.quirks.noise else ""
    return f"station,value\r\n{rows}{noise}"


def with_noise(text: str, *, now: float, key: int) -> str:
    """Fill the marks for one request: the time, a number used once, a banner, and noise that looks like content."""
    dice = Dice(key)
    nonce = f"{dice.below(1 << 60):015x}"
    text = text.replace(_CLOCK, to_iso(now)).replace(_NONCE, nonce).replace(_BANNER, dice.pick(_BANNERS))
    text = text.replace(_COUNTER, f"{10_000 + dice.below(90_000):,}")
    text = text.replace(_QUOTE, f"{dice.pick(_QUOTED)} {dice.pick(_SAYS)}.")
    before, mark, rest = text.partition(_RELATED)
    if not mark:
        return text
    box, _, after = rest.partition(_RELATED)
    items = box.splitlines(keepends=True)
    chosen = "".join(items.pop(dice.below(len(items))) for _ in range(min(_RELATED_LINKS, len(items))))
    return before + chosen + after


def _odd_noise(subject: Subject) -> str:
    """What differs on each request and says so nowhere. Until a request comes, all links are in the box."""
    noise, parts = subject.quirks.noise, []
    if Noise.RELATED in noise and subject.links:
        links = "".join(
            f'<li><a href="{escape(link.href)}">More on {escape(link.text)}</a></li>\n' for link in subject.links
        )
        parts.append(
            f'<div class="more">\n<h3>You may also like</h3>\n<ul>\n{_RELATED}{links}{_RELATED}</ul>\n</div>\n'
        )
    if Noise.QUOTE in noise:
        parts.append(f'<blockquote class="wisdom"><p>{_QUOTE}</p></blockquote>\n')
    if Noise.COUNTER in noise:
        parts.append(f'<p class="readers">Read by {_COUNTER} people so far.</p>\n')
    return "".join(parts)


def _hidden_nonce(quirks: PageQuirks) -> str:
    return f'<meta name="csrf-token" content="{_NONCE}">\n' if Noise.NONCE in quirks.noise else ""


def _clock_line(quirks: PageQuirks) -> str:
    return f"<p>Page served at {_CLOCK}</p>\n" if Noise.CLOCK in quirks.noise else ""


def _said(said: Article) -> str:
    notes = "".join(
        f'<p><time datetime="{to_iso(when)}">{long_date(when)}</time> {escape(what)}</p>\n' for when, what in said.notes
    )
    body = "".join(f"<p>{escape(paragraph)}</p>\n" for paragraph in said.paragraphs)
    return f'<section class="latest">\n<h2>Latest</h2>\n{notes}</section>\n{body}' if notes else body


def _facts(subject: Subject) -> list[tuple[str, str]]:
    """Predicate (prefixed) and object of each statement about the page's thing."""
    moment = f'"{to_iso(subject.modified)}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    facts = [("dct:title", json.dumps(subject.title, ensure_ascii=False)), ("dct:modified", moment)]
    facts += [(f"ex:{station}", f'"{value}"') for station, value in _readings(subject)]
    facts += [("dct:references", f"<{link.href}>") for link in subject.links]
    return facts


def _readings(subject: Subject) -> list[tuple[str, int]]:
    """Values of a few stations; each version moves one of them, in turn."""
    turns = ((subject.version - place + _ROWS) // _ROWS for place in range(_ROWS))
    return [
        (f"station-{place}", 1000 * turn + mix(subject.seed, subject.page, place, turn) % 1000)
        for place, turn in enumerate(turns)
    ]
