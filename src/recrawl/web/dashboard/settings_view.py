"""Settings: limits of running crawls, pauses, and all other settings.

Changes apply to running crawls as with ``recrawl limit``, ``pause`` and ``resume``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from recrawl.app.rates.belief_table import host_id
from recrawl.app.workspace.settings import declared, without_password
from recrawl.app.workspace.workspace import change_limits, not_live
from recrawl.crawl.control import runtime_limits
from recrawl.web.dashboard.routes import Action, ActionResult, Answer, CheckedParameters, Parameter, View

if TYPE_CHECKING:
    from recrawl.app.workspace.settings import Setting, Value
    from recrawl.app.workspace.workspace import Workspace
    from recrawl.web.dashboard.stale_cache import StorePool


_HERE = "/settings"


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """A setting and what holds now."""

    key: str
    value: str
    """As people write it."""
    origin: str
    """The origin: a limit, a flag, the environment, the file, or the default."""
    meaning: str
    live: bool
    """Whether crawls that run take another value over."""
    limited: bool
    """Whether a limit holds that can be taken back."""


@dataclass(frozen=True, slots=True)
class HostPauses:
    """What is held."""

    paused: bool
    """Whether the whole crawl is."""
    hosts: Sequence[str]
    """Hosts that are held by name."""


class LiveControls(Protocol):
    """Actions on running crawls."""

    def held(self) -> list[EffectiveSetting]:
        """Every setting."""
        ...

    def pauses(self) -> HostPauses:
        """What is held."""
        ...

    def limit(self, key: str, text: str) -> None:
        """Set a limit for all crawls of this workspace."""
        ...

    def reset(self, key: str) -> None:
        """Reset a limit."""
        ...

    def pause(self, host: str, *, paused: bool) -> None:
        """Hold a host or let it go on; the whole crawl without a name."""
        ...


def settings_views(controls: LiveControls) -> list[View]:
    """The page about settings."""

    def all_of_them(_asked: CheckedParameters) -> Answer:
        held, pauses = controls.held(), controls.pauses()
        return {
            "paused": pauses.paused,
            "paused_hosts": list(pauses.hosts),
            "live": [asdict(one) for one in held if one.live],
            "others": [asdict(one) for one in held if not one.live],
        }

    return [
        View(
            _HERE,
            "/api/settings",
            "Settings",
            "Limits that can be changed while a crawl runs, pauses, and all other settings.",
            all_of_them,
            "dashboard/settings.html",
            keys={
                "paused": "Whether the whole crawl is paused.",
                "paused_hosts": "Hosts that are paused by name.",
                "live": "Settings that running crawls adopt within seconds.",
                "others": "Settings that are read when a run starts.",
            },
            menu="Settings",
        )
    ]


def settings_actions(controls: LiveControls) -> list[Action]:
    """Actions on crawls."""

    def limit(asked: CheckedParameters) -> ActionResult:
        controls.limit(asked["key"], asked["value"])
        return ActionResult(f"{asked['key']} is {asked['value']} now.", _HERE)

    def reset(asked: CheckedParameters) -> ActionResult:
        controls.reset(asked["key"])
        return ActionResult(f"{asked['key']} is reset to the value of the settings.", _HERE)

    def held(*, paused: bool) -> ActionResult:
        controls.pause("", paused=paused)
        return ActionResult(f"The crawl is {'paused' if paused else 'no longer paused'}.", _HERE)

    def host_held(asked: CheckedParameters) -> ActionResult:
        controls.pause(asked["host"], paused=asked["paused"])
        return ActionResult(f"{asked['host']} is {'paused' if asked['paused'] else 'no longer paused'}.", _HERE)

    key = Parameter("key", "The name of a setting that can be changed while crawls run.", required=True, place="form")
    value = Parameter("value", "New value, as in recrawl.yaml.", required=True, place="form")
    host = Parameter("host", "Host, as in the list of hosts.", required=True, place="form")
    paused = Parameter("paused", "True to pause, false to resume.", "boolean", required=True, place="form")
    return [
        Action("/actions/settings/limit", "Set a limit; running crawls adopt it within seconds.", limit, (key, value)),
        Action("/actions/settings/reset", "Reset a limit.", reset, (key,)),
        Action("/actions/settings/pause", "Pause the whole crawl.", lambda _: held(paused=True)),
        Action("/actions/settings/resume", "Resume the crawl.", lambda _: held(paused=False)),
        Action("/actions/settings/host", "Pause or resume a host.", host_held, (host, paused)),
    ]


class WorkspaceControls:
    """The live controls of one workspace."""

    def __init__(self, place: Workspace, stores: StorePool, clock: Callable[[], float]) -> None:
        self._place = place
        self._stores = stores
        self._clock = clock
        self._live = [setting.key for setting in declared() if setting.live]

    def held(self) -> list[EffectiveSetting]:
        """Every setting, with what holds now."""
        with self._stores.one() as store:
            told = runtime_limits.limits(store.controls())
        configuration = self._place.limited(told).configuration
        return [
            EffectiveSetting(
                key=setting.key,
                value=_written(setting, configuration.value(setting)),
                origin=str(configuration.origins[setting.key]),
                meaning=setting.help,
                live=setting.live,
                limited=setting.key in told,
            )
            for setting in declared()
        ]

    def pauses(self) -> HostPauses:
        """What is held."""
        with self._stores.one() as store:
            paused, hosts = runtime_limits.is_paused(store.controls()), store.hosts()
        return HostPauses(paused, [hosts.name[row] for row in np.flatnonzero(hosts.paused).tolist()])

    def limit(self, key: str, text: str) -> None:
        """Set a limit for all crawls of this workspace."""
        self._change(key, text)

    def reset(self, key: str) -> None:
        """Reset a limit."""
        self._change(key, None)

    def pause(self, host: str, *, paused: bool) -> None:
        """Hold a host or let it go on; the whole crawl without a name."""
        with self._stores.one() as store:
            if host:
                hosts = np.array([host_id(store, host)], np.int64)
                runtime_limits.set_hosts_paused(store, hosts, self._clock(), paused=paused)
            else:
                runtime_limits.set_paused(store, self._clock(), paused=paused)

    def _change(self, key: str, text: str | None) -> None:
        if key not in self._live:
            raise not_live(key, self._live)
        with self._stores.one() as store:
            change_limits(self._place, store, {key: text}, self._clock())


def _written(setting: Setting, value: Value) -> str:
    """The value as a crawl receives it: texts without the quotes of YAML."""
    return without_password(value if isinstance(value, str) else setting.kind.write(value))
