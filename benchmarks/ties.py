"""What the seed of a simulation changes, which breaks ties between equally urgent pages: freshness over several seeds.

    uv run python benchmarks/ties.py                         a web of clusters that stop, 111 pages
    uv run python benchmarks/ties.py DATA/data-sources --budget 0.03

Three rows in the same run: the default policy with ties left to the seed (as it was), the default policy with its own
order of pages of which all that is known is the same (as it is), and even visits. *Other orders* is the default policy
with other orders of such pages: what chance is left, which no seed moves.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np

from recrawl.app.compare.benchmark_runs import collections
from recrawl.schedule.policies import valued
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.policy import Policy
from recrawl.simulate.benchmark_field import BenchmarkField, field_of_all
from recrawl.simulate.policy_benchmark import BASELINE, OURS, BenchmarkRules, compete, entry

TESTS = Path(__file__).resolve().parents[1] / "tests" / "schedule"


def freshness(web: BenchmarkField, policy: Policy, budget: float, seed: int) -> float:
    """Of one run."""
    rules = BenchmarkRules(budget, fit_every=30 * 86_400.0)
    return compete(web, policy, rules, np.random.default_rng(seed)).tally.ratio("freshness")


def ordered(web: BenchmarkField, order: int) -> ValuedPolicy:
    """The default policy, with another order of pages that are alike."""
    policy = entry(OURS, web)
    if not isinstance(policy, ValuedPolicy):
        raise TypeError
    policy._ties = order  # noqa: SLF001 - it has no setting: users have nothing to choose
    return policy


def main() -> None:
    """Print mean and range of each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", help="folder of a data set; default: a made web")
    parser.add_argument("--budget", type=float, default=0.1, help="visits a page and day")
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds")
    options = parser.parse_args()
    if options.data is None:
        sys.path.append(str(TESTS))
        web = importlib.import_module("test_clock_bounds").a_web()
    else:
        web = field_of_all(options.data.name, collections(options.data))
    budget, seeds = options.budget, range(1, options.seeds + 1)

    def row(name: str, run: Callable[[int], float]) -> None:
        found = [run(seed) for seed in seeds]
        print(f"{name:<34}{np.mean(found):>9.4f}{max(found) - min(found):>10.5f}", flush=True)

    print(f"{len(web):,} pages, {len(seeds)} seeds{'':<14}{'freshness':>9}{'range':>10}")
    with mock.patch.object(valued, "_TIE", 0.0):
        row("ties by the seed", lambda seed: freshness(web, entry(OURS, web), budget, seed))
    row("its own order, other seeds", lambda seed: freshness(web, entry(OURS, web), budget, seed))
    row("its own order, other orders", lambda seed: freshness(web, ordered(web, seed), budget, 1))
    row("even visits, other seeds", lambda seed: freshness(web, entry(BASELINE, web), budget, seed))


if __name__ == "__main__":
    main()
