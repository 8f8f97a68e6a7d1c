"""Where ``recrawl`` starts: signals are heard from the first line on, before anything that takes long is loaded.

A first Ctrl-C or SIGTERM ends every command cleanly, with the exit code for interrupts (conventions S4). It is raised
as ``KeyboardInterrupt`` where the program is; a command that has something to finish takes it (``cli.interrupts``).
Where the program is deep in a library and does not come back, it is ended after a few seconds: nothing that was
acknowledged is lost by that, as after a kill.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import NoReturn

_INTERRUPTED = 11
"""``errors.ExitCode.INTERRUPTED``, without what it takes to import that."""
_SECONDS = 3.0
"""After which a command that was interrupted is ended, whatever it is doing."""
_MOMENT = 0.5
"""Seconds that threads have to end by themselves when a command is over."""


def _on_signal(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - as handlers are called
    raise KeyboardInterrupt


def hear_signals() -> None:
    """From now on Ctrl-C and SIGTERM raise ``KeyboardInterrupt``, and end the process if that leads nowhere."""
    heard, told = os.pipe()
    os.set_blocking(told, False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _on_signal)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(heard,), daemon=True, name="recrawl-signals").start()


def _watch(heard: int) -> None:
    """End the process some seconds after a signal for which no command has taken over."""
    while number := os.read(heard, 1):
        if number[0] in (signal.SIGINT, signal.SIGTERM) and signal.getsignal(number[0]) is _on_signal:
            time.sleep(_SECONDS)
            end(_INTERRUPTED)


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
    try:
        code = _run()
        for number in (signal.SIGINT, signal.SIGTERM):  # it is over: what comes now changes nothing
            signal.signal(number, signal.SIG_IGN)
    except KeyboardInterrupt:
        end(_INTERRUPTED)
    background = sys.modules.get("recrawl.crawl.background")
    # A kernel may be compiled that nobody needs any more; and an interpreter that an interrupt met while it ran a text
    # (as where a dataclass is made) would end by a signal, whatever was made of the interrupt.
    if code == _INTERRUPTED or (background is not None and background.is_busy()) or _has_threads():
        end(code)
    sys.exit(code)


def _has_threads() -> bool:
    """Whether threads still work that an exit would wait for: for a name server that does not answer, say."""
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
