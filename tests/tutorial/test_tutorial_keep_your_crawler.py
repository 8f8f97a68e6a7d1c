"""The tutorial of crawlers that are kept, followed: with a real spider, and a real client of the frontier."""

import re

import numpy as np
import pytest

from recrawl.store import open_store


def visits(reader):
    """Visits by page."""
    with open_store(reader.folder / "town" / "recrawl.db") as store:
        return np.unique(store.visits().page, return_counts=True)


@pytest.mark.timeout(900)
def test_a_spider_and_a_client_take_their_schedule_from_a_workspace(follow):
    reader = follow("keep-your-crawler.md", ports=(8095, 7071))
    reader.until("scrapy runspider")
    pages, times = visits(reader)
    assert len(pages) > 3
    assert times.max() > 1  # it came back to some
    items = (reader.folder / "pages.jsonl").read_text().splitlines()
    assert 0 < len(items) <= times.sum()

    [reported] = re.findall(r"(\d+) URLs fetched", reader.until("python fetcher.py").out)
    assert visits(reader)[1].sum() >= times.sum() + int(reported)

    reader.rest()
    listed = (reader.folder / "job" / "action" / "due.seeds").read_text().split()
    assert listed
    assert all(url.startswith("http://127.0.0.1") for url in listed)
