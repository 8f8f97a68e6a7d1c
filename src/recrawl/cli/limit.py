"""``recrawl limit``: other limits for crawls that run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, JsonOption, SetOption, WorkspaceOption
from recrawl.cli.settings import Setting, declared
from recrawl.cli.workspace import Workspace, open_workspace
from recrawl.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recrawl.store.base import Store

EXAMPLES = """
recrawl limit                                      what holds now
recrawl limit schedule.budget=500/h                for all runs, within seconds
recrawl limit politeness.min_delay=10s crawl.concurrency=8
recrawl limit --reset schedule.budget              back to what the settings say
recrawl limit --reset                              all of them
"""


def limit(
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="New limits; with --reset the keys alone.")
    ] = None,
    *,
    reset: Annotated[bool, typer.Option("--reset", help="Take limits back: those named, or all.")] = False,
    workspace: WorkspaceOption = HERE,
    json_output: JsonOption = False,
    assignments: SetOption = None,
) -> None:
    """Set other limits for crawls that run.

    A limit is kept in the store. All runs of the workspace take it over within seconds, those that start later too, and
    it wins over recrawl.yaml, variables and flags until it is taken back. Only some settings can be changed this way;
    without arguments they are listed, with what holds now. All others are read when a run starts.
    """
    from recrawl.crawl import controls
    from recrawl.crawl.clock import RealClock

    place = open_workspace(workspace, parse_assignments(assignments or []))
    live = {setting.key: setting for setting in declared() if setting.live}
    wanted = _wanted(changes or [], live, reset=reset)
    with place.open_store() as store:
        if reset and not wanted:
            wanted = dict.fromkeys(controls.limits(store.controls()))
        held = change_limits(place, store, wanted, RealClock().now())
    _tell(place, live, held, json_output=json_output)


def change_limits(place: Workspace, store: Store, wanted: Mapping[str, str | None], now: float) -> dict[str, str]:
    """Set limits by key, or take them back where that is ``None``; returns those that hold then.

    They must make sense together and with the settings; else nothing is changed.
    """
    from recrawl.crawl import controls

    told = controls.limits(store.controls())
    held = {key: text for key, text in {**told, **wanted}.items() if text is not None}
    place.limited(held)
    for key, text in wanted.items():
        controls.set_limit(store, key, text, now)
    return held


def _wanted(changes: list[str], live: Mapping[str, Setting], *, reset: bool) -> dict[str, str | None]:
    """What to set, by key; ``None`` for what to take back."""
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


def not_live(key: str, live: Iterable[str]) -> ConfigError:
    """Why there is no limit of that name."""
    known = {setting.key for setting in declared()}
    why = "it is read when a run starts" if key in known else "there is no such setting"
    return ConfigError(
        f"{key} cannot be changed while a crawl runs: {why}.",
        f"Set it in recrawl.yaml and start anew. Limits may be: {', '.join(live)}.",
    )


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
