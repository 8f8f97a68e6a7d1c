"""The data of figures that ``charts.js`` draws: axes and series of plain columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recrawl.model import FloatArray


def axis(title: str, scale: str = "linear", **more: object) -> dict[str, Any]:
    """An axis. ``scale``: linear, log, time (seconds since the epoch), names, share, seconds or count.

    ``more`` may hold ``names``, ``min`` and ``max``, and ``log=True`` for shares or seconds on a logarithmic scale.
    """
    return {"title": title, "scale": scale, **more}


def series(name: str, draw: str, x: object, y: object, **more: object) -> dict[str, Any]:
    """One series. ``draw``: line, step, bars, area, points, band, whiskers or histogram."""
    return {"name": name, "draw": draw, "x": x, "y": y, **more}


def histogram(name: str, edges: FloatArray, shares: FloatArray, **more: object) -> dict[str, Any]:
    """Bars between edges."""
    return {"name": name, "draw": "histogram", "x": edges[:-1], "y": shares, "edges": edges, **more}


def chart(x: dict[str, Any], y: dict[str, Any], all_series: Sequence[dict[str, Any]], **more: object) -> dict[str, Any]:
    """The data of a figure of kind ``chart``."""
    return {"x": x, "y": y, "series": list(all_series), **more}
