"""A child that ends with who began it, also if that one was killed.

Who begins it holds the other end of its standard input and writes nothing there. The system closes that end with
the process that holds it, whatever ended it; the child notices and ends as if it had been asked to.

Run as a module, this is ``recrawl`` on such a tether.
"""

from __future__ import annotations

import os
import signal
import threading

_STDIN = 0


def end_with_parent() -> None:
    """From now on, end when standard input does: as after ``SIGTERM``, which verbs take for a wish to end in order."""
    threading.Thread(target=_watch, daemon=True, name="recrawl-tether").start()


def _watch() -> None:
    # Not through sys.stdin: its lock, held by a thread that waits, keeps an interpreter from ending.
    while os.read(_STDIN, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    from recrawl.cli.start import main

    end_with_parent()
    main()
