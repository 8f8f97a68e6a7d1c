"""What the suites share: expected errors, and copies through pickle."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def raises(error: type[Exception] | tuple[type[Exception], ...], match: str = "") -> Iterator[None]:
    """Expect an error whose text contains a match of the pattern.

    >>> with raises(ValueError, "invalid literal"):
    ...     int("x")
    """
    raised: Exception | None = None
    try:
        yield
    except error as expected:
        raised = expected
    assert raised is not None, f"no {error} was raised"
    assert re.search(match, str(raised)), f"{raised!r} does not match {match!r}"


def pickled(value: T) -> T:
    """The same value after a round trip through pickle, as it reaches another process."""
    copy: T = pickle.loads(pickle.dumps(value, protocol=5))
    return copy
