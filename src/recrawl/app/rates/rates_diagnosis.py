"""``recrawl rates diagnose``: is it Poisson? The verdict, the numbers behind it, and the plots of HACS."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.app.plots import DiagnosisPlot, RateSample, plot_diagnosis
from recrawl.app.rates.rates_table import RateRows, RatesGrouping, RatesQuestion, grouped, rows_for, wanted_pages
from recrawl.app.result_tables import new_figure, save_figure
from recrawl.assess.poisson_test import (
    QUANTILES,
    SHORT,
    Diagnosis,
    LogNormalFit,
    diagnose,
    fit_lognormal,
    pattern_of,
    sentences,
)
from recrawl.model import BoolArray, FloatArray
from recrawl.store.base import PageTable, Store
from recrawl.time import DAY, format_duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SEED = 4
"""The seed of the simulations for the p-values: the same workspace gives the same verdict."""
_RARE = 0.025


@dataclass(frozen=True, slots=True)
class DiagnosisFindings:
    """What was found of the pages, and of how their rates differ."""

    diagnosis: Diagnosis
    pages: LogNormalFit
    hosts: LogNormalFit
    page_intervals: FloatArray
    """1/λ of each page that changed, seconds."""
    host_intervals: FloatArray


def investigate(store: Store, question: RatesQuestion) -> DiagnosisFindings:
    """Everything ``recrawl rates diagnose`` says, from the visits the question is about."""
    rows = rows_for(store, replace(question, by=RatesGrouping.PAGE))
    return findings_of(rows, wanted_pages(store, question, rows.training))


def findings_of(rows: RateRows, kept: BoolArray) -> DiagnosisFindings:
    """The same for pages with known beliefs, limited to ``kept``."""
    rng = np.random.default_rng(SEED)
    diagnosis = diagnose(rows.training.histories.take(kept), rng, exact=rows.exact[kept])
    ids, label = np.unique(rows.host, return_inverse=True)
    by_host = grouped(rows, label.astype(np.int64), [str(one) for one in ids.tolist()])
    pages, hosts = _changed_rates(rows, kept), _changed_rates(by_host, np.ones(len(by_host), np.bool_))
    return DiagnosisFindings(diagnosis, fit_lognormal(pages, rng), fit_lognormal(hosts, rng), 1.0 / pages, 1.0 / hosts)


def _changed_rates(rows: RateRows, kept: BoolArray) -> FloatArray:
    """Estimated rates of the rows that changed at least once, per second: of the others only bounds are known."""
    rates = rows.rate[kept & (rows.changes > 0)]
    return rates[(rates > 0) & np.isfinite(rates)]


def facts(found: DiagnosisFindings) -> dict[str, Any]:
    """The findings for programs."""
    d = found.diagnosis
    table = dict(zip(("seen", "poisson_same_observations", "exponential"), d.quantiles.tolist(), strict=True))
    return {
        "pattern": pattern_of(d).value,
        "verdict": sentences(d),
        "pages": {"tested": len(d.pages), "eligible": d.eligible, "too_few_changes": d.too_few}
        | {"changed_at_every_look": d.saturated, "exact": d.exact},
        "dispersion": {"index": d.dispersion, "p": d.p_dispersion},
        "intervals": {
            "count": d.intervals,
            "distance": d.distance,
            "p": d.p_distance,
            "distance_from_exponential": d.distance_exponential,
            "quantiles": {"q": list(QUANTILES), **table},
            "up_to_a_week": d.short,
            "up_to_a_week_expected": d.short_expected,
        },
        "median_interval_times_rate": _middle_half(d),
        "alone": {
            "bursts": float((d.pages.p_bursts <= _RARE).mean()) if len(d.pages) else None,
            "regular": float((d.pages.p_regular <= _RARE).mean()) if len(d.pages) else None,
        },
        "lognormal": {"page": _fit_facts(found.pages), "host": _fit_facts(found.hosts)},
        "simulations": d.repeats,
    }


def columns(store: PageTable, found: DiagnosisFindings) -> dict[str, list[Any]]:
    """One row a tested page, for files. Durations in seconds."""
    pages = found.diagnosis.pages
    return {
        "page": pages.page.tolist(),
        "url": store.urls(pages.page),
        "changes": pages.changes.tolist(),
        "changes_per_day": (pages.rate * DAY).tolist(),
        "mean_interval": (1.0 / pages.rate).tolist(),
        "median_interval": pages.median_interval.tolist(),
        "dispersion": pages.dispersion.tolist(),
        "p_bursts": pages.p_bursts.tolist(),
        "p_regular": pages.p_regular.tolist(),
        "distance": pages.distance.tolist(),
        "p_distance": pages.p_distance.tolist(),
    }


def _middle_half(d: Diagnosis) -> list[float]:
    """Quartiles of median interval × rate over the tested pages."""
    ratio = d.pages.median_interval * d.pages.rate
    return np.quantile(ratio, [0.25, 0.5, 0.75]).tolist() if len(ratio) else []


def _fit_facts(fit: LogNormalFit) -> dict[str, float]:
    return {
        "count": fit.pages,
        "mu": fit.mu,
        "sigma": fit.sigma,
        "median_days": fit.median / DAY,
        "distance": fit.distance,
        "p": fit.p,
    }


def table_rows(found: DiagnosisFindings) -> list[tuple[str, str, str]]:
    """Name, figure and explanation of everything worth knowing."""
    d, quartiles = found.diagnosis, _middle_half(found.diagnosis)
    tested = f"of {d.eligible:,} with enough changes; {d.too_few:,} with too few changes"
    rows = [("pages tested", f"{len(d.pages):,}", tested)]
    if len(d.pages):
        alone = [(values <= _RARE).mean() for values in (d.pages.p_bursts, d.pages.p_regular)]
        rows += [
            ("  exactly dated", f"{d.exact:,}", "by a log of changes; the others by observations"),
            (
                "dispersion",
                f"{d.dispersion:.2f}",
                f"1 for Poisson, above 1 for bursts, below 1 for regular changes; p = {d.p_dispersion:.3f}",
            ),
            ("  pages in bursts", f"{alone[0]:.0%}", "tested one by one; 2.5% expected for Poisson"),
            ("  regular pages", f"{alone[1]:.0%}", "the same"),
            ("intervals", f"{d.intervals:,}", "between one change of a page and its next"),
            (
                "  distance to Poisson",
                f"{d.distance:.3f}",
                f"Kolmogorov–Smirnov, same observations; p = {d.p_distance:.3f}",
            ),
            ("  from an exponential", f"{d.distance_exponential:.3f}", "without correction for unobserved changes"),
            (f"  up to {format_duration(SHORT)}", f"{d.short:.0%}", f"{d.short_expected:.0%} for Poisson"),
            *_quantile_rows(d),
            (
                "median interval × rate",
                f"{quartiles[1]:.2f}",
                f"{quartiles[0]:.2f}–{quartiles[2]:.2f} for half of the pages; 0.69 for Poisson, observed continuously",
            ),
        ]
    return rows + _fit_rows("1/λ of pages", found.pages) + _fit_rows("1/λ of hosts", found.hosts)


def _quantile_rows(d: Diagnosis) -> list[tuple[str, str, str]]:
    return [
        (f"  {q:.0%} are below", f"{seen:.2f}", f"{same:.2f} for Poisson, {pure:.2f} exponential; in units of 1/λ")
        for q, (seen, same, pure) in zip(QUANTILES, d.quantiles.T.tolist(), strict=True)
    ]


def _fit_rows(name: str, fit: LogNormalFit) -> list[tuple[str, str, str]]:
    if np.isnan(fit.mu):
        return [(name, "not known", f"too few changed pages for a distribution: {fit.pages}")]
    fits = "fits" if fit.p >= 2 * _RARE else "does not fit exactly"
    return [
        (name, format_duration(fit.median), f"median of {fit.pages:,} that changed"),
        ("  log-normal", f"σ = {fit.sigma:.2f}", f"{fits}: distance {fit.distance:.3f}, p = {fit.p:.3f}"),
    ]


def draw(found: DiagnosisFindings, file: Path) -> None:
    """Write figures 4 to 6 of HACS, of this workspace, as PNG, SVG or PDF, by the ending of ``file``."""
    figure = new_figure()
    plot(figure, found)
    save_figure(figure, file)


def plot(figure: Figure, found: DiagnosisFindings) -> list[Axes]:
    """Draw figures 4 to 6 of HACS, of this workspace."""
    d = found.diagnosis
    drawn = DiagnosisPlot(
        samples=(
            RateSample("pages", found.page_intervals / DAY, _curve(found.pages)),
            RateSample("hosts", found.host_intervals / DAY, _curve(found.hosts)),
        ),
        rescaled=d.rescaled,
        reference=d.reference,
        every_days=1.0 / (d.pages.rate * DAY),
        median_days=d.pages.median_interval / DAY,
        title=sentences(d)[0].partition(":")[0].rstrip(".") + ".",
    )
    return plot_diagnosis(figure, drawn)


def _curve(fit: LogNormalFit) -> tuple[FloatArray, FloatArray] | None:
    """Days, and the density of ln(days) under the fit."""
    if np.isnan(fit.mu):
        return None
    seconds = np.exp(fit.mu + fit.sigma * np.linspace(-3.5, 3.5, 200))
    return seconds / DAY, fit.density(seconds)
