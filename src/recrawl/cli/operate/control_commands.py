"""Control running crawls: ``recrawl pause``, ``recrawl resume`` and ``recrawl limit``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.app.display import HERE
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.settings import Setting, declared
from recrawl.app.workspace.workspace import Workspace, change_limits, not_live, open_workspace
from recrawl.cli.options import JsonOption, SetOption, WorkspaceOption
from recrawl.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from recrawl.model import IntArray
    from recrawl.store.base import PageTable


PAUSE_EXAMPLES = """
recrawl pause -w my-archive          pause the whole crawl
recrawl pause example.org            only this host
"""

HostsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="HOST", help="Hosts, as recrawl list hosts shows them. Default: the whole crawl."),
]


def pause(hosts: HostsArgument = None, workspace: WorkspaceOption = HERE, assignments: SetOption = None) -> None:
    """Pause the crawl, or some of its hosts.

    Running workers stop within seconds, on every machine. They finish running requests, return their leases and wait
    for recrawl resume. A run that starts while the crawl is paused waits as well; with --once it ends. Pages stay due
    and are late when the crawl resumes.
    """
    tell(hosts or [], workspace, assignments or [], paused=True)


def tell(hosts: list[str], workspace: Path, assignments: list[str], *, paused: bool) -> None:
    """Pause or resume all runs, for the whole crawl or for these hosts, and print the result."""
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.control import runtime_limits

    now = RealClock().now()
    with open_workspace(workspace, parse_assignments(assignments)).open_store() as store:
        was = runtime_limits.is_paused(store.controls())
        if hosts:
            runtime_limits.set_hosts_paused(store, _ids(store, hosts), now, paused=paused)
        else:
            runtime_limits.set_paused(store, now, paused=paused)
        still = _still_paused(store) if not paused else []
    names = ", ".join(hosts) or "The crawl"
    state = ("is" if len(hosts) <= 1 else "are") + (" paused" if paused else " no longer paused")
    typer.echo(f"{names} {state}." + ("" if paused else " Workers adopt this within seconds."))
    if hosts and not paused and was:
        typer.echo("The whole crawl is still paused. Resume it with recrawl resume, without hosts.")
    elif still and not hosts:
        typer.echo(f"Hosts that are still paused by name: {', '.join(still)}.")


def _ids(store: PageTable, hosts: list[str]) -> IntArray:
    import numpy as np

    from recrawl.app.rates.belief_table import host_id

    return np.array([host_id(store, host) for host in hosts], dtype=np.int64)


def _still_paused(store: PageTable) -> list[str]:
    hosts = store.hosts()
    return [name for name, paused in zip(hosts.name, hosts.paused.tolist(), strict=True) if paused]


RESUME_EXAMPLES = """
recrawl resume -w my-archive         resume the crawl
recrawl resume example.org           resume this host
"""


def resume(hosts: HostsArgument = None, workspace: WorkspaceOption = HERE, assignments: SetOption = None) -> None:
    """Resume a paused crawl, or some of its hosts.

    Without hosts, the whole crawl is resumed. Hosts that were paused by name stay paused until they are named here.
    """
    tell(hosts or [], workspace, assignments or [], paused=False)


LIMIT_EXAMPLES = """
recrawl limit                                      show current limits
recrawl limit schedule.budget=500/h                for all runs, within seconds
recrawl limit politeness.min_delay=10s crawl.concurrency=8
recrawl limit --reset schedule.budget              return to the value of the settings
recrawl limit --reset                              reset all limits
"""


def limit(
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="New limits; with --reset only keys.")
    ] = None,
    *,
    reset: Annotated[bool, typer.Option("--reset", help="Reset the named limits, or all.")] = False,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Change limits of running crawls.

    Limits are stored in the store. All runs of the workspace adopt them within seconds, and so do later runs. A limit
    overrides recrawl.yaml, environment variables and flags until it is reset. Only some settings can be changed this
    way; without arguments the command lists them with their current values. All other settings are read when a run
    starts.
    """
    from recrawl.crawl.clock import RealClock
    from recrawl.crawl.control import runtime_limits

    place = open_workspace(workspace, parse_assignments(assignments or []))
    live = {setting.key: setting for setting in declared() if setting.live}
    wanted = _wanted(changes or [], live, reset=reset)
    with place.open_store() as store:
        if reset and not wanted:
            wanted = dict.fromkeys(runtime_limits.limits(store.controls()))
        held = change_limits(place, store, wanted, RealClock().now())
    _tell(place, live, held, json_output=json_output)


def _wanted(changes: list[str], live: Mapping[str, Setting], *, reset: bool) -> dict[str, str | None]:
    """The new limits by key; ``None`` for limits to reset."""
    wanted: dict[str, str | None] = {}
    for change in changes:
        key, equals, text = (part.strip() for part in change.partition("="))
        if bool(equals) == reset:
            example = f"recrawl limit --reset {key}" if reset else f"recrawl limit {key}=VALUE"
            raise ConfigError(f"{change!r} {'has a value' if reset else 'has no value'}.", f"Write: {example}")
        if key not in live:
            raise not_live(key, live)
        wanted[key] = None if reset else text
    return wanted


def _tell(place: Workspace, live: Mapping[str, Setting], held: Mapping[str, str], *, json_output: bool) -> None:
    from recrawl.cli.tables import print_json, print_table

    limited = place.limited(held).configuration
    if json_output:
        print_json(
            {
                key: {"value": limited.value(setting), "origin": str(limited.origins[key])}
                for key, setting in live.items()
            }
        )
        return
    rows = [
        (key, setting.kind.write(limited.value(setting)), str(limited.origins[key]), setting.help)
        for key, setting in live.items()
    ]
    print_table(("limit", "value", "origin", "meaning"), rows)
