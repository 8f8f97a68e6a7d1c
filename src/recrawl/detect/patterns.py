"""Regular expressions of users, kept from running away.

Some patterns take longer than the age of the universe on texts made for them: ``(a|aa)*b`` on a long row of ``a``.
Texts come from strangers, and nothing stops a pattern once it runs. So each is judged before: counted is in how many
ways it could be tried at one place of a text (every repetition multiplies, a repetition of something that itself has
ways takes the power), and patterns with too many ways are refused. Texts are searched in pieces of bounded length,
which bounds the ways of ``.*``. Plain patterns, with at most two unbounded repetitions in a row, all pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import _constants as codes  # type: ignore[attr-defined] # the standard library's own reading of a pattern
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from recrawl.errors import ConfigError

LONGEST = 500
"""Characters of a text that are searched at once."""
MAX_WAYS = (LONGEST + 1) ** 2
"""Ways at one place. Two unbounded repetitions are this many; a piece then takes some 0.3 s at the very worst."""


def checked(pattern: str) -> re.Pattern[str]:
    r"""The compiled pattern.

    >>> checked(r"Visitors: \d+").pattern
    'Visitors: \\d+'

    Raises:
        ConfigError: it cannot be read, matches the empty text, or may take forever.
    """
    try:
        read = re.compile(pattern)
        ways = _ways(_parser.parse(pattern))
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"The pattern {pattern!r} cannot be read ({error}).", "Write it as Python's re reads it."
        ) from None
    if ways > MAX_WAYS:
        raise ConfigError(
            f"The pattern {pattern!r} can take forever on some texts.",
            "Use at most two of * and + in a row, and none around a group that has choices or repetitions in it.",
        )
    if read.match("") is not None:
        raise ConfigError(f"The pattern {pattern!r} matches the empty text.", "Write what must be there, as in \\d+.")
    return read


def without_matches(pattern: re.Pattern[str], text: str) -> str:
    """The text with a space for each match. Matches do not reach over the ends of pieces of :data:`LONGEST` characters.

    >>> without_matches(re.compile("b+"), "abbc")
    'a c'
    """
    if len(text) <= LONGEST:
        return pattern.sub(" ", text)
    return "".join(pattern.sub(" ", piece) for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces of bounded length, cut behind spaces where there are any."""
    start = 0
    while start < len(text):
        end = start + LONGEST
        if end < len(text):
            space = text.rfind(" ", start, end)
            end = space + 1 if space > start else end
        yield text[start:end]
        start = end


def _ways(pattern: Any) -> int:  # noqa: ANN401 - a pattern as the standard library reads it
    """In how many ways a parsed pattern can be tried at one place: the product over its items."""
    ways = 1
    for code, held in pattern:
        ways = min(ways * _ways_of(code, held), MAX_WAYS + 1)
    return ways


def _ways_of(code: Any, held: Any) -> int:  # noqa: ANN401 - as above
    """The same for one item."""
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        low, high, item = held
        inner, most = _ways(item), min(int(high), LONGEST)
        # Of a repetition with ways inside each time multiplies; after 64 times no bound holds any more.
        return max(1, most - int(low) + 1) if inner == 1 else inner ** min(most, 64)
    inside = {codes.SUBPATTERN: -1, codes.ASSERT: 1, codes.ASSERT_NOT: 1}
    if code in inside:
        return _ways(held[inside[code]])
    if code in (codes.BRANCH, codes.GROUPREF_EXISTS):
        branches = held[1] if code is codes.BRANCH else held[1:]
        return sum(_ways(branch) for branch in branches if branch is not None)
    return _ways(held) if code is codes.ATOMIC_GROUP else 1
