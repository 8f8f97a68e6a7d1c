"""The tutorial for operators of another crawler, followed: logs in, lists of what is due out, more changes seen."""

import re

import pytest
import yaml

SMALLER = {
    "PAGES, EVERY, PORT = 300": "PAGES, EVERY, PORT = 90",
    "schedule.budget=100/day": "schedule.budget=30/day",
    "valued-archive would have caught 5% more changes (95%:\n3% to 7%).": "…",
    "Wrote 88 URLs to due.txt.": "Wrote 88 URLs to due.txt.…",
    "2026-02-{03..08}": "2026-02-03",
    "2026-02-09": "2026-02-04",
}


@pytest.mark.timeout(1200)
def test_logs_come_in_lists_of_what_is_due_go_out_and_more_changes_are_seen(follow):
    reader = follow("operator.md", ports=(8090,), instead=SMALLER)
    imported = reader.until("recrawl import theirs")
    logged = sum((reader.folder / "theirs" / name).read_text().count("\n") for name in ("index.cdx", "crawl.log")) - 1
    assert f"Visits: {logged} new" in imported.out
    assert logged == 28 * 30

    compared = reader.until("recrawl compare").out
    caught = dict(re.findall(r"(valued-archive|uniform) (?:\(yours\))? +([\d.]+)%", compared))
    assert float(caught["valued-archive"]) > float(caught["uniform"])

    reader.until("head -n 3 due.txt")
    due = (reader.folder / "due.txt").read_text().split()
    assert 0 < len(due) <= 30
    browsertrix = yaml.safe_load((reader.folder / "due.yaml").read_text())["seeds"]
    assert browsertrix == [{"url": url, "scopeType": "page"} for url in due]
    assert [line.split()[0] for line in (reader.folder / "due-nutch.txt").read_text().splitlines()] == due

    reader.until("recrawl import due")
    asked = [line.split()[3] for line in (reader.folder / "due" / "2026-02-02.log").read_text().splitlines()]
    assert asked == due

    told = reader.until("crawler.py judge").out
    (even_visits, even, all_changes), (visits, seen, same) = re.findall(
        r"(\d+) visits came to see (\d+) of (\d+)", told
    )
    assert int(visits) <= int(even_visits) == 2 * 30
    assert same == all_changes
    assert int(seen) > int(even)

    reader.rest()
    captures = (reader.folder / "captures.cdx").read_text().splitlines()
    assert len(captures) - 1 == logged + int(visits)
