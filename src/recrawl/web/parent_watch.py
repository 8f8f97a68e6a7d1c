"""A subprocess that exits with its parent, even if that was killed.

The parent holds the other end of its standard input and writes nothing there. The system closes that end when the
parent exits; the child notices and exits as after a signal.
"""

from __future__ import annotations

import os
import signal
import threading

_STDIN = 0


def end_with_parent() -> None:
    """From now on, exit when standard input ends: as after ``SIGTERM``, on which commands exit cleanly."""
    threading.Thread(target=_watch, daemon=True, name="recrawl-tether").start()


def _watch() -> None:
    # Not through sys.stdin: its lock, held by a thread that waits, keeps an interpreter from ending.
    while os.read(_STDIN, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
