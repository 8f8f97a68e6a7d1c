"""What the collector and the C library do with memory during a crawl."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path

import numpy as np
import pytest

from recrawl.crawl.garbage import SELDOM, give_back_memory, seldom_collected


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def test_garbage_is_collected_seldom_and_then_as_before():
    before = gc.get_threshold()
    with seldom_collected():
        assert gc.get_threshold()[0] == SELDOM
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == before
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
