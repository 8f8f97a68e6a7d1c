"""Which settings of the schedule are parameters of which policy, and which of them a policy ignores.

A policy takes the parameters that its source has. A key that is set and that the chosen policy does not read would
otherwise have no effect, and nobody would notice.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from recrawl.app.workspace.settings import DEFAULT, ScheduleSettings
from recrawl.time import parse_duration

if TYPE_CHECKING:
    from recrawl.app.workspace.configuration import Configuration

_STEPS = {"start": "start", "shortest": "shortest", "longest": "longest"}
_HACS = {"window": "window", "horizon": "horizon", "longest": "longest"}
PARAMETERS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "hacs": _HACS,
        "hacs-threshold": {**_HACS, "theta": "theta"},
        "hacs-since-look": {"shortest": "shortest", "longest": "longest"},
        "proportional": {"shortest": "shortest", "longest": "longest"},
        "last-obs": {"horizon": "period", "longest": "longest"},
        "brute-force": {"horizon": "period"},
        **dict.fromkeys(("fix", "dyn", "window", "state-1", "state-2", "nutch", "stormcrawler", "heritrix"), _STEPS),
        "news-crawl": {"start": "start"},
        "fixed-interval": {"start": "interval"},
    }
)
"""Keys of the section ``schedule`` that each policy reads, with the names of the arguments that they are."""
CLASSES: Mapping[str, frozenset[str]] = MappingProxyType(
    {"historic-classes": frozenset({"classes", "windows"}), "bayes-classes": frozenset({"classes"})}
)
"""Policies of classes, with the keys that each reads."""
_OWN = frozenset({"theta", "window", "horizon", "start", "shortest", "longest", "classes", "windows"})
_VALUED = frozenset({"objective", "links", "min_interval", "max_interval"})


def arguments_of(settings: ScheduleSettings) -> dict[str, float]:
    """The arguments of the chosen policy that are set, durations in seconds; not those of classes."""
    found = {}
    for key, argument in PARAMETERS.get(settings.policy, {}).items():
        text = str(getattr(settings, key))
        if text != DEFAULT:
            found[argument] = float(text) if key == "theta" else parse_duration(text)
    return found


def read_by(settings: ScheduleSettings) -> frozenset[str]:
    """The keys of the section that the chosen policy reads, of those that only some policies read."""
    name, _, objective = settings.policy.partition("-")
    if name == "valued":
        aim = objective or settings.objective
        return (
            frozenset({"min_interval", "max_interval"})
            | (frozenset() if objective else frozenset({"objective"}))
            | (frozenset({"links"}) if aim == "links" else frozenset())
        )
    return frozenset(PARAMETERS.get(settings.policy, ())) | CLASSES.get(settings.policy, frozenset())


def ignored_settings(configuration: Configuration) -> list[str]:
    """A sentence for each key that is set although the chosen policy does not read it."""
    schedule = configuration.settings.schedule
    read = read_by(schedule)
    return [
        f"schedule.{key} is set ({origin}) and has no effect: the policy {schedule.policy} does not read it."
        for key in sorted((_OWN | _VALUED) - read)
        if (origin := configuration.origins[f"schedule.{key}"]).kind != "default"
        and getattr(schedule, key) != getattr(ScheduleSettings(), key)
    ]
