"""The researcher's day, followed line by line on fewer years, and held against what is true of that town."""

import csv
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from recrawl.cli.demo_archive import OldArchive, town
from recrawl.crawl.clock import RealClock
from recrawl.time import DAY

TESTS = Path(__file__).resolve().parents[1]
YEARS = 2


@pytest.mark.timeout(1200)  # many commands, each a process of its own
def test_the_researcher(follow):
    smaller = {
        "--years 10": f"--years {YEARS}",
        "--pages 10000": "--pages 500",
    }
    reader = follow("researcher.md", ports=(8080, 8090), instead=smaller)
    (reader.folder / "tests").symlink_to(TESTS)
    made = reader.until("recrawl demo").out
    captures, port = (int(re.search(p, made)[1].replace(",", "")) for p in (r"([\d,]+) captures", r":(\d+)/"))
    assert f"{captures:,} records taken" in reader.until("recrawl import").out  # the archive told of all of them
    assert "Visits: 0 new" in reader.until("timemap").out
    done = reader.rest()

    web = town(OldArchive(73, YEARS, 1, port), RealClock().now())
    rates = dict(zip((web.url(page, port) for page in range(73)), web.rate * DAY, strict=True))
    with (reader.folder / "rates.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 60
    inside = [float(row["low"]) <= rates[row["url"]] <= float(row["high"]) for row in rows]
    assert np.mean(inside) > 0.7
    visits = pq.read_table(reader.folder / "visits.parquet")
    assert len(visits) == captures
    histories = pq.read_table(reader.folder / "histories.parquet")
    assert len(histories) == len(rows)
    for name in ("poisson.pdf", "rates.pdf"):
        assert (reader.folder / name).read_bytes().startswith(b"%PDF")
    published = (reader.folder / "classes" / "classes.md").read_text(encoding="utf-8")
    assert "| random | 75.2% |" in published
    assert any("Poisson" in step.out for step in done if "--diagnose" in step.command)
