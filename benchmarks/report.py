"""How long a report of a large archive takes, how large it is, and how much memory it needs.

A workspace is made of N pages on one host with sections, a link tree, media types, and observations of every page that
find what Poisson pages of many different rates would show. Then ``recrawl report`` runs on it in a process of its own.
The baseline is ``recrawl assess`` on the same workspace: what is computed without being shown.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from figures import note, options_of

from recrawl.app.workspace.workspace import make_workspace
from recrawl.model import FloatArray, IntArray, Outcome, Verdict, Visits
from recrawl.store.store_values import CaptureColumns
from recrawl.time import DAY

START = 1_700_000_000.0
SECTIONS = 60
ROUNDS = 8
"""Crawls of the site, one a week."""
TYPES = ("text/html", "text/html", "text/html", "image/png", "application/pdf", "text/css")


def main() -> None:
    """Make the workspace, then measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="Make the workspace here and leave it there.")
    asked = options_of(parser)
    with tempfile.TemporaryDirectory() as name:
        folder = asked.keep or Path(name) / "workspace"
        if not folder.exists():
            began = time.perf_counter()
            make_archive(folder, asked.pages, np.random.default_rng(asked.seed))
            print(f"made a workspace of {asked.pages:,} pages in {time.perf_counter() - began:.1f} s")
        assess = measure(["assess", "-w", str(folder), "--json", "-n", "10"])
        shown = measure(["report", "-w", str(folder)])
        size = (folder / "reports" / "report.html").stat().st_size
        for command, run in (("assess", assess), ("report", shown)):
            took = f"{run['seconds']:6.1f} s, {run['processor']:.1f} s of a processor"
            print(f"recrawl {command}  {took}, {run['mebibytes']:.0f} MiB")
        print(f"{size / 1e6:.2f} MB of HTML")
        print(f"ratio {shown['seconds'] / assess['seconds']:.1f}")
        sizes, beside = f"{asked.pages:,} pages, {ROUNDS} crawls", "recrawl assess"
        note("report", shown["seconds"], "s", sizes, baseline=assess["seconds"], beside=beside)
        note("memory", shown["mebibytes"], "MiB", sizes, baseline=assess["mebibytes"], beside=beside)
        note("file", size / 1e6, "MB", sizes)


def measure(arguments: list[str]) -> dict[str, float]:
    """Seconds that passed, seconds of a processor, and the most memory of one run of the command."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "recrawl", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    told = process.stderr.read() if process.stderr is not None else b""
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(told.decode())
    processor = usage.ru_utime + usage.ru_stime
    return {"seconds": time.perf_counter() - began, "processor": processor, "mebibytes": usage.ru_maxrss / 1024.0}


def make_archive(folder: Path, pages: int, rng: np.random.Generator) -> None:
    """A workspace with N pages, crawled once a week."""
    workspace = make_workspace(folder, {"fetch.contact": "https://example.org/benchmark"})
    with workspace.open_store() as store:
        ids = store.discover(urls_of(pages), START)
        rate = np.exp(rng.normal(np.log(1.0 / (60 * DAY)), 1.8, pages))
        for visits in crawls(ids, rate, rng):
            store.record(visits)
            store.add_captures(copies(visits.take(visits.outcome == Outcome.FETCHED), int(ids[0])))
        tree = np.maximum((np.arange(pages) - 1) // 12, 0)
        store.record_links(ids[tree[1:]], ids[1:], np.full(pages - 1, START))


def copies(visits: Visits, first: int) -> CaptureColumns:
    """The captures that these visits made."""
    count = len(visits)
    return CaptureColumns(
        visits.page,
        visits.time,
        np.full(count, 200, np.int64),
        [TYPES[(page - first) % len(TYPES)] for page in visits.page.tolist()],
        [b""] * count,
        np.full(count, 10_000, np.int64),
        ["large.warc.gz"] * count,
        np.arange(count, dtype=np.int64) * 10_000,
        np.full(count, 9_000, np.int64),
    )


def urls_of(pages: int) -> list[str]:
    """Addresses in sections and folders below them, as sites have them."""
    urls = ["http://large.example/"]
    for number in range(1, pages):
        section, folder = number % SECTIONS, (number // SECTIONS) % 40
        urls.append(f"http://large.example/section-{section}/folder-{folder}/page-{number}.html")
    return urls


def crawls(page: IntArray, rate: FloatArray, rng: np.random.Generator) -> list[Visits]:
    """Weekly crawls, one page a second; some pages come later, some go."""
    born = np.where(rng.random(len(page)) < 0.1, rng.integers(1, ROUNDS, len(page)), 0)
    gone = np.where(rng.random(len(page)) < 0.03, rng.integers(2, ROUNDS, len(page)), ROUNDS)
    found = []
    for crawl in range(ROUNDS):
        rows = np.flatnonzero(born <= crawl)
        changed = rng.random(len(rows)) < -np.expm1(-rate[rows] * 7 * DAY)
        first = born[rows] == crawl
        verdict = np.where(first, Verdict.UNKNOWN, np.where(changed, Verdict.CHANGED, Verdict.UNCHANGED))
        there = np.where(changed | first, Outcome.FETCHED, Outcome.NOT_MODIFIED)
        outcome = np.where(gone[rows] <= crawl, Outcome.GONE, there)
        kinds = np.where(changed & ~first, rng.choice([3, 7, 1], len(rows)), 0)
        times = START + crawl * 7 * DAY + np.arange(len(rows), dtype=np.float64)
        found.append(Visits.of(page[rows], times, outcome=outcome, verdict=verdict, kinds=kinds))
    return found


if __name__ == "__main__":
    main()
