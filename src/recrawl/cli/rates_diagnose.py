"""``recrawl rates --diagnose``: is it Poisson? The verdict, the numbers behind it, and the pictures of HACS."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.assess.poisson import QUANTILES, SHORT, Diagnosis, diagnose
from recrawl.assess.poisson_verdict import pattern_of, sentences
from recrawl.assess.rates_spread import LogNormalFit, fit_lognormal
from recrawl.cli.rates_question import By, Question
from recrawl.cli.rates_rows import Rows, grouped, rows_for, wanted_pages
from recrawl.model import BoolArray, FloatArray
from recrawl.show.rates import DiagnosisPicture, RateSample, draw_diagnosis
from recrawl.store.base import Store
from recrawl.time import DAY, format_duration

SEED = 4
"""The simulations behind the p-values begin here, so that the same workspace gives the same verdict."""
_RARE = 0.025


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found of the pages, and of how their rates differ."""

    diagnosis: Diagnosis
    pages: LogNormalFit
    hosts: LogNormalFit
    page_intervals: FloatArray
    """1/λ of each page that changed, seconds."""
    host_intervals: FloatArray


def investigate(store: Store, question: Question) -> Findings:
    """Everything ``--diagnose`` says, from the visits the question is about."""
    rows = rows_for(store, replace(question, by=By.PAGE))
    return findings_of(rows, wanted_pages(store, question, rows.lesson))


def findings_of(rows: Rows, kept: BoolArray) -> Findings:
    """The same of pages that were learned before, those that are ``kept``."""
    rng = np.random.default_rng(SEED)
    diagnosis = diagnose(rows.lesson.histories.take(kept), rng, exact=rows.exact[kept])
    ids, label = np.unique(rows.host, return_inverse=True)
    by_host = grouped(rows, label.astype(np.int64), [str(one) for one in ids.tolist()])
    pages, hosts = _changed_rates(rows, kept), _changed_rates(by_host, np.ones(len(by_host), np.bool_))
    return Findings(diagnosis, fit_lognormal(pages, rng), fit_lognormal(hosts, rng), 1.0 / pages, 1.0 / hosts)


def _changed_rates(rows: Rows, kept: BoolArray) -> FloatArray:
    """Estimated rates of the rows that changed at least once, per second: of the others only bounds are known."""
    rates = rows.rate[kept & (rows.changes > 0)]
    return rates[(rates > 0) & np.isfinite(rates)]


def facts(found: Findings) -> dict[str, Any]:
    """The findings for programs."""
    d = found.diagnosis
    table = dict(zip(("seen", "poisson_same_looks", "exponential"), d.quantiles.tolist(), strict=True))
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


def columns(store: Store, found: Findings) -> dict[str, list[Any]]:
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


def table_rows(found: Findings) -> list[tuple[str, str, str]]:
    """Name, figure and explanation of everything worth knowing."""
    d, quartiles = found.diagnosis, _middle_half(found.diagnosis)
    tested = f"of {d.eligible:,} with changes enough; {d.too_few:,} changed too seldom to say"
    rows = [("pages tested", f"{len(d.pages):,}", tested)]
    if len(d.pages):
        alone = [(values <= _RARE).mean() for values in (d.pages.p_bursts, d.pages.p_regular)]
        rows += [
            ("  dated to the moment", f"{d.exact:,}", "by a log of changes; the others by looks"),
            (
                "dispersion",
                f"{d.dispersion:.2f}",
                f"1 is chance, more is bursts, less is regular; p = {d.p_dispersion:.3f}",
            ),
            ("  pages in bursts", f"{alone[0]:.0%}", "seen on their own; 2.5 % would be by chance"),
            ("  regular pages", f"{alone[1]:.0%}", "the same"),
            ("intervals", f"{d.intervals:,}", "between one change of a page and its next"),
            ("  distance from chance", f"{d.distance:.3f}", f"Kolmogorov–Smirnov, same looks; p = {d.p_distance:.3f}"),
            ("  from an exponential", f"{d.distance_exponential:.3f}", "with what looks hide left in"),
            (f"  up to {format_duration(SHORT)}", f"{d.short:.0%}", f"{d.short_expected:.0%} by chance"),
            *_quantile_rows(d),
            (
                "median interval × rate",
                f"{quartiles[1]:.2f}",
                f"{quartiles[0]:.2f}–{quartiles[2]:.2f} for half of the pages; 0.69 of Poisson pages seen all the time",
            ),
        ]
    return rows + _fit_rows("1/λ of pages", found.pages) + _fit_rows("1/λ of hosts", found.hosts)


def _quantile_rows(d: Diagnosis) -> list[tuple[str, str, str]]:
    return [
        (f"  {q:.0%} are below", f"{seen:.2f}", f"{same:.2f} by chance, {pure:.2f} exponential; in units of 1/λ")
        for q, (seen, same, pure) in zip(QUANTILES, d.quantiles.T.tolist(), strict=True)
    ]


def _fit_rows(name: str, fit: LogNormalFit) -> list[tuple[str, str, str]]:
    if np.isnan(fit.mu):
        return [(name, "–", f"too few changed for a distribution: {fit.pages}")]
    fits = "fits" if fit.p >= 2 * _RARE else "does not fit exactly"
    return [
        (name, format_duration(fit.median), f"median of {fit.pages:,} that changed"),
        ("  log-normal", f"σ = {fit.sigma:.2f}", f"{fits}: distance {fit.distance:.3f}, p = {fit.p:.3f}"),
    ]


def draw(found: Findings, file: Path) -> None:
    """Figures 4 to 6 of HACS, of this workspace."""
    d = found.diagnosis
    picture = DiagnosisPicture(
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
    draw_diagnosis(picture, file)


def _curve(fit: LogNormalFit) -> tuple[FloatArray, FloatArray] | None:
    """Days, and the density of ln(days) under the fit."""
    if np.isnan(fit.mu):
        return None
    seconds = np.exp(fit.mu + fit.sigma * np.linspace(-3.5, 3.5, 200))
    return seconds / DAY, fit.density(seconds)
