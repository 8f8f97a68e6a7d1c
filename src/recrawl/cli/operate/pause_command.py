"""``recrawl pause``: pause a crawl, or some of its hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.app.display import HERE
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.options import SetOption, WorkspaceOption

if TYPE_CHECKING:
    from pathlib import Path

    from recrawl.model import IntArray
    from recrawl.store.base import PageTable


EXAMPLES = """
recrawl pause -w my-archive          pause the whole crawl
recrawl pause example.org            only this host
"""

HostsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[HOST]...", help="Hosts, as recrawl list hosts shows them. Default: the whole crawl."),
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
