"""What is believed of noisy pages beside what happened: ``python benchmarks/detect_testweb.py [--seeds N] [--days D]``.

A whole crawl, with servers, store and confirmations, of the test web. Every page has noise that fixed rules know and
noise that none knows. Printed for each seed: changes reported and how many of them happened; changes that a visit could
have seen, and those that none reported; visits and confirmations; then recall, the share of visits that are false
alarms, the share of visits that are confirmations; at last the minimum, median and maximum of these over all seeds.
About eight seconds of CPU a seed for four days.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from recrawl.assess.truth_scores import PageLifetimes, assess_changes
from recrawl.crawl.worker.crawl_assembly import WorkerSettings
from recrawl.model import Visits
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.simulate.sites import synthetic_web
from recrawl.simulate.virtual_web import VirtualWeb
from recrawl.store.open import open_store
from recrawl.time import DAY
from recrawl.urls import surt
from recrawl_testweb.fault_injection import FaultProfile
from recrawl_testweb.virtual_trial import TrialSettings, run_trial

START = 1_790_000_000.0
MOMENTS = 60.0
"""Seconds within which a visit to the same page is a confirmation."""


def main() -> None:
    """Print one line a seed, their sum, and how the shares are spread."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--days", type=float, default=4.0)
    parser.add_argument("--pages", type=int, default=30, help="pages of the web at its start")
    options = parser.parse_args()
    heads = ("seed", "reported", "happened", "to see", "overlooked", "visits", "confirmed", "recall", "alarms", "share")
    print("".join(f"{head:>11}" for head in heads))
    table = list[np.ndarray]()
    for seed in range(1, options.seeds + 1):
        table.append(measured(seed, options.days, options.pages))
        _line(str(seed), table[-1])
    _line("all", np.sum(table, axis=0))
    shares = np.array([shares_of(found) for found in table])
    for name, values in (("minimum", shares.min(0)), ("median", np.median(shares, 0)), ("maximum", shares.max(0))):
        print(f"{name:>11}{'':55}" + " " * 11 + "".join(f"{value:11.4f}" for value in values))


def measured(seed: int, days: float, pages: int) -> np.ndarray:
    """Changes reported, those that happened; changes to be seen, those overlooked; visits; confirmations."""
    web = synthetic_web(pages=pages, start=START, days=days, seed=seed, hot=0.6)
    visits = crawled(web, seed)
    truth = PageLifetimes.from_lifetimes(
        np.arange(len(web)), web.lifetimes.times, web.lifetimes.offsets, web.changes.times, web.changes.offsets
    )
    report = assess_changes(truth, visits, START, START + days * DAY)
    again = (np.diff(visits.page) == 0) & (np.diff(visits.time) < MOMENTS)
    to_see = report.alone + report.merged + report.overlooked
    found = (report.detections, report.true_detections, to_see, report.overlooked, len(visits), again.sum())
    return np.array(found)


def shares_of(found: np.ndarray) -> tuple[float, float, float]:
    """Recall, false alarms by visits, and confirmations by visits."""
    reported, happened, to_see, overlooked, visits, confirmed = found.tolist()
    return 1.0 - overlooked / max(1, to_see), (reported - happened) / visits, confirmed / visits


def crawled(web: VirtualWeb, seed: int) -> Visits:
    """The visits of a crawl, by the numbers of the web's own pages."""
    settings = TrialSettings(
        WorkerSettings(
            120 / DAY,
            "benchmark/1.0 (+https://example.org/)",
            politeness=PolitenessRules(shortest=5.0),
            durable=False,
        ),
        fault_profile=FaultProfile(noise=1.0, odd_noise=1.0),
        seed=seed,
    )
    with tempfile.TemporaryDirectory() as name, open_store(f"{name}/store.db", create=True, durable=False) as store:
        result = asyncio.run(run_trial(web, ValuedPolicy(), store=store, folder=Path(name), settings=settings))
        urls = store.urls(result.page)
    [port] = {url.split("/")[2].partition(":")[2] for url in urls}
    numbers = {surt(web.url(page, int(port))): page for page in range(len(web))}
    number = np.array([numbers[surt(url)] for url in urls])
    mine = result.visits.take(np.isin(result.visits.page, result.page))
    return replace(mine, page=number[np.searchsorted(result.page, mine.page)])


def _line(name: str, found: np.ndarray) -> None:
    cells = "".join(f"{int(value):11,}" for value in found)
    print(f"{name:>11}{cells}" + "".join(f"{share:11.4f}" for share in shares_of(found)), flush=True)


if __name__ == "__main__":
    main()
