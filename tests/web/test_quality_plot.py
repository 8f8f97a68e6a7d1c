"""The picture of ``recrawl assess --plot``."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from recrawl.app.plots import RateSample, RatesPlot, plot_quality, plot_rates
from recrawl.app.result_tables import new_figure
from recrawl.assess.archive_quality import archive_quality
from recrawl.assess.observations import Observations
from recrawl.model import Visits
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
    observations = Observations.from_visits(visits)
    quality = archive_quality(observations, np.full(pages, 1e-7), np.ones(pages), np.zeros(pages, np.int64))
    assert len(quality.rounds) == crawls
    figure = new_figure()
    plot_quality(figure, quality, SECTIONS)
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


def test_blur_that_is_not_known_is_no_bar_of_no_length():
    observations = Observations.from_visits(Visits.of([0, 0], [0.0, DAY], verdict=[0, 1]))
    quality = archive_quality(observations, np.full(1, 1e-7), np.ones(1), np.zeros(1, np.int64))
    names = [f"http://a.org/{name}" for name in ("much", "none", "unknown")]
    _, axis = plot_quality(new_figure(), quality, {"section": names, "blur_total": [1.0, 0.0, np.nan]})
    assert [bar.get_width() for bar in axis.patches] == [1.0, 0.0]
    assert [(text.get_text(), text.xy) for text in axis.texts] == [("not known", (0.0, 0))]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["a.org/much", "a.org/none", "a.org/unknown"]


def test_an_axis_without_any_value_has_no_numbers_and_its_name_fits():
    observations = Observations.from_visits(Visits.of([0], [0.0], verdict=[0]))
    quality = archive_quality(observations, np.full(1, np.nan), np.ones(1), np.zeros(1, np.int64))
    figure = new_figure()
    _, axis = plot_quality(figure, quality, {"section": ["http://a.org/"], "blur_total": [np.nan]})
    figure.canvas.draw()
    assert list(axis.get_xticks()) == []
    assert axis.xaxis.label.get_window_extent().x1 <= figure.bbox.x1


@pytest.mark.parametrize("days", [(0.16, 0.3, 1.2, 3.6), (0.001, 4_000.0), (2.0, 2.1)])
def test_numbers_of_a_logarithmic_axis_stay_apart(days):
    every = np.resize(np.array(days), 30)
    figure = new_figure()
    spread, sure = plot_rates(figure, RatesPlot(RateSample("pages", every), every, every / 2, every * 2, "rates"))
    figure.canvas.draw()
    for axis, low, high in ((spread.xaxis, "x0", "x1"), (sure.yaxis, "y0", "y1")):
        first, last = sorted(axis.get_view_interval())
        labels = [
            label
            for label in axis.get_ticklabels(which="both")
            if first <= label.get_position()["xy".index(low[0])] <= last
        ]
        boxes = [label.get_window_extent() for label in labels if label.get_text()]
        assert len(boxes) > 1 or days == (2.0, 2.1)
        ordered = sorted(boxes, key=lambda box: getattr(box, low))
        assert all(getattr(one, high) < getattr(two, low) for one, two in pairwise(ordered))
