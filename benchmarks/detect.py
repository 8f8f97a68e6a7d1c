"""How well, and how fast, changes are told: ``python benchmarks/detect.py [--pages FOLDER] [--seeds N] [--part P]``.

    sample   the error of stored samples of shingles beside the exact Jaccard of all of them, by size of the sample:
             real pages, each beside edited copies and beside the page after it
    noise    made-up sites with and without noise: changes found, called so wrongly, overlooked, and confirmations
    edits    real texts in up to six yearly versions, in made-up markup, without noise and with three kinds of it: the
             same counts. Shows that real edits are not taken for noise; says nothing about real noise, as the texts are
             clean, nor about real markup. And pages of the WARC files that were captured several times: their verdicts
    judge       milliseconds of CPU per page, by kind of visit, in compiled code and without

Real pages are HTML answers in WARC files: those of the tests, and those of the large data sets if they are there.
The ratio of the detector is that of the two ways in this process, in turns; links were met before in both.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow.parquet as pq
from noisy_sites import BESIDE, NOISY, QUIET, Crawl, Page, rng_of, trial
from selectolax.lexbor import LexborHTMLParser

from recrawl.detect import ChangeCriteria, PageState, classify_change, decoded, known_after
from recrawl.detect.body import text_of
from recrawl.detect.html.html_document import read_html
from recrawl.detect.text.shingles import WIDTH, shingles, similarity
from recrawl.errors import InputError
from recrawl.formats.columnar.capture_batches import ReadReport, RecordKind
from recrawl.formats.warc.warc_reader import index_warc, read_capture
from recrawl.model import Capture, Verdict
from recrawl.model.compiled import can_compile

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (ROOT / "tests" / "data" / "formats", ROOT.parent / "shared" / "data" / "formats" / "warc")
DOCUMENTS = ROOT.parent / "shared" / "data" / "documents" / "texts.parquet"
FEWEST_VERSIONS, MOST_PAGES, VISITS_EACH = 4, 24, 3
"""Versions that a real text has, pages of a site, and visits to each version."""
SIZES = (64, 128, 256, 512, 1024)
EVERY = 1 << 24
"""More shingles than any text has."""
SHORTEST = 2_000
"""Bytes of a page below which it is an error message, not a page."""
EDITS = (0.002, 0.01, 0.05, 0.2)
"""Shares of the words of a page that an edited copy has others for."""
HOUR, MINUTE = 3600.0, 60.0
REPEATS = 3
MOST_CLASSIFIED = 80
"""Pages that the detector is timed on, evenly spread over all."""


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, action="append", help="folder with WARC files; may be given again")
    parser.add_argument("--seeds", type=int, default=10, help="crawls of each made-up site")
    parser.add_argument(
        "--documents", type=Path, default=DOCUMENTS, help="Parquet file with site, page_id, t_ref, text"
    )
    parser.add_argument("--part", choices=("sample", "noise", "edits", "judge"), help="only this")
    options = parser.parse_args()
    folders = options.pages or FOLDERS
    if options.part in (None, "sample"):
        _sample(folders)
    if options.part in (None, "noise"):
        _noise(options.seeds)
    if options.part in (None, "edits"):
        _edits(options.documents)
        _captured_again(folders)
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
    for batch in index_warc(path, ReadReport()):
        for row in batch.to_pylist():
            is_page = row["kind"] == RecordKind.RESPONSE and row["mime"] == "text/html" and row["status"] == 200
            if is_page and row["offset"] >= 0:
                try:
                    yield read_capture(path, row["offset"])
                except InputError:
                    continue  # some of these files are broken on purpose


# -- real edits


def _edits(path: Path) -> None:
    """Crawl sites of real texts, with and without noise beside them."""
    if not path.exists():
        print(f"edits: no {path.name}; --documents names it")
        return
    sites = _real_texts(path)
    print(f"edits: real texts of {len(sites)} sites, each version visited {VISITS_EACH} times")
    heads = ("pages", "visits", "changes", "found", "wrong", "missed", "confirmed", "masked")
    print(f"  {'noise':<16}" + "".join(f"{head:>11}" for head in heads))
    for name, noise in BESIDE.items():
        whole = np.zeros(8, np.int64)
        for site, texts in sites.items():
            whole += _crawled_texts(f"{site}-{name}", texts, noise)
        print(f"  {name:<16}" + "".join(f"{value:11,}" for value in whole), flush=True)


def _real_texts(path: Path) -> dict[str, list[list[str]]]:
    """By site the texts of some pages, oldest first."""
    table = pq.read_table(path, columns=["site", "page_id", "t_ref", "text"])
    versions: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for site, page, time, text in zip(*(column.to_pylist() for column in table.columns), strict=True):
        versions.setdefault((site, page), []).append((time, text))
    sites: dict[str, list[list[str]]] = {}
    for (site, _), told in sorted(versions.items()):
        texts = sites.setdefault(site, [])
        if len(told) >= FEWEST_VERSIONS and len({text for _, text in told}) > 1 and len(texts) < MOST_PAGES:
            texts.append([text for _, text in sorted(told)])
    return {site: texts for site, texts in sites.items() if texts}


def _crawled_texts(name: str, texts: list[list[str]], noise: Page | None) -> np.ndarray:
    """Pages, visits, changes, those found, called so wrongly, missed; confirmations; masked parts."""

    def html(page: int, version: int, seeded: np.random.Generator) -> str:
        said = "".join(f"<p>{escape(sentence)}</p>" for sentence in texts[page][version].split(". "))
        return f"<main><h1>Page {page}</h1>{said}</main>{noise(page, 0, seeded) if noise else ''}"

    html.__name__ = name
    crawl = Crawl(html, pages=len(texts))
    crawl.round(0, set())
    changes = found = wrong = missed = 0
    for number in range(1, VISITS_EACH * max(map(len, texts))):
        last = crawl.version
        crawl.version = [min(number // VISITS_EACH, len(one) - 1) for one in texts]
        steps = zip(texts, last, crawl.version, strict=True)
        edited = {page for page, (one, old, new) in enumerate(steps) if _visible(one[old]) != _visible(one[new])}
        judged = {page: crawl.visit(page, HOUR * number + MINUTE * page) for page in crawl.pages}
        reported = {page for page, one in judged.items() if one.verdict == Verdict.CHANGED}
        changes, found = changes + len(edited), found + len(edited & reported)
        wrong, missed = wrong + len(reported - edited), missed + len(edited - reported)
    counts = (len(texts), crawl.visits, changes, found, wrong, missed, crawl.observations, crawl.noise.masked)
    return np.array(counts)


def _visible(text: str) -> str:
    return " ".join(text.split())


def _captured_again(folders: tuple[Path, ...]) -> None:
    """What is said of pages that one archive file holds several times."""
    verdicts, pages = Counter[str](), 0
    for path in sorted(path for folder in folders for path in folder.rglob("*.warc*")):
        captures: dict[str, list[Capture]] = {}
        for capture in _html_answers(path):
            captures.setdefault(capture.url, []).append(capture)
        for several in captures.values():
            pages += len(several) > 1
            known: PageState | None = None
            for capture in sorted(several, key=lambda one: one.time):
                judged = classify_change(capture, known, ChangeCriteria())
                if known is not None:
                    verdicts[judged.verdict.name.lower()] += 1
                known = known_after(judged, known)
    told = ", ".join(f"{count} {name}" for name, count in sorted(verdicts.items())) or "none"
    print(f"edits: {pages} real pages were captured several times; verdicts without any learned noise: {told}")


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
    words, seeded = text.split(), rng_of(text)
    for share in EDITS:
        count = max(int(share * len(words)), 1)
        singles = {int(place) for place in seeded.integers(len(words), size=max(count // WIDTH, 1))}
        yield " ".join(f"other{place}" if place in singles else word for place, word in enumerate(words))
        begin = int(seeded.integers(len(words)))
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
        f"  {'site':20}{'visits':>8}{'changes':>9}{'found':>7}{'wrongly':>9}{'overlooked':>12}"
        f"{'observations':>7}{'masked':>8}"
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
    right, wrong, missed = trial(crawl, rng_of("edits", site.__name__, seed))
    masked = crawl.noise.masked
    return Counter(
        right=right, wrong=wrong, missed=missed, visits=crawl.visits, observations=crawl.observations, masked=masked
    )


def _noise_line(name: str, found: Counter[str]) -> None:
    print(
        f"  {name:20}{found['visits']:8,}{found['right'] + found['missed']:9,}{found['right']:7,}{found['wrong']:9,}"
        f"{found['missed']:12,}{found['observations']:7,}{found['masked']:8,}",
        flush=True,
    )


# -- the time of the evaluate


@dataclass(frozen=True)
class Visit:
    """A capture to be evaluated and what is known before."""

    capture: Capture
    known: PageState | None
    expected: Verdict


def _judge(folders: tuple[Path, ...]) -> None:
    found = real_pages(folders)
    kinds = _visits(found[:: -(-len(found) // MOST_CLASSIFIED)])
    pages = [visit.capture for visit in kinds["first"]]
    scanned = _are_scanned(pages)
    size = np.mean([len(page.raw_body) for page in pages])
    print(f"judge: {len(pages):,} real pages of {size / 1e3:.0f} kB on average; milliseconds of the processor a page")
    print(f"  {int(scanned.sum())} of them are read in compiled code; the others have what only the slow way reads")
    print(f"  {'visit':26}{'pure':>8}{'compiled code':>14}{'ratio':>8}{'of those read in it':>21}")
    _parsed([text_of(page.raw_body, page.header("content-type")) for page in pages])
    for name, visits in kinds.items():
        pure, fast = (np.full(len(pages), np.inf) for _ in range(2))
        for _ in range(REPEATS):
            pure = np.minimum(pure, _seconds(visits, ChangeCriteria()))
            fast = np.minimum(fast, _seconds(visits, ChangeCriteria(use_kernels=True)))
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
    from recrawl.detect.html.scanned_page import scan_page, scan_wellformed_page

    different = list(dict.fromkeys(pages))
    tidy = [page for page in different if scan_wellformed_page(page) is not None]
    without, by_parser = (np.full(len(tidy), np.inf) for _ in range(2))
    for _ in range(REPEATS):
        for row, page in enumerate(tidy):
            start = process_time()
            scan_wellformed_page(page)
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
    """Whether each page is read in compiled code, all of which is compiled here; none is without numba."""
    if not can_compile():
        return np.zeros(len(pages), dtype=np.bool_)
    from recrawl.detect.html.scanned_page import scan_page, warm_up

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
        known = known_after(classify_change(plain, None), None)
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
        if all(classify_change(visit.capture, visit.known).verdict == visit.expected for visit in visits):
            for name, visit in zip(kinds, visits, strict=True):
                kinds[name].append(visit)
    return kinds


def _plain(page: Capture, body: bytes) -> Capture:
    """The page without compression and chunks, so that only the detector is measured."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {page.header('content-type') or 'text/html'}\r\n\r\n"
    return Capture(page.url, page.time, 200, head.encode("latin-1", "replace"), body)


def _seconds(visits: list[Visit], standards: ChangeCriteria) -> np.ndarray:
    """Seconds of the processor for each visit."""
    taken = np.empty(len(visits))
    for place, visit in enumerate(visits):
        begun = process_time()
        verdict = classify_change(visit.capture, visit.known, standards).verdict
        taken[place] = process_time() - begun
        if verdict != visit.expected:
            raise SystemExit(f"{visit.capture.url} was judged wrongly")
    return taken


if __name__ == "__main__":
    main()
