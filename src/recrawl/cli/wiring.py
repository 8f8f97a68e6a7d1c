"""From settings to the parts they describe."""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from recrawl.cli.settings import (
    ArchiveSettings,
    DetectSettings,
    FetchSettings,
    PolitenessSettings,
    ScheduleSettings,
    Settings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from recrawl.cli.knowledge import Expected, LinkBeliefs
    from recrawl.cli.workspace import Workspace
    from recrawl.crawl.controls import Orders
    from recrawl.crawl.fit_process import FitParts, FitRequest
    from recrawl.crawl.judging import JudgingRules
    from recrawl.crawl.live import CrawlSettings
    from recrawl.crawl.parse_pool import ParseLimits
    from recrawl.fetch.http import Limits
    from recrawl.formats.warc import WarcInfo
    from recrawl.model import FloatArray, IntArray, Pages
    from recrawl.schedule.page_prices import HostLimits
    from recrawl.schedule.policy import Policy
    from recrawl.schedule.politeness import PolitenessRules
    from recrawl.schedule.turns import TurnRules
    from recrawl.store.base import Store

T = TypeVar("T")


def policy_of(
    settings: ScheduleSettings,
    urls: Callable[[IntArray], Sequence[str]] | None = None,
    host_limits: HostLimits | None = None,
    expected: Expected | None = None,
    links: LinkBeliefs | None = None,
) -> Policy:
    """The policy that decides when to come back: ours with the settings of the schedule, others with their defaults.

    ``urls`` gives the URLs of pages: with them pages of one directory are known to be edited together. With
    ``host_limits`` no host is planned to be visited more often than it allows. ``expected`` is what a model says of
    pages before their histories tell, ``links`` what it says of new links, by kind: where it does, whoever wants these
    gets them by their own rates, not by that of changes.
    """
    from recrawl.schedule.clocks import by_host
    from recrawl.schedule.new_links import NewLinks
    from recrawl.schedule.objectives import OBJECTIVES
    from recrawl.schedule.policies import POLICIES
    from recrawl.schedule.valued import Valued

    name, _, objective = settings.policy.partition("-")
    if name != "valued":
        return POLICIES[settings.policy]()
    aim = objective or settings.objective
    clusters = by_host if urls is None else DirectoryClusters(urls)
    of_pages = None if expected is None else ById(expected)
    wanted = {kind: of for kind, of in (links or {}).items() if settings.links in {"all", kind}}
    if aim == "links" and wanted:
        return NewLinks(
            {kind: ById(of) for kind, of in wanted.items()},
            clusters=clusters,
            shortest_interval=settings.min_interval,
            longest_interval=settings.max_interval,
            host_limits=host_limits,
            expected=of_pages,
        )
    return Valued(
        OBJECTIVES[aim],
        clusters=clusters,
        shortest_interval=settings.min_interval,
        longest_interval=settings.max_interval,
        host_limits=host_limits,
        expected=of_pages,
    )


@dataclass(frozen=True, slots=True)
class ById(Generic[T]):
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
        from recrawl.predict.clusters import UrlClusters

        return UrlClusters().add(self.urls(pages.id))


@dataclass(slots=True)
class LatestRules:
    """The pauses that a fit reckons with: those of the request for it."""

    rules: PolitenessRules

    def __call__(self) -> PolitenessRules:
        """As they are now."""
        return self.rules


@dataclass(frozen=True, slots=True)
class WorkspaceFits:
    """The recipe of a fit process for a workspace: what it works with is made anew there, by the same settings."""

    folder: Path
    flags: Mapping[str, object]

    def __call__(self) -> AbstractContextManager[FitParts]:
        """The parts, closed in the end."""
        return self._parts()

    @contextmanager
    def _parts(self) -> Iterator[FitParts]:
        from recrawl.cli.predict_use import live_model
        from recrawl.cli.workspace import open_workspace
        from recrawl.crawl.driver import LATE
        from recrawl.crawl.fit_process import FitParts
        from recrawl.schedule.agenda import Agenda
        from recrawl.schedule.newcomers import Newcomers

        place = open_workspace(self.folder, self.flags)
        settings = place.configuration.settings
        with place.open_store() as store:
            model, rules = live_model(place, store), LatestRules(politeness_of(settings.politeness))
            policy = policy_of(
                settings.schedule,
                store.urls,
                StoredHostLimits(store, rules),
                model,
                None if model is None else model.links,
            )
            newcomers = Newcomers(settings.schedule.new_share, settings.schedule.burst)
            crawl = crawl_settings_of(settings)
            agenda = Agenda(policy, budget=crawl.budget, retry=crawl.retry, newcomers=newcomers)

            def prepare(request: FitRequest) -> None:
                rules.rules = request.politeness
                if model is not None:
                    model.take_over_if_newer(place)

            yield FitParts(store, agenda, LATE, prepare)


def politeness_of(settings: PolitenessSettings) -> PolitenessRules:
    """The pauses between two requests to a host."""
    from recrawl.schedule.politeness import PolitenessRules
    from recrawl.schedule.retry import TROUBLED_HOST

    trouble = TROUBLED_HOST.beginning(min(TROUBLED_HOST.first, settings.retry))
    return PolitenessRules(settings.factor, settings.min_delay, settings.max_delay, settings.crawl_delay_cap, trouble)


def turns_of(settings: PolitenessSettings) -> TurnRules:
    """How hosts share an address."""
    from recrawl.schedule.turns import TurnRules

    return TurnRules(settings.ip_delay, settings.ip_connections)


def limits_of(settings: FetchSettings) -> Limits:
    """How long and how much one request may take."""
    from recrawl.fetch.http import Limits

    return Limits(settings.connect_timeout, settings.timeout, settings.idle_timeout, settings.max_size)


def warc_info_of(settings: ArchiveSettings, fetch: FetchSettings, part_of: str = "") -> WarcInfo:
    """Who made the archive files, and what they are ``part_of``."""
    from recrawl.formats.warc import WarcInfo

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
                f"fetch.allow_files names {str(folder)!r}, which is no absolute path.", "Write for example /srv/data."
            )
    return folders


def crawl_settings_of(settings: Settings, part_of: str = "") -> CrawlSettings:
    """How a continuous crawl goes about it; its archive files say what they are ``part_of``."""
    from recrawl.crawl.driver import Pace
    from recrawl.crawl.live import CrawlSettings
    from recrawl.crawl.log import LEVELS
    from recrawl.fetch.reach import Reach
    from recrawl.schedule.retry import Retry
    from recrawl.time import DAY, MINUTE

    return CrawlSettings(
        budget=settings.schedule.budget / DAY,
        user_agent=settings.fetch.agent(),
        limits=limits_of(settings.fetch),
        http2=settings.fetch.protocol == "http2",
        politeness=politeness_of(settings.politeness),
        retry=Retry.beginning(settings.politeness.retry),
        turns=turns_of(settings.politeness),
        max_pages_per_host=settings.crawl.max_pages_per_host,
        archive=warc_info_of(settings.archive, settings.fetch, part_of),
        roll_size=settings.archive.roll_size,
        log_level=LEVELS[LEVELS.index(settings.crawl.log_level)],
        log_size=settings.crawl.log_size,
        pace=Pace(
            feeds_every=max(settings.crawl.feeds_every, MINUTE),
            concurrency=settings.crawl.concurrency,
            lease_time=settings.crawl.lease_time,
        ),
        judging=judging_of(settings),
        reach=Reach.of(settings.fetch.allow_networks.split()),
        folders=folders_of(settings.fetch),
        parsing=parse_limits_of(settings.detect),
    )


def parse_limits_of(settings: DetectSettings) -> ParseLimits:
    """What it may take to read one answer."""
    from recrawl.crawl.parse_pool import ParseLimits

    return ParseLimits(max(settings.read_time, 1.0), settings.read_memory)


def judging_of(settings: Settings) -> JudgingRules:
    """How a crawl tells a change from noise, and a server that lies."""
    from recrawl.crawl.judging import JudgingRules

    name = settings.fetch.user_agent.partition("/")[0].lower()
    obeys = settings.crawl.nofollow == "obey"
    standards = replace(
        settings.detect.standards(),
        agent=name,
        in_machine_code=True,
        obeys_nofollow=obeys,
        takes_embeds=settings.crawl.embeds == "take",
    )
    return JudgingRules(standards, settings.fetch.check_validators, settings.detect.second_looks == "yes")


def orders_of(settings: Settings) -> Orders:
    """What of the settings a crawl takes over while it runs."""
    from recrawl.crawl.controls import Orders
    from recrawl.time import DAY

    schedule = settings.schedule
    return Orders(
        budget=schedule.budget / DAY,
        burst=schedule.burst,
        new_share=schedule.new_share,
        politeness=politeness_of(settings.politeness),
        concurrency=settings.crawl.concurrency,
        standards=judging_of(settings).standards,
    )


class LiveSettings:
    """The settings of a run: those it began with, under the limits it was told last."""

    def __init__(self, place: Workspace) -> None:
        self._place = place
        self.settings = place.configuration.settings

    def orders(self, limits: Mapping[str, str]) -> Orders:
        """Take limits over."""
        self.settings = self._place.limited(limits).configuration.settings
        return orders_of(self.settings)

    def politeness(self) -> PolitenessRules:
        """As they are now."""
        return politeness_of(self.settings.politeness)
