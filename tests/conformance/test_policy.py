"""What every policy promises (``recrawl.schedule.policy``), run over every implementation."""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import numpy as np
import pytest

from recrawl.errors import ConfigError
from recrawl.model import GammaBelief
from recrawl.schedule.policies.hacs_policy import hacs
from recrawl.schedule.policies.new_links import NewLinks
from recrawl.schedule.policies.partitioned import PartitionedPolicy
from recrawl.schedule.policies.policy_registry import EXPLORING, ORACLES, POLICIES, START_FROM_BUDGET, VALUED
from recrawl.schedule.policies.proportional import Proportional
from recrawl.schedule.policies.valued import ValuedPolicy
from recrawl.testing import PolicyConformance
from recrawl.testing.policy_conformance import START, budget_of, end_of, some_pages, some_visits
from recrawl.time import DAY, HOUR

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-policy.md"


def true_rates(page):
    """What an oracle might say: from never to twice a day."""
    return (page % 7) / (3.5 * DAY)


def expected_links(pages):
    """What a model might say: a new link in one to ten days."""
    return GammaBelief(np.full(len(pages), 0.5), 0.5 * DAY * (1.0 + pages.id % 10))


def expected_rates(pages):
    """What a model might say: a change in one to thirty days."""
    return 1.0 / (DAY * (1 + pages.id % 30))


def of_the_guide():
    """The policy that the how-to page shows, as a module: what pickles must be found again by name."""
    code = re.findall(r"^    ```python\n(.*?)^    ```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[0]
    module = sys.modules["halving_of_the_guide"] = ModuleType("halving_of_the_guide")
    exec(compile(dedent(code), str(GUIDE), "exec"), module.__dict__)
    return module.halving


def in_three_parts(**options):
    """The default policy in parts: some of the hosts in each."""
    return PartitionedPolicy([ValuedPolicy(**options) for _ in range(3)], third_of_hosts)


def third_of_hosts(host):
    """The part of each host."""
    return host % 3


MAKERS = {
    **POLICIES,
    "halving of the guide": of_the_guide(),
    **{name: EXPLORING[name] for name in ("thompson-archive", "ucb-archive")},
    **{name: partial(make, true_rates) for name, make in ORACLES.items()},
    "proportional to the truth": partial(Proportional, true_rates=true_rates),
    "new links": partial(NewLinks, {"internal": expected_links, "external": expected_links}),
    "archive in three parts": in_three_parts,
    "archive with expected rates": partial(ValuedPolicy, expected=expected_rates),
    "two numbers a page with expected rates": partial(ValuedPolicy, belief="gamma", expected=expected_rates),
    "hacs within 60 days": partial(hacs, window=60 * DAY),
    "hacs as printed": partial(hacs, theta=0.5, unknown_rate=0.0, longest=np.inf),
    **{f"{name} from the budget": partial(POLICIES[name], start=None) for name in sorted(START_FROM_BUDGET)},
}
LEARNED = ["archive in three parts", *VALUED]
"""Those with operational time."""
BUDGETED = ["uniform", "proportional", "proportional to the truth", "hacs-since-look", "aduana", "new links", *LEARNED]
"""Those that spend exactly their budget in the long run."""
REFUSING = [*BUDGETED, "random", "hacs", "last-obs", *(name for name in MAKERS if name.endswith("from the budget"))]


class TestEveryPolicy(PolicyConformance):
    @pytest.fixture(autouse=True, params=list(MAKERS))
    def chosen(self, request):
        self.make = MAKERS[request.param]


@pytest.mark.parametrize("name", BUDGETED)
def test_the_budget_is_kept_in_the_long_run(name):
    """Visit every page when due, for a year, nothing ever changing the beliefs: visits per day are the budget.

    Where time passes evenly, that is: pages whose siblings just changed are visited sooner, and others later.
    """
    policy = MAKERS[name](factors=()) if name in LEARNED else MAKERS[name]()
    pages = some_pages(60)
    visits = some_visits(pages, per_page=30)
    policy.add(pages)
    policy.tell(visits)
    now = end_of(visits)
    policy.fit(budget_of(pages), now)
    last = np.array([visits.time[(visits.page == page) & visits.answered()].max() for page in pages.id])
    interval = policy.due(pages.id, now) - last
    assert float((pages.cost / interval).sum()) == pytest.approx(budget_of(pages), rel=1e-6)
    assert interval.min() >= HOUR * (1 - 1e-9)


@pytest.mark.parametrize("name", REFUSING)
@pytest.mark.parametrize("budget", [-1.0, np.nan])
def test_an_impossible_budget_is_refused(name, budget):
    policy = MAKERS[name]()
    policy.add(some_pages())
    with pytest.raises(ConfigError, match="budget"):
        policy.fit(budget, START)


@pytest.mark.parametrize("name", [*BUDGETED, "random", "hacs", "last-obs"])
def test_more_budget_is_never_later(name):
    pages = some_pages()
    visits = some_visits(pages)
    policy = MAKERS[name]()
    policy.add(pages)
    policy.tell(visits)
    now = end_of(visits)
    before = None
    for factor in (0.0, 0.5, 1.0, 3.0, 1e6):
        policy.fit(factor * budget_of(pages), now)
        due = policy.due(pages.id, now)
        assert before is None or (due <= before + 1e-3).all()
        before = due
