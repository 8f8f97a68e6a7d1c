"""What the parts of the grid posterior are worth: log loss of the next visit on real histories, part by part.

    uv run python benchmarks/posterior.py DATA                 all data sets
    uv run python benchmarks/posterior.py DATA --pages 200     fewer pages of each site

The trial is that of ``recrawl experiment rates``: new pages with 0 to 50 known gaps, evaluated by their next visit. The
baseline is one prior for all pages without jump filter; printed is the mean log loss, and its ratio to the baseline's.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from recrawl.app.compare.benchmark_runs import collections, find_datasets
from recrawl.assess.prediction_scores import log_loss
from recrawl.estimate.posterior.posterior_estimators import Posterior
from recrawl.model import Visits
from recrawl.simulate.sampling import AdaptiveVisits, IrregularVisits, RegularVisits, sample
from recrawl.time import DAY
from recrawl_lab.trials.rate_trials import LENGTHS, InWallTime, RateOutcomes, populations, run_trial

VARIANTS = (
    Posterior(jump=None, depth=0, name="one prior for all, no filter"),
    Posterior(jump=None, name="priors of hosts and clusters"),
    Posterior(depth=0, name="jump filter, 400 d"),
    Posterior(name="both: the estimator posterior"),
    Posterior(jump=200 * DAY, name="both, filter 200 d"),
    Posterior(jump=800 * DAY, name="both, filter 800 d"),
    Posterior(strength=5.0, name="both, strength 5"),
    Posterior(strength=50.0, name="both, strength 50"),
)


def main() -> None:
    """Print a table for each data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="a data set, or a folder that holds several")
    parser.add_argument("--pages", type=int, default=400, help="pages of a site, at most")
    options = parser.parse_args()
    for folder in find_datasets(options.data):
        found = outcomes(folder, options.pages)
        losses = {name: _mean(found, name, LENGTHS) for name in (variant.name for variant in VARIANTS)}
        unseen = {name: _mean(found, name, (0,)) for name in losses}
        first = next(iter(losses))
        print(f"\n{folder.name:<34}{'all lengths':>12}{'ratio':>8}{'no gap known':>14}{'ratio':>8}")
        for name, loss in losses.items():
            cells = (
                f"{loss:>12.4f}{loss / losses[first]:>8.3f}{unseen[name]:>14.4f}{unseen[name] / unseen[first]:>8.3f}"
            )
            print(f"{name:<34}{cells}", flush=True)


def outcomes(folder: Path, most_pages: int) -> list[RateOutcomes]:
    """What every variant said of every population and schedule of a data set."""
    rng = np.random.default_rng(1)
    methods = [InWallTime(variant) for variant in VARIANTS]
    found: list[RateOutcomes] = []
    for population, truths in populations(collections(folder), most_pages):
        for schedule in (RegularVisits(), IrregularVisits(), AdaptiveVisits()):
            parts, before = [], 0
            for truth in truths:
                visits = sample(truth, schedule, rng)
                parts.append(replace(visits, page=visits.page + before))
                before += len(truth)
            found += run_trial(population, Visits.concatenate(parts), methods, rng)
    return found


def _mean(found: list[RateOutcomes], name: str, lengths: tuple[int, ...]) -> float:
    losses = [log_loss(one.p, one.happened) for one in found if one.method == name and one.length in lengths]
    return float(np.concatenate(losses).mean())


if __name__ == "__main__":
    main()
