"""pywb over our own archive, in a process of its own: index and bytes come from the server of time travel.

Run as ``python -m recrawl.show.timetravel.pywb_server FILE``, where FILE is a JSON object of ``Settings``. It prints a
line with the port it listens at, and ends when its standard input does: so it never outlives who started it.
"""

from __future__ import annotations

import hmac
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recrawl.errors import require
from recrawl.show.dashboard.security import cookies_of, is_loopback, name_of

LISTENING = "listening at port "
"""Begins the line with the port; pywb prints other lines before it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the process is told."""

    archive: str
    """Address of the server of time travel, with a slash at its end."""
    collection: str
    host: str
    port: int
    """0 for any that is free."""
    folder: str
    """Where templates and scripts of the frame lie; nothing is written there."""
    cookie: str = ""
    """Name and value of the cookie of who has shown the token; empty if none is asked for."""

    def written(self) -> str:
        """As the process reads them."""
        return json.dumps(asdict(self))


def configuration(settings: Settings) -> dict[str, Any]:
    """The collection for pywb: captures from our CDX, bytes from our raw mementos."""
    base = f"{settings.archive}{settings.collection}"
    return {
        "collections": {
            settings.collection: {
                "index": {
                    "type": "cdx",
                    "api_url": f"{base}/cdx?url={{url}}&closest={{closest}}&sort=closest&filter=!statuscode:5..",
                    "replay_url": f"{base}/{{timestamp}}id_/{{url}}",
                }
            }
        },
        "collections_root": "_none_",
        "templates_dir": str(Path(settings.folder) / "templates"),
        "static_dir": str(Path(settings.folder) / "static"),
        "enable_memento": True,
        "framed_replay": True,
        "redirect_to_exact": True,
    }


class Gate:
    """Lets in who has shown the token to the dashboard, or whoever is on this machine where there is none."""

    def __init__(self, app: Any, cookie: str) -> None:  # noqa: ANN401 - a WSGI application
        self._app = app
        self._name, _, self._value = cookie.partition("=")

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:  # noqa: ANN401 - as WSGI has it
        """Pass a request on, or answer it here."""
        if self._lets_in(environ):
            return self._app(environ, start_response)
        start_response("403 Forbidden", [("Content-Type", "text/plain"), ("X-Content-Type-Options", "nosniff")])
        return [b"Open the dashboard first, at the address that recrawl serve printed.\n"]

    def _lets_in(self, environ: dict[str, Any]) -> bool:
        if not self._name:
            return is_loopback(name_of(environ.get("HTTP_HOST", "")))
        shown = cookies_of({"cookie": environ.get("HTTP_COOKIE", "")}).get(self._name, "")
        return hmac.compare_digest(shown.encode(), self._value.encode())


def main() -> None:
    """Serve until standard input ends."""
    settings = Settings(**json.loads(Path(sys.argv[1]).read_text("utf-8")))
    require("gevent.monkey", "replay").patch_all()
    gevent, pywsgi = require("gevent", "replay"), require("gevent.pywsgi", "replay")
    app = require("pywb.apps.frontendapp", "replay").FrontEndApp(custom_config=configuration(settings))
    server = pywsgi.WSGIServer((settings.host, settings.port), Gate(app, settings.cookie), log=None)
    server.start()
    print(f"{LISTENING}{server.server_port}", flush=True)  # noqa: T201 - whoever started us waits for it

    def until_told() -> None:
        while gevent.get_hub().threadpool.apply(sys.stdin.read, (1,)):
            pass
        server.stop(timeout=1)

    gevent.spawn(until_told).join()


if __name__ == "__main__":
    main()
