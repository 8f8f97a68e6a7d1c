"""How many files and connections this process may have open."""

from __future__ import annotations

from contextlib import suppress

_SHARE = 4
"""Of all that may be open, one in so many may be an idle connection: others are busy, or files and stores."""


def raise_limit() -> None:
    """Raise the limit as far as the system lets everybody: many still begin with 1,024, for programs of long ago."""
    try:
        import resource
    except ImportError:  # not on Windows, where no limit is known
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # a system that has no limit may not want to be told so
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def idle_connections(wanted: int) -> int:
    """How many of the connections that are wanted may be kept open while nobody uses them; at least one."""
    try:
        import resource
    except ImportError:
        return wanted
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft // _SHARE))
