"""Limits of running crawls: set, taken back and checked against the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recrawl.app.workspace.settings import declared
from recrawl.app.workspace.workspace import Workspace
from recrawl.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recrawl.store.base import ScheduleStore


def change_limits(
    place: Workspace, store: ScheduleStore, wanted: Mapping[str, str | None], now: float
) -> dict[str, str]:
    """Set limits by key, or take them back where that is ``None``; returns those that hold then.

    They must make sense together and with the settings; else nothing is changed.
    """
    from recrawl.crawl.control import runtime_limits

    told = runtime_limits.limits(store.controls())
    held = {key: text for key, text in {**told, **wanted}.items() if text is not None}
    place.limited(held)
    for key, text in wanted.items():
        runtime_limits.set_limit(store, key, text, now)
    return held


def not_live(key: str, live: Iterable[str]) -> ConfigError:
    """Why there is no limit of that name."""
    known = {setting.key for setting in declared()}
    why = "it is read when a run starts" if key in known else "there is no such setting"
    return ConfigError(
        f"{key} cannot be changed while a crawl runs: {why}.",
        f"Set it in recrawl.yaml and restart. Possible limits: {', '.join(live)}.",
    )
