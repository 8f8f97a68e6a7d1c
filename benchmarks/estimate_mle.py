"""Maximum likelihood for a hundred thousand pages at once, beside scipy's brentq page by page in the same bracket.

Both start from histories. brentq gets the tight bracket of algorithms §6, [(m/S)·ln(1 + S/U), min(m/U,
ln(1 + S/U)/τ_min)], and each page's changed gaps as an array, cut out before the clock starts; our time includes
checking, splitting and joining the gaps. Runs alternate, and the best of each counts.

uv run python benchmarks/estimate_mle.py
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np
from figures import note, options_of
from scipy import optimize

from recrawl.estimate import mle
from recrawl.model import FloatArray, Histories
from recrawl.model.compiled import can_compile

DIGITS = 40


def main() -> None:
    """Print pages per second of each path, its ratio to brentq, and its error against 40-digit arithmetic."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--gaps", type=int, default=42, help="gaps a page")
    parser.add_argument("--baseline-pages", type=int, default=5_000, help="pages that brentq solves")
    parser.add_argument("--exact-pages", type=int, default=50, help="pages solved with 40 digits")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = options_of(parser)

    rng = np.random.default_rng(options.seed)
    shape = options.pages, options.gaps
    rate = np.exp(rng.normal(-3.0, 1.5, options.pages))
    own_pace = np.exp(rng.normal(np.log(7.0), 1.0, options.pages))[:, None]
    for title, gaps in (
        ("irregular gaps (log-normal, sigma 1)", np.exp(rng.normal(np.log(10.0), 1.0, shape))),
        ("regular gaps (each page its own)", np.broadcast_to(own_pace, shape)),
        ("regular with misses (1 to 3 times its own)", own_pace * rng.integers(1, 4, shape)),
    ):
        changed = rng.random(shape) < -np.expm1(-rate[:, None] * gaps)
        some = (changed.sum(axis=1) > 0) & (changed.sum(axis=1) < options.gaps)  # pages with a root to find
        _compare(title, _histories(gaps[some], changed[some]), options)


def _histories(gaps: FloatArray, changed: np.ndarray) -> Histories:
    pages, nothing = len(gaps), np.full(len(gaps), np.nan)
    offsets = np.arange(pages + 1) * gaps.shape[1]
    flat = np.ascontiguousarray(gaps).ravel()
    return Histories(np.arange(pages), offsets, flat, changed.ravel(), nothing, nothing, nothing)


def _compare(title: str, histories: Histories, options: argparse.Namespace) -> None:
    offsets, gaps, unchanged = mle.split(histories)
    few = min(options.baseline_pages, len(histories))
    cut = [(gaps[offsets[i] : offsets[i + 1]], float(unchanged[i])) for i in range(few)]
    paths: dict[str, Callable[[], FloatArray]] = {
        "brentq, page by page": lambda: np.array([_brentq(*page) for page in cut]),
        "numpy": lambda: mle.rates_by_numpy(histories),
        "numpy, nothing joined": lambda: mle.rates_by_numpy(histories, compress=False),
    }
    if can_compile():
        columns = histories.offsets, histories.gaps, histories.changed
        mle.compiled_rates(histories.offsets[:2], *columns[1:])  # compile
        paths["compiled code"] = lambda: mle.rates(histories)
        paths["compiled code, nothing joined"] = lambda: mle.compiled_rates(*columns, compress=False)
    best = dict.fromkeys(paths, math.inf)
    found = {}
    for _ in range(options.repeat):
        for name, path in paths.items():
            start = time.perf_counter()
            found[name] = path()
            best[name] = min(best[name], time.perf_counter() - start)
    exact = [_exact(*page) for page in cut[: options.exact_pages]]
    print(f"\n{len(histories):,} pages x {options.gaps} gaps, {title}; {gaps.size / len(histories):.1f} changed a page")
    baseline, errors = few / best["brentq, page by page"], {}
    for name, rates in found.items():
        speed = len(rates) / best[name]
        error = max(abs(float(Decimal(float(one)) / true - 1)) for one, true in zip(rates, exact, strict=False))
        print(f"{name:<30} {speed:12,.0f} pages/s  {speed / baseline:7.1f} x brentq   relative error {error:.1e}")
        errors[name] = error
    ours = "compiled code" if "compiled code" in found else "numpy"
    sizes, kind = f"{len(histories):,} pages × {options.gaps} gaps", title.partition(" (")[0]
    speed = len(found[ours]) / best[ours]
    note(f"speed, {kind}", speed, "pages/s", sizes, baseline=baseline, beside="brentq, page by page")
    sizes = f"{len(exact):,} pages with {DIGITS} digits"
    note(f"error, {kind}", errors[ours], "", sizes, baseline=errors["brentq, page by page"], beside="brentq")


def _brentq(tau: FloatArray, quiet: float) -> float:
    total = float(tau.sum())
    low = len(tau) / total * math.log1p(total / quiet)
    high = min(len(tau) / quiet, math.log1p(total / quiet) / float(tau.min()))

    def slope(rate: float) -> float:
        with np.errstate(over="ignore"):
            return float((tau / np.expm1(rate * tau)).sum()) - quiet

    # the ends are exact only up to rounding, and coincide where gaps are equal
    return float(optimize.brentq(slope, low * (1.0 - 1e-12), high * (1.0 + 1e-12), xtol=1e-300, rtol=1e-14))


def _exact(tau: FloatArray, quiet: float) -> Decimal:
    """The root with 40 digits, by Newton from the left."""
    with localcontext(prec=DIGITS + 10):
        gaps, away = [Decimal(float(gap)) for gap in tau], Decimal(quiet)
        rate = Decimal(_brentq(tau, quiet)) * Decimal("0.999")
        for _ in range(12):
            powers = [(rate * gap).exp() for gap in gaps]
            value = sum(gap / (power - 1) for gap, power in zip(gaps, powers, strict=True)) - away
            slope = -sum(gap * gap * power / (power - 1) ** 2 for gap, power in zip(gaps, powers, strict=True))
            rate -= value / slope
        return rate


if __name__ == "__main__":
    main()
