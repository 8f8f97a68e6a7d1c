"""``recrawl frontier``: serve the schedule of a workspace to crawlers of others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.app.display import HERE
from recrawl.app.workspace.configuration import parse_assignments
from recrawl.app.workspace.workspace import open_workspace
from recrawl.cli.options import SetOption, WorkspaceOption

if TYPE_CHECKING:
    from recrawl.app.frontier.crawls import FrontierCrawls
    from recrawl.web.urlfrontier.grpc_service import ServiceTerms

EXAMPLES = """
recrawl frontier -w my-archive                           at 127.0.0.1:7071, for this machine only
recrawl frontier --set schedule.budget=50/s              your crawler makes up to 50 requests a second
recrawl frontier --crawl news=../news                    the crawl id news is another workspace
recrawl frontier --listen 0.0.0.0:7071 --token "$TOKEN"  for other machines, which send the token
recrawl frontier --listen 0.0.0.0:7071 --tls-cert server.pem --tls-key server.key
"""


def frontier(  # noqa: PLR0913, PLR0917 - one argument an option
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Address to listen on; port 0 for any free port.")
    ] = "127.0.0.1:7071",
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            envvar="RECRAWL_TOKEN",
            help="Token that clients must send. From other machines one is always needed; by default serve.token.",
        ),
    ] = None,
    crawl: Annotated[
        list[str] | None,
        typer.Option(metavar="ID=FOLDER", help="The workspace of another crawl id; repeat for more."),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificate of this server with its chain (PEM), for TLS.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Private key of the certificate (PEM).")] = None,
    tls_clients: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Authorities that must have signed the certificates of clients (PEM)."),
    ] = None,
    workspace: WorkspaceOption = HERE,
    assignments: SetOption = None,
) -> None:
    """Serve the schedule to crawlers of others (URLFrontier API).

    Your crawler fetches, recrawl decides when: StormCrawler and every other client of URLFrontier asks for URLs, gets
    those that are worth a fetch and may be requested now, and reports what it found. Status, digest, ETag and
    Last-Modified in the metadata of a report say whether the page changed; from this recrawl learns when to hand it out
    again. Use it instead of recrawl run, not beside it.

    schedule.budget is the number of URLs that are handed out; set it to what your crawler can fetch. Queues are hosts,
    and rest for politeness.min_delay or their own delay after they gave URLs. What is handed out, delays, blocks and
    limits survive a restart.

    Crawl ids are workspaces: DEFAULT is this one; others are named by --crawl, or made in its folder crawls/ with the
    same settings when a client first sends URLs for them.

    By default only this machine can connect. With another address clients must send a token, as authorization: Bearer.
    Stop with Ctrl-C.
    """
    from recrawl.app.frontier.crawls import FrontierCrawls, named_crawls
    from recrawl.errors import require
    from recrawl.web.urlfrontier.grpc_service import ServiceTerms

    require("grpc", "frontier")
    require("google.protobuf", "frontier")
    flags = parse_assignments(assignments or [])
    place = open_workspace(workspace, flags)
    host, port = _address(listen)
    shown = _token(place.folder, host, token)
    certificate, key, clients = (b"" if one is None else _bytes_of(one) for one in (tls_cert, tls_key, tls_clients))
    _check_tls(certificate, key, clients)
    terms = ServiceTerms(host, port, shown, certificate, key, clients)
    with FrontierCrawls(place, named_crawls(crawl or [], flags)) as crawls:
        crawls.get("")  # a missing store is reported here
        _serve(crawls, terms, place.folder.resolve().name, generated=token is None)
    typer.echo("The frontier has stopped.")


def _serve(crawls: FrontierCrawls, terms: ServiceTerms, name: str, *, generated: bool) -> None:
    """Serve until a signal arrives."""
    import asyncio
    import signal
    from functools import partial

    from recrawl.crawl.worker import event_loop
    from recrawl.crawl.worker.gc_tuning import long_running
    from recrawl.web.urlfrontier.grpc_service import FrontierServer

    def ready(port: int) -> None:
        at = f"[{terms.host}]:{port}" if ":" in terms.host else f"{terms.host}:{port}"
        typer.echo(f"The frontier of {name} is at {at}")
        if terms.token and generated:
            typer.echo(f"Clients send: authorization: Bearer {terms.token}")
        if terms.token and not terms.certificate:
            typer.echo("Without --tls-cert the token travels unencrypted.")
        typer.echo("Stop with Ctrl-C.")

    async def serve() -> None:
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, over.set)
        fault = partial(crawls.get("").report_fault)
        await FrontierServer(crawls, terms, fault).serve(ready, over)

    with long_running():
        event_loop.run(serve())


def _address(text: str) -> tuple[str, int]:
    """Host and port of a text."""
    from recrawl.errors import ConfigError

    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65_535:  # noqa: PLR2004 - of TCP
        raise ConfigError(f"--listen {text!r} is not HOST:PORT.", "Write for example 127.0.0.1:7071.")
    return host.strip("[]") or "127.0.0.1", int(port)


def _token(folder: Path, host: str, given: str | None) -> str:
    """The token that clients send; empty if only this machine can connect and none was given."""
    from recrawl.errors import ConfigError
    from recrawl.web.dashboard.access_control import is_loopback, stored_token

    if given is not None:
        if len(given) < 16 or not given.isascii() or not given.isprintable() or " " in given:  # noqa: PLR2004
            raise ConfigError(
                "A token needs at least 16 printable characters without spaces.",
                "Leave out --token to use the one in serve.token.",
            )
        return given
    return "" if is_loopback(host) else stored_token(folder)


def _bytes_of(file: Path) -> bytes:
    from recrawl.errors import InputError

    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.", "Check the path.") from error


def _check_tls(certificate: bytes, key: bytes, clients: bytes) -> None:
    from recrawl.errors import ConfigError

    if bool(certificate) != bool(key) or (clients and not certificate):
        raise ConfigError("--tls-cert and --tls-key belong together.", "Give both; --tls-clients only with them.")
