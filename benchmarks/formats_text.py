"""How fast sitemaps and git histories are read: ``python benchmarks/formats_text.py [--urls N] [--commits N]``.

Baselines in the same process: for sitemaps, the standard library's ``iterparse`` and the same four fields, with none of
the care for odd files; for git, the ``git log`` that we read, counted and thrown away. Times are wall time
and processor time of this process; the best of three runs counts.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from time import perf_counter, process_time
from xml.etree.ElementTree import iterparse

from recrawl.formats.git_history import PathRule, read_commits, read_git
from recrawl.formats.sitemap_feed import MAX_URLS, parse_sitemap
from recrawl.urls import address

SPACE = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


def best(work: Callable[[], int], expected: int) -> tuple[float, float]:
    """Rows per second of wall time and of processor time, the best of three runs."""
    walls, processors = [], []
    for _ in range(3):
        wall, processor = perf_counter(), process_time()
        assert work() == expected
        walls.append(perf_counter() - wall)
        processors.append(process_time() - processor)
    return expected / min(walls), expected / max(min(processors), 1e-9)


def sitemap_of(urls: int) -> bytes:
    """A sitemap with all three claims."""
    pages = (
        f"<url><loc>https://example.org/section-{n % 97}/page-{n}.html</loc>"
        f"<lastmod>2026-11-{n % 28 + 1:02}T09:14:07+01:00</lastmod>"
        f"<changefreq>daily</changefreq><priority>0.{n % 10}</priority></url>\n"
        for n in range(urls)
    )
    return f'<?xml version="1.0"?><urlset xmlns="{SPACE[1:-1]}">{"".join(pages)}</urlset>'.encode()


def plain_sitemap(data: bytes) -> int:
    """The same entries by the standard library's parser."""
    found = []
    for _, element in iterparse(io.BytesIO(data)):
        if element.tag == f"{SPACE}url":
            loc = address(element.findtext(f"{SPACE}loc", ""))
            when = datetime.fromisoformat(element.findtext(f"{SPACE}lastmod", "")).timestamp()
            priority = float(element.findtext(f"{SPACE}priority", ""))
            found.append((loc, when, element.findtext(f"{SPACE}changefreq"), priority))
            element.clear()
    return len(found)


def repository(folder: Path, commits: int) -> None:
    """A site of a thousand pages, and a commit to three of them at a time."""
    parts = []
    for n in range(commits):
        text = b"version %d\n" % n
        parts.append(b"blob\nmark :%d\ndata %d\n%s\n" % (n + 1, len(text), text))
        parts.append(
            b"commit refs/heads/main\ncommitter x <x@example.org> %d +0000\ndata 1\nx\n" % (1_600_000_000 + 600 * n)
        )
        parts += [b"M 100644 :%d part-%d/page-%d.md\n" % (n + 1, k % 20, k % 1_000) for k in (n, 3 * n, 7 * n + 1)]
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, input=b"".join(parts), check=True)


def plain_log(folder: Path) -> int:
    """How many commits ``git log`` names, with nothing else done."""
    words = ["--first-parent", "-m", "--reverse", "--raw", "--no-abbrev", "-M60%", "-z", "--format=tformat:%x01%H"]
    done = subprocess.run(["git", "log", *words], cwd=folder, check=True, capture_output=True)
    return done.stdout.count(b"\x01")


def show(what: str, ours: tuple[float, float], plain: tuple[float, float], baseline: str) -> None:
    """One line a measure."""
    print(f"{what:<28} {ours[0]:>12,.0f} /s  {ours[1]:>12,.0f} /s of processor   {ours[0] / plain[0]:.2f} x {baseline}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urls", type=int, default=MAX_URLS)
    parser.add_argument("--commits", type=int, default=20_000)
    options = parser.parse_args()

    data = sitemap_of(min(options.urls, MAX_URLS))
    urls = min(options.urls, MAX_URLS)
    ours = best(lambda: len(parse_sitemap(data, "x").entries), urls)
    plain = best(lambda: plain_sitemap(data), urls)
    show("sitemap, URLs", ours, plain, f"iterparse ({plain[0]:,.0f} /s)")

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "site"
        repository(folder, options.commits)
        rule = PathRule("https://example.org/")
        plain = best(lambda: plain_log(folder), options.commits)
        ours = best(lambda: sum(1 for _ in read_commits(folder)), options.commits)
        show("git, commits parsed", ours, plain, f"git log alone ({plain[0]:,.0f} /s)")
        ours = best(lambda: len(read_git(folder, rule).shas), options.commits)
        show("git, commits to changes", ours, plain, f"git log alone ({plain[0]:,.0f} /s)")


if __name__ == "__main__":
    main()
