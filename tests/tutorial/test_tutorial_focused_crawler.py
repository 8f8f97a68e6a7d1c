"""The tutorial of the focused crawler, followed: index pages, which bring the links, are known before they are seen."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

from recrawl.store.open import open_store

SMALLER = {
    "site.py 10000": "site.py 200",
    "head -n 300": "head -n 80",
    "schedule.budget=50/s": "schedule.budget=40/s",
    "--for 2min": "--for 12s",
    "--for 10min": "--for 16s",
}
TRIES = 20
"""How often a crawl goes on for some seconds until there is enough to learn from: a busy machine takes its time."""


def observations(reader):
    """How often each page was looked at so far."""
    with open_store(str(reader.folder / "focused" / "recrawl.db")) as store:
        page, count = np.unique(store.visits().page, return_counts=True)
        return dict(zip(store.urls(page), count.tolist(), strict=True))


def run_on(reader, enough):
    """Go on with the crawl until there is enough of it."""
    for times in range(TRIES):
        if enough(observations(reader)):
            return
        subprocess.run(
            [sys.executable, "-m", "recrawl", "run", "-w", "focused", "--for", f"{8 + 3 * times}s"],
            cwd=reader.folder,
            capture_output=True,
            check=True,
        )
    pytest.fail("the crawl never saw enough")


def scored(reader):
    """New links that are expected of each page, per day, as a program is told."""
    command = [
        sys.executable,
        "-m",
        "recrawl",
        "predict",
        "score",
        "--event",
        "new-links",
        "--json",
        "--limit",
        "1000",
        "-w",
        "focused",
    ]
    return json.loads(subprocess.run(command, cwd=reader.folder, capture_output=True, check=True, text=True).stdout)


@pytest.mark.timeout(1200)
def test_pages_that_bring_links_are_known_before_they_are_seen_and_visited_most(follow):
    reader = follow("focused-crawler.md", ports=(8100, 8110), instead=SMALLER)
    reader.until("--for 12s")
    pilot = (reader.folder / "pilot.txt").read_text().split()
    assert len(pilot) == 80
    known = [url for url in pilot if url.endswith("/")]
    assert len(known) >= 4
    run_on(
        reader,
        lambda seen: (
            sum(seen.values()) >= 300
            and sum(seen.get(url, 0) >= 2 for url in pilot) >= 70
            and sum(seen.get(url, 0) >= 6 for url in known) >= 0.7 * len(known)
        ),
    )

    reader.until("recrawl predict score")
    best = [row["url"] for row in scored(reader)]
    unseen = [url for url in best if url not in set(pilot)]
    assert len(unseen) == 120
    index = {url for url in best if url.endswith("/")}
    assert len(index) == 25
    assert sum(url in index for url in unseen[:8]) >= 4, "one is there by chance"

    reader.until("wait %2")
    run_on(reader, lambda seen: len(seen) >= 150 and all(seen.get(url, 0) >= 3 for url in index))
    told = reader.until("recrawl rates").out
    top = [line.split()[0] for line in told.splitlines() if line.strip().startswith("http://")]
    assert top
    assert set(top) <= index
    often = observations(reader)
    assert sum(often[url] for url in index) / 25 > sum(often[url] for url in often if url not in index) / 175

    assert "valued-links (yours)" in reader.until("recrawl compare").out
    reader.rest()
    with (reader.folder / "truth.csv").open(newline="") as file:
        truth = {row["url"]: int(row["new_links"]) for row in csv.DictReader(file)}
    assert {url for url, count in truth.items() if count} <= index
    assert all(truth[url] > 0 for url in top)
