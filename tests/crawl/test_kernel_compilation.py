"""A first start does not wait for its kernels: a subprocess compiles them, and the crawl takes them over."""

from __future__ import annotations

import asyncio
import sys
from functools import partial

import numpy as np
import pytest

from recrawl.crawl.worker import kernel_compilation
from recrawl.crawl.worker.kernel_compilation import kernels_ready
from recrawl.model import compiled
from recrawl.model.compiled import can_compile, compiling_ahead, hold_back_kernels, interpreted, release_kernels

pytestmark = pytest.mark.skipif(not compiled._has_numba(), reason="numba is not installed")


@pytest.fixture(autouse=True)
def released():
    yield
    release_kernels()


@pytest.fixture(autouse=True)
def note(tmp_path, monkeypatch):
    """A warm-up, in a module that a subprocess can import, that notes whether kernels may be called in it."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "noted_calls.py").write_text(
        "from recrawl.model.compiled import can_compile\n"
        "def note(place, fails):\n"
        "    with place.open('a', encoding='ascii') as file:\n"
        "        file.write(f'{can_compile()}\\n')\n"
        "    if fails:\n"
        "        raise ValueError('no compiler today')\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "modules")
    monkeypatch.delitem(sys.modules, "noted_calls", raising=False)


def run(place, stamp, *, fails=False, until_done=True):
    """What was said in the end, and whether kernels were used: at first, in the end, and after the block."""

    from noted_calls import note

    async def begin():
        said, seen = asyncio.get_running_loop().create_future(), []
        async with kernels_ready([partial(note, place, fails)], stamp, said.set_result):
            seen.append(can_compile())
            if until_done:
                await said
            seen.append(can_compile())
        return (said.result() if said.done() else None), [*seen, can_compile()]

    return asyncio.run(begin())


def test_kernels_are_held_back_in_all_threads_but_for_those_that_compile():
    assert can_compile()
    hold_back_kernels()
    assert not can_compile()
    with compiling_ahead():
        assert can_compile()
        with interpreted():
            assert not can_compile()
    assert not can_compile()
    release_kernels()
    assert can_compile()


def test_a_kernel_that_is_held_back_runs_as_plain_python():
    types = []

    @compiled.compiled
    def kernel(numbers):
        types.append(type(numbers))  # numba could not compile this
        return numbers.sum()

    hold_back_kernels()
    assert kernel(np.arange(3)) == 3
    assert types == [np.ndarray]


def test_a_first_start_goes_on_without_kernels_until_they_are_compiled(tmp_path):
    place, stamp = tmp_path / "calls", tmp_path / "new" / "stamp"
    assert run(place, stamp) == ("", [False, True, True])
    assert place.read_text() == "True\n" * 2, "called by the subprocess, then by a thread of ours"
    assert run(place, stamp, until_done=False) == (None, [True, True, True])
    assert place.read_text() == "True\n" * 3, "another start loads them at once"


def test_other_sources_are_compiled_again(tmp_path, monkeypatch):
    place, stamp = tmp_path / "calls", tmp_path / "stamp"
    stamp.write_text(kernel_compilation._fingerprint())
    assert run(place, stamp, until_done=False)[1][0]
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert not run(place, stamp)[1][0]


def test_a_crawl_goes_on_without_kernels_if_they_cannot_be_compiled(tmp_path):
    place, stamp = tmp_path / "calls", tmp_path / "stamp"
    assert run(place, stamp, fails=True) == ("ValueError: no compiler today", [False, False, True])
    assert not stamp.exists()


def test_a_run_that_ends_early_ends_the_compilation(tmp_path):
    place, stamp = tmp_path / "calls", tmp_path / "stamp"
    assert run(place, stamp, until_done=False) == (None, [False, False, True])
    assert not stamp.exists()
