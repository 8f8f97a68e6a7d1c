"""``recrawl serve``: the dashboard of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from recrawl.cli.configuration import parse_assignments
from recrawl.cli.options import HERE, SetOption, WorkspaceOption
from recrawl.cli.workspace import open_workspace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from socket import socket

    from recrawl.cli.workspace import Workspace
    from recrawl.show.dashboard.security import Guard

EXAMPLES = """
recrawl serve -w my-archive                    at http://127.0.0.1:8080, for this machine only
recrawl serve --open --port 0                  any free port, and open a browser
recrawl serve --replay                         archived pages as they looked, scripts and all
recrawl serve --host 0.0.0.0                   for others too: they need the token that is printed
recrawl serve --host 0.0.0.0 --token "$TOKEN"  with a token of your own
"""
SHORTEST_TOKEN = 16


def serve(  # noqa: PLR0913 - one argument an option
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen at; 0 for any that is free.")] = 8080,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen at. Beyond this machine a token is asked for.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", envvar="RECRAWL_TOKEN", help="Token instead of the one in serve.token; needed to look, too."
        ),
    ] = None,
    *,
    replay: Annotated[
        bool, typer.Option("--replay", help="Replay archived pages with pywb too, scripts and all, two ports behind.")
    ] = False,
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    workspace: WorkspaceOption = HERE,
    assignments: SetOption = None,
) -> None:
    """Show a workspace in a browser, live.

    How the crawl goes, what is due and late, what the budget buys; hosts and pages, of each its visits, its versions
    side by side and why it is visited when it is. Works while recrawl run is at work, also on another machine with the
    same store. Every page is JSON as well, below /api/; /openapi.json describes that.

    Archived pages are at the port behind it, an origin of their own, so that nothing in them can act on the dashboard:
    Memento, CDX, raw bytes and pages without scripts. --replay adds pywb, which replays them with scripts.

    Changes always need a token: limits, pauses, captures, lines sent to the archive. Open the address that is printed,
    which holds it, or send Authorization: Bearer. The token is kept in the file serve.token of the workspace.

    Only this machine can reach it, and everybody there may look. With --host it can be reached from elsewhere, and
    with --host or --token nobody looks without the token. Beyond a network that you trust, put a proxy with TLS before
    it. Ctrl-C ends it.
    """
    from recrawl.errors import require

    for module in ("jinja2", "starlette", "uvicorn"):
        require(module, "show")
    from recrawl.cli.serving.run import address_of, bound, heard_before
    from recrawl.formats.disk import remove_abandoned

    place = open_workspace(workspace, parse_assignments(assignments or []))
    place.open_store().close()  # so that a store that is missing, or older, is told of here
    remove_abandoned(place.reports)
    guard = _guard(place.folder, host, token)
    with bound(host, port) as listening, bound(host, port and port + 1) as behind:
        address = address_of(listening, host)
        shown = f"{address}/?token={guard.write_token}"
        # Whoever opens it now waits until the rest is there: to load all that it is made of takes a while.
        with heard_before() as over:
            typer.echo(f"The dashboard of {place.folder.resolve().name} is at {shown}")
            sockets = Sockets(host, listening, behind, port and port + 2 if replay else None)
            _serve(place, guard, sockets, opened=shown if open_browser else "", over=over)
    typer.echo("The dashboard has ended.")


class Sockets(NamedTuple):
    """Where is listened."""

    host: str
    dashboard: socket
    archive: socket
    replay: int | None
    """The port that pywb is to take, 0 for any that is free; ``None`` without pywb."""


def _serve(place: Workspace, guard: Guard, sockets: Sockets, *, opened: str, over: Callable[[], bool]) -> None:
    """Serve the dashboard, and archived pages at the port behind it, until somebody interrupts."""
    from recrawl.cli.serving.page_beliefs import PageBeliefs
    from recrawl.cli.serving.run import serve_all
    from recrawl.cli.serving.travel import time_travel
    from recrawl.cli.serving.warm import Looks
    from recrawl.cli.serving.wiring import FIRST_LOOKS, wired
    from recrawl.crawl.clock import RealClock
    from recrawl.show.dashboard.app import make_app

    now = RealClock().now
    beliefs = PageBeliefs(place, now)
    with time_travel(place, guard, sockets.host, sockets.archive, replay=sockets.replay, beliefs=beliefs) as travel:
        dashboard = wired(place, guard, now, {"replay": travel.replay or travel.archive}, beliefs)

        def ready() -> None:
            typer.echo(f"Archived pages are at {travel.archive}")
            if travel.replay:
                typer.echo(f"pywb replays them at {travel.replay}")
            typer.echo("Ctrl-C ends it.")
            if opened:
                typer.launch(opened)

        app = make_app(dashboard.site)
        try:
            dashboard.begin(patience=0.0)
            serve_all(
                [(app, sockets.dashboard), *travel.apps],
                ready,
                [Looks(app, FIRST_LOOKS, guard.write_token), travel.first],
                over=over,
            )
        finally:
            dashboard.close()


def _guard(folder: Path, host: str, given: str | None) -> Guard:
    """Who may look and act: changes need the token, and looking too unless only this machine can reach the server."""
    from urllib.parse import quote

    from recrawl.cli.serving.token import stored_token
    from recrawl.errors import ConfigError
    from recrawl.show.dashboard.security import Guard, is_loopback

    if given is None:
        token = stored_token(folder)
        return Guard("" if is_loopback(host) else token, token)
    if len(given) < SHORTEST_TOKEN or quote(given, safe="") != given:
        raise ConfigError(
            f"A token has {SHORTEST_TOKEN} letters, digits or -_.~ at least.", "Leave out --token to have one made up."
        )
    return Guard(given)
