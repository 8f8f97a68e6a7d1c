"""``recrawl pause``: hold a crawl, or some of its hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, SetOption, WorkspaceOption
from recrawl.cli.workspace import open_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from recrawl.model import IntArray
    from recrawl.store.base import Store

EXAMPLES = """
recrawl pause -w my-archive          hold the whole crawl
recrawl pause example.org            only this host
"""

HostsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[HOST]...", help="Hosts, as recrawl list hosts names them; none for all.")
]


def pause(hosts: HostsArgument = None, workspace: WorkspaceOption = HERE, assignments: SetOption = None) -> None:
    """Hold the crawl, or some of its hosts, until recrawl resume.

    Runs that are at work hear of it within seconds, on whatever machine. They finish what is under way, give the rest
    back and wait. A run that is started while the crawl is paused waits as well; with --once it ends. Pages stay due
    and are late when the crawl goes on.
    """
    tell(hosts or [], workspace, assignments or [], paused=True)


def tell(hosts: list[str], workspace: Path, assignments: list[str], *, paused: bool) -> None:
    """Tell all runs to hold or to go on, and say so: the whole crawl, or these hosts."""
    from recrawl.crawl import controls
    from recrawl.crawl.clock import RealClock

    now = RealClock().now()
    with open_workspace(workspace, parse_assignments(assignments)).open_store() as store:
        was = controls.is_paused(store.controls())
        if hosts:
            controls.set_hosts_paused(store, _ids(store, hosts), now, paused=paused)
        else:
            controls.set_paused(store, now, paused=paused)
        still = _still_paused(store) if not paused else []
    names = ", ".join(hosts) or "The crawl"
    verb = ("is" if len(hosts) <= 1 else "are") + (" paused" if paused else " no longer paused")
    typer.echo(f"{names} {verb}." + ("" if paused else " Runs go on within seconds."))
    if hosts and not paused and was:
        typer.echo("The crawl as a whole is still paused: recrawl resume, without hosts, lets it go on.")
    elif still and not hosts:
        typer.echo(f"Paused by name, and still so: {', '.join(still)}.")


def _ids(store: Store, hosts: list[str]) -> IntArray:
    import numpy as np

    from recrawl.cli.knowledge import host_id

    return np.array([host_id(store, host) for host in hosts], dtype=np.int64)


def _still_paused(store: Store) -> list[str]:
    hosts = store.hosts()
    return [name for name, paused in zip(hosts.name, hosts.paused.tolist(), strict=True) if paused]
