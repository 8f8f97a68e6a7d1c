"""From a workspace to its dashboard: the views, the actions, and who answers them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import wait
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from recrawl.app.status import masked_by_host
from recrawl.crawl.control.health import HealthMonitor
from recrawl.crawl.control.worker_registry import is_alive, registered_workers
from recrawl.detect.validator_trust import is_believed
from recrawl.store.open import open_store
from recrawl.web.dashboard import (
    capture_views,
    host_views,
    pages_view,
    policy_views,
    settings_view,
    workspace_dashboard,
)
from recrawl.web.dashboard.child_processes import CaptureProcesses, CompareProcess
from recrawl.web.dashboard.dashboard_app import DashboardSite
from recrawl.web.dashboard.settings_view import WorkspaceControls
from recrawl.web.dashboard.stale_cache import StaleCache, StorePool, WorkerPool
from recrawl.web.dashboard.workspace_dashboard import WorkspaceDashboard

if TYPE_CHECKING:
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.store.base import Store
    from recrawl.web.dashboard.access_control import AccessGuard
    from recrawl.web.dashboard.page_beliefs import PageBeliefs
    from recrawl.web.dashboard.routes import Action, View

PATIENCE = 5.0
"""Seconds after which a question to the store is given up."""
GRACE = 5.0
"""Seconds for which, in the end, what is worked out behind the scenes is waited for."""
BEHIND_THE_SCENES = 3
"""Answers that are worked out at once."""
_OF_WORKERS = frozenset({"worker", "loop_lag_seconds"})
FRESH = {"work": 2.0, "hosts": 5.0, "counts": 15.0, "survey": 60.0}
"""Seconds for which cached results are fresh enough."""

FIRST_LOOKS = ("/", "/hosts", "/pages", "/pages?sort=due", "/captures", "/policies", "/settings")
"""Pages that the server prefetches."""


@dataclass(frozen=True, slots=True)
class WiredDashboard:
    """A dashboard, and what to do when it is over."""

    site: DashboardSite
    stores: StorePool
    kept: tuple[StaleCache[Any], ...] = ()
    awaited: tuple[StaleCache[Any], ...] = ()
    """Those of them that would hold up the first views of pages while they are worked out in this process."""
    endings: tuple[Callable[[], object], ...] = ()
    beginnings: tuple[Callable[[], object], ...] = ()

    def begin(self, patience: float = PATIENCE) -> None:
        """Compute slow results in advance; wait a limited number of seconds for the required ones."""
        for begin in self.beginnings:
            begin()
        tasks = [one.begin() for one in (*self.awaited, *self.kept)]
        wait([task for task in tasks[: len(self.awaited)] if task is not None], timeout=patience)

    def close(self) -> None:
        """Let go of children and stores."""
        for end in self.endings:
            end()
        self.stores.close()


def wired(
    place: Workspace,
    guard: AccessGuard,
    clock: Callable[[], float],
    links: Mapping[str, str] | None = None,
    beliefs: PageBeliefs | None = None,
) -> WiredDashboard:
    """The dashboard of a workspace."""

    def open_one() -> Store:
        return open_store(place.store, patience=PATIENCE)

    stores = StorePool(open_one)
    lease_pool = WorkerPool(BEHIND_THE_SCENES)
    answers = WorkspaceDashboard(place, stores, clock, beliefs)
    keeping: list[StaleCache[Any]] = [answers.beliefs.kept]

    def kept(name: str, work: Callable[[], Any]) -> StaleCache[Any]:
        keeping.append(StaleCache(work, fresh=FRESH[name], clock=clock, lease_pool=lease_pool))
        return keeping[-1]

    def count_hosts() -> host_views.HostTable:
        with place.open_store() as store:
            known = store.hosts()
            return host_views.table_of(known, store.host_counts(clock()), is_believed, masked_by_host(store, known.id))

    survey = kept("survey", answers.survey).get
    known = workspace_dashboard.OverviewCaches(
        kept("counts", answers.counts).get, kept("work", answers.work).get, survey
    )
    views: list[View] = [
        *workspace_dashboard.views(known),
        *host_views.views(kept("hosts", count_hosts).get),
        *pages_view.list_views(stores, answers, survey),
        *pages_view.page_views(stores, answers, survey),
    ]
    captured = CaptureProcesses(place, clock)
    compared = CompareProcess(place, clock)
    told = WorkspaceControls(place, stores, clock)
    views += [
        *capture_views.captures_views(stores, captured, clock),
        *policy_views.policies_views(compared),
        *settings_view.settings_views(told),
    ]
    actions: list[Action] = [
        *capture_views.captures_actions(stores, captured),
        *policy_views.policies_actions(compared),
        *settings_view.settings_actions(told),
    ]
    name = place.folder.resolve().name or str(place.folder)
    folder = str(place.folder.resolve())
    health = _health(place, open_one, clock)

    def checked(*, of_crawl: bool) -> tuple[int, Mapping[str, Any]]:
        health.beat()  # it is called in the event loop, which therefore runs
        answer = health.readiness(of_crawl=of_crawl)
        return answer.status, {name: fact for name, fact in answer.facts.items() if name not in _OF_WORKERS}

    site = DashboardSite(
        name=name,
        folder=folder,
        views=views,
        actions=actions,
        guard=guard,
        clock=clock,
        health=partial(checked, of_crawl=True),
        readiness=partial(checked, of_crawl=False),
        links=links or {},
    )
    ends = (
        health.end,
        captured.close,
        compared.close,
        answers.close,
        lambda: lease_pool.end(GRACE),
        lambda: answers.beliefs.close(GRACE),
    )
    awaited = tuple(one for one in keeping if one.get != survey)  # a survey of many pages is made by a child
    return WiredDashboard(site, stores, tuple(keeping), awaited, ends, (health.begin,))


def _health(place: Workspace, open_one: Callable[[], Store], clock: Callable[[], float]) -> HealthMonitor:
    """Watches the store and the disk of a workspace, and when a visit was last acknowledged, by whatever worker."""

    def ask(store: Store) -> None:
        latest, now = store.latest_visits(1), clock()
        if len(latest):
            health.acknowledged(float(latest.time[0]))
        at_work = [one for one in registered_workers(store.controls()) if is_alive(one, now) and not one.paused]
        health.may_begin = any(one.left is None or one.left >= 1 for one in at_work)
        health.is_busy = any(one.underway for one in at_work)

    health = HealthMonitor("", place.folder, open_one, clock, ask=ask)
    health.reports_for_all = True
    health.ready()
    return health
