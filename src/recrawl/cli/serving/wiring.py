"""From a workspace to its dashboard: the views, the actions, and who answers them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recrawl.cli.noise import masked_by_host
from recrawl.cli.serving.answers import WorkspaceAnswers
from recrawl.cli.serving.captures import CaptureProcesses
from recrawl.cli.serving.limits import WorkspaceControls
from recrawl.cli.serving.policies import CompareProcess
from recrawl.crawl.health import Health
from recrawl.detect.conduct import is_believed
from recrawl.show.dashboard import captures, hosts, overview, page, pages, policies, settings
from recrawl.show.dashboard.app import Site
from recrawl.show.dashboard.kept import Hands, Kept
from recrawl.show.dashboard.stores import Stores
from recrawl.store.open import open_store

if TYPE_CHECKING:
    from recrawl.cli.serving.page_beliefs import PageBeliefs
    from recrawl.cli.workspace import Workspace
    from recrawl.show.dashboard.routes import Action, View
    from recrawl.show.dashboard.security import Guard
    from recrawl.store.base import Store

PATIENCE = 5.0
"""Seconds after which a question to the store is given up."""
GRACE = 5.0
"""Seconds for which, in the end, what is worked out behind the scenes is waited for."""
BEHIND_THE_SCENES = 3
"""Answers that are worked out at once."""
_OF_WORKERS = frozenset({"worker", "loop_lag_seconds"})
FRESH = {"work": 2.0, "hosts": 5.0, "counts": 15.0, "survey": 60.0}
"""Seconds for which kept answers are good enough."""

FIRST_LOOKS = ("/", "/hosts", "/pages", "/pages?sort=due", "/captures", "/policies", "/settings")
"""Pages that the server looks at itself before others do."""


@dataclass(frozen=True, slots=True)
class Wired:
    """A dashboard, and what to do when it is over."""

    site: Site
    stores: Stores
    kept: tuple[Kept[Any], ...] = ()
    awaited: tuple[Kept[Any], ...] = ()
    """Those of them that would hold up the first views of pages while they are worked out in this process."""
    endings: tuple[Callable[[], object], ...] = ()
    beginnings: tuple[Callable[[], object], ...] = ()

    def begin(self, patience: float = PATIENCE) -> None:
        """Work out what takes long before anybody asks; wait so many seconds at most for what is awaited."""
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
    guard: Guard,
    clock: Callable[[], float],
    links: Mapping[str, str] | None = None,
    beliefs: PageBeliefs | None = None,
) -> Wired:
    """The dashboard of a workspace."""

    def open_one() -> Store:
        return open_store(place.store, patience=PATIENCE)

    stores = Stores(open_one)
    hands = Hands(BEHIND_THE_SCENES)
    answers = WorkspaceAnswers(place, stores, clock, beliefs)
    keeping: list[Kept[Any]] = [answers.beliefs.kept]

    def kept(name: str, work: Callable[[], Any]) -> Kept[Any]:
        keeping.append(Kept(work, fresh=FRESH[name], clock=clock, hands=hands))
        return keeping[-1]

    def count_hosts() -> hosts.HostTable:
        with place.open_store() as store:
            known = store.hosts()
            return hosts.table_of(known, store.host_counts(clock()), is_believed, masked_by_host(store, known.id))

    survey = kept("survey", answers.survey).get
    known = overview.Known(kept("counts", answers.counts).get, kept("work", answers.work).get, survey)
    views: list[View] = [
        *overview.views(known),
        *hosts.views(kept("hosts", count_hosts).get),
        *pages.views(stores, answers, survey),
        *page.views(stores, answers, survey),
    ]
    captured = CaptureProcesses(place, clock)
    compared = CompareProcess(place, clock)
    told = WorkspaceControls(place, stores, clock)
    views += [
        *captures.captures_views(stores, captured, clock),
        *policies.policies_views(compared),
        *settings.settings_views(told),
    ]
    actions: list[Action] = [
        *captures.captures_actions(stores, captured),
        *policies.policies_actions(compared),
        *settings.settings_actions(told),
    ]
    name = place.folder.resolve().name or str(place.folder)
    folder = str(place.folder.resolve())
    health = _health(place, open_one, clock)

    def readiness() -> tuple[int, Mapping[str, Any]]:
        health.beat()  # it is asked in the event loop, which therefore turns
        answer = health.readiness()
        return answer.status, {name: fact for name, fact in answer.facts.items() if name not in _OF_WORKERS}

    site = Site(
        name=name,
        folder=folder,
        views=views,
        actions=actions,
        guard=guard,
        clock=clock,
        readiness=readiness,
        links=links or {},
    )
    ends = (
        health.end,
        captured.close,
        compared.close,
        answers.close,
        lambda: hands.end(GRACE),
        lambda: answers.beliefs.close(GRACE),
    )
    awaited = tuple(one for one in keeping if one.get != survey)  # a survey of many pages is made by a child
    return Wired(site, stores, tuple(keeping), awaited, ends, (health.begin,))


def _health(place: Workspace, open_one: Callable[[], Store], clock: Callable[[], float]) -> Health:
    """Watches the store and the disk of a workspace, and when a visit was last acknowledged, by whatever worker."""

    def ask(store: Store) -> None:
        latest = store.latest_visits(1)
        if len(latest):
            health.acknowledged(float(latest.time[0]))

    health = Health("", place.folder, open_one, clock, ask=ask)
    health.ready()
    return health
