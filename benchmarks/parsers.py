"""Our parsers beside the field's libraries: ``python benchmarks/parsers.py [--pages FOLDER] [--rounds N]``.

    html     resolved links and the visible parts of real pages by our compiled scan, beside the same results made with
             selectolax (lexbor), and beside the raw links and text that selectolax and resiliparse return themselves
    cdxj     lines into columns, beside ``json.loads`` of each line, the least that a reader in plain Python does

CPU seconds of this process, the best of several rounds. A ratio above 1 means that ours is faster. Libraries that only
write (cdxj-indexer, wacz) are no alternative to a reader, so they are not measured.
"""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time

from detect import FOLDERS, real_pages
from formats_index import indexes
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree
from selectolax.lexbor import LexborHTMLParser

from recrawl.detect import decoded
from recrawl.detect.body import text_of
from recrawl.detect.html.html_document import read_html
from recrawl.formats.cdx.cdxj import read_cdxj
from recrawl.formats.columnar.capture_batches import ReadReport
from recrawl.model import Capture


def main() -> None:
    """Measure both and print a ratio each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, help="folder of WARC files with real pages")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lines", type=int, default=200_000)
    options = parser.parse_args()
    html(real_pages((options.pages,) if options.pages else FOLDERS), options.rounds)
    cdxj(options.lines, options.rounds)


def html(captures: list[Capture], rounds: int) -> None:
    """Links and text of the same pages, three ways."""
    pages = [(one.url, text_of(decoded(one), one.header("Content-Type") or "")) for one in captures]
    size = sum(len(text) for _, text in pages) / 1e6
    readers: dict[str, Callable[[str, str], object]] = {
        "ours": lambda url, text: read_html(text, url, use_kernels=True),
        "selectolax, same results": lambda url, text: read_html(text, url),
        "selectolax, links and text": _by_selectolax,
        "resiliparse, links and text": _by_resiliparse,
    }
    for read in readers.values():
        read(*pages[0])
    spent = {name: best(partial(_all, read, pages), rounds) for name, read in readers.items()}
    print(f"HTML: {len(pages)} pages, {size:.1f} M characters")
    for name, seconds in spent.items():
        print(
            f"  {name:28}{len(pages) / seconds:9,.0f} pages/s{size / seconds:8.0f} M/s{seconds / spent['ours']:8.2f} x"
        )


def _all(read: Callable[[str, str], object], pages: list[tuple[str, str]]) -> None:
    for url, text in pages:
        read(url, text)


def _by_selectolax(_url: str, text: str) -> object:
    tree = LexborHTMLParser(text)
    links = [node.attributes.get("href") for node in tree.css("a[href], area[href]")]
    tree.strip_tags(["script", "style", "template", "noscript"])
    return links, tree.body.text() if tree.body else ""


def _by_resiliparse(_url: str, text: str) -> object:
    tree = HTMLTree.parse(text)
    links = [node.getattr("href") for node in tree.document.query_selector_all("a[href], area[href]")]
    return links, extract_plain_text(tree)


def cdxj(lines: int, rounds: int) -> None:
    """Lines of CDXJ into record batches, beside parsing their JSON."""
    _, data = indexes(lines)
    ours = best(lambda: sum(batch.num_rows for batch in read_cdxj(io.BytesIO(data), "x", ReadReport())), rounds)
    plain = best(lambda: [json.loads(line.split(b" ", 2)[2]) for line in data.splitlines()], rounds)
    print(f"CDXJ: {lines:,} lines")
    print(f"  {'ours':12}{lines / ours:9,.0f} lines/s")
    print(f"  {'json.loads':12}{lines / plain:9,.0f} lines/s{plain / ours:8.2f} x")


def best(work: Callable[[], object], rounds: int) -> float:
    """CPU seconds of the fastest round."""
    found = []
    for _ in range(rounds):
        begun = process_time()
        work()
        found.append(process_time() - begun)
    return min(found)


if __name__ == "__main__":
    main()
