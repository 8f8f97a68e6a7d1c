"""Every policy by its name: the choices of settings, tables and ``recrawl compare``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from recrawl.schedule.objectives import OBJECTIVES
from recrawl.schedule.policies.aduana import Aduana
from recrawl.schedule.policies.datamonitor_rules import dyn, fix, state_1, state_2, window
from recrawl.schedule.policies.exploration import Optimistic, Thompson
from recrawl.schedule.policies.fixed_interval import FixedInterval, Uniform, gold, week
from recrawl.schedule.policies.hacs_policy import (
    RandomOrder,
    brute_force,
    hacs,
    hacs_since_observation,
    hacs_threshold,
    last_observation,
)
from recrawl.schedule.policies.heritrix_policy import heritrix
from recrawl.schedule.policies.historic_classes import bayes_classes, historic_classes
from recrawl.schedule.policies.nutch import nutch
from recrawl.schedule.policies.proportional import Proportional
from recrawl.schedule.policies.stormcrawler import news_crawl, stormcrawler
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.schedule.policy import Policy
from recrawl.time import HOUR

PAPERS: dict[str, Callable[..., Policy]] = {
    "hacs": hacs,
    "hacs-threshold": hacs_threshold,
    "hacs-since-look": hacs_since_observation,
    "last-obs": last_observation,
    "random": RandomOrder,
    "brute-force": brute_force,
    "fix": fix,
    "dyn": dyn,
    "window": window,
    "state-1": state_1,
    "state-2": state_2,
    "week": week,
    "historic-classes": historic_classes,
    "bayes-classes": bayes_classes,
}
"""The rules of the papers that need no more than visits."""

CRAWLERS: dict[str, Callable[..., Policy]] = {
    "nutch": nutch,
    "stormcrawler": stormcrawler,
    "news-crawl": news_crawl,
    "heritrix": heritrix,
    "aduana": Aduana,
    "fixed-interval": partial(FixedInterval, interval=3 * HOUR),
}
"""The schedulers people run today, with their defaults; a fixed interval is 3 hours in changedetection.io."""

VALUED: dict[str, Callable[..., Policy]] = {
    f"valued-{name}": partial(ValuedPolicy, objective) for name, objective in OBJECTIVES.items()
}
"""Ours, one for each objective."""

POLICIES: dict[str, Callable[..., Policy]] = {
    "uniform": Uniform,
    "proportional": Proportional,
    **PAPERS,
    **CRAWLERS,
    **VALUED,
}
"""By name. Each makes a new policy with its defaults and takes its own settings as keyword arguments."""

EXPLORING: dict[str, Callable[..., Policy]] = {
    f"{how}-{name}": partial(make, objective)
    for how, make in (("thompson", Thompson), ("ucb", Optimistic))
    for name, objective in OBJECTIVES.items()
}
"""Ours with a reward for learning. They lost to those without (algorithms §3), so they compete only when they are asked
for by name."""

ORACLES: dict[str, Callable[..., Policy]] = {"gold": gold}
"""Those that must be given the truth: ``true_rates``, the changes per second of the pages with the ids it is called
with."""

START_FROM_BUDGET = frozenset(
    {"fix", "dyn", "window", "state-1", "state-2", "nutch", "stormcrawler", "news-crawl", "heritrix"}
)
"""Those that take ``start=None``: start at the interval that spends the budget evenly, for fair comparison."""
