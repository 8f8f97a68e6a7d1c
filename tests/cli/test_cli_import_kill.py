"""Imports that are killed: the next one goes on, and the visits are those of an import that nobody disturbed."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from recrawl.formats.warc.warc_writer import WarcWriter
from recrawl.model import Capture
from recrawl.store.base import Store
from recrawl.store.open import open_store
from recrawl.time import VirtualClock

LISTED, PAGES, VERSIONS = 50_000, 900, 4
START = 1_400_000_000.0
TRIES = 6


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """An index with many pages, some of them downloaded twice at once, and an archive file with versions of a few."""
    folder = tmp_path_factory.mktemp("sources")
    with (folder / "a.cdx").open("w") as file:
        file.write(" CDX N b a m s k r M S V g\n")
        for page in range(LISTED):
            for second in ("00", "30")[: 1 + (page % 8 == 0)]:
                file.write(
                    f"org,example)/{page} 201401{page % 28 + 1:02d}0000{second} http://example.org/{page} text/html "
                    f"200 {'AB'[page % 3 == 0] * 32} - - 100 {page} x.warc.gz\n"
                )
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    with WarcWriter(folder, VirtualClock(START)) as writer:
        for version in range(VERSIONS):
            for page in range(PAGES):
                links = "".join(f"<a href=/{page + k * version}>{k}</a>" for k in range(20))
                body = f"<h1>{page}</h1><p>{'text ' * 50}{version // 2}</p>{links}".encode()
                writer.write(Capture(f"http://example.org/{page}", START + version * 86_400 + page, 200, head, body))
    return folder


def start(sources, workspace):
    command = [sys.executable, "-m", "recrawl", "import", str(sources), "-w", str(workspace)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(process):
    error = process.communicate(timeout=120)[1].decode()
    assert process.returncode == 0, error


def everything(workspace):
    with open_store(workspace / "recrawl.db") as store:
        visits = store.visits()
        links = store.outlinks(store.pages().id)
        columns = [column.tolist() for name, column in visits.columns().items() if name != "page"]
        assert len(store.unjudged()) == len(store.unread()) == 0
        found = dict(zip(store.pages().id.tolist(), store.urls(store.pages().id), strict=True))
        return (
            sorted(zip([found[page] for page in visits.page.tolist()], *columns, strict=True)),
            sorted((found[one], found[other]) for one, other in zip(links.source, links.target, strict=True)),
        )


@pytest.fixture(scope="module")
def undisturbed(sources, new_workspace, tmp_path_factory):
    workspace = shutil.copytree(new_workspace, tmp_path_factory.mktemp("undisturbed") / "ws")
    finish(start(sources, workspace))
    return everything(workspace)


def noting(store: Store, index: str) -> bool:
    mark = store.import_mark(index)
    return mark is not None and not mark.finished


def classifier(store: Store, index: str) -> bool:
    """Some pages are judged by digest, others wait."""
    mark = store.import_mark(index)
    return mark is not None and mark.finished and 0 < len(store.unjudged()) < LISTED


def reading(store: Store, _index: str) -> bool:
    """Some pages are judged by content, others wait."""
    return 0 < len(store.unread()) < PAGES


STAGES: dict[str, Callable[[Store, str], bool]] = {"noting": noting, "judging": classifier, "reading": reading}


def kill_in(stage, sources, workspace):
    """Start an import and kill it when it is in that stage; return whether it got there before it was done."""
    process = start(sources, workspace)
    try:
        with open_store(workspace / "recrawl.db") as store:
            while process.poll() is None and not STAGES[stage](store, str((sources / "a.cdx").resolve())):
                time.sleep(0.01)
        return process.poll() is None
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


@pytest.mark.slow
def test_an_import_may_be_killed_at_any_stage(sources, undisturbed, new_workspace, tmp_path):
    assert len(undisturbed[0]) == LISTED + PAGES * VERSIONS
    for number in range(TRIES):  # whoever looks may be late, and find the import done
        workspace = shutil.copytree(new_workspace, tmp_path / str(number))
        reached = {stage: kill_in(stage, sources, workspace) for stage in STAGES}
        finish(start(sources, workspace))
        assert everything(workspace) == undisturbed
        if all(reached.values()):
            return
    pytest.fail(f"the import was never killed in all stages: {reached}")
