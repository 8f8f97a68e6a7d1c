"""``recrawl copy`` as users call it: from SQLite to PostgreSQL and back, and on from there."""

import json

import numpy as np
import yaml

from recrawl.crawl.control.worker_registry import worker_lock
from recrawl.formats.warc.warc_records import from_base32
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture, Outcome, Verdict, Visits
from recrawl.store.open import open_store
from recrawl.store.store_values import CaptureRecord
from recrawl.time import DAY, VirtualClock

THEN = 1.7e9


def fill(workspace):
    """Visit five pages four times."""
    with (
        open_store(workspace / "recrawl.db") as store,
        WarcWriter(workspace / "warc", VirtualClock(THEN), durable=False) as writer,
    ):
        ids = store.discover([f"http://a.example/{n}" for n in range(5)], THEN)
        for round_ in range(4):
            for page, url in zip(ids.tolist(), store.urls(ids), strict=True):
                time = THEN + round_ * DAY + page
                body = f"{url} {round_ * page}".encode() * 50
                kept = writer.write(Capture(url, time, 200, b"HTTP/1.1 200 OK\r\n\r\n", body))
                digest = from_base32(kept.ref.payload_digest.removeprefix("sha1:"))
                row = CaptureRecord(page, time, 200, "text/plain", digest, len(body), *kept[:3])
                verdict = Verdict.CHANGED if round_ else Verdict.UNKNOWN
                visits = Visits.of(np.array([page]), np.array([time]), outcome=Outcome.FETCHED, verdict=verdict)
                store.record(visits, captures=[row])


def answers(run):
    """What commands say of a workspace, whatever the time is."""
    rates = [
        (row["url"], row["changes_per_day"], row["low"], row["high"], row["observations"])
        for row in json.loads(run("rates", "--json", "-w", "ws").stdout)
    ]
    return rates, json.loads(run("list", "visits", "--json", "-w", "ws").stdout)


def test_a_workspace_moves_to_postgresql_and_back(run, workspace, new_database, tmp_path):
    fill(workspace)
    before, location = answers(run), new_database()
    done = run("copy", "--to", location, "-w", "ws", "--switch")
    assert done.returncode == 0
    assert done.stdout.startswith("Copied 5 pages, 20 visits and 20 captures to postgresql://")
    settings = yaml.safe_load((workspace / "recrawl.yaml").read_text(encoding="utf-8"))
    assert settings["store"]["location"] == location
    (workspace / "recrawl.db").rename(tmp_path / "aside.db")
    assert answers(run) == before
    assert run("verify", "-w", "ws").returncode == 0
    assert run("add", "-w", "ws", "http://b.example/").stdout == "Added 1 page; 0 known already.\n"
    told = json.loads(run("copy", "--to", "ws/back.db", "-w", "ws", "--switch", "--json").stdout)
    assert told["tables"]["page"]["rows"] == 6
    settings = yaml.safe_load((workspace / "recrawl.yaml").read_text(encoding="utf-8"))
    assert settings["store"]["location"] == "back.db"
    assert answers(run) == before
    assert run("verify", "-w", "ws").returncode == 0


def test_without_switch_the_workspace_stays_as_it_is(run, workspace):
    fill(workspace)
    settings = (workspace / "recrawl.yaml").read_bytes()
    done = run("copy", "--to", "other.db", "-w", "ws")
    assert done.returncode == 0
    assert "set store.location" in done.stdout
    assert (workspace / "recrawl.yaml").read_bytes() == settings
    assert "There is a store at the target." in run("copy", "--to", "other.db", "-w", "ws").stderr


def test_a_running_crawl_is_not_copied(run, workspace):
    with worker_lock(workspace, "busy"):
        done = run("copy", "--to", "other.db", "-w", "ws")
    assert done.returncode != 0
    assert "A crawl runs in this workspace.\nStop it, then copy again." in done.stderr
