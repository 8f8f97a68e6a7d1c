"""Numbers and nouns for people: the one place that knows singular and plural."""

from __future__ import annotations


def counted(number: float, one: str, many: str = "") -> str:
    """N of something, in the singular where it is one; ``many`` is the plural where an s does not make it.

    >>> counted(1, "page"), counted(1200, "page"), counted(2, "policy", "policies"), counted(1.5, "day")
    ('1 page', '1,200 pages', '2 policies', '1.5 days')
    """
    figure = f"{number:,g}" if number % 1 else f"{int(number):,}"
    return f"{figure} {one if number == 1 else many or f'{one}s'}"


def told(number: float) -> str:
    """A number with the digits that tell something: four, and all before the point.

    >>> told(983_123.4), told(90.2916), told(0.02), told(100.0)
    ('983,123', '90.29', '0.02', '100')
    """
    return f"{number:,.0f}" if abs(number) >= _WHOLE else f"{number:.4g}"


_WHOLE = 1_000.0
"""From here on nobody wants digits behind the point."""
