"""Compiles kernels beside a crawl, so that the first start on a machine need not wait for them.

Numba keeps compiled code on disk. Where that has none of this version, compiling takes most of a minute of CPU time. So
the crawl begins on numpy paths, which compute the same numbers more slowly, and a subprocess of low priority compiles.
Once it is done, a thread loads the compiled code, and the crawl goes on with it.

Whether code is there is read from a *stamp*, a file beside the compiled code that a finished compilation writes. A
stamp that is missing or wrong costs time and nothing else.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import pickle
import platform
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeAlias

import recrawl
from recrawl.crawl.worker.event_loop import in_thread
from recrawl.model.compiled import can_compile, compiling_ahead, hold_back_kernels, release_kernels

WarmUp: TypeAlias = Callable[[], object]
"""Calls kernels once, so that they are compiled or loaded. Pickled."""

_NICE = 10
"""The crawl has priority."""
_START = "import sys; sys.path[:] = {!r}; from recrawl.crawl.worker.kernel_compilation import main; main()"


@asynccontextmanager
async def kernels_ready(
    warm_ups: Sequence[WarmUp], stamp: Path | None = None, done: Callable[[str], object] = lambda _failure: None
) -> AsyncIterator[None]:
    """Within the block kernels are loaded, or will be once a subprocess has compiled them.

    ``stamp`` is the file that shows whether they are compiled, by default that of this installation. ``done`` is called
    when a subprocess ended: with the reason if it failed, and the crawl goes on without kernels.
    """
    if not can_compile():
        yield
        return
    stamp = stamp or stamp_file()
    if _is_current(stamp):
        await in_thread(lambda: _call(warm_ups))
        yield
        return
    hold_back_kernels()
    task = asyncio.get_running_loop().create_task(_compile(warm_ups, stamp, done))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        release_kernels()


async def _compile(warm_ups: Sequence[WarmUp], stamp: Path, done: Callable[[str], object]) -> None:
    """Compile in a subprocess, load in a thread, then let all use the kernels: between two steps of the event loop."""
    try:
        failure = await _in_subprocess(warm_ups, stamp)
        if not failure:
            await in_thread(lambda: _call(warm_ups))
            release_kernels()
    except Exception as error:  # noqa: BLE001 - the crawl goes on without kernels
        failure = repr(error)
    done(failure)


async def _in_subprocess(warm_ups: Sequence[WarmUp], stamp: Path) -> str:
    """Compile; return why that failed, if it did."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _START.format(sys.path),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C in our terminal is not for the subprocess
    )
    try:
        _, said = await process.communicate(pickle.dumps((list(warm_ups), stamp)))
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if process.returncode:
        [*_, reason] = said.decode(errors="replace").splitlines() or [f"it ended with {process.returncode}"]
        return reason
    return ""


def _call(warm_ups: Sequence[WarmUp]) -> None:
    with compiling_ahead():
        for warm_up in warm_ups:
            warm_up()


def main() -> None:
    """Run as the subprocess: read what to call from standard input, call it, write the stamp."""
    os.nice(_NICE)
    warm_ups, stamp = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own parent
    before = _fingerprint()
    _call(warm_ups)
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(before, encoding="ascii")


def stamp_file() -> Path:
    """The stamp of this installation: beside its bytecode, or in the user's cache if that cannot be written."""
    package = Path(recrawl.__file__).parent
    folder = package / "__pycache__" if os.access(package, os.W_OK) else Path.home() / ".cache" / "recrawl"
    return folder / "compiled-kernels"


def _is_current(stamp: Path) -> bool:
    try:
        return stamp.read_text(encoding="ascii") == _fingerprint()
    except (OSError, ValueError):
        return False


def _fingerprint() -> str:
    """A digest of what compiled code depends on: sources by time and size, numba, Python, the processor, the place."""
    try:
        numba = version("numba")
    except PackageNotFoundError:
        numba = ""
    place = os.environ.get("NUMBA_CACHE_DIR", "")  # noqa: TID251 - numba reads it
    digest = hashlib.sha256(repr((numba, sys.version, platform.machine(), _processor(), place)).encode())
    root = Path(recrawl.__file__).parent
    for source in sorted(root.rglob("*.py")):
        status = source.stat()
        digest.update(f"{source.relative_to(root)} {status.st_mtime_ns} {status.st_size}\n".encode())
    return digest.hexdigest()


def _processor() -> str:
    """The model of the processor: code compiled for another one is not used."""
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
        return next((line for line in lines if line.startswith("model name")), "")
    return ""
