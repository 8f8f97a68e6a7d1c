r"""Strategies on the synthetic sites of the SHARC thesis: published tables, expected quality, simulated histories.

The thesis states the rates, the defaults (skew 1.2, 10,000 pages, a delay of 1) and what a table varies. The number of
links per page differs from table to table in spite of a stated default of 400; it was found by fitting. In Tables 4.4
to 4.6 the columns HF and HL are exchanged: with cold leaves every page is hotter than those below it, so hottest-first
gives the exact order of rates, and only the column labelled HL shows its blur. Here columns are named by their content.

Most strategies use only rates, so their schedule does not depend on the order of links and is computed once.
Breadth-first and depth-first follow the links: each repeat has another order and another schedule.

The published tables were made with gaps max(1, ⌊Exp(λ)⌋) (:class:`recrawl.simulate.virtual_web.WholeGapProcess`),
not with a Poisson process. These gaps are 1 with probability 1 − q² and j ≥ 2 with (1 − q)q^j, where q = e^{−λ}. The
generating function of the probability u_k of a change at second k is then (1 − qz)/((1 − z)(1 − cz)) with c = q(1 − q),
so

.. math:: u_k = a + b\,c^k, \qquad a = \frac{1 - q}{1 - c}, \quad b = 1 - a,

and all sums over changes have closed forms. Seconds are counted from the first request of a capture, where every page
counts as just changed. O(n).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from zlib import crc32

import numpy as np

from recrawl.capture import CaptureTerms
from recrawl.model import FloatArray
from recrawl.simulate.virtual_web import ChangeProcess, EventTimes, PoissonProcess
from recrawl_lab.trials.simulated_capture import (
    Leaves,
    SimulatedCapture,
    VirtualSite,
    capture_named,
    slots,
    thesis_site,
    tree_graph,
)

Varied = Literal["pages", "slow-down", "skew"]
"""What differs from row to row of a table."""

SINGLE_VISIT = ("sharc-offline", "sharc-online", "hottest-last", "hottest-first", "bfs", "dfs", "olston-pandey")
"""Strategies in the order of the columns of Tables 4.4 to 4.6."""
VISIT_REVISIT = (
    "sharc-selective",
    "sharc-selective-online",
    "sharc-revisits",
    "hottest-first-fifo",
    "hottest-first-lifo",
    "hottest-last-fifo",
    "hottest-last-lifo",
    "bfs-fifo",
    "bfs-lifo",
    "dfs-fifo",
    "dfs-lifo",
)
"""Strategies in the order of the columns of Tables 5.9 to 5.14."""
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""τ, the columns of Tables 5.1 and 5.2."""


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One row of a table: the site it was made on, and the printed numbers."""

    table: str
    varied: Varied
    pages: int
    skew: float
    slow_down: float
    """Delay between two requests, in units of the mean time between changes of the hottest page."""
    outdegree: int
    leaves: Leaves
    published: Mapping[str, float]
    """By strategy: average blur a page, or incoherent pages."""

    @property
    def value(self) -> float:
        """What the row stands for, in terms of what the table varies."""
        return {"pages": float(self.pages), "slow-down": self.slow_down, "skew": self.skew}[self.varied]

    def shrunk(self, pages: int) -> PublishedRow:
        """The same on a site of fewer pages, with links in proportion; nothing was published of it."""
        outdegree = max(self.outdegree * pages // self.pages, 1)
        return replace(self, pages=pages, outdegree=outdegree, published={})


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A table of the thesis."""

    name: str
    title: str
    varied: Varied
    leaves: Leaves
    outdegree: int | None
    """Links of a page; ``None`` where it is a part of the pages."""
    part: int
    """Then the outdegree is the number of pages over this."""
    columns: Sequence[str]
    rows: Sequence[tuple[float, ...]]
    """What is varied, and then a number a column."""

    def settings(self) -> Iterator[PublishedRow]:
        """The rows, with all that is needed to repeat them."""
        for first, *printed in self.rows:
            pages = int(first) if self.varied == "pages" else _PAGES
            yield PublishedRow(
                table=self.name,
                varied=self.varied,
                pages=pages,
                skew=first if self.varied == "skew" else _SKEW,
                slow_down=first if self.varied == "slow-down" else 1.0,
                outdegree=self.outdegree or max(pages // self.part, 1),
                leaves=self.leaves,
                published=dict(zip(self.columns, printed, strict=True)),
            )

    def settings_within(self, most: int) -> list[PublishedRow]:
        """The rows of sites of at most N pages; if there are none, the rows on sites shrunk to that size."""
        small = [setting for setting in self.settings() if setting.pages <= most]
        shrunk = {setting.value: setting for setting in (one.shrunk(most) for one in self.settings())}
        return small or list(shrunk.values())


_PAGES, _SKEW = 10_000, 1.2

BLUR_TABLES = (
    PublishedTable(
        "4.4a", "Average blur a page by size, cold leaves", "pages", "cold", None, 5, SINGLE_VISIT,
        (
            (1e4, 1.21, 1.70, 1.75, 2.26, 2.00, 1.80, 2.28),
            (5e4, 1.25, 1.75, 1.80, 2.38, 2.07, 1.83, 2.42),
            (1e5, 1.27, 1.77, 1.82, 2.44, 2.13, 1.87, 2.48),
            (5e5, 1.30, 1.81, 1.86, 2.52, 2.18, 2.00, 2.56),
            (1e6, 1.31, 1.83, 1.87, 2.55, 2.19, 2.01, 2.59),
        ),
    ),
    PublishedTable(
        "4.4b", "Average blur a page by size, hot leaves", "pages", "hot", None, 4, SINGLE_VISIT,
        (
            (1e4, 1.19, 1.21, 2.24, 1.44, 1.28, 1.22, 2.25),
            (5e4, 1.25, 1.26, 2.39, 1.53, 1.92, 1.81, 2.42),
            (1e5, 1.26, 1.27, 2.43, 1.55, 1.36, 1.30, 2.47),
            (6e5, 1.29, 1.30, 2.52, 1.60, 1.39, 1.96, 2.56),
            (1e6, 1.31, 1.31, 2.55, 1.61, 2.21, 1.94, 2.59),
        ),
    ),
    PublishedTable(
        "4.5a", "Average blur a page by slow-down, cold leaves", "slow-down", "cold", 400, 1, SINGLE_VISIT,
        (
            (1, 1.20, 1.68, 1.97, 2.25, 2.21, 1.78, 2.28),
            (2, 2.41, 3.38, 3.96, 4.50, 4.36, 3.46, 4.41),
            (3, 3.58, 5.02, 5.89, 6.70, 6.48, 5.07, 6.54),
            (4, 4.79, 6.72, 7.88, 8.98, 8.81, 7.28, 8.77),
            (5, 5.99, 8.38, 9.83, 11.21, 10.77, 8.58, 10.95),
            (10, 12.00, 16.83, 19.75, 22.48, 21.62, 16.75, 22.00),
        ),
    ),
    PublishedTable(
        "4.5b", "Average blur a page by slow-down, hot leaves", "slow-down", "hot", 400, 1, SINGLE_VISIT,
        (
            (1, 1.20, 1.22, 2.27, 2.10, 1.86, 1.85, 2.27),
            (2, 2.39, 2.42, 4.48, 4.17, 2.47, 2.46, 4.40),
            (3, 3.60, 3.65, 6.73, 6.25, 3.92, 4.02, 6.56),
            (4, 4.80, 4.86, 8.99, 8.37, 7.55, 7.47, 8.77),
            (5, 5.98, 6.07, 11.19, 10.42, 8.29, 8.24, 10.94),
            (10, 12.01, 12.18, 22.47, 20.92, 17.67, 18.79, 22.03),
        ),
    ),
    PublishedTable(
        "4.6a", "Average blur a page by skew, cold leaves", "skew", "cold", 300, 1, SINGLE_VISIT,
        (
            (0.5, 60.49, 67.00, 73.53, 73.84, 71.79, 67.63, 69.23),
            (1.0, 2.57, 3.35, 3.99, 4.40, 4.29, 3.54, 4.20),
            (1.5, 0.61, 0.88, 1.08, 1.21, 1.18, 1.00, 1.22),
            (2.0, 0.37, 0.58, 0.70, 0.74, 0.74, 0.63, 0.74),
        ),
    ),
    PublishedTable(
        "4.6b", "Average blur a page by skew, hot leaves", "skew", "hot", 300, 1, SINGLE_VISIT,
        (
            (0.5, 60.38, 62.38, 73.71, 72.02, 69.01, 69.56, 69.23),
            (1.0, 2.55, 2.61, 4.39, 4.17, 3.10, 3.15, 4.16),
            (1.5, 0.62, 0.62, 1.22, 1.16, 1.06, 1.11, 1.22),
            (2.0, 0.38, 0.38, 0.75, 0.71, 0.38, 0.38, 0.75),
        ),
    ),
)  # fmt: skip
"""Blur of single-visit strategies."""

COHERENCE_TABLES = (
    PublishedTable(
        "5.9", "Incoherent pages by size, cold leaves", "pages", "cold", 400, 1, VISIT_REVISIT,
        (
            (1e4, 3075, 3075, 4104, 4184, 4140, 4177, 3079, 4170, 3719, 4163, 3995),
            (5e4, 11940, 11940, 17327, 17394, 17959, 17397, 12100, 17368, 16072, 17418, 16366),
            (1e5, 21378, 21378, 32051, 32142, 33705, 32110, 21533, 32015, 29033, 32129, 29395),
        ),
    ),
    PublishedTable(
        "5.10", "Incoherent pages by size, hot leaves", "pages", "hot", 400, 1, VISIT_REVISIT,
        (
            (1e4, 3019, 3039, 4143, 4140, 4057, 4165, 3238, 4136, 3785, 4175, 3999),
            (5e4, 11830, 11997, 17377, 17321, 17925, 17330, 12364, 17288, 16582, 17366, 15397),
            (1e5, 21417, 21630, 32295, 32050, 33776, 32313, 22165, 32028, 30618, 32181, 29664),
        ),
    ),
    PublishedTable(
        "5.11", "Incoherent pages by slow-down, cold leaves", "slow-down", "cold", 400, 1, VISIT_REVISIT,
        (
            (1, 3058, 3058, 4215, 4172, 4118, 4212, 3062, 4176, 3931, 4222, 3695),
            (2, 4608, 4607, 5865, 5875, 5359, 5857, 4919, 5811, 5317, 5887, 5542),
            (3, 5672, 5673, 6945, 7009, 6193, 6984, 6301, 6984, 6215, 6975, 6336),
            (4, 6255, 6286, 7695, 7678, 6646, 7711, 7287, 7701, 6814, 7703, 6842),
            (5, 6721, 6753, 8207, 8214, 7009, 8224, 7985, 8224, 7221, 8195, 7414),
            (10, 7906, 7903, 9443, 9419, 8003, 9432, 9488, 9415, 8561, 9425, 8619),
        ),
    ),
    PublishedTable(
        "5.12", "Incoherent pages by slow-down, hot leaves", "slow-down", "hot", 400, 1, VISIT_REVISIT,
        (
            (1, 3002, 3006, 4102, 4115, 4083, 4150, 3216, 4091, 3735, 4170, 4006),
            (2, 4547, 4859, 5778, 5767, 5281, 5741, 5288, 5733, 5598, 5818, 5305),
            (3, 5552, 6387, 6835, 6894, 6066, 6833, 6774, 6896, 6531, 6887, 6260),
            (4, 6221, 6466, 7697, 7689, 6696, 7688, 7816, 7690, 6856, 7681, 6953),
            (5, 6744, 6847, 8208, 8215, 7092, 8210, 8541, 8222, 7379, 8195, 7634),
            (10, 7959, 8075, 9431, 9436, 8118, 9414, 9760, 9403, 8708, 9446, 8309),
        ),
    ),
    PublishedTable(
        "5.13", "Incoherent pages by skew, cold leaves", "skew", "cold", 500, 1, VISIT_REVISIT,
        (
            (1.0, 7061, 7073, 8518, 8517, 7257, 8504, 8110, 8540, 7623, 8509, 7567),
            (1.5, 365, 367, 1064, 1037, 1308, 1060, 710, 1056, 1119, 1035, 935),
            (2.0, 11, 35, 169, 174, 246, 176, 210, 178, 223, 170, 175),
        ),
    ),
    PublishedTable(
        "5.14", "Incoherent pages by skew, hot leaves", "skew", "hot", 500, 1, VISIT_REVISIT,
        (
            (1.0, 7012, 7151, 8455, 8479, 7283, 8475, 8587, 8516, 7790, 8486, 7316),
            (1.5, 355, 355, 1018, 1010, 1237, 1033, 362, 1035, 714, 1022, 1157),
            (2.0, 20, 20, 182, 174, 225, 171, 22, 177, 186, 181, 169),
        ),
    ),
)  # fmt: skip
"""Incoherence of visit-revisit strategies."""

THRESHOLD_TABLES: Mapping[str, Mapping[float, Sequence[int]]] = {
    "5.1": {
        1.0: (8619, 7439, 7097, 7108, 7164, 7202, 7248, 7266, 7260, 7257),
        1.5: (1291, 1239, 1188, 1125, 1045, 961, 848, 723, 549, 519),
        2.0: (235, 221, 210, 197, 187, 162, 144, 129, 100, 78),
    },
    "5.2": {
        1.0: (8726, 8574, 8212, 7831, 7539, 7358, 7293, 7273, 7266, 7257),
        1.5: (1320, 1291, 1261, 1212, 1126, 1047, 970, 874, 745, 790),
        2.0: (240, 231, 221, 211, 195, 176, 165, 130, 104, 86),
    },
}
"""Incoherent pages of SHARC-Threshold (5.1) and SHARC-Intervals (5.2): by skew, one number a threshold."""
THRESHOLD_STRATEGIES = {
    "5.1": ("sharc-threshold", "sharc-threshold-outermost"),
    "5.2": ("sharc-intervals", "sharc-intervals-online"),
}
"""What is tried beside each: the definition as corrected, and the form that works online."""


def threshold_settings() -> Iterator[PublishedRow]:
    """The sites of Tables 5.1 and 5.2: cold leaves, 500 links a page, skews 1, 1.5 and 2."""
    for skew in (1.0, 1.5, 2.0):
        yield PublishedRow("5.1", "skew", _PAGES, skew, 1.0, 500, "cold", {})


def expected_blur(rate: FloatArray, visit: FloatArray, end: float) -> FloatArray:
    """Expected actual blur (SHARC 4.19) of each page over the seconds 0 … ``end``; ``visit`` in whole seconds.

    >>> expected_blur(np.array([1.0, 50.0]), np.array([1.0, 1.0]), 2.0).round(4).tolist()
    [0.4323, 0.5]
    """
    if end <= 0:
        return np.zeros(len(rate))
    q = np.exp(-rate)
    c = q * -np.expm1(-rate)
    a = -np.expm1(-rate) / (1.0 - c)
    steady = visit * (visit + 1.0) / 2.0 + (end - visit) * (end - visit - 1.0) / 2.0
    early, all_of_it = _first_moment(c, visit), _first_moment(c, end)
    later = end * (_mass(c, end) - _mass(c, visit)) - (all_of_it - early)
    return np.asarray((a * steady + (1.0 - a) * (early + later)) / end)


def page_coherence(rate: FloatArray, visit: FloatArray, revisit: FloatArray) -> FloatArray:
    """Probability that a page does not change after ``visit`` and up to ``revisit``, both in whole seconds.

    The last change is at some second k up to the visit, and the next gap reaches beyond the revisit:
    Σ_k u_k q^{revisit − k + 1}.

    >>> page_coherence(np.array([0.1, 0.1]), np.array([5.0, 5.0]), np.array([5.0, 9.0])).round(4).tolist()
    [1.0, 0.6637]
    """
    q = np.exp(-rate)
    p = -np.expm1(-rate)
    a = p / (1.0 - q * p)
    settled = np.exp(-rate * (revisit - visit + 1.0)) * -np.expm1(-rate * (visit + 1.0)) / (1.0 - q * p)
    fresh = (1.0 - a) * np.exp(-rate * revisit) * (1.0 - p ** (visit + 1.0))
    return np.where(revisit > visit, settled + fresh, 1.0)


def _mass(c: FloatArray, last: FloatArray | float) -> FloatArray:
    """Σ c^k for k = 1 … last."""
    return np.asarray(c * (1.0 - c**last) / (1.0 - c))


def _first_moment(c: FloatArray, last: FloatArray | float) -> FloatArray:
    """Σ k c^k for k = 1 … last."""
    return np.asarray(c * (1.0 - (last + 1.0) * c**last + last * c ** (last + 1.0)) / (1.0 - c) ** 2)


@dataclass(frozen=True, slots=True)
class StrategyTrial:
    """Average blur a page of a single-visit strategy, or incoherent pages of a visit-revisit strategy."""

    expected: tuple[float, ...]
    """If changes are a Poisson process; one value for each repeat with a schedule of its own."""
    expected_whole: tuple[float, ...]
    """The same if changes are whole seconds apart."""
    actual: tuple[float, ...]
    """What came of the changes drawn, one value a repeat."""
    deviation: float
    """Standard deviation of what comes of one Poisson history, by the first schedule."""


@dataclass(frozen=True, slots=True)
class StrategyEntry:
    """A strategy that takes part, with the threshold it is given."""

    strategy: str
    threshold: float = 0.95

    @property
    def by_links(self) -> bool:
        """Whether the order of links decides its schedule."""
        return self.strategy.startswith(("bfs", "dfs"))


def run_trials(
    setting: PublishedRow,
    entries: Sequence[StrategyEntry],
    *,
    seed: int,
    repeats: int,
    law: ChangeProcess | None = None,
) -> list[StrategyTrial]:
    """Capture the site of a setting ``repeats`` times by each strategy, changes drawn by ``law`` (default: Poisson).

    All meet the same links and the same changes. The number of pages is known to all. O(repeats · (changes +
    strategies · pages)) beside the strategies' own work.
    """
    own = (seed, crc32(f"{setting.table} {setting.value}".encode()))
    site = thesis_site(
        setting.pages,
        end=0.0,
        rng=np.random.default_rng((*own, 0, 0)),
        skew=setting.skew,
        outdegree=setting.outdegree,
        leaves=setting.leaves,
    )
    most = max((slots(entry.strategy, setting.pages) for entry in entries), default=1)
    taken = [_capture(site, setting, entry) for entry in entries]
    expected = [[_expected(one)] for one in taken]
    whole = [[_expected_whole(one)] for one in taken]
    deviation = [_deviation(one) for one in taken]
    actual: list[list[float]] = [[] for _ in entries]
    for repeat in range(repeats):
        if repeat:
            graph = tree_graph(setting.pages, setting.outdegree, np.random.default_rng((*own, 0, repeat)))
            for place, entry in enumerate(entries):
                if entry.by_links:
                    taken[place] = _capture(replace(site, graph=graph), setting, entry)
                    expected[place].append(_expected(taken[place]))
                    whole[place].append(_expected_whole(taken[place]))
        span = max(most - 1, 1) * setting.slow_down
        changes = (law or PoissonProcess()).times(site.rate, 0.0, span, np.random.default_rng((*own, 1, repeat)))
        for place, one in enumerate(taken):
            actual[place].append(_actual(one, site, changes))
    columns = zip(expected, whole, actual, deviation, strict=True)
    return [StrategyTrial(tuple(a), tuple(b), tuple(c), d) for a, b, c, d in columns]


def _capture(site: VirtualSite, setting: PublishedRow, entry: StrategyEntry) -> SimulatedCapture:
    terms = CaptureTerms(delay=setting.slow_down, expected=setting.pages, threshold=entry.threshold)
    return capture_named(site, entry.strategy, terms)


def _expected(taken: SimulatedCapture) -> float:
    return taken.expected_blur() if taken.plan.revisit is None else taken.expected_incoherence()


def _expected_whole(taken: SimulatedCapture) -> float:
    rate = taken.site.rate[taken.page]
    if taken.plan.revisit is None:
        return float(expected_blur(rate, taken.visit, taken.end).mean())
    return float((1.0 - page_coherence(rate, taken.visit, taken.revisit)).sum())


def _deviation(taken: SimulatedCapture) -> float:
    """A change at h adds h − start or end − h to the blur; pages are independent of each other."""
    rate, before, after = taken.site.rate[taken.page], taken.visit - taken.start, taken.end - taken.visit
    if taken.plan.revisit is not None:
        stays = np.exp(-rate * (taken.revisit - taken.visit))
        return float(np.sqrt((stays * (1.0 - stays)).sum()))
    span = max(taken.end - taken.start, 1e-9)
    return float(np.sqrt((rate * (before**3 + after**3) / 3.0).sum()) / span / len(rate))


def _actual(taken: SimulatedCapture, site: VirtualSite, changes: EventTimes) -> float:
    met = replace(taken, site=replace(site, changes=changes))
    return met.actual_blur() if taken.plan.revisit is None else float(met.incoherence())
