"""The researcher's day, followed line by line on fewer years, and held against what is true of that town."""

import csv
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from recrawl.crawl.clock import RealClock
from recrawl.time import DAY
from recrawl_testweb.demo.demo_archive import DemoArchive, town

TESTS = Path(__file__).resolve().parents[1]
YEARS = 2
PUBLISHED = {
    "hacs/hacs.md": "| 12 | 0.5 / ",
    "hacs/hacs.csv": "web site,12,",
    "crawl-time/crawl-time.md": "| 120–180 min | 1.3 % (15) | −1 % (215) | ",
    "datamonitor/datamonitor.md": "| Fig. 6: window is close to gold | ",
    "classes/classes.md": "| random | 75.2% | ",
    "sharc/sharc-coherence.md": "| 3075 / 3030 |",
    "lbla/lbla.md": ", published 0.82 | ",
}
"""Something of each paper that its report has from the paper."""


@pytest.mark.timeout(1200)  # many commands, each a process of its own
def test_the_researcher(follow):
    smaller = {
        "--years 10": f"--years {YEARS}",
        "--crawls 10": "--crawls 5",
        "--trees 20": "--trees 2",
    }
    reader = follow("researcher.md", ports=(8080, 8090), instead=smaller)
    (reader.folder / "tests").symlink_to(TESTS)
    made = reader.until("recrawl demo").out
    captures, port = (int(re.search(p, made)[1].replace(",", "")) for p in (r"([\d,]+) captures", r":(\d+)/"))
    assert f"{captures:,} records imported" in reader.until("recrawl import").out  # the archive told of all of them
    assert "Visits: 0 new" in reader.until("timemap").out
    done = reader.rest()
    day = reader.folder / "day"

    web = town(DemoArchive(73, YEARS, 1, port), RealClock().now())
    rates = dict(zip((web.url(page, port) for page in range(73)), web.rate * DAY, strict=True))
    with (day / "rates.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 60
    inside = [float(row["low"]) <= rates[row["url"]] <= float(row["high"]) for row in rows]
    assert np.mean(inside) > 0.7
    visits = pq.read_table(day / "visits.parquet")
    assert len(visits) == captures
    histories = pq.read_table(day / "histories.parquet")
    assert len(histories) == len(rows)
    for name in ("poisson.pdf", "rates.pdf"):
        assert (day / name).read_bytes().startswith(b"%PDF")
    for report, published in PUBLISHED.items():
        assert published in (day / report).read_text(encoding="utf-8")
    assert any("Poisson" in step.out for step in done if "rates diagnose" in step.command)
