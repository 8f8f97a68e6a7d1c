"""What the dashboard tells crawls that run: the same as ``recrawl limit``, ``pause`` and ``resume``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from recrawl.cli.knowledge import host_id
from recrawl.cli.limit import change_limits, not_live
from recrawl.cli.settings import declared, without_password
from recrawl.crawl import controls
from recrawl.show.dashboard.settings import Held, Pauses

if TYPE_CHECKING:
    from recrawl.cli.setting_kinds import Value
    from recrawl.cli.settings import Setting
    from recrawl.cli.workspace import Workspace
    from recrawl.show.dashboard.stores import Stores


class WorkspaceControls:
    """The live controls of one workspace."""

    def __init__(self, place: Workspace, stores: Stores, clock: Callable[[], float]) -> None:
        self._place = place
        self._stores = stores
        self._clock = clock
        self._live = [setting.key for setting in declared() if setting.live]

    def held(self) -> list[Held]:
        """Every setting, with what holds now."""
        with self._stores.one() as store:
            told = controls.limits(store.controls())
        configuration = self._place.limited(told).configuration
        return [
            Held(
                key=setting.key,
                value=_written(setting, configuration.value(setting)),
                origin=str(configuration.origins[setting.key]),
                meaning=setting.help,
                live=setting.live,
                limited=setting.key in told,
            )
            for setting in declared()
        ]

    def pauses(self) -> Pauses:
        """What is held."""
        with self._stores.one() as store:
            paused, hosts = controls.is_paused(store.controls()), store.hosts()
        return Pauses(paused, [hosts.name[row] for row in np.flatnonzero(hosts.paused).tolist()])

    def limit(self, key: str, text: str) -> None:
        """Set a limit for all crawls of this workspace."""
        self._change(key, text)

    def reset(self, key: str) -> None:
        """Take a limit back."""
        self._change(key, None)

    def pause(self, host: str, *, paused: bool) -> None:
        """Hold a host or let it go on; the whole crawl without a name."""
        with self._stores.one() as store:
            if host:
                hosts = np.array([host_id(store, host)], np.int64)
                controls.set_hosts_paused(store, hosts, self._clock(), paused=paused)
            else:
                controls.set_paused(store, self._clock(), paused=paused)

    def _change(self, key: str, text: str | None) -> None:
        if key not in self._live:
            raise not_live(key, self._live)
        with self._stores.one() as store:
            change_limits(self._place, store, {key: text}, self._clock())


def _written(setting: Setting, value: Value) -> str:
    """As it is told to a crawl: texts without the quotes of YAML."""
    return without_password(value if isinstance(value, str) else setting.kind.write(value))
