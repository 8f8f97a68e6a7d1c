"""The event loop of a crawl: libuv's where it is installed, which takes half the time for each request."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from recrawl.fetch.open_files import raise_limit

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, as ``asyncio.run`` does, with as many open connections as the system allows."""
    raise_limit()
    try:
        import uvloop
    except ImportError:  # not on Windows
        return asyncio.run(main)
    result: T = uvloop.run(main)
    return result
