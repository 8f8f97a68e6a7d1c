"""What was on pages at first: one readable copy each, none that came later than the first look."""

import numpy as np

from recrawl.model import Capture
from recrawl.store.open import open_store
from recrawl.store.store_values import REVISIT, CaptureColumns
from recrawl.time import DAY
from recrawl.transfer.page_contents import LATE, first_observations

START = 1.7e9
PAGE = b"<html><body><img src=a><p>Some words here</p><a href='/x'>x</a></body></html>"


def listed(rows):
    """Captures of a store: page, time, status, media type, file; the offset is the row."""
    n = len(rows)
    page, time, status, mime, file = zip(*rows, strict=True)
    nothing, offset = np.full(n, -1), np.arange(n)
    columns = np.array(page), np.array(time), np.array(status), list(mime), [b""] * n, nothing
    return CaptureColumns(*columns, list(file), offset, nothing)


def test_the_first_copy_that_can_be_read_counts(tmp_path):
    asked = []

    def read(file, offset):
        asked.append((file, offset))
        if file == "lost":
            return None
        body = PAGE if file == "page" else b"\x89PNG"
        kind = "text/html" if file == "page" else "image/png"
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode()
        return Capture("http://a.example/p", START, 200, raw_head=head, raw_body=body)

    with open_store(tmp_path / "store.db", create=True) as store:
        ids = store.discover([f"http://a.example/{number}" for number in range(6)], START)
        plain, lost, late, plot, moved, never = ids.tolist()
        rows = [
            (plain, START, 301, "text/html", "page"),
            (plain, START + 5, 200, "text/html", "page"),
            (plain, START + 9, 200, "text/html", "page"),
            (lost, START, 200, "text/html", "lost"),
            (lost, START + 7, 200, "text/html", "page"),
            (late, START + 2 * LATE, 200, "text/html", "page"),
            (plot, START, 200, "image/png", "picture"),
            (moved, START, 200, REVISIT, "page"),
        ]
        store.add_captures(listed(rows))
        done = []
        found = first_observations(store, read, ids, np.full(6, START), done.append)
        single = first_observations(store, read, np.array([plain]), np.array([START]))
        nothing = first_observations(store, read, ids, np.full(6, START - 9 * DAY))
    assert sum(done) == 6
    assert dict(zip(found.page.tolist(), found.time.tolist(), strict=True)) == {plain: START + 5, lost: START + 7}
    assert found.images.tolist() == [1.0, 1.0]
    assert found.internal_links.tolist() == [1.0, 1.0]
    assert found.content_size.tolist() == [len(PAGE)] * 2
    assert single.page.tolist() == [plain]
    assert len(nothing) == 0
    assert ("page", 2) not in asked
    assert never not in found.page
