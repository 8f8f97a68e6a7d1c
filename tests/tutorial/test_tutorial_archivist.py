"""The archivist's day, followed line by line on fewer years, and held against what is true of that town."""

import csv
import json
import re
import zipfile
from datetime import datetime

import numpy as np
import pytest

from recrawl.crawl.clock import RealClock
from recrawl_testweb.demo.demo_archive import DemoArchive, town

YEARS = 3


@pytest.mark.timeout(1200)  # many commands, each a process of its own
def test_the_archivist(follow):
    reader = follow("archivist.md", ports=(8080, 8090), instead={"--years 10": f"--years {YEARS}"})
    made = reader.until("recrawl demo").out
    captures, port = int(re.search("([\\d,]+) captures", made)[1].replace(",", "")), int(re.search(r":(\d+)/", made)[1])
    asked = DemoArchive(73, YEARS, 1, port)
    web = town(asked, RealClock().now())
    home = f"http://town.localhost:{port}/"

    said = reader.until("recrawl import").out
    assert f"{captures:,} records imported from {4 * YEARS} sources" in said

    assessed = reader.until("recrawl assess")
    assert f"in {4 * YEARS} crawls" in assessed.out
    quality = reader.folder / "quality"
    sections = rows(quality / "sections.csv")
    hottest = max(range(1, 9), key=lambda section: np.mean(web.rate[np.arange(73) // 8 == section]))
    assert web.path[hottest] == "/weather-3/"
    assert sections[0]["section"] == f"{home}weather-3/"
    assert {f"{home}weather-3/", f"{home}railway-4/"} <= {row["sections"] for row in rows(quality / "subsites.csv")}
    # Whoever blurs the archive by name really changes most often.
    blurring = [row["url"] for row in rows(quality / "pages.csv")][:3]
    rates = dict(zip((web.url(page, port) for page in range(73)), web.rate, strict=True))
    assert min(rates[url] for url in blurring) > np.quantile(web.rate, 0.8)

    ours, old = (float(re.search(r"Expected: ([\d.]+) of", reader.until("capture plan").out)[1]) for _ in range(2))
    assert ours > old

    stated = reader.until("recrawl capture").out
    there = {page for page in range(73) if web.state(page, RealClock().now()).alive}
    assert int(re.search(r"^(\d+) pages, ", stated, re.MULTILINE)[1]) <= len(there)  # others are known, and gone
    listed = reader.until("capture list")
    assert "sharc-selective " in listed.out  # planned beforehand: the archive knows the pages

    reader.until("recrawl report")
    report = (reader.folder / "director.html").read_text(encoding="utf-8")
    assert f"town.localhost:{port}" in report
    reader.until("recrawl export")
    with zipfile.ZipFile(reader.folder / "town.wacz") as package:
        names = package.namelist()
        assert sum(name.endswith(".warc.gz") for name in names) == 4 * YEARS + 1
        assert json.loads(package.read("datapackage.json"))["resources"]

    for moment in ("2018-04-05T20:10:00Z", "2018-05-01T00:00:00Z"):
        headers = dict(line.split(": ", 1) for line in reader.until("curl").out.splitlines())
        when = datetime.fromisoformat(moment).timestamp()
        shown = when + float(headers["x-recrawl-distance"])
        changes = abs(int(web.version(3, shown)) - int(web.version(3, when)))
        assert headers["x-recrawl-provably-valid"] == ("no" if changes else "yes")
        assert changes / 4 <= float(headers["x-recrawl-expected-changes"]) <= 4 * changes
    reader.rest()


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
