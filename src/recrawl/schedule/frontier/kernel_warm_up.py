"""Compile kernels before they are needed: run them once on a synthetic crawl of a few pages."""

from __future__ import annotations

import numpy as np

from recrawl.model import Outcome, Pages, Verdict, Visits
from recrawl.schedule.frontier.host_frontier import Frontier
from recrawl.schedule.policy import Policy, ReplicablePolicy
from recrawl.schedule.politeness.host_politeness import Politeness, PolitenessRules
from recrawl.time import DAY, HOUR

_PAGES = 8
_VISITS = 12


def warm_up_schedule(mine: Policy) -> None:
    """Ask a policy that knows no pages and is of no other use what the live crawl will ask, and a frontier as well.

    Seconds where kernels have to be compiled, which happens once on a machine; milliseconds elsewhere.
    """
    page = np.arange(1, _PAGES + 1)
    mine.add(Pages.of(page, host=1 + page % 2, discovered=-DAY * page.astype(np.float64)))
    time = HOUR * (1 + np.arange(_VISITS))[None, :] * page[:, None]
    verdict = np.where((np.arange(time.size) % 3 == 0).reshape(time.shape), Verdict.CHANGED, Verdict.UNCHANGED)
    mine.tell(Visits.of(np.repeat(page, _VISITS), time.ravel(), outcome=Outcome.FETCHED, verdict=verdict.ravel()))
    now = 3.0 * DAY
    mine.fit(_PAGES / DAY, now)
    for asked in (mine, mine.replica() if isinstance(mine, ReplicablePolicy) else mine):
        asked.due(page, now)
        asked.urgency(page, now)
        asked.tell(Visits.of(page, np.full(_PAGES, now), outcome=Outcome.FETCHED, verdict=Verdict.UNCHANGED))
        asked.due(page, now)
    frontier = Frontier(Politeness(PolitenessRules()))
    frontier.offer(page, 1 + page % 2, np.zeros(_PAGES))
    found = frontier.next_many(now, 2)
    for number, host in zip(found.page.tolist(), found.host.tolist(), strict=True):
        frontier.done(number, host, now, 0.1)
    frontier.withdraw(page)
