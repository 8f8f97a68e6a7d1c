"""What the captures of recorded sites say: in Markdown, and as pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan
from statistics import fmean
from typing import TYPE_CHECKING

from recrawl.simulate.capture_recorded_trial import AT_SPEED, BASELINES, SINGLE_VISIT, SOURCES, VISIT_REVISIT

if TYPE_CHECKING:
    from recrawl.show.sharc import DotPanel
    from recrawl.simulate.capture_recorded import RecordedSite
    from recrawl.simulate.capture_recorded_trial import RecordedTrial, Source

_YEAR = 365.25 * 86400.0
_NEARLY = 1e-6
"""Pages; less is a matter of rounding."""
_SLOW = "slowed down"
_BLIND = ("bfs", "dfs")
"""Strategies that no rates are told: they are the same whatever is believed."""
_DRAWN = (
    "sharc-optimal",
    "sharc-selective",
    "sharc-selective-online",
    "hottest-last-lifo",
    "bfs-lifo",
    "dfs-lifo",
    "bfs-fifo",
)


class RealTables:
    """All trials, and what they say."""

    def __init__(self, sites: Sequence[RecordedSite], trials: Sequence[RecordedTrial], bounds: Sequence[float]) -> None:
        """``bounds`` are what no schedule of each site goes below, in expected incoherent pages."""
        self._bounds = {site.name: bound for site, bound in zip(sites, bounds, strict=True)}
        self._trials = {(t.site, t.source, t.strategy, _speed(t.delay)): t for t in trials}
        self._spans = {site.name: (site.collection.end - site.middle) / _YEAR for site in sites}
        self.sites = [site.name for site in sites if any(site.name == trial.site for trial in trials)]
        self._speeds = list(dict.fromkeys(_speed(trial.delay) for trial in trials if not isnan(trial.delay)))

    # -- Markdown --------------------------------------------------------------------------------

    def report(self) -> str:
        """All tables."""
        parts = [
            "## Expected incoherence with true rates",
            _CLAIM_NOTE,
            self._claim(),
            "## Blur, as in Table 4.3",
            _BLUR_NOTE,
            *self._by_source(SINGLE_VISIT, lambda t: f"{t.expected_blur:.2f} / {t.actual_blur:.2f}", SOURCES[:3]),
            "## Incoherence, as in Tables 5.6 to 5.8",
            _COHERENCE_NOTE,
            *self._by_source(VISIT_REVISIT, lambda t: f"{t.expected_incoherence:.0f} / {t.incoherence:.0f}", SOURCES),
            "## All sites together",
            _SUMMARY_NOTE,
            self._summary(),
            "## At a realistic speed",
            _SPEED_NOTE,
            *self._at_speed(),
        ]
        return "\n\n".join(parts) + "\n"

    def _claim(self) -> str:
        """On every site: the optimum, SHARC-Selective, and the best that people do without them."""
        from recrawl.show.experiments import markdown_table

        rows = []
        for site in self.sites:
            value = {name: self._slow(site, "oracle", name).expected_incoherence for name in VISIT_REVISIT}
            best = min(BASELINES, key=value.__getitem__)
            optimal, selective = value["sharc-optimal"], value["sharc-selective"]
            holds = optimal <= selective + _NEARLY and selective <= value[best] + _NEARLY
            pages = self._slow(site, "oracle", best).pages
            numbers = [self._bounds[site], optimal, selective, value["sharc-selective-online"], value[best]]
            shown = [f"{number:.2f}" for number in numbers]
            rows.append([site, f"{pages:,.0f}", f"{self._spans[site]:.1f}", *shown, best, "yes" if holds else "**no**"])
        headings = [
            "site",
            "pages",
            "years",
            "bound",
            "optimal",
            "selective",
            "selective, online",
            "best baseline",
            "",
            "holds",
        ]
        return markdown_table(headings, rows)

    def _by_source(
        self, strategies: Sequence[str], shown: Callable[[RecordedTrial], str], sources: Sequence[Source]
    ) -> list[str]:
        from recrawl.show.experiments import markdown_table

        parts = []
        for source in sources:
            names = [name for name in strategies if source == "oracle" or not name.startswith(_BLIND)]
            rows = [[site, *(shown(self._slow(site, source, name)) for name in names)] for site in self.sites]
            parts += [_SOURCE_TITLES[source], markdown_table(["site", *names], rows)]
        return parts

    def _summary(self) -> str:
        """Mean over the sites of the share of pages that changed, by strategy and source."""
        from recrawl.show.experiments import markdown_table

        rows = []
        for name in VISIT_REVISIT:
            cells = [f"{100 * fmean(self._shares(name, 'oracle', expected=True)):.1f} %"]
            cells += [f"{100 * fmean(self._shares(name, source)):.1f} %" for source in SOURCES]
            rows.append([name, *cells])
        return markdown_table(["strategy", "expected, oracle", *SOURCES], rows)

    def _at_speed(self) -> list[str]:
        from recrawl.show.experiments import markdown_table

        parts = []
        for speed in self._speeds:
            rows = []
            for site in self.sites:
                trials = [self._trials[site, "learned", name, speed] for name in AT_SPEED]
                rows.append([site, f"{trials[0].pages:,.0f}", *(_speed_cell(trial) for trial in trials)])
            parts += [f"{speed}, learned rates:", markdown_table(["site", "pages", *AT_SPEED], rows)]
        return parts

    # -- pictures --------------------------------------------------------------------------------

    def coherence_panels(self) -> list[DotPanel]:
        """Share of incoherent pages: expected with true rates, actual with true rates, actual with learned rates."""
        from recrawl.show.sharc import DotPanel

        kinds: tuple[tuple[str, Source, bool], ...] = (
            ("expected, true rates", "oracle", True),
            ("actual, true rates", "oracle", False),
            ("actual, learned rates", "learned", False),
        )
        return [
            DotPanel(
                title,
                "share of pages",
                {name: self._shares(name, source, expected=expected) for name in _DRAWN},
                _DRAWN[:3],
            )
            for title, source, expected in kinds
        ]

    def blur_panels(self) -> list[DotPanel]:
        """Blur in units of that of breadth-first."""
        from recrawl.show.sharc import DotPanel

        kinds: tuple[tuple[str, Source, str], ...] = (
            ("expected, true rates", "oracle", "expected_blur"),
            ("actual, true rates", "oracle", "actual_blur"),
            ("actual, learned rates", "learned", "actual_blur"),
        )
        return [
            DotPanel(
                title,
                "blur, in units of breadth-first",
                {name: [self._beside_bfs(site, source, name, measure) for site in self.sites] for name in SINGLE_VISIT},
                SINGLE_VISIT[:2],
            )
            for title, source, measure in kinds
        ]

    # -- inside ----------------------------------------------------------------------------------

    def _slow(self, site: str, source: Source, strategy: str) -> RecordedTrial:
        return self._trials[site, source, strategy, _SLOW]

    def _shares(self, strategy: str, source: Source, *, expected: bool = False) -> list[float]:
        trials = [self._slow(site, source, strategy) for site in self.sites]
        return [(t.expected_incoherence if expected else t.incoherence) / t.pages for t in trials]

    def _beside_bfs(self, site: str, source: Source, strategy: str, measure: str) -> float | None:
        blur, of_bfs = (float(getattr(self._slow(site, source, name), measure)) for name in (strategy, "bfs"))
        return blur / of_bfs if of_bfs > 0 else None


def _speed(delay: float) -> str:
    return _SLOW if isnan(delay) else f"{delay:g} s between requests"


def _speed_cell(trial: RecordedTrial) -> str:
    """Blur of a thousand pages of single visits, incoherent pages of two: expected / actual."""
    if trial.strategy in SINGLE_VISIT:
        return f"{1000 * trial.expected_blur:.2f} / {1000 * trial.actual_blur:.2f}"
    return f"{trial.expected_incoherence:.2f} / {trial.incoherence:.2f}"


_SOURCE_TITLES = {
    "oracle": "With true rates:",
    "learned": "With rates learned from weekly visits in the first half:",
    "sitemap": "With an honest sitemap of the first half, Definition 6.1 as printed:",
    "sitemap-corrected": "With an honest sitemap of the first half, Definition 6.1 as corrected:",
}
_CLAIM_NOTE = """\
Pages expected to change between visit and revisit, captures slowed down to the second half of the record, true rates.
No schedule can go below the *bound*. *Holds*: optimal ≤ selective ≤ the best of the eight baselines."""
_BLUR_NOTE = """\
Average blur a page, captures slowed down: expected / actual. Both readings of Definition 6.1 put the pages in the same
order, so their blur is the same."""
_COHERENCE_NOTE = "Pages that change between visit and revisit, captures slowed down: expected / actual."
_SUMMARY_NOTE = """\
Mean over the sites of the share of pages that change between visit and revisit: expected with true rates, and actual by
what was believed."""
_SPEED_NOTE = """\
Means over all captures, expected / actual: blur of a thousand pages by the first four strategies, pages that change
between visit and revisit by the others."""
