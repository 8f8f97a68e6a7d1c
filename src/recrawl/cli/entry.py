"""The entry point of ``recrawl``: signals are handled from the first line on, before slow imports.

The first Ctrl-C or SIGTERM ends every command cleanly, with the exit code for interrupts (conventions S4). It raises
``KeyboardInterrupt``; a command with work to finish handles the signal itself (``cli.operate.run_display``). If the
program is stuck in a library, the process is ended after a few seconds. As after a kill, nothing acknowledged is lost.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import NoReturn

_INTERRUPTED = 11
"""``errors.ExitCode.INTERRUPTED``, without the cost of its import."""
_SECONDS = 3.0
"""Seconds after which an interrupted command is ended."""
_MOMENT = 0.5
"""Seconds that threads get to finish when a command is over."""
_began: float | None = None
"""Start of the command by the monotonic clock; ``None`` if this process is not the ``recrawl`` command."""
_last_words = ""
"""The last line to print if the command prints none itself."""


def _on_signal(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - as handlers are called
    raise KeyboardInterrupt


def hear_signals() -> None:
    """Make Ctrl-C and SIGTERM raise ``KeyboardInterrupt``, and end the process if that has no effect."""
    heard, told = os.pipe()
    os.set_blocking(told, False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _on_signal)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(heard,), daemon=True, name="recrawl-signals").start()


def seconds_since_start() -> float:
    """Seconds since the command started, imports included; 0 in a process that was started otherwise."""
    return 0.0 if _began is None else time.monotonic() - _began  # noqa: TID251 - measures this process


def take_over_last_words() -> None:
    """From now on the caller prints why the command ends."""
    global _last_words  # noqa: PLW0603 - of the process
    _last_words = ""


def _interrupted() -> NoReturn:
    """Print why the command ends, and exit at once.

    If the interrupt hits Python while it executes generated source (as for a dataclass), the interpreter would end by a
    signal even though the interrupt was handled.
    """
    with suppress(OSError, ValueError):  # there is no reader
        sys.stdout.write(_last_words)
    end(_INTERRUPTED)


def _watch(heard: int) -> None:
    """End the process some seconds after a signal for which no command has taken over."""
    while number := os.read(heard, 1):
        if number[0] in (signal.SIGINT, signal.SIGTERM) and signal.getsignal(number[0]) is _on_signal:
            time.sleep(_SECONDS)
            _interrupted()


def end(code: int) -> NoReturn:
    """Exit at once, without waiting for threads."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
    os._exit(code)


def main() -> NoReturn:
    """Run ``recrawl`` with the arguments of the process and exit."""
    global _began, _last_words  # noqa: PLW0603 - of the process
    _began = time.monotonic()  # noqa: TID251 - measures this process
    if sys.argv[1:2] == ["run"]:
        _last_words = "Ended before the first visit because it was told to stop; how many pages are due is not known.\n"
    try:
        code = _run()
        for number in (signal.SIGINT, signal.SIGTERM):  # The command is over: later signals change nothing.
            signal.signal(number, signal.SIG_IGN)
    except KeyboardInterrupt:
        _interrupted()
    if code == _INTERRUPTED:
        _interrupted()
    background = sys.modules.get("recrawl.crawl.worker.event_loop")
    # A kernel that is no longer needed may still be compiling.
    if (background is not None and background.is_busy()) or _has_threads():
        end(code)
    sys.exit(code)


def _has_threads() -> bool:
    """Whether threads are still running that an exit would wait for, such as a DNS query without an answer."""
    others = [one for one in threading.enumerate() if one is not threading.current_thread() and not one.daemon]
    for one in others:
        one.join(_MOMENT / len(others))
    return any(one.is_alive() for one in others)


def _run() -> int:
    """Run the command; the exit code."""
    hear_signals()
    from recrawl.cli.main import main as run

    try:
        run()
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
