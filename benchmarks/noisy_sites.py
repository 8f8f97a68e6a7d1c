"""Made-up sites with noise that no fixed rule knows, and a crawl of them that looks twice as an engine does.

``benchmarks/detect.py`` counts on them what is found and missed; the tests of learned noise hold the floor of it.
"""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

import numpy as np

from recrawl.detect import ChangeCriteria, ChangeResult, PageState, classify_change, known_after
from recrawl.detect.detector import classify_confirmed
from recrawl.detect.noise.learned_noise import NoiseEvidence, audit_share, evidence, wants_confirmation
from recrawl.model import Capture, Verdict

HOST, HOUR = 7, 3600.0

Dice = np.random.Generator
URL = "http://site.example/{}"
WORDS = [
    "river", "harbour", "market", "council", "winter", "bridge", "garden", "library", "school", "ferry", "tower",
    "orchard", "quarry", "meadow", "station", "lantern", "ballad", "harvest", "compass", "anchor",
]  # fmt: skip
QUOTES = [f"{one.title()} and {other} never meet twice." for one, other in zip(WORDS[:6], WORDS[6:12], strict=True)]


def rng_of(*seed: object) -> Dice:
    """Chance that depends on the seed alone, on every machine."""
    return np.random.default_rng(crc32(repr(seed).encode()))


def prose(seed: object, sentences: int = 4) -> str:
    """Sentences that are the same for the same seed."""
    seeded = rng_of(seed)
    return " ".join(f"The {' '.join(seeded.choice(WORDS, 9))}." for _ in range(sentences))


def article(page: int, version: int, paragraphs: int = 5) -> str:
    """Paragraphs of which each version rewrites one."""
    turns = ((version + paragraphs - 1 - place) // paragraphs for place in range(paragraphs))
    return "".join(f"<p>{prose((page, place, turn))}</p>" for place, turn in enumerate(turns))


def query_count(page: int, version: int, seeded: Dice) -> str:
    """What the page cost to make, in its footer."""
    return (
        f"<body class='single postid-{page}'><div id=content><article class='post-{page} hentry'>"
        f"<div class=entry-content>{article(page, version)}</div></article></div><footer class=site-footer>"
        f"<p class=stats>{seeded.integers(30, 60)} queries, {seeded.random():.3f} s, {seeded.integers(9000)} kB</p>"
    )


def view_count(page: int, version: int, seeded: Dice) -> str:
    """How often the page was read, in a list with lasting items."""
    return (
        f"<div class=mw-body><h1>Page {page}</h1>{article(page, version)}</div><ul id=footer-info>"
        f"<li>This page has been accessed {seeded.integers(10_000, 99_999):,} times.</li><li>Text is free.</li></ul>"
    )


def related_box(page: int, version: int, seeded: Dice) -> str:
    """Four articles of 200."""
    chosen = seeded.choice(200, 4, replace=False).tolist()
    items = "".join(f"<li><a href='/story-{prose(one, 1)[:9]}-{one}'>{prose(one, 1)}</a></li>" for one in chosen)
    return (
        f"<main>{article(page, version)}</main><aside class='block block-views'><ul class=related>{items}</ul></aside>"
    )


def box_of_few(page: int, version: int, seeded: Dice) -> str:
    """Three of four articles, in any order."""
    items = "".join(
        f"<li><a href='/more/{one}'>Part {one} of all</a></li>" for one in seeded.choice(4, 3, replace=False)
    )
    return f"<main>{article(page, version)}</main><div class=more><ul>{items}</ul></div>"


def shuffled(page: int, version: int, seeded: Dice) -> str:
    """The same paragraphs in any order."""
    voices = "".join(f"<p>{QUOTES[one]}</p>" for one in seeded.permutation(5))
    return f"<main>{article(page, version)}</main><section class=voices>{voices}</section>"


def quote(page: int, version: int, seeded: Dice) -> str:
    """One proverb of six."""
    motto = f"<blockquote class=motto><p>{seeded.choice(QUOTES)}</p></blockquote>"
    return f"{motto}<div class=text>{article(page, version)}</div>"


def online_now(page: int, version: int, seeded: Dice) -> str:
    """Who else is here."""
    who = f"{seeded.integers(3, 90)} guests and {seeded.choice(WORDS)}{seeded.integers(99)}"
    return f"<div class=forum>{article(page, version)}</div><div class=statistics>Now here: {who}</div>"


def plain_counter(page: int, version: int, seeded: Dice) -> str:
    """No classes at all, and the counter is a paragraph as all others are."""
    return f"<h1>Page {page}</h1>{article(page, version)}<p>You are guest no. {seeded.integers(10**6)}</p>"


def session_links(page: int, version: int, seeded: Dice) -> str:
    """Links with a session id."""
    key = f"{seeded.integers(10**9):x}"
    return f"<nav><a href='/home?s={key}'>Home</a> <a href='/map?s={key}'>Map</a></nav>{article(page, version)}"


def hidden_token(page: int, version: int, seeded: Dice) -> str:
    """A token that nobody sees."""
    return f"<form><input type=hidden name=k value={seeded.integers(10**9)}></form>{article(page, version)}"


def sometimes_a_notice(page: int, version: int, seeded: Dice) -> str:
    """A notice on every other request."""
    notice = "<div class=promo><p>Become a member today!</p></div>" if seeded.random() < 0.5 else ""
    return f"{notice}<div class=text>{article(page, version)}</div>"


def quiet(page: int, version: int, _rng: Dice) -> str:
    """An article; nothing is noise."""
    return f"<div class=text>{article(page, version)}</div><footer class=f><p>All rights reserved 2026.</p></footer>"


def news_list(_page: int, version: int, _rng: Dice) -> str:
    """Each version adds an item to a list of twelve; nothing is noise."""
    items = "".join(
        f"<li><a href='/news/{number}'>{prose(('item', number), 1)}</a></li>"
        for number in range(version + 12, version, -1)
    )
    return f"<h1>News</h1><ul class=news>{items}</ul><p class=headline>{prose(('head', version), 1)}</p>"


def live_figure(page: int, version: int, _rng: Dice) -> str:
    """A number that is content: it moves with each version, and only then."""
    figure = rng_of(page, version).integers(10**6)
    return f"<h1>Station {page}</h1><p class=reading>Level today: {figure} millimetres</p><p>{prose(page)}</p>"


Page = Callable[[int, int, Dice], str]
NOISY: tuple[Page, ...] = (
    query_count,
    view_count,
    related_box,
    box_of_few,
    shuffled,
    quote,
    online_now,
    plain_counter,
    session_links,
    hidden_token,
    sometimes_a_notice,
)
QUIET: tuple[Page, ...] = (quiet, news_list, live_figure)


def teaser(_page: int, _version: int, seeded: Dice) -> str:
    """Four links of 40, after any text."""
    links = "".join(
        f"<li><a href='/t{one}'>{prose(('t', one), 1)}</a></li>" for one in seeded.choice(40, 4, replace=False)
    )
    return f"<aside class=teaser><ul>{links}</ul></aside>"


def variants(_page: int, _version: int, seeded: Dice) -> str:
    """One of two offers."""
    return f"<div class=offer><p>{('Order now and save.', 'Members pay less.')[seeded.integers(2)]}</p></div>"


def reader_count(_page: int, _version: int, seeded: Dice) -> str:
    """How many have read it."""
    return f"<footer class=f><p>Read by {seeded.integers(10**6)} people</p></footer>"


BESIDE: dict[str, Page | None] = {
    "none": None,
    "counter": reader_count,
    "two variants": variants,
    "rotating teaser": teaser,
}
"""Noise that can stand beside any text."""


def answer(url: str, time: float, html: str) -> Capture:
    """The page as a server sends it."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
    return Capture(url, time, 200, head, html.encode())


class Crawl:
    """Visits pages of one site in turn and observations twice where the book asks for it, as an engine does."""

    def __init__(self, site: Page, *, confirms_changes: bool = True, pages: int = 6, seed: int = 1) -> None:
        self.site = site
        self.confirms_changes = confirms_changes
        self.pages = range(pages)
        self.seeded = rng_of(site.__name__, seed)
        self.chance = rng_of("audits", site.__name__, seed)
        self.version = [0] * pages
        self.known: list[PageState | None] = [None] * pages
        self.evidence = NoiseEvidence.empty()
        self.noise = self.evidence.noise_of(HOST)
        self.visits = self.observations = 0

    def round(self, number: int, edited: set[int]) -> set[int]:
        """Edit some pages, then visit all; those that were found changed."""
        for page in edited:
            self.version[page] += 1
        return {page for page in self.pages if self.visit(page, HOUR * number).verdict == Verdict.CHANGED}

    def capture(self, page: int, time: float) -> Capture:
        """The page as it is now, with new noise."""
        url = URL.format(page)
        return answer(url, time, self.site(page, self.version[page], self.seeded))

    def visit(self, page: int, time: float) -> ChangeResult:
        """Ask for a page, twice if need be, and learn from it."""
        self.visits += 1
        known, first = self.known[page], self.capture(page, time)
        noise = self.noise
        standards = ChangeCriteria(
            mask=noise.mask_of(page + 1),
            watched=noise.watched,
            content=noise.content_of(page + 1),
            probable=noise.probable_on(page + 1),
            suspects=noise.suspects_on(page + 1),
        )
        judged = classify_change(first, known, standards)
        judgements = [judged]
        if self.confirms_changes and self.wants_confirmation(page + 1, judged):
            self.observations += 1
            judgements = list(classify_confirmed(first, self.capture(page, time + 20), known, standards))
        for one in judgements:
            known = known_after(one, known)
            if one.compared:
                more = evidence(HOST, page + 1, time, one.compared, self.noise)
                self.evidence = self.evidence.plus(more)
        self.noise = self.evidence.noise_of(HOST, unconfirmed=not self.confirms_changes)
        self.known[page] = known
        return judgements[0]

    def wants_confirmation(self, page: int, judged: ChangeResult) -> bool:
        """Whether the evidence asks for a confirmation, or this is one of the visits that are audited."""
        changed = judged.verdict == Verdict.CHANGED
        if changed and wants_confirmation(
            self.noise, page, judged.compared, observations=self.observations, visits=self.visits
        ):
            return True
        return bool(self.chance.random() < audit_share(self.noise, page, judged.compared, changed=changed))


def trial(crawl: Crawl, edits: Dice, rounds: int = 20) -> tuple[int, int, int]:
    """Changes found, changes that were none, and changes missed, over rounds with random edits."""
    crawl.round(0, set())
    right = wrong = missed = 0
    for number in range(1, rounds):
        edited = {page for page in crawl.pages if edits.random() < 0.3}
        found = crawl.round(number, edited)
        right, wrong, missed = right + len(found & edited), wrong + len(found - edited), missed + len(edited - found)
    return right, wrong, missed
