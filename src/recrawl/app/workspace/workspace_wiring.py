"""From settings to the parts they describe."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from recrawl.app.workspace.settings import (
    ArchiveSettings,
    FetchSettings,
    PolitenessSettings,
    ScheduleSettings,
    Settings,
)
from recrawl.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from recrawl.app.predict.class_models import FirstClasses
    from recrawl.app.rates.belief_table import Expected, LinkBeliefs
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.crawl.control.runtime_limits import RuntimeLimits
    from recrawl.crawl.units.unit_agent import UnitTerms
    from recrawl.crawl.visit.change_classifier import ClassifierRules
    from recrawl.crawl.worker.crawl_assembly import WorkerSettings
    from recrawl.crawl.worker.fit_process import FitParts, FitRequest
    from recrawl.detect.detector import Detector
    from recrawl.fetch.http.http_fetcher import TransferLimits
    from recrawl.formats.warc.warc_writer import WarcInfo
    from recrawl.model import FloatArray, IntArray, Pages
    from recrawl.schedule.policy import Policy
    from recrawl.schedule.politeness.host_politeness import IpLimits, PolitenessRules
    from recrawl.schedule.price.budget_price import HostLimits
    from recrawl.store.base import Store

T = TypeVar("T")


def policy_of(  # noqa: PLR0913, PLR0917 - what a policy may be made from
    settings: ScheduleSettings,
    urls: Callable[[IntArray], Sequence[str]] | None = None,
    host_limits: HostLimits | None = None,
    expected: Expected | None = None,
    links: LinkBeliefs | None = None,
    first_classes: FirstClasses | None = None,
) -> Policy:
    """The policy that decides when to come back, with the settings of the schedule that it reads.

    Plug-ins (:mod:`recrawl.plugins`) are made with their defaults.

    ``urls`` gives the URLs of pages: with them pages of one directory are known to be edited together. With
    ``host_limits`` no host is planned to be visited more often than it allows. ``expected`` is what a model says of
    pages without history, ``links`` what it says of new links, by kind: policies for new links then use these rates,
    not those of changes. ``first_classes`` is what it says of the classes of pages, for policies of classes.
    """
    from recrawl.schedule.learning.page_clocks import by_host
    from recrawl.schedule.objectives import OBJECTIVES
    from recrawl.schedule.policies.new_links import NewLinks
    from recrawl.schedule.policies.valued import ValuedPolicy

    name, _, objective = settings.policy.partition("-")
    if name != "valued" or (objective and objective not in OBJECTIVES):
        from recrawl.app.workspace.policy_parameters import CLASSES, arguments_of

        if settings.policy in CLASSES:
            return class_policy(settings, first_classes)
        return policy_named(settings.policy, arguments_of(settings))
    aim = objective or settings.objective
    clusters = by_host if urls is None else DirectoryClusters(urls)
    of_pages = None if expected is None else PageLookup(expected)
    wanted = {kind: of for kind, of in (links or {}).items() if settings.links in {"all", kind}}
    if aim == "links" and wanted:
        return NewLinks(
            {kind: PageLookup(of) for kind, of in wanted.items()},
            clusters=clusters,
            shortest_interval=settings.min_interval,
            longest_interval=settings.max_interval,
            host_limits=host_limits,
            expected=of_pages,
        )
    return ValuedPolicy(
        OBJECTIVES[aim],
        clusters=clusters,
        shortest_interval=settings.min_interval,
        longest_interval=settings.max_interval,
        host_limits=host_limits,
        expected=of_pages,
    )


def class_policy(settings: ScheduleSettings, first: FirstClasses | None) -> Policy:
    """A policy of classes: those of the settings, else those of the model, else those of paper 002 (Table 4).

    Pages start in the class that the model predicts. Without a model, or with other classes than it was trained for,
    they start in one drawn by chance.
    """
    import numpy as np

    from recrawl.app.workspace.settings import DEFAULT
    from recrawl.schedule.policies.historic_classes import TABLE_4, ChangeClasses, bayes_classes, historic_classes
    from recrawl.time import parse_duration

    interval = TABLE_4.interval if first is None else first.interval
    if settings.classes != DEFAULT:
        interval = np.array([parse_duration(one) for one in settings.classes.split()])
    windows = [int(one) for one in settings.windows.split()] if settings.windows != DEFAULT else TABLE_4.window.tolist()
    windows = (windows + windows[-1:] * len(interval))[: len(interval)]
    classes = ChangeClasses.of(interval, window=windows, lowest=TABLE_4.lowest[0], highest=TABLE_4.highest[0])
    fits = first is not None and len(first.interval) == len(interval) and np.allclose(first.interval, interval)
    start = first if fits else None
    if settings.policy == "bayes-classes":
        return bayes_classes(classes=classes, first_class=start)
    return historic_classes(classes=classes, first_class=start)


def policy_named(name: str, arguments: Mapping[str, float] | None = None) -> Policy:
    """A new policy: a built-in one, one of an entry point, or ``package.module:Name``; with these arguments.

    Raises:
        ConfigError: there is none, or it cannot be loaded.
    """
    from recrawl import plugins
    from recrawl.schedule.policies.policy_registry import POLICIES
    from recrawl.schedule.policy import Policy

    make = plugins.find("policy", name, POLICIES)
    if arguments and callable(make):
        make = partial(make, **arguments)
    policy: Policy = plugins.made("policy", name, Policy, make)
    return policy


@dataclass(frozen=True, slots=True)
class PageLookup(Generic[T]):
    """What is known of pages by their ids. A class and no closure, as those below: policies are pickled."""

    of: Callable[[IntArray], T]

    def __call__(self, pages: Pages) -> T:
        """Of these pages."""
        return self.of(pages.id)


@dataclass(frozen=True, slots=True)
class StoredHostLimits:
    """Visits per second that politeness and the crawl-delay of each host allow, as they are at each fit."""

    store: Store
    rules_now: Callable[[], PolitenessRules]

    def __call__(self, host: IntArray) -> FloatArray:
        """Of these hosts."""
        import numpy as np

        rules = self.rules_now()
        known = self.store.hosts()
        delay = known.delay[np.searchsorted(known.id, host)]
        return 1.0 / np.maximum(np.clip(delay, rules.shortest, max(rules.crawl_delay_cap, rules.shortest)), _BRIEFEST)


def host_limits_of(store: Store, rules_now: Callable[[], PolitenessRules]) -> HostLimits:
    """What hosts take at most, by the rules as they are at each fit."""
    return StoredHostLimits(store, rules_now)


_BRIEFEST = 1e-3
"""Seconds: rests are never planned to be shorter."""


@dataclass(frozen=True, slots=True)
class DirectoryClusters:
    """Clusters of pages by the directories their URLs lie in."""

    urls: Callable[[IntArray], Sequence[str]]

    def __call__(self, pages: Pages) -> IntArray:
        """Of these pages, in the order of discovery."""
        from recrawl.predict.related_pages import UrlClusters

        return UrlClusters().add(self.urls(pages.id))


@dataclass(slots=True)
class LatestIgnoreRules:
    """The pauses that a fit reckons with: those of the request for it."""

    rules: PolitenessRules

    def __call__(self) -> PolitenessRules:
        """As they are now."""
        return self.rules


@dataclass(frozen=True, slots=True)
class WorkspaceFits:
    """The recipe of a fit process for a workspace: its parts are created again there, from the same settings."""

    folder: Path
    flags: Mapping[str, object]

    def __call__(self) -> AbstractContextManager[FitParts]:
        """The parts, closed in the end."""
        return self._parts()

    @contextmanager
    def _parts(self) -> Iterator[FitParts]:
        from recrawl.app.predict.model_use import first_classes, live_model, model_version
        from recrawl.app.workspace.policy_parameters import CLASSES
        from recrawl.app.workspace.workspace import open_workspace
        from recrawl.crawl.worker.crawl_worker import LATE
        from recrawl.crawl.worker.fit_process import FitParts
        from recrawl.crawl.worker.schedule_snapshot import ScheduleSnapshot
        from recrawl.schedule.frontier.revisit_scheduler import NewPageQueue, RevisitScheduler
        from recrawl.schedule.politeness.retry import Retry
        from recrawl.time import DAY

        place = open_workspace(self.folder, self.flags)
        settings = place.configuration.settings
        with place.open_store() as store:
            version = model_version(place)
            model, rules = live_model(place, store), LatestIgnoreRules(politeness_of(settings.politeness))
            policy = policy_of(
                settings.schedule,
                store.urls,
                StoredHostLimits(store, rules),
                model,
                None if model is None else model.links,
                first_classes(place, store),
            )
            new_page_queue = NewPageQueue(settings.schedule.discovery_share, settings.schedule.burst)
            retry = Retry.beginning(settings.politeness.retry)
            budget = settings.schedule.budget / DAY
            scheduler = RevisitScheduler(policy, budget=budget, retry=retry, new_page_queue=new_page_queue)

            def prepare(request: FitRequest) -> None:
                rules.rules = request.politeness
                if model is not None:
                    model.take_over_if_newer(place)

            schedule = settings.schedule
            made_from = (schedule.policy, schedule.objective, schedule.links, schedule.min_interval)
            snapshot = ScheduleSnapshot(
                place.schedule_state, repr((*made_from, schedule.max_interval, model is not None, place.store))
            )

            def outdated() -> bool:
                """Whether there is a first model, or new classes: then pages start in other classes."""
                now = model_version(place)
                return now != version and (version is None or schedule.policy in CLASSES)

            yield FitParts(store, scheduler, LATE, prepare, snapshot, outdated=outdated)


def politeness_of(settings: PolitenessSettings) -> PolitenessRules:
    """The pauses between two requests to a host."""
    from recrawl.schedule.politeness.host_politeness import PolitenessRules
    from recrawl.schedule.politeness.retry import TROUBLED_HOST

    trouble = TROUBLED_HOST.beginning(min(TROUBLED_HOST.first, settings.retry))
    return PolitenessRules(settings.factor, settings.min_delay, settings.max_delay, settings.crawl_delay_cap, trouble)


def turns_of(settings: PolitenessSettings) -> IpLimits:
    """How hosts share an address."""
    from recrawl.schedule.politeness.host_politeness import IpLimits

    return IpLimits(settings.ip_delay, settings.ip_connections)


def limits_of(settings: FetchSettings) -> TransferLimits:
    """How long and how much one request may take."""
    from recrawl.fetch.http.http_fetcher import TransferLimits

    return TransferLimits(settings.connect_timeout, settings.timeout, settings.idle_timeout, settings.max_size)


def unit_terms(place: Workspace) -> UnitTerms | None:
    """The unit that a workspace is; ``None`` if there are no other units.

    Raises:
        ConfigError: the settings name a unit without a coordination database or the reverse, or the name is none.
    """
    from recrawl.crawl.units.unit_agent import UnitTerms
    from recrawl.time import DAY

    settings = place.configuration.settings
    name, coordination = settings.units.name, settings.units.coordination
    if bool(name) != bool(coordination):
        given, missing = ("units.name", "units.coordination")[:: 1 if name else -1]
        raise ConfigError(f"{given} is set, and {missing} is not.", "Set both, or neither.")
    if not name:
        return None
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", name):
        raise ConfigError(
            f"units.name: {name!r} is not a name.", "Write letters, digits, dots, dashes and underscores."
        )
    return UnitTerms(
        name=name,
        coordination=place.coordination,
        store=place.store,
        address=settings.units.address,
        budget=settings.schedule.budget / DAY,
        stand_in_from=settings.units.stand_in_from,
    )


def warc_info_of(settings: ArchiveSettings, fetch: FetchSettings, part_of: str = "") -> WarcInfo:
    """Who made the archive files, and what they are ``part_of``."""
    from recrawl.formats.warc.warc_writer import WarcInfo

    return WarcInfo(prefix=settings.prefix, software=fetch.user_agent, operator=fetch.contact, is_part_of=part_of)


def folders_of(settings: FetchSettings) -> tuple[Path, ...]:
    """Where files may be read that are pages.

    Raises:
        ConfigError: one of them is no absolute path.
    """
    from pathlib import Path

    from recrawl.errors import ConfigError

    folders = tuple(Path(text) for text in settings.allow_files.split(":") if text)
    for folder in folders:
        if not folder.is_absolute():
            raise ConfigError(
                f"fetch.allow_files contains {str(folder)!r}, which is not an absolute path.",
                "Write for example /srv/data.",
            )
    return folders


def crawl_settings_of(settings: Settings, part_of: str = "") -> WorkerSettings:
    """How a continuous crawl goes about it; its archive files say what they are ``part_of``."""
    from recrawl.crawl.control.json_log import LEVELS
    from recrawl.crawl.worker.crawl_assembly import WorkerSettings
    from recrawl.crawl.worker.crawl_worker import WorkerPace
    from recrawl.fetch.http.dns import AddressPolicy
    from recrawl.fetch.http.http_fetcher import fetcher_named
    from recrawl.schedule.politeness.retry import Retry
    from recrawl.time import DAY, MINUTE

    return WorkerSettings(
        budget=settings.schedule.budget / DAY,
        user_agent=settings.fetch.agent(),
        fetcher=fetcher_named(settings.fetch.fetcher),
        limits=limits_of(settings.fetch),
        http2=settings.fetch.protocol == "http2",
        in_flight=settings.fetch.max_in_flight,
        politeness=politeness_of(settings.politeness),
        retry=Retry.beginning(settings.politeness.retry),
        turns=turns_of(settings.politeness),
        max_pages_per_host=settings.crawl.max_pages_per_host,
        archive=warc_info_of(settings.archive, settings.fetch, part_of),
        roll_size=settings.archive.roll_size,
        log_level=LEVELS[LEVELS.index(settings.crawl.log_level)],
        log_size=settings.crawl.log_size,
        pace=WorkerPace(
            feeds_every=max(settings.crawl.feeds_every, MINUTE),
            concurrency=settings.crawl.concurrency,
            lease_time=settings.crawl.lease_time,
        ),
        classifier=classifier_of(settings),
        reach=AddressPolicy.of(settings.fetch.allow_networks.split()),
        folders=folders_of(settings.fetch),
        parsing=settings.detect.parse_limits(),
    )


def classifier_of(settings: Settings) -> ClassifierRules:
    """How a crawl separates changes from noise, and finds unreliable validators."""
    from recrawl.crawl.visit.change_classifier import ClassifierRules

    name = settings.fetch.user_agent.partition("/")[0].lower()
    obeys = settings.crawl.nofollow == "obey"
    standards = replace(
        settings.detect.standards(),
        agent=name,
        use_kernels=True,
        obeys_nofollow=obeys,
        takes_embeds=settings.crawl.page_requisites == "take",
    )
    return ClassifierRules(
        standards,
        settings.fetch.validator_audit_rate,
        settings.detect.confirm_changes == "yes",
        detector_named(settings.detect.detector),
        archive_noise=settings.detect.learn_from_archives == "yes",
    )


def detector_named(name: str) -> Detector:
    """A change detector: a built-in one, one of an entry point, or ``package.module:Name``.

    Raises:
        ConfigError: there is none, or it cannot be loaded.
    """
    from recrawl import plugins
    from recrawl.detect.detector import DETECTORS, Detector

    detector: Detector = plugins.made("detector", name, Detector, plugins.find("detector", name, DETECTORS))
    return detector


def orders_of(settings: Settings) -> RuntimeLimits:
    """What of the settings a crawl takes over while it runs."""
    from recrawl.crawl.control.runtime_limits import RuntimeLimits
    from recrawl.time import DAY

    schedule = settings.schedule
    return RuntimeLimits(
        budget=schedule.budget / DAY,
        burst=schedule.burst,
        discovery_share=schedule.discovery_share,
        politeness=politeness_of(settings.politeness),
        concurrency=settings.crawl.concurrency,
        standards=classifier_of(settings).standards,
    )


class LiveSettings:
    """The settings of a run: those at its start, with the latest limits."""

    def __init__(self, place: Workspace) -> None:
        self._place = place
        self.settings = place.configuration.settings

    def orders(self, limits: Mapping[str, str]) -> RuntimeLimits:
        """Take limits over."""
        self.settings = self._place.limited(limits).configuration.settings
        return orders_of(self.settings)

    def politeness(self) -> PolitenessRules:
        """As they are now."""
        return politeness_of(self.settings.politeness)
