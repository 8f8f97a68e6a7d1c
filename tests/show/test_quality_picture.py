"""The picture of ``recrawl assess --plot``."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.assess.archive_quality import archive_quality
from recrawl.assess.looks import Looks
from recrawl.model import Visits
from recrawl.show.quality_picture import quality_figure
from recrawl.time import DAY

SECTIONS = {"section": ["http://a.org/"], "blur_total": [1.0]}


@pytest.mark.parametrize("crawls", [1, 3, 40])
def test_crawls_are_named_by_their_dates_and_nothing_hides_a_bar(crawls):
    pages, start = 12, 1_700_000_000.0
    visits = Visits.of(
        np.tile(np.arange(pages), crawls),
        start + np.repeat(np.arange(crawls), pages) * 7.0 * DAY + np.tile(np.arange(pages), crawls),
        verdict=np.repeat(np.where(np.arange(crawls) > 0, 1, 0), pages),
    )
    looks = Looks.from_visits(visits)
    quality = archive_quality(looks, np.full(pages, 1e-7), np.ones(pages), np.zeros(pages, np.int64))
    assert len(quality.rounds) == crawls
    figure = quality_figure(quality, SECTIONS)
    figure.canvas.draw()
    axis = figure.axes[0]
    ticks = axis.get_xticks()
    assert np.array_equal(ticks, np.round(ticks))
    assert 0 <= ticks.min() <= ticks.max() < crawls
    names = [label.get_text() for label in axis.get_xticklabels()]
    assert names[0] == "2023-11-14"
    assert len(set(names)) == len(names) == len(ticks) <= 10
    assert np.array_equal(axis.get_yticks(), np.round(axis.get_yticks()))
    bars, legend = axis.get_window_extent(), axis.get_legend().get_window_extent()
    assert legend.y0 >= bars.y1
    shown = [label.get_window_extent() for label in axis.get_xticklabels()]
    assert all(label.y1 <= bars.y0 for label in shown)
