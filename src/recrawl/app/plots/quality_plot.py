"""A plot of archive quality: the results of each crawl, and the sections with the most blur."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.app.result_tables import new_figure, plot_style, save_figure
from recrawl.assess.archive_quality import ArchiveQuality, tally
from recrawl.model import IntArray
from recrawl.time import to_iso

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SECTIONS = 12
_NAMED_CRAWLS = 10
"""Maximum number of crawl names below the plot; of more, some at equal steps."""
_GAPS_UP_TO = 60
"""Crawls up to which there are gaps between their bars."""
_PARTS = (
    ("unchanged", "#66a182"),
    ("content changed", "#edae49"),
    ("links changed", "#d1495b"),
    ("gone", "#2e2e2e"),
    ("not observed again", "#c9ced6"),
)


def draw_quality(quality: ArchiveQuality, sections: Mapping[str, Sequence[Any]], path: Path) -> None:
    """Write the plot as PNG, SVG or PDF, by the ending of ``path``; ``sections`` is their table, worst first."""
    figure = new_figure()
    plot_quality(figure, quality, sections)
    save_figure(figure, path)


def plot_quality(figure: Figure, quality: ArchiveQuality, sections: Mapping[str, Sequence[Any]]) -> list[Axes]:
    """Draw the quality of an archive. Two axes.

    On the left the pages of each crawl by what their next capture found (SHARC 8.3), new ones marked; on the right the
    blur of the worst sections.
    """
    figure.set_size_inches(11, 4)
    with plot_style():
        left, right = figure.subplots(1, 2)
        _draw_crawls(left, quality)
        _draw_sections(right, sections)
    return [left, right]


def _draw_crawls(axis: Any, quality: ArchiveQuality) -> None:  # noqa: ANN401 - matplotlib ships no types
    counts = tally(quality, quality.pairs, quality.pairs.round, len(quality.rounds))
    parts = (counts.coherent, counts.changed - counts.links, counts.links, counts.missing, counts.unseen)
    place = np.arange(len(quality.rounds))
    floor = np.zeros(len(place))
    width = 1.0 if len(place) > _GAPS_UP_TO else 0.8
    for (name, colour), part in zip(_PARTS, parts, strict=True):
        axis.bar(place, part, bottom=floor, width=width, color=colour, label=name)
        floor = floor + part
    new = counts.new > 0
    if bool(new.any()):
        axis.plot(place[new], counts.new[new], "_", color="#1b6ca8", ms=8, label="new")
    unlisted = " (unchanged pages are not listed)" if bool(counts.not_known.any()) else ""
    axis.set(title=f"Result of the next capture{unlisted}", xlabel="crawls, by start", ylabel="pages")
    axis.set_ylim(0, 1.05 * max(float(floor.max(initial=0.0)), 1.0))
    axis.yaxis.get_major_locator().set_params(integer=True)
    named = _some(len(place), _NAMED_CRAWLS)
    axis.set_xticks(named, crawl_names(quality.rounds.start[named].tolist()), rotation=30, ha="right")
    # Above the axes, where it hides no bar.
    axis.legend(frameon=False, fontsize=8, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.08))


def crawl_names(starts: Sequence[float]) -> list[str]:
    """The start of crawls in UTC, by day, minute or second, as needed to distinguish them.

    >>> crawl_names([0.0, 86_400.0]), crawl_names([0.0, 70.0])
    (['1970-01-01', '1970-01-02'], ['1970-01-01 00:00', '1970-01-01 00:01'])
    """
    texts = [to_iso(start).rstrip("Z").replace("T", " ") for start in starts]
    return next(
        (names for length in (10, 16) if len(set(names := [text[:length] for text in texts])) == len(texts)), texts
    )


def _some(count: int, most: int) -> IntArray:
    """At most ``most`` of the first ``count`` numbers, at equal steps."""
    return np.arange(0, count, max(-(-count // most), 1))


def _draw_sections(axis: Any, sections: Mapping[str, Sequence[Any]]) -> None:  # noqa: ANN401 - matplotlib ships no types
    blur = np.array(sections["blur_total"][:_SECTIONS], np.float64)
    names = [name.partition("://")[2] for name in sections["section"][:_SECTIONS]]
    place = np.arange(len(blur))[::-1]
    known = np.isfinite(blur)
    axis.barh(place[known], blur[known], color="#1b6ca8")
    for where in place[~known].tolist():  # a bar of no length would say that nothing is blurred
        axis.annotate("not known", (0.0, where), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8)
    axis.set_ylim(-0.6, len(blur) - 0.4)
    axis.set_yticks(place, [name if len(name) <= 32 else f"…{name[-31:]}" for name in names])  # noqa: PLR2004 - fits
    axis.set(
        title="Sections with the most blur",
        xlabel="blur of all their pages: expected changes between requested and shown time",
    )
