"""Small parts of sentences: which, and from when to when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from recrawl.model import IntArray
from recrawl.time import to_iso


def listed(pages: IntArray, names: Callable[[IntArray], Sequence[str]], most: int) -> str:
    """The first ``most`` of these pages by name, and how many more there are.

    >>> import numpy as np
    >>> listed(np.array([4, 5, 6]), lambda pages: [f"/{page}" for page in pages], 2)
    '/4, /5 and 1 more'
    """
    return some_named(names(pages[:most]), len(pages))


def some_named(names: Sequence[str], count: int) -> str:
    """These names, and how many more of ``count`` there are.

    >>> some_named(["/4", "/5"], 3), some_named(["/4"], 1)
    ('/4, /5 and 1 more', '/4')
    """
    rest = count - len(names)
    return ", ".join(names) + (f" and {rest:,} more" if rest > 0 else "")


def period(start: float, end: float) -> str:
    """From when to when, in UTC, to the second; where that would be the same, as exactly as it takes.

    >>> period(0.0, 9.0), period(0.25, 0.5)
    ('1970-01-01T00:00:00Z to 1970-01-01T00:00:09Z', '1970-01-01T00:00:00.250Z to 1970-01-01T00:00:00.500Z')
    """
    texts = [to_iso(start), to_iso(end)]
    for unit in ("milliseconds", "microseconds"):
        if start == end or texts[0] != texts[1]:
            break
        texts = [
            datetime.fromtimestamp(time, UTC).isoformat(timespec=unit).replace("+00:00", "Z") for time in (start, end)
        ]
    return " to ".join(texts)


def valid_period(start: float, end: float) -> str:
    """The instants at which things were valid together: "at" one, or "from" one "to" another.

    >>> valid_period(9.0, 9.0), valid_period(0.0, 9.0)[:30]
    ('at 1970-01-01T00:00:09Z', 'from 1970-01-01T00:00:00Z to 1')
    """
    return f"at {to_iso(start)}" if start == end else f"from {period(start, end)}"
