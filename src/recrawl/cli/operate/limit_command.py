"""``recrawl limit``: change limits of running crawls."""

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


EXAMPLES = """
recrawl limit                                      show current limits
recrawl limit schedule.budget=500/h                for all runs, within seconds
recrawl limit politeness.min_delay=10s crawl.concurrency=8
recrawl limit --reset schedule.budget              return to the value of the settings
recrawl limit --reset                              reset all limits
"""


def limit(
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="New limits; with --reset only keys.")
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
