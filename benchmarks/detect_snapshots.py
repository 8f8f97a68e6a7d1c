"""Change detection on real snapshots: ``python benchmarks/detect_snapshots.py [--pages FOLDER] [--rounds N]``.

Real pages are HTML responses in WARC files: those of the tests, and those of the large data sets if they are there.
Two measurements, each beside plain comparison of digests:

    again     pages captured twice within 15 minutes. Nobody is known to have edited them, so a reported change is
              counted as a false alarm; the page is named, to be judged by a reader
    edited    hosts with at least three real pages, crawled in rounds, with confirmations as in a live crawl. Known
              edits are made in real markup: a word, a figure, a heading, a passage that comes or goes, a new link. The
              noise is what second captures of real pages differ in, made again at each request:

                  none       the page as it was captured
                  tokens     form ids, session and script tokens, random class names
                  list       tokens, and of the longest list of links only a random half
                  counter    tokens, and a line at the end of the page with the number of its visitors

Recall is the share of edits that the next visit finds. False alarms are changes reported without an edit, as a share of
the visits without one. ``digest`` counts other bytes as a change, ``ratio`` is that of the two counts. About
100 seconds of CPU.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from detect import FOLDERS, SHORTEST, _html_answers
from noisy_sites import Crawl, Dice, rng_of
from selectolax.lexbor import LexborHTMLParser

from recrawl.detect import ChangeCriteria, classify_change, decoded, known_after
from recrawl.detect.body import text_of
from recrawl.errors import InputError
from recrawl.model import Capture, Verdict

MINUTE = 60.0
MOMENTS = 15 * MINUTE
"""Seconds within which two captures of a page are taken to show the same version."""
FEWEST_PAGES, MOST_PAGES = 3, 12
"""Pages of a host: fewer are not crawled, more are left out."""
EDIT_SHARE = 0.3
"""Share of the pages that are edited before each round."""
MOST_WORDS, FEWEST_WORDS = 60, 6
"""Words of a passage that is edited."""
_BLOCKS = "p, li, td, dd, h1, h2, h3, h4"
_ITEMS = 6
"""Links that a list has at least, of which a random half is shown."""
_LIST = "recrawl-benchmark-list"
_TOKENS = re.compile(
    r"""(?<=form_build_id"\ value="form-)[\w-]{20,}"""
    r"""|(?<=theme_token":")[\w-]{20,}"""
    r"""|(?<=view-dom-id-)[0-9a-f]{16,}"""
    r"""|(?<=[?&;])(?:PHPSESSID|sid|jsessionid)=[\w-]{8,}"""
    r"""|(?<=["'=/-])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{24,}(?=["'&\s])""",
    re.VERBOSE | re.IGNORECASE,
)
"""What second captures of the same pages, and other requests of one session, have others for."""
Edit = Callable[[LexborHTMLParser, Dice, Sequence[str]], bool]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, action="append", help="folder with WARC files; may be given again")
    parser.add_argument("--rounds", type=int, default=12, help="visits to each page")
    parser.add_argument("--seeds", type=int, default=1, help="crawls of each host with each noise")
    options = parser.parse_args()
    captures = real_captures(options.pages or FOLDERS)
    if not captures:
        raise SystemExit("no pages in WARC files; --pages names a folder that has some")
    print_captured_again(captures)
    print_edited(captures, options.rounds, options.seeds)


def real_captures(folders: Sequence[Path]) -> dict[str, list[Capture]]:
    """The HTML responses in WARC files by URL, oldest first, each time once."""
    found: dict[str, dict[float, Capture]] = defaultdict(dict)
    for path in sorted(path for folder in folders for path in folder.rglob("*.warc*")):
        for capture in _html_answers(path):
            found[capture.url].setdefault(capture.time, capture)
    return {url: [several[time] for time in sorted(several)] for url, several in found.items()}


# -- captured again


def print_captured_again(captures: dict[str, list[Capture]]) -> None:
    """Count verdicts on pages that were captured twice within moments."""
    pairs = [
        (one, other)
        for several in captures.values()
        for one, other in pairwise(several)
        if other.time - one.time < MOMENTS and _is_readable(one) and _is_readable(other)
    ]
    by_digest = [one for one, other in pairs if decoded(one) != decoded(other)]
    reported = [one.url for one, other in pairs if _verdict(one, other) == Verdict.CHANGED]
    print(f"again: {len(pairs)} real captures at most {MOMENTS / MINUTE:.0f} minutes after another of the same page")
    print(f"  changed by digest {len(by_digest)}, by parts {len(reported)}: {', '.join(reported) or 'none'}")


def _is_readable(capture: Capture) -> bool:
    try:
        decoded(capture)
    except InputError:
        return False
    return True


def _verdict(one: Capture, other: Capture) -> Verdict:
    first = classify_change(one, None, ChangeCriteria())
    return classify_change(other, known_after(first, None), ChangeCriteria()).verdict


# -- known edits


def print_edited(captures: dict[str, list[Capture]], rounds: int, seeds: int) -> None:
    """Crawl real pages with known edits and with noise, host by host."""
    hosts = _pages_by_host(captures)
    pages = sum(map(len, hosts.values()))
    print(f"edited: {pages} real pages of {len(hosts)} hosts ({', '.join(hosts)}), {rounds} visits each")
    heads = ("visits", "edits", "found", "recall", "alarms", "share", "digest", "ratio", "confirmed", "masked")
    print(f"  {'noise':<10}" + "".join(f"{head:>10}" for head in heads))
    missed = Counter[str]()
    for name, noise in NOISE.items():
        whole = EditCounts()
        for host, htmls in hosts.items():
            for seed in range(1, seeds + 1):
                whole.add(_crawl_edited(f"{host}-{name}", htmls, noise, rounds, seed))
        print(f"  {name:<10}{whole.cells()}", flush=True)
        missed += whole.missed
    told = ", ".join(f"{count} × {kind}" for kind, count in missed.most_common()) or "none"
    print(f"  edits that were not found: {told}")


def _pages_by_host(captures: dict[str, list[Capture]]) -> dict[str, list[str]]:
    """The source of some pages of each host that has several."""
    found: dict[str, list[str]] = defaultdict(list)
    for url, several in sorted(captures.items()):
        latest = several[-1]
        if not _is_readable(latest) or len(decoded(latest)) < SHORTEST:
            continue
        html = text_of(decoded(latest), latest.header("content-type"))
        host = url.split("/")[2]
        if html not in found[host] and len(_passages(LexborHTMLParser(html))) >= FEWEST_PAGES:
            found[host].append(html)
    return {host: htmls[:MOST_PAGES] for host, htmls in found.items() if len(htmls) >= FEWEST_PAGES}


@dataclass
class EditCounts:
    """What a crawl made of edits that are known."""

    visits: int = 0
    edits: int = 0
    found: int = 0
    alarms: int = 0
    by_digest: int = 0
    """Visits without an edit that found other bytes than the visit before."""
    confirmations: int = 0
    masked: int = 0
    missed: Counter[str] = field(default_factory=Counter)
    """Edits that were not found, by kind."""

    def add(self, other: EditCounts) -> None:
        """Count another crawl, too."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def cells(self) -> str:
        """One row of the table."""
        quiet = max(1, self.visits - self.edits)
        ratio = f"{self.alarms / self.by_digest:.4f}" if self.by_digest else "-"
        counts = (self.visits, self.edits, self.found, f"{self.found / max(1, self.edits):.4f}", self.alarms)
        more = (f"{self.alarms / quiet:.4f}", self.by_digest, ratio, self.confirmations, self.masked)
        return "".join(f"{value:>10}" for value in (*counts, *more))


def _crawl_edited(name: str, htmls: list[str], noise: Noise, rounds: int, seed: int) -> EditCounts:
    """Crawl the pages of one host in rounds, some of them edited before each."""
    pages = [_EditedPage(html, noise, htmls, number) for number, html in enumerate(htmls)]

    def site(page: int, version: int, seeded: Dice) -> str:
        return pages[page].served(version, seeded)

    site.__name__ = name
    crawl, edits, counts = (
        _RememberingCrawl(site, pages=len(pages), seed=seed),
        rng_of("edits", name, seed),
        EditCounts(),
    )
    crawl.round(0, set())
    for number in range(1, rounds):
        edited = {page for page in crawl.pages if edits.random() < EDIT_SHARE}
        before = dict(crawl.first)
        found = crawl.round(number, edited)
        others = {page for page in crawl.pages if crawl.first[page] != before[page]}
        counts.visits += len(pages)
        counts.edits, counts.found = counts.edits + len(edited), counts.found + len(edited & found)
        counts.alarms, counts.by_digest = counts.alarms + len(found - edited), counts.by_digest + len(others - edited)
        counts.missed += Counter(pages[page].edits[crawl.version[page]] for page in edited - found)
    counts.confirmations, counts.masked = crawl.observations, crawl.noise.masked
    return counts


class _RememberingCrawl(Crawl):
    """A crawl that remembers the bytes of the last visit to each page, without its confirmation."""

    def __init__(self, site: Callable[[int, int, Dice], str], *, pages: int, seed: int) -> None:
        super().__init__(site, pages=pages, seed=seed)
        self.first: dict[int, bytes] = {}

    def capture(self, page: int, time: float) -> Capture:
        """The page as it is now, with new noise."""
        capture = super().capture(page, time)
        if time % 3600.0 == 0.0:  # confirmations are 20 s later
            self.first[page] = capture.raw_body
        return capture


class _EditedPage:
    """A real page in versions, each with one more edit."""

    def __init__(self, html: str, noise: Noise, siblings: Sequence[str], number: int) -> None:
        tree = LexborHTMLParser(html)
        self._items = noise.take_list(tree)
        self._noise, self._number = noise, number
        self._siblings = siblings
        self._versions = [tree.html or ""]
        self.edits = [""]
        """The kind of edit by which each version differs from the one before."""

    def served(self, version: int, seeded: Dice) -> str:
        """A version as one request gets it."""
        while len(self._versions) <= version:
            self._edit()
        return self._noise.applied(self._versions[version], self._items, seeded)

    def _edit(self) -> None:
        """Make the next version."""
        seeded = rng_of("edit", self._number, len(self._versions))
        tree = LexborHTMLParser(self._versions[-1])
        passages = [said for html in self._siblings for said in _passages_of(html)]
        for kind in seeded.permutation(list(EDITS)).tolist():
            if EDITS[kind](tree, seeded, passages):
                self._versions.append(tree.html or "")
                self.edits.append(kind)
                return
        raise SystemExit("a page has nothing to be edited")


_said: dict[str, list[str]] = {}


def _passages_of(html: str) -> list[str]:
    if html not in _said:
        _said[html] = [_text(node) for node in _passages(LexborHTMLParser(html))]
    return _said[html]


def _passages(tree: LexborHTMLParser) -> list[Any]:
    """The elements that hold a passage of text and no other passage."""
    body = tree.body
    if body is None:
        return []
    return [
        node
        for node in body.css(_BLOCKS)
        if FEWEST_WORDS <= len(_text(node).split()) <= MOST_WORDS
        and not node.css(f"script, style, noscript, div, ul, ol, table, {_BLOCKS}")[1:]
    ]


def _text(node: Any) -> str:  # noqa: ANN401 - a selectolax node
    return " ".join(node.text(deep=True).split())


def _pick(nodes: Sequence[Any], seeded: Dice) -> Any:  # noqa: ANN401 - a selectolax node
    return nodes[int(seeded.integers(len(nodes)))]


def _edit_word(tree: LexborHTMLParser, seeded: Dice, passages: Sequence[str]) -> bool:
    """Another word of the same site in a passage."""
    nodes = _passages(tree)
    if not nodes:
        return False
    node, other = _pick(nodes, seeded), _pick([word for said in passages for word in said.split()], seeded)
    words = _text(node).split()
    place = int(seeded.integers(len(words)))
    if words[place].casefold() == other.casefold():
        return False
    node.inner_html = escape(" ".join([*words[:place], other, *words[place + 1 :]]))
    return True


def _edit_figure(tree: LexborHTMLParser, seeded: Dice, _passages_of_site: Sequence[str]) -> bool:
    """Another figure in a passage that has one."""
    nodes = [node for node in _passages(tree) if re.search(r"\b\d{1,4}\b", _text(node))]
    if not nodes:
        return False
    node = _pick(nodes, seeded)
    found = _pick(list(re.finditer(r"\b\d{1,4}\b", _text(node))), seeded)
    text = _text(node)
    node.inner_html = escape(f"{text[: found.start()]}{int(found[0]) + 1}{text[found.end() :]}")
    return True


def _edit_coming(tree: LexborHTMLParser, seeded: Dice, passages: Sequence[str]) -> bool:
    """A passage of another page comes."""
    nodes = _passages(tree)
    if not nodes:
        return False
    _pick(nodes, seeded).insert_after(_element("p", f"{_pick(passages, seeded)} {_pick(passages, seeded)}"))
    return True


def _edit_going(tree: LexborHTMLParser, seeded: Dice, _passages_of_site: Sequence[str]) -> bool:
    """A passage goes, if there are others."""
    nodes = _passages(tree)
    if len(nodes) < 2 * FEWEST_PAGES:
        return False
    _pick(nodes, seeded).decompose()
    return True


def _edit_heading(tree: LexborHTMLParser, seeded: Dice, passages: Sequence[str]) -> bool:
    """Another heading."""
    nodes = [node for node in tree.css("h1, h2, h3") if _text(node)]
    words = _pick(passages, seeded).split()[:5]
    if not nodes or _text(nodes[0]) == " ".join(words):
        return False
    node = _pick(nodes, seeded)
    node.inner_html = escape(" ".join(words))
    return True


def _edit_link(tree: LexborHTMLParser, seeded: Dice, passages: Sequence[str]) -> bool:
    """A link more, in a list that has some."""
    nodes = [node for node in tree.css("li") if node.css_first("a[href]") is not None and not node.css("li")]
    if not nodes:
        return False
    words = " ".join(_pick(passages, seeded).split()[:4])
    link = f"/benchmark/{int(seeded.integers(10**9))}"
    new = LexborHTMLParser(f"<ul><li><a href='{link}'>{escape(words)}</a></li></ul>").css_first("li")
    _pick(nodes, seeded).insert_after(new)
    return True


EDITS: dict[str, Edit] = {
    "word": _edit_word,
    "figure": _edit_figure,
    "passage comes": _edit_coming,
    "passage goes": _edit_going,
    "heading": _edit_heading,
    "link": _edit_link,
}


def _element(tag: str, text: str) -> Any:  # noqa: ANN401 - a selectolax node
    return LexborHTMLParser(f"<{tag}>{escape(text)}</{tag}>").css_first(tag)


# -- noise at each request


@dataclass(frozen=True)
class Noise:
    """What differs at each request."""

    tokens: bool = False
    rotating: bool = False
    counter: bool = False

    def take_list(self, tree: LexborHTMLParser) -> list[str]:
        """The items of the longest list of links, which are taken out of the page; none if there is no such list."""
        if not self.rotating:
            return []
        lists = [node for node in tree.css("ul, ol") if not node.css("ul, ol, p") and len(_links_in(node)) >= _ITEMS]
        if not lists:
            return []
        longest = max(lists, key=lambda node: len(_links_in(node)))
        items = [item.html or "" for item in _links_in(longest)]
        longest.inner_html = f"<!--{_LIST}-->"
        return items

    def applied(self, html: str, items: Sequence[str], seeded: Dice) -> str:
        """A page as one request gets it."""
        if self.tokens:
            html = _TOKENS.sub(lambda found: _other_token(found[0], seeded), html)
        if items:
            chosen = seeded.choice(len(items), len(items) // 2, replace=False).tolist()
            html = html.replace(f"<!--{_LIST}-->", "".join(items[one] for one in chosen))
        if self.counter:
            line = f"<p class=visitors>You are the {int(seeded.integers(10**6)):,}th to read this.</p></body>"
            html = html.replace("</body>", line)
        return html


def _links_in(node: Any) -> list[Any]:  # noqa: ANN401 - a selectolax node
    return [child for child in node.css("li") if child.css_first("a[href]") is not None]


def _other_token(token: str, seeded: Dice) -> str:
    name, equals, value = token.rpartition("=")
    characters = (
        "0123456789abcdef" if re.fullmatch("[0-9a-f]+", value) else "0123456789abcdefghijklmnopqrstuvwxyzABCDEF"
    )
    return name + equals + "".join(seeded.choice(list(characters), len(value)))


NOISE: dict[str, Noise] = {
    "none": Noise(),
    "tokens": Noise(tokens=True),
    "list": Noise(tokens=True, rotating=True),
    "counter": Noise(tokens=True, counter=True),
}


if __name__ == "__main__":
    main()
