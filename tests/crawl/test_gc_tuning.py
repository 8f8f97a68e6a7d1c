"""What the collector and the C library do with memory during a crawl."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from recrawl.crawl.worker import gc_tuning
from recrawl.crawl.worker.gc_tuning import SELDOM, give_back_memory, long_running


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


@pytest.fixture
def nothing_left_out(monkeypatch):
    """The collector looks at everything, as in a program that has just begun; around all tests it does not."""
    monkeypatch.setattr(gc_tuning, "_BLOCKS", [])
    gc.unfreeze()
    yield
    gc.collect()
    gc.freeze()


@pytest.mark.usefixtures("nothing_left_out")
def test_garbage_is_collected_seldom_and_then_as_before():
    before = gc.get_threshold()
    with long_running():
        assert gc.get_threshold()[0] == SELDOM
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("nothing_left_out")
def test_what_a_block_around_it_leaves_out_stays_so():
    with long_running():
        between = gc.get_threshold()
        new: list[object] = []  # what is left out can still go, so that a count of it says nothing
        with long_running():
            assert any(seen is new for seen in gc.get_objects()), "a block within another leaves nothing more out"
        assert not any(seen is gc.__dict__ for seen in gc.get_objects()), "what was left out before stays so"
        assert gc.get_threshold() == between
    assert gc.get_freeze_count() == 0


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library cannot give memory back")
def test_what_is_free_goes_back_to_the_system():
    """Pieces of a size that the library keeps to itself, every other one of them freed."""
    pieces = [np.ones(12_000) for _ in range(1_000)]
    full = resident()
    del pieces[::2]
    give_back_memory()
    assert resident() < full - 500 * 12_000 * 8 * 0.8
    assert len(pieces) == 500


GROWING = """
from contextlib import nullcontext
from pathlib import Path
import sys
import numpy as np
from recrawl.crawl.worker.gc_tuning import long_running

kept, sizes = [], []
with long_running() if sys.argv[1] == "ours" else nullcontext():
    np.ones(3_000_000)
    for millions in range(2, 10):
        large = [np.ones(millions * 100_000) for _ in range(4)]
        kept.append([np.ones(100) for _ in range(2_000)])
        del large
        sizes.append(int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096)
print(sizes[-1] - sizes[0])
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library cannot be told")
def test_large_arrays_leave_no_holes_among_small_ones():
    """One from which the library learns, then ever larger ones for a moment, and small ones for good beside them."""

    def growth(which):
        command = [sys.executable, "-c", GROWING, which]
        nothing_told = {}  # what the environment may say of memory holds for neither
        return int(subprocess.run(command, check=True, capture_output=True, text=True, env=nothing_told).stdout)

    ours, usual = growth("ours"), growth("usual")
    small = 7 * 2_000 * 100 * 8
    assert ours < 2 * small
    assert ours < usual / 2
