"""Open data, monitored as the tutorial says; what it prints in the end is worked out again, look by look."""

import csv
import math
import re
from collections import defaultdict
from datetime import datetime
from pathlib import Path

from recrawl_testweb.demo.demo_serve import PORTAL_SETTINGS, source_path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "open-data-monitor.md"
QUICKLY = {
    "hour in 1 2 3 4 5 6;": "hour in 1 2;",
    "hour in 8 9 10;": "hour in 8;",
    "sleep 8;": "sleep 2;",
    "schedule.min_interval=8s": "schedule.min_interval=3s",
}
"""As on the page, in less time."""
SOURCES = 13


def truth_of(folder):
    """Times of changes by URL, as the portal wrote them."""
    changes = defaultdict(list)
    with (folder / "truth.csv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            changes[row["url"]].append(datetime.fromisoformat(row["time"]).timestamp())
    return changes


def looks_of(folder):
    """Times and verdicts of the visits that were answered, by URL, in order."""
    observations = defaultdict(list)
    with (folder / "visits.csv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["outcome"] in {"fetched", "not modified"}:
                observations[row["url"]].append((float(row["time"]), row["verdict"]))
    return {url: sorted(some) for url, some in observations.items()}


def judged(observations, changes):
    """Changes, reports and true reports between the first look and the last, one look after the other."""
    first = min(some[0][0] for some in observations.values())
    last = max(some[-1][0] for some in observations.values())
    happened = sum(first <= when <= last for url in observations for when in changes[url])
    reported = true = 0
    for url, some in observations.items():
        known = some[0][0]
        for when, verdict in some[1:]:
            if verdict == "changed":
                reported += 1
                true += any(known < change <= when for change in changes[url])
                known = when
    return happened, reported, true


def rows_of(text):
    """The table of what was found, by the first word of each line."""
    table = text.partition("from its first observation to its last:")[2].strip("\n")
    return {line.split()[0]: line.split()[1:] for line in table.splitlines() if line.strip() and "──" not in line}


def test_the_page_leads_to_recall_and_precision_that_are_right(follow):
    reader = follow(PAGE.name, ports=(8080,), instead=QUICKLY)
    outage = reader.until("list failing")
    assert "unreachable" in outage.out
    reader.rest()
    observations, changes = looks_of(reader.folder), truth_of(reader.folder)
    queries = [url for url in observations if "/sparql?query=" in url]
    files = [url.rpartition(".")[2] for url in observations if url.endswith((".json", ".csv"))]
    assert (len(observations), len(queries)) == (SOURCES, 1)
    assert (files.count("json"), files.count("csv"), sum("/id/" in url for url in observations)) == (4, 4, 4)

    told = (reader.folder.parent / f"{reader.folder.name}-printed" / "0.out").read_text(encoding="utf-8")
    found, shown = (
        rows_of(told),
        rows_of(re.findall(r"^```\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)[-1]),
    )
    assert list(found) == list(shown) == ["source", "JSON", "CSV", "RDF", "SPARQL", "all"]
    assert found["source"] == shown["source"]
    happened, reported, true = judged(observations, changes)
    assert found["all"][:4] == [str(number) for number in (SOURCES, happened, reported, true)]
    assert found["all"][4:6] == [f"{true / happened:.0%}", f"{true / reported:.0%}"]

    false = 0
    for url, some in observations.items():
        later = [when for when, _ in some[2:]] + [math.inf]
        for (before, _), (_, verdict), after in zip(some, some[1:], later, strict=False):
            # The portal may answer a moment after our clock was read, so a change up to the next look counts.
            false += verdict == "changed" and not any(before < change <= after for change in changes[url])
    assert (false, reported > 0) == (0, True)


def test_the_portal_says_to_do_the_same():
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"--set {key}={value}" in text for key, value in PORTAL_SETTINGS.items())
    assert all(f"http://127.0.0.1:8080{source_path(number)}" in text for number in range(SOURCES - 1))
