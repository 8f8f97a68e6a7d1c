"""Circles laid side by side without overlap, and the circle around them: the bricks of a drawn tree.

The first circles touch each other around a middle. Each further one is laid outside of the *front*, the ring of
circles that can be reached from outside, into the corner of the front that is nearest to the middle (Wang et al. 2006,
Visualization of Large Hierarchical Data by Circle Packing). Largest first, the small ones fill up the rim.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.model import FloatArray

_ROUNDING = 1e-9
_STEPS_AROUND = 48
_FEW = 3
_PAIR = 2
_MOST_IN_FRONT = 600
_BUNDLE = 100


def pack(radius: list[float]) -> tuple[list[float], list[float]]:
    """Centres of circles that do not overlap, the largest in the middle. O(n) steps of Python, some thirty a circle.

    Each step observations along the whole front, so very many circles are first put together in bundles.

    >>> pack([1.0, 1.0])
    ([-1.0, 1.0], [0.0, 0.0])
    """
    if len(radius) > _MOST_IN_FRONT:
        return _pack_bundles(radius)
    order = sorted(range(len(radius)), key=lambda one: -radius[one])
    x, y = _pack_ordered([radius[one] for one in order])
    across, up = [0.0] * len(radius), [0.0] * len(radius)
    for place, one in enumerate(order):
        across[one], up[one] = x[place], y[place]
    return across, up


def _pack_bundles(radius: list[float]) -> tuple[list[float], list[float]]:
    """The same for very many: neighbours are packed by themselves, then the circles around them."""
    bundles = []
    for start in range(0, len(radius), _BUNDLE):
        some = radius[start : start + _BUNDLE]
        x, y = (np.array(side) for side in pack(some))
        bundles.append((x, y, *around(x, y, np.array(some))))
    across, up = pack([whole for *_, whole in bundles])
    placed = [(x - a + left, y - b + low) for (x, y, a, b, _), left, low in zip(bundles, across, up, strict=True)]
    return np.concatenate([x for x, _ in placed]).tolist(), np.concatenate([y for _, y in placed]).tolist()


def _pack_ordered(radius: list[float]) -> tuple[list[float], list[float]]:
    """The same for radii from the largest to the smallest."""
    count = len(radius)
    x, y = [0.0] * count, [0.0] * count
    if count > 1:
        x[0], x[1] = -radius[1], radius[0]
    if count < _FEW:
        return x, y
    x[2], y[2] = _beside(x, y, radius, 0, 1, 2)
    front = _Front(x, y, radius)
    for one in range(3, count):
        front.add(one)
    return x, y


class _Front:
    """The ring of circles that can be reached from outside, each with the one before and after it."""

    def __init__(self, x: list[float], y: list[float], radius: list[float]) -> None:
        self._x, self._y, self._radius = x, y, radius
        # Clockwise: the outside is on the left hand of who walks along.
        self._after = [2, 0, 1] + [0] * (len(radius) - 3)
        self._before = [1, 2, 0] + [0] * (len(radius) - 3)
        whole = sum(one * one for one in radius[:3])
        self._middle = (
            sum(x[one] * radius[one] ** 2 for one in range(3)) / whole,
            sum(y[one] * radius[one] ** 2 for one in range(3)) / whole,
        )
        self._nearest = self._find_nearest(0)

    def add(self, one: int) -> None:
        """Lay a circle into the nearest corner; where it meets the front further on, the ring is cut short there."""
        left, right = self._nearest, self._after[self._nearest]
        while True:
            self._x[one], self._y[one] = _beside(self._x, self._y, self._radius, left, right, one)
            met, forward = self._met(left, right, one)
            if met < 0:
                break
            left, right = (left, met) if forward else (met, right)
            self._after[left], self._before[right] = right, left
        self._after[left], self._before[one] = one, left
        self._after[one], self._before[right] = right, one
        self._nearest = self._find_nearest(one)

    def _met(self, left: int, right: int, one: int) -> tuple[int, bool]:
        """The first circle of the front that overlaps, by way along the front in both directions; -1 if none does."""
        ahead, behind = self._after[right], self._before[left]
        far, near = self._radius[right], self._radius[left]
        while True:
            if far <= near:
                if self._overlap(ahead, one):
                    return ahead, True
                far += self._radius[ahead]
                if ahead == behind:
                    return -1, True
                ahead = self._after[ahead]
            else:
                if self._overlap(behind, one):
                    return behind, False
                near += self._radius[behind]
                if ahead == behind:
                    return -1, True
                behind = self._before[behind]

    def _overlap(self, other: int, one: int) -> bool:
        reach = self._radius[other] + self._radius[one]
        across, up = self._x[other] - self._x[one], self._y[other] - self._y[one]
        return across * across + up * up < reach * reach * (1.0 - _ROUNDING)

    def _find_nearest(self, start: int) -> int:
        """The first circle of the pair whose point of contact is nearest to the middle."""
        best, least, one = start, math.inf, start
        x, y, radius, (middle_x, middle_y) = self._x, self._y, self._radius, self._middle
        while True:
            other = self._after[one]
            both = radius[one] + radius[other]
            across = (x[one] * radius[other] + x[other] * radius[one]) / both - middle_x
            up = (y[one] * radius[other] + y[other] * radius[one]) / both - middle_y
            distance = across * across + up * up
            if distance < least:
                best, least = one, distance
            one = other
            if one == start:
                return best


def _beside(  # noqa: PLR0913, PLR0917 - columns and places in them
    x: list[float], y: list[float], radius: list[float], left: int, right: int, one: int
) -> tuple[float, float]:
    """The centre of a circle that touches two others, on the left hand of who walks from the first to the second."""
    across, up = x[right] - x[left], y[right] - y[left]
    apart = math.hypot(across, up)
    to_left, to_right = radius[left] + radius[one], radius[right] + radius[one]
    if apart <= _ROUNDING:
        return x[left] + to_left, y[left]
    along = (apart * apart + to_left * to_left - to_right * to_right) / (2.0 * apart)
    aside = math.sqrt(max(to_left * to_left - along * along, 0.0))
    return (
        x[left] + (along * across - aside * up) / apart,
        y[left] + (along * up + aside * across) / apart,
    )


def around(x: FloatArray, y: FloatArray, radius: FloatArray) -> tuple[float, float, float]:
    """A circle around circles: its centre and radius, a few per cent above the least. O(n).

    The centre goes towards whatever sticks out most, by ever smaller steps (Bădoiu and Clarkson 2003).

    >>> [round(one, 1) for one in around(np.array([-1.0, 1.0]), np.zeros(2), np.ones(2))]
    [0.0, 0.0, 2.0]
    """
    if len(x) == 1:
        return float(x[0]), float(y[0]), float(radius[0])
    if len(x) == _PAIR:
        return _around_two(*(float(one) for one in (*x, *y, *radius)))
    heavy = radius * radius
    across, up = float((x * heavy).sum() / heavy.sum()), float((y * heavy).sum() / heavy.sum())
    best = (across, up, math.inf)
    for step in range(1, _STEPS_AROUND):
        out = np.hypot(x - across, y - up) + radius
        far = int(out.argmax())
        if out[far] < best[2]:
            best = (across, up, float(out[far]))
        away = math.hypot(x[far] - across, y[far] - up)
        if away <= _ROUNDING:
            break
        # Its own radius lies behind its centre: the far point is that much further away.
        pull = (away + float(radius[far])) / away / (step + 1)
        across, up = across + pull * (x[far] - across), up + pull * (y[far] - up)
    return best


def _around_two(x: float, a: float, y: float, b: float, radius: float, other: float) -> tuple[float, float, float]:  # noqa: PLR0913, PLR0917 - two circles
    """The least circle around two, at (x, y) and (a, b)."""
    apart = math.hypot(a - x, b - y)
    if apart + min(radius, other) <= max(radius, other):
        return (x, y, radius) if radius >= other else (a, b, other)
    whole = (apart + radius + other) / 2.0
    along = (whole - radius) / apart
    return x + along * (a - x), y + along * (b - y), whole
