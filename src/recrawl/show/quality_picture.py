"""A picture of an archive's quality: what became of each crawl, and which sections blur it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.assess.archive_quality import ArchiveQuality, tally
from recrawl.errors import require
from recrawl.formats.disk import told

_SETTINGS = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "recrawl"}
_SECTIONS = 12
_PARTS = (
    ("unchanged", "#66a182"),
    ("content changed", "#edae49"),
    ("links changed", "#d1495b"),
    ("gone", "#2e2e2e"),
    ("not seen again", "#c9ced6"),
)


def draw_quality(quality: ArchiveQuality, sections: Mapping[str, Sequence[Any]], path: Path) -> None:
    """Write the picture as PNG, SVG or PDF, by the ending of ``path``; ``sections`` is their table, worst first.

    On the left the pages of each crawl by what their next capture found (SHARC 8.3), new ones marked; on the right the
    blur of the worst sections.
    """
    matplotlib: Any = require("matplotlib", "plot")
    new_figure: Any = require("matplotlib.figure", "plot").Figure
    with matplotlib.rc_context(_SETTINGS):
        figure = new_figure(figsize=(11, 4), layout="constrained")  # owned by no window: others keep their backend
        left, right = figure.subplots(1, 2)
        _draw_crawls(left, quality)
        _draw_sections(right, sections)
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
    with told(path), matplotlib.rc_context(_SETTINGS):
        figure.savefig(path, dpi=130, metadata=metadata)


def _draw_crawls(axis: Any, quality: ArchiveQuality) -> None:  # noqa: ANN401 - matplotlib ships no types
    counts = tally(quality, quality.pairs, quality.pairs.round, len(quality.rounds))
    parts = (counts.coherent, counts.changed - counts.links, counts.links, counts.missing, counts.unseen)
    place = np.arange(len(quality.rounds))
    floor = np.zeros(len(place))
    for (name, colour), part in zip(_PARTS, parts, strict=True):
        axis.bar(place, part, bottom=floor, width=1.0, color=colour, label=name)
        floor = floor + part
    axis.plot(place, counts.new, "_", color="#1b6ca8", ms=8, label="new")
    axis.set(title="What the next capture found", xlabel="crawls, by time", ylabel="pages")
    axis.legend(frameon=False, fontsize=8)


def _draw_sections(axis: Any, sections: Mapping[str, Sequence[Any]]) -> None:  # noqa: ANN401 - matplotlib ships no types
    blur = np.array(sections["blur_total"][:_SECTIONS], np.float64)
    names = [name.partition("://")[2] for name in sections["section"][:_SECTIONS]]
    place = np.arange(len(blur))[::-1]
    axis.barh(place, np.nan_to_num(blur), color="#1b6ca8")
    axis.set_yticks(place, [name if len(name) <= 32 else f"…{name[-31:]}" for name in names])  # noqa: PLR2004 - fits
    axis.set(
        title="Sections that blur the archive most",
        xlabel="blur of all their pages: expected changes between asked and shown",
    )
