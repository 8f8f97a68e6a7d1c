"""Settings: limits that crawls take over while they run, pauses, and what else holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from recrawl.show.dashboard.routes import Action, Answer, Asked, Done, Parameter, View

_HERE = "/settings"


@dataclass(frozen=True, slots=True)
class Held:
    """A setting and what holds now."""

    key: str
    value: str
    """As people write it."""
    origin: str
    """Who said so: a limit, a flag, the environment, the file, or nobody."""
    meaning: str
    live: bool
    """Whether crawls that run take another value over."""
    limited: bool
    """Whether a limit holds that can be taken back."""


@dataclass(frozen=True, slots=True)
class Pauses:
    """What is held."""

    paused: bool
    """Whether the whole crawl is."""
    hosts: Sequence[str]
    """Hosts that are held by name."""


class LiveControls(Protocol):
    """What can be told to crawls that run."""

    def held(self) -> list[Held]:
        """Every setting."""
        ...

    def pauses(self) -> Pauses:
        """What is held."""
        ...

    def limit(self, key: str, text: str) -> None:
        """Set a limit for all crawls of this workspace."""
        ...

    def reset(self, key: str) -> None:
        """Take a limit back."""
        ...

    def pause(self, host: str, *, paused: bool) -> None:
        """Hold a host or let it go on; the whole crawl without a name."""
        ...


def settings_views(controls: LiveControls) -> list[View]:
    """The page about settings."""

    def all_of_them(_asked: Asked) -> Answer:
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
            "What holds now: limits that can be changed while a crawl runs, pauses, and all other settings.",
            all_of_them,
            "dashboard/settings.html",
            keys={
                "paused": "Whether the whole crawl is paused.",
                "paused_hosts": "Hosts that are paused by name.",
                "live": "Settings that crawls take over within seconds.",
                "others": "Settings that are read when a run starts.",
            },
            menu="Settings",
        )
    ]


def settings_actions(controls: LiveControls) -> list[Action]:
    """What can be told to crawls."""

    def limit(asked: Asked) -> Done:
        controls.limit(asked["key"], asked["value"])
        return Done(f"{asked['key']} is {asked['value']} now.", _HERE)

    def reset(asked: Asked) -> Done:
        controls.reset(asked["key"])
        return Done(f"{asked['key']} is as the settings say again.", _HERE)

    def held(*, paused: bool) -> Done:
        controls.pause("", paused=paused)
        return Done(f"The crawl is {'paused' if paused else 'no longer paused'}.", _HERE)

    def host_held(asked: Asked) -> Done:
        controls.pause(asked["host"], paused=asked["paused"])
        return Done(f"{asked['host']} is {'paused' if asked['paused'] else 'no longer paused'}.", _HERE)

    key = Parameter("key", "The name of a setting that can be changed while crawls run.", required=True, place="form")
    value = Parameter("value", "What shall hold, as in recrawl.yaml.", required=True, place="form")
    host = Parameter("host", "A host, as the list of hosts names it.", required=True, place="form")
    paused = Parameter("paused", "True to hold it, false to let it go on.", "boolean", required=True, place="form")
    return [
        Action("/actions/settings/limit", "Set a limit; crawls take it over within seconds.", limit, (key, value)),
        Action("/actions/settings/reset", "Take a limit back.", reset, (key,)),
        Action("/actions/settings/pause", "Hold the whole crawl.", lambda _: held(paused=True)),
        Action("/actions/settings/resume", "Let the crawl go on.", lambda _: held(paused=False)),
        Action("/actions/settings/host", "Hold a host, or let it go on.", host_held, (host, paused)),
    ]
