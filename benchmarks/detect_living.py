"""What is believed of noisy pages beside what happened: ``python benchmarks/detect_living.py [--seeds N] [--days D]``.

A whole crawl, with servers, store and second looks, of the living web. Every page has noise that fixed rules know and
noise that none knows. Printed for each seed: changes reported and how many of them happened, changes that were
looked at and overlooked, visits, and second looks. About eight seconds a seed for four days.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from recrawl.assess.changes import assess_changes
from recrawl.assess.lives import Lives
from recrawl.crawl.live import CrawlSettings
from recrawl.crawl.trial import TrialSettings, run_trial
from recrawl.living.quirks import Quirks
from recrawl.model import Visits
from recrawl.schedule.politeness import PolitenessRules
from recrawl.schedule.valued import Valued
from recrawl.simulate.sites import synthetic_web
from recrawl.simulate.web import VirtualWeb
from recrawl.store.open import open_store
from recrawl.time import DAY
from recrawl.urls import surt

START = 1_790_000_000.0
MOMENTS = 60.0
"""Seconds within which a visit to the same page is a second look."""


def main() -> None:
    """Print one line a seed, and their sum."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--days", type=float, default=4.0)
    parser.add_argument("--pages", type=int, default=30, help="pages of the web at its start")
    options = parser.parse_args()
    print(f"{'seed':>6}{'reported':>10}{'happened':>10}{'overlooked':>12}{'visits':>8}{'second looks':>14}")
    whole = np.zeros(5, dtype=np.int64)
    for seed in range(1, options.seeds + 1):
        found = measured(seed, options.days, options.pages)
        whole += found
        _line(str(seed), found)
    _line("all", whole)


def measured(seed: int, days: float, pages: int) -> np.ndarray:
    """Changes reported, those that happened, those overlooked; visits; second looks."""
    web = synthetic_web(pages=pages, start=START, days=days, seed=seed, hot=0.6)
    visits = crawled(web, seed)
    truth = Lives.from_lives(
        np.arange(len(web)), web.lives.times, web.lives.offsets, web.changes.times, web.changes.offsets
    )
    report = assess_changes(truth, visits, START, START + days * DAY)
    again = (np.diff(visits.page) == 0) & (np.diff(visits.time) < MOMENTS)
    return np.array([report.detections, report.true_detections, report.overlooked, len(visits), again.sum()])


def crawled(web: VirtualWeb, seed: int) -> Visits:
    """The visits of a crawl, by the numbers of the web's own pages."""
    settings = TrialSettings(
        CrawlSettings(
            120 / DAY,
            "benchmark/1.0 (+https://example.org/)",
            politeness=PolitenessRules(shortest=5.0),
            durable=False,
        ),
        quirks=Quirks(noise=1.0, odd_noise=1.0),
        seed=seed,
    )
    with tempfile.TemporaryDirectory() as name, open_store(f"{name}/store.db", create=True, durable=False) as store:
        result = asyncio.run(run_trial(web, Valued(), store=store, folder=Path(name), settings=settings))
        urls = store.urls(result.page)
    [port] = {url.split("/")[2].partition(":")[2] for url in urls}
    numbers = {surt(web.url(page, int(port))): page for page in range(len(web))}
    number = np.array([numbers[surt(url)] for url in urls])
    mine = result.visits.take(np.isin(result.visits.page, result.page))
    return replace(mine, page=number[np.searchsorted(result.page, mine.page)])


def _line(name: str, found: np.ndarray) -> None:
    widths = (10, 10, 12, 8, 14)
    cells = "".join(f"{int(value):{width},}" for value, width in zip(found, widths, strict=True))
    print(f"{name:>6}{cells}", flush=True)


if __name__ == "__main__":
    main()
