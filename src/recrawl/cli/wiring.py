"""From settings to the parts they describe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recrawl.cli.settings import ArchiveSettings, FetchSettings, PolitenessSettings, ScheduleSettings

if TYPE_CHECKING:
    from recrawl.fetch.http import Limits
    from recrawl.formats.warc import WarcInfo
    from recrawl.schedule.politeness import PolitenessRules
    from recrawl.schedule.uniform import Uniform
    from recrawl.schedule.valued import Valued


def policy_of(settings: ScheduleSettings) -> Valued | Uniform:
    """The policy that decides when to come back."""
    from recrawl.schedule.objectives import OBJECTIVES
    from recrawl.schedule.uniform import Uniform
    from recrawl.schedule.valued import Valued

    if settings.policy == "uniform":
        return Uniform()
    return Valued(
        OBJECTIVES[settings.objective],
        shortest_interval=settings.min_interval,
        longest_interval=settings.max_interval,
    )


def politeness_of(settings: PolitenessSettings) -> PolitenessRules:
    """The pauses between two requests to a host."""
    from recrawl.schedule.politeness import PolitenessRules

    return PolitenessRules(settings.factor, settings.min_delay, settings.max_delay, settings.crawl_delay_cap)


def limits_of(settings: FetchSettings) -> Limits:
    """How long and how much one request may take."""
    from recrawl.fetch.http import Limits

    return Limits(settings.connect_timeout, settings.timeout, settings.idle_timeout, settings.max_size)


def warc_info_of(settings: ArchiveSettings, fetch: FetchSettings) -> WarcInfo:
    """Who made the archive files."""
    from recrawl.formats.warc import WarcInfo

    return WarcInfo(prefix=settings.prefix, software=fetch.user_agent, operator=fetch.contact)
