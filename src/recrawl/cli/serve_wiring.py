"""From a workspace to its dashboard: the views, the actions, and who answers them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from recrawl.cli.serve_answers import WorkspaceAnswers
from recrawl.detect.conduct import is_believed
from recrawl.show.dashboard import hosts, overview, page, pages
from recrawl.show.dashboard.app import Site
from recrawl.show.dashboard.kept import Kept
from recrawl.show.dashboard.stores import Stores
from recrawl.store.open import open_store

if TYPE_CHECKING:
    from recrawl.cli.workspace import Workspace
    from recrawl.show.dashboard.routes import Action, View
    from recrawl.show.dashboard.security import Guard
    from recrawl.store.base import Store

PATIENCE = 5.0
"""Seconds after which a question to the store is given up."""
BEHIND_THE_SCENES = 3
"""Answers that are worked out at once."""
FRESH = {"work": 2.0, "hosts": 5.0, "counts": 15.0, "survey": 60.0, "priors": 600.0}
"""Seconds for which kept answers are good enough."""


@dataclass(frozen=True, slots=True)
class Wired:
    """A dashboard, and what to do when it is over."""

    site: Site
    stores: Stores
    hands: ThreadPoolExecutor = field(repr=False)
    endings: tuple[Callable[[], None], ...] = ()

    def close(self) -> None:
        """Let go of threads, children and stores."""
        for end in self.endings:
            end()
        self.hands.shutdown(wait=False, cancel_futures=True)
        self.stores.close()


def wired(place: Workspace, guard: Guard, clock: Callable[[], float], links: Mapping[str, str] | None = None) -> Wired:
    """The dashboard of a workspace."""

    def open_one() -> Store:
        return open_store(place.store, patience=PATIENCE)

    stores = Stores(open_one)
    hands = ThreadPoolExecutor(BEHIND_THE_SCENES, thread_name_prefix="recrawl-behind")
    answers = WorkspaceAnswers(place, stores, clock)

    def kept(name: str, work: Callable[[], Any]) -> Kept[Any]:
        return Kept(work, fresh=FRESH[name], clock=clock, hands=hands)

    def count_hosts() -> hosts.HostTable:
        with place.open_store() as store:
            return hosts.table_of(store.hosts(), store.host_counts(clock()), is_believed)

    answers.priors = kept("priors", answers.learn_priors).get
    survey = kept("survey", answers.survey).get
    known = overview.Known(kept("counts", answers.counts).get, kept("work", answers.work).get, survey)
    views: list[View] = [
        *overview.views(known),
        *hosts.views(kept("hosts", count_hosts).get),
        *pages.views(stores, answers, survey),
        *page.views(stores, answers, survey),
    ]
    actions: list[Action] = []
    name = place.folder.resolve().name or str(place.folder)
    site = Site(name=name, views=views, actions=actions, guard=guard, clock=clock, links=links or {})
    return Wired(site, stores, hands)
