"""``recrawl serve``: serve the dashboard and the archived pages of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from recrawl.app.display import HERE
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.options import SetOption, WorkspaceOption

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from socket import socket

    from recrawl.app.workspace.workspace import Workspace
    from recrawl.web.dashboard.access_control import AccessGuard


EXAMPLES = """
recrawl serve -w my-archive                    at http://127.0.0.1:8080, for this machine only
recrawl serve --open --port 0                  any free port, and open a browser
recrawl serve --replay                         replay archived pages with scripts
recrawl serve --host 0.0.0.0                   for other machines; they need the printed token
recrawl serve --host 0.0.0.0 --token "$TOKEN"  with your own token
"""
SHORTEST_TOKEN = 16


def serve(  # noqa: PLR0913 - one argument an option
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 for any free port.")] = 8080,
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Address to listen on. From other machines every request needs a token."),
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            envvar="RECRAWL_TOKEN",
            help="Token instead of the one in serve.token; then required for reading, too.",
        ),
    ] = None,
    *,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay", help="Also replay archived pages with scripts by pywb, at the dashboard's port plus 2."
        ),
    ] = False,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the result in a browser.")] = False,
    workspace: WorkspaceOption = HERE,
    assignments: SetOption = None,
) -> None:
    """Serve the dashboard and the archived pages of a workspace.

    The dashboard shows the crawl, due and late pages, the effect of the budget, hosts and pages; for each page its
    visits, its versions side by side, and the reasons for its schedule. It works while recrawl run is running, also on
    another machine with the same store. Everything is also available as JSON below /api/, described by /openapi.json.

    Archived pages are served at the next port, as a separate origin, so that their content cannot act on the dashboard:
    Memento, CDX, raw bytes, and pages without scripts. --replay adds pywb, which replays pages with scripts.

    Changes (limits, pauses, captures, records sent to the archive) always need a token. Open the printed address, which
    contains it, or send Authorization: Bearer. The token is stored in the file serve.token of the workspace.

    By default only this machine can connect, and every local user can read. With --host other machines can connect.
    With
    --host or --token, reading needs the token, too. Outside a trusted network, use a proxy with TLS. Stop with Ctrl-C.
    """
    from recrawl.errors import require

    for module in ("jinja2", "starlette", "uvicorn"):
        require(module, "show")
    from recrawl.formats.atomic_files import remove_abandoned
    from recrawl.web.servers import address_of, bound, heard_before

    place = open_workspace(workspace, parse_assignments(assignments or []))
    place.open_store().close()  # so that a missing or outdated store is reported here
    remove_abandoned(place.reports)
    guard = _guard(place.folder, host, token)
    with bound(host, port) as listening, bound(host, port and port + 1) as behind:
        address = address_of(listening, host)
        shown = f"{address}/?token={guard.write_token}"
        # A browser that connects now waits until the rest is imported, which takes a while.
        with heard_before() as over:
            typer.echo(f"The dashboard of {place.folder.resolve().name} is at {shown}")
            sockets = ListenSockets(host, listening, behind, port and port + 2 if replay else None)
            _serve(place, guard, sockets, opened=shown if open_browser else "", over=over)
    typer.echo("The dashboard has stopped.")


class ListenSockets(NamedTuple):
    """The address to listen on."""

    host: str
    dashboard: socket
    archive: socket
    replay: int | None
    """The port for pywb, 0 for any free one; ``None`` without pywb."""


def _serve(
    place: Workspace, guard: AccessGuard, sockets: ListenSockets, *, opened: str, over: Callable[[], bool]
) -> None:
    """Serve the dashboard, and archived pages at the next port, until interrupted."""
    from recrawl.crawl.clock import RealClock
    from recrawl.web.dashboard.dashboard_app import FIRST_LOOKS, make_app, wired
    from recrawl.web.dashboard.plan_survey import PageBeliefs
    from recrawl.web.replay.workspace_archive import time_travel
    from recrawl.web.servers import PrefetchPaths, serve_all

    now = RealClock().now
    beliefs = PageBeliefs(place, now)
    with time_travel(place, guard, sockets.host, sockets.archive, replay=sockets.replay, beliefs=beliefs) as travel:
        dashboard = wired(place, guard, now, {"replay": travel.replay or travel.archive}, beliefs)

        def ready() -> None:
            shown = f"{travel.archive}?token={guard.write_token}" if guard.token else travel.archive
            typer.echo(f"Archived pages are at {shown}")
            if travel.replay:
                typer.echo(f"pywb replays them at {travel.replay}")
            typer.echo("Stop with Ctrl-C.")
            if opened:
                typer.launch(opened)

        app = make_app(dashboard.site)
        try:
            dashboard.begin(patience=0.0)
            serve_all(
                [(app, sockets.dashboard), *travel.apps],
                ready,
                [PrefetchPaths(app, FIRST_LOOKS, guard.write_token), travel.first],
                over=over,
            )
        finally:
            dashboard.close()


def _guard(folder: Path, host: str, given: str | None) -> AccessGuard:
    """The access rules: changes need the token; reading needs it, too, unless only this machine can connect."""
    from urllib.parse import quote

    from recrawl.errors import ConfigError
    from recrawl.web.dashboard.access_control import AccessGuard, is_loopback, stored_token

    if given is None:
        token = stored_token(folder)
        return AccessGuard("" if is_loopback(host) else token, token)
    if len(given) < SHORTEST_TOKEN or quote(given, safe="") != given:
        raise ConfigError(
            f"A token needs at least {SHORTEST_TOKEN} letters, digits or -_.~ characters.",
            "Leave out --token to use a generated one.",
        )
    return AccessGuard(given)
