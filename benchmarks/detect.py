"""How well, and how fast, changes are told: ``python benchmarks/detect.py [--pages FOLDER] [--seeds N] [--part P]``.

    sample   the error of stored samples of shingles beside the exact Jaccard of all of them, by size of the sample:
             real pages, each beside edited copies and beside the page after it
    noise    made-up sites with and without noise: changes found, called so wrongly, overlooked, and second looks
    judge    milliseconds of the processor a page, by kind of visit, in machine code and without

Real pages are HTML answers in WARC files: those of the tests, and those of the large data sets if they are there.
The ratio of the judge is that of the two ways in this process, in turns; links were met before in both.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from time import process_time

import numpy as np
from noisy_sites import NOISY, QUIET, Crawl, Page, dice_of, trial
from selectolax.lexbor import LexborHTMLParser

from recrawl.detect import Known, Standards, decoded, judge, known_after
from recrawl.detect.body import text_of
from recrawl.detect.html import read_html
from recrawl.detect.shingle_terms import WIDTH
from recrawl.detect.shingles import shingles, similarity
from recrawl.errors import InputError
from recrawl.formats.captures import RecordKind, Report
from recrawl.formats.warc_reader import index_warc, read_capture
from recrawl.model import Capture, Verdict
from recrawl.model.compiled import can_compile

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (ROOT / "tests" / "data" / "formats", ROOT.parent / "shared" / "data" / "formats" / "warc")
SIZES = (64, 128, 256, 512, 1024)
EVERY = 1 << 24
"""More shingles than any text has."""
SHORTEST = 2_000
"""Bytes of a page below which it is an error message, not a page."""
EDITS = (0.002, 0.01, 0.05, 0.2)
"""Shares of the words of a page that an edited copy has others for."""
HOUR = 3600.0
REPEATS = 3
MOST_JUDGED = 80
"""Pages that the judge is timed on, evenly spread over all."""


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, action="append", help="folder with WARC files; may be given again")
    parser.add_argument("--seeds", type=int, default=10, help="crawls of each made-up site")
    parser.add_argument("--part", choices=("sample", "noise", "judge"), help="only this")
    options = parser.parse_args()
    folders = options.pages or FOLDERS
    if options.part in (None, "sample"):
        _sample(folders)
    if options.part in (None, "noise"):
        _noise(options.seeds)
    if options.part in (None, "judge"):
        _judge(folders)


# -- real pages


def real_pages(folders: tuple[Path, ...]) -> list[Capture]:
    """The HTML pages in WARC files, each once, as they came over the wire."""
    found: dict[bytes, Capture] = {}
    for path in sorted(path for folder in folders for path in folder.rglob("*.warc*")):
        for capture in _html_answers(path):
            try:
                body = decoded(capture)
            except InputError:
                continue
            if len(body) >= SHORTEST:
                found.setdefault(body, capture)
    if not found:
        raise SystemExit(f"no pages in {', '.join(map(str, folders))}; --pages names a folder with WARC files")
    return list(found.values())


def _html_answers(path: Path) -> Iterator[Capture]:
    for batch in index_warc(path, Report()):
        for row in batch.to_pylist():
            is_page = row["kind"] == RecordKind.RESPONSE and row["mime"] == "text/html" and row["status"] == 200
            if is_page and row["offset"] >= 0:
                try:
                    yield read_capture(path, row["offset"])
                except InputError:
                    continue  # some of these files are broken on purpose


# -- the stored sample


def _sample(folders: tuple[Path, ...]) -> None:
    texts = [text for text in map(_text, real_pages(folders)) if len(text.split()) > WIDTH]
    pairs = [(text, other) for text in texts for other in _copies(text)]
    pairs += pairwise(texts)
    exact, union = (np.array(column) for column in zip(*(_jaccard(*pair) for pair in pairs), strict=True))
    numbers = [(shingles(one, EVERY), shingles(other, EVERY)) for one, other in pairs]
    print(f"sample: {len(pairs):,} pairs of {len(texts):,} real pages, and the error of the share in common:")
    print("exact where both together have no more passages than numbers are kept; of longer pairs")
    print(f"  {'numbers':>9}{'pairs':>8}{'root mean square':>18}{'at most':>9}{'where .85 to .95 is in common':>32}")
    for size in SIZES:
        error = np.array([similarity(one[:size], other[:size], size) for one, other in numbers]) - exact
        longer = union > size
        if np.abs(error[~longer]).max(initial=0.0) > 1e-9:
            raise SystemExit(f"{size} numbers are not exact for texts that have fewer")
        near = longer & (np.abs(exact - 0.9) < 0.05)
        print(
            f"  {size:9,}{int(longer.sum()):8,}{_spread(error[longer]):18.4f}"
            f"{np.abs(error[longer]).max(initial=0.0):9.3f}{_spread(error[near]):32.4f}"
        )


def _text(capture: Capture) -> str:
    html = text_of(decoded(capture), capture.header("content-type"))
    return " ".join(read_html(html, capture.url).parts.said)


def _copies(text: str) -> Iterator[str]:
    """The text with single words replaced, with runs of words replaced, and without a passage."""
    words, dice = text.split(), dice_of(text)
    for share in EDITS:
        count = max(int(share * len(words)), 1)
        singles = {int(place) for place in dice.integers(len(words), size=max(count // WIDTH, 1))}
        yield " ".join(f"other{place}" if place in singles else word for place, word in enumerate(words))
        begin = int(dice.integers(len(words)))
        yield " ".join([*words[:begin], *(f"new{n}" for n in range(count)), *words[begin + count :]])
        yield " ".join([*words[:begin], *words[begin + count :]])


def _jaccard(one: str, other: str) -> tuple[float, int]:
    """The share of shingles in common, from the words themselves, and how many there are in all."""
    ours, theirs = _passages(one), _passages(other)
    return len(ours & theirs) / len(ours | theirs), len(ours | theirs)


def _passages(text: str) -> set[tuple[bytes, ...]]:
    words = text.encode("utf-8", "surrogatepass").split()
    return {tuple(words[place : place + WIDTH]) for place in range(max(len(words) - WIDTH + 1, 1))}


def _spread(errors: np.ndarray) -> float:
    return float(np.sqrt((errors**2).mean())) if len(errors) else 0.0


# -- learned noise


def _noise(seeds: int) -> None:
    print(f"noise: {seeds} crawls of each site, six pages, 20 visits each")
    print(
        f"  {'site':20}{'visits':>8}{'changes':>9}{'found':>7}{'wrongly':>9}{'overlooked':>12}{'looks':>7}{'masked':>8}"
    )
    for name, sites in (("noisy", NOISY), ("quiet", QUIET)):
        whole = Counter[str]()
        for site in sites:
            found = sum((_crawled(site, seed) for seed in range(1, seeds + 1)), Counter[str]())
            _noise_line(site.__name__, found)
            whole += found
        _noise_line(f"all {name} sites", whole)


def _crawled(site: Page, seed: int) -> Counter[str]:
    crawl = Crawl(site, seed=seed)
    right, wrong, missed = trial(crawl, dice_of("edits", site.__name__, seed))
    masked = crawl.noise.masked
    return Counter(right=right, wrong=wrong, missed=missed, visits=crawl.visits, looks=crawl.looks, masked=masked)


def _noise_line(name: str, found: Counter[str]) -> None:
    print(
        f"  {name:20}{found['visits']:8,}{found['right'] + found['missed']:9,}{found['right']:7,}{found['wrong']:9,}"
        f"{found['missed']:12,}{found['looks']:7,}{found['masked']:8,}",
        flush=True,
    )


# -- the time of the judge


@dataclass(frozen=True)
class Visit:
    """A capture to be judged and what is known before."""

    capture: Capture
    known: Known | None
    expected: Verdict


def _judge(folders: tuple[Path, ...]) -> None:
    found = real_pages(folders)
    kinds = _visits(found[:: -(-len(found) // MOST_JUDGED)])
    pages = [visit.capture for visit in kinds["first"]]
    scanned = _are_scanned(pages)
    size = np.mean([len(page.raw_body) for page in pages])
    print(f"judge: {len(pages):,} real pages of {size / 1e3:.0f} kB on average; milliseconds of the processor a page")
    print(f"  {int(scanned.sum())} of them are read in machine code; the others have what only the slow way reads")
    print(f"  {'visit':26}{'pure':>8}{'machine code':>14}{'ratio':>8}{'of those read in it':>21}")
    _parsed([text_of(page.raw_body, page.header("content-type")) for page in pages])
    for name, visits in kinds.items():
        pure, fast = (np.full(len(pages), np.inf) for _ in range(2))
        for _ in range(REPEATS):
            pure = np.minimum(pure, _seconds(visits, Standards()))
            fast = np.minimum(fast, _seconds(visits, Standards(in_machine_code=True)))
        of_those = pure[scanned].sum() / fast[scanned].sum() if scanned.any() else np.nan
        print(
            f"  {name:26}{1e3 * pure.mean():8.3f}{1e3 * fast.mean():14.3f}"
            f"{pure.sum() / fast.sum():8.1f}{of_those:21.1f}",
            flush=True,
        )


def _parsed(pages: list[str]) -> None:
    """How many pages need no parser, and what it takes to have these read with one and without, in the same minute."""
    if not can_compile():
        return
    from recrawl.detect.scanned import scan_page, scan_tidy_page

    different = list(dict.fromkeys(pages))
    tidy = [page for page in different if scan_tidy_page(page) is not None]
    without, by_parser = (np.full(len(tidy), np.inf) for _ in range(2))
    for _ in range(REPEATS):
        for row, page in enumerate(tidy):
            start = process_time()
            scan_tidy_page(page)
            between = process_time()
            scan_page(LexborHTMLParser(page).html or "")
            without[row] = min(without[row], between - start)
            by_parser[row] = min(by_parser[row], process_time() - between)
    size = np.mean([len(page) for page in tidy])
    print(
        f"  {len(tidy)} of {len(different)} different ones need no parser ({size / 1e3:.0f} kB on average): read in "
        f"{1e6 * without.mean():.0f} us, with it in {1e6 * by_parser.mean():.0f} us"
    )


def _are_scanned(pages: list[Capture]) -> np.ndarray:
    """Whether each page is read in machine code, all of which is compiled here; none is without numba."""
    if not can_compile():
        return np.zeros(len(pages), dtype=np.bool_)
    from recrawl.detect.scanned import scan_page, warm_up

    warm_up()
    htmls = (text_of(page.raw_body, page.header("content-type")) for page in pages)
    return np.array([scan_page(LexborHTMLParser(html).html or "") is not None for html in htmls])


def _visits(pages: list[Capture]) -> dict[str, list[Visit]]:
    """Visits of each kind, to the pages whose judgement has the kind: a page may be all noise."""
    kinds: dict[str, list[Visit]] = {
        "first": [], "same bytes": [], "other bytes, same text": [], "a paragraph more": [],
    }  # fmt: skip
    for page in pages:
        body = decoded(page)
        plain = _plain(page, body)
        known = known_after(judge(plain, None), None)
        later = replace(plain, time=plain.time + HOUR)
        middle = body.find(b"<p", len(body) // 2)
        cut = middle if middle >= 0 else len(body)
        edited = b"".join([body[:cut], b"<p>The ferry sails at nine from today on.</p>", body[cut:]])
        visits = (
            Visit(plain, None, Verdict.UNKNOWN),
            Visit(later, known, Verdict.UNCHANGED),
            Visit(replace(later, raw_body=body + b"<!-- made in 31 ms -->"), known, Verdict.UNCHANGED),
            Visit(replace(later, raw_body=edited), known, Verdict.CHANGED),
        )
        if all(judge(visit.capture, visit.known).verdict == visit.expected for visit in visits):
            for name, visit in zip(kinds, visits, strict=True):
                kinds[name].append(visit)
    return kinds


def _plain(page: Capture, body: bytes) -> Capture:
    """The page without compression and chunks, so that only the judge is measured."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {page.header('content-type') or 'text/html'}\r\n\r\n"
    return Capture(page.url, page.time, 200, head.encode("latin-1", "replace"), body)


def _seconds(visits: list[Visit], standards: Standards) -> np.ndarray:
    """Seconds of the processor for each visit."""
    taken = np.empty(len(visits))
    for place, visit in enumerate(visits):
        begun = process_time()
        verdict = judge(visit.capture, visit.known, standards).verdict
        taken[place] = process_time() - begun
        if verdict != visit.expected:
            raise SystemExit(f"{visit.capture.url} was judged wrongly")
    return taken


if __name__ == "__main__":
    main()
