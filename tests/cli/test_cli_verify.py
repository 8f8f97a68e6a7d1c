"""``recrawl verify``, ``backup`` and ``restore`` as users call them."""

import json
import re
from pathlib import Path

import numpy as np

from recrawl.crawl.maintenance.archive_check import ArchiveCheck
from recrawl.crawl.maintenance.workspace_check import KINDS
from recrawl.formats.warc.warc_records import from_base32
from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture, Outcome, Visits
from recrawl.store.open import open_store
from recrawl.store.store_values import CaptureRecord
from recrawl.time import VirtualClock

THEN = 1.7e9
DOCS = Path(__file__).resolve().parents[2] / "docs"


def fill(workspace, pages=3):
    """Visit some pages once."""
    with (
        open_store(workspace / "recrawl.db") as store,
        WarcWriter(workspace / "warc", VirtualClock(THEN), durable=False) as writer,
    ):
        ids = store.discover([f"http://a.example/{n}" for n in range(pages)], THEN)
        for page, url in zip(ids.tolist(), store.urls(ids), strict=True):
            head, body = b"HTTP/1.1 200 OK\r\n\r\n", url.encode() * 50
            kept = writer.write(Capture(url, THEN + page, 200, head, body))
            digest = from_base32(kept.ref.payload_digest.removeprefix("sha1:"))
            row = CaptureRecord(page, THEN + page, 200, "text/plain", digest, len(body), *kept[:3])
            visits = Visits.of(np.array([page]), np.array([THEN + page]), outcome=Outcome.FETCHED)
            store.record(visits, captures=[row])
    [file] = (workspace / "warc").glob("*.warc.gz")
    return file


def test_a_whole_workspace(run, workspace):
    fill(workspace)
    done = run("verify", "-w", "ws")
    assert done.returncode == 0
    assert "Read 3 captures and 4 records in 1 archive file" in done.stdout
    assert "The workspace is complete and consistent." in done.stdout
    sampled = run("verify", "-w", "ws", "--sample", 2, "--seed", 1)
    assert (
        "Read 2 of 3 captures, 66.67%. With 95% confidence at most 77.639% of all captures are wrong." in sampled.stdout
    )


def test_errors_have_an_exit_code_of_their_own_and_warnings_none(run, workspace):
    file = fill(workspace)
    with open_store(workspace / "recrawl.db") as store:
        store._database.write(lambda session: session.run("UPDATE host SET next_due = 1"))
    done = run("verify", "-w", "ws")
    assert done.returncode == 0
    assert re.search(
        r"warning +1 +a host is due at another time than its first page +a.example +Repair it", done.stdout
    )
    assert "Left: 0 errors, 1 warning." in done.stdout
    done = run("verify", "-w", "ws", "--repair", "--json")
    told = json.loads(done.stdout)
    assert (told["errors"], told["warnings"], told["captures"], told["sample"]) == (0, 0, 3, None)
    assert [(one["kind"], one["count"], one["repaired"]) for one in told["findings"]] == [("host_next_due", 1, 1)]
    file.write_bytes(file.read_bytes()[:-40])
    done = run("verify", "-w", "ws")
    assert done.returncode == 9
    assert "error" in done.stdout
    assert run("verify", "-w", "ws", "--sample", 3, "--json").returncode == 9


def test_wrong_options_are_refused(run, workspace):
    assert run("verify", "-w", "ws", "--seed", 3).returncode == 4
    assert run("verify", "-w", "nowhere").returncode == 4
    assert run("restore", "nowhere", "again").returncode == 1
    assert run("restore", "nowhere", "again", "--store", "x.db").returncode == 4
    assert run("backup", "ws/b", "-w", "ws").returncode == 4


def test_every_kind_of_finding_is_documented():
    page = (DOCS / "reference" / "exit-codes-and-logs.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (error|warning|note) \| (.+) \|$", page, re.MULTILINE)
    assert rows == [(name, kind.severity, kind.meaning) for name, kind in KINDS.items()]


def test_a_backup_comes_back(run, workspace, tmp_path):
    fill(workspace)
    done = run("backup", "b", "-w", "ws", "--keep", 2)
    assert done.returncode == 0
    assert re.search(r"Backed up 3 files, .* MB, in b/\d{8}T\d{6}Z\.", done.stdout)
    told = json.loads(run("backup", "b", "-w", "ws", "--keep", 1, "--json").stdout)
    assert (told["files"], told["removed"], told["missing"], told["snapshot"]) == (3, 1, [], None)
    done = run("restore", "b", "again")
    assert done.returncode == 0
    assert "Check it with: recrawl verify -w again" in done.stdout
    assert run("verify", "-w", "again").returncode == 0
    assert run("restore", "b", "again").returncode == 1
    told = json.loads(run("restore", "b", "again", "--replace", "--json").stdout)
    assert (tmp_path / told["aside"] / "recrawl.yaml").exists()
    assert "page" in run("status", "-w", "again").stdout


def test_ctrl_c_ends_a_check_with_its_exit_code(run, workspace, monkeypatch):
    fill(workspace)

    def interrupted(_check):
        raise KeyboardInterrupt

    monkeypatch.setattr(ArchiveCheck, "check_all", interrupted)
    assert run("verify", "-w", "ws").returncode == 11
    assert run("verify", "-w", "ws", "--sample", 3).returncode == 0
