"""pywb over our own archive, in a subprocess: index and bytes come from the replay server.

Run as ``python -m recrawl.web.replay.pywb_replay FILE``, where FILE is a JSON object of :class:`PywbSettings`. It
prints a line with the port it listens at, and ends when its standard input does: so it never outlives who started it.
"""

from __future__ import annotations

import copy
import hmac
import html
import json
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from recrawl.errors import RecrawlError, require
from recrawl.web.dashboard.access_control import AccessGuard, cookies_of, is_loopback, name_of
from recrawl.web.dashboard.child_processes import end_process
from recrawl.web.replay.replay_app import COLLECTION
from recrawl.web.servers import address_at

LISTENING = "listening at port "
"""The start of the line with the port; pywb prints other lines before it."""


@dataclass(frozen=True, slots=True)
class PywbSettings:
    """The input of the process."""

    archive: str
    """Address of the server of time travel, with a slash at its end."""
    collection: str
    host: str
    port: int
    """0 for any that is free."""
    folder: str
    """Where templates and scripts of the frame lie; nothing is written there."""
    cookie: str = ""
    """Name and value of the cookie of a browser that sent the token; empty if none is required."""

    def written(self) -> str:
        """As the process reads them."""
        return json.dumps(asdict(self))


def configuration(settings: PywbSettings) -> dict[str, Any]:
    """The collection for pywb: captures from our CDX, bytes from our raw mementos."""
    base = f"{settings.archive}{settings.collection}"
    return {
        "collections": {
            settings.collection: {
                "index": {
                    "type": "cdx",
                    "api_url": f"{base}/cdx?url={{url}}&closest={{closest}}&sort=closest&filter=!statuscode:5.."
                    "&embedded={embedded}",
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


_MODIFIER = re.compile(r"\d{1,14}([a-z]{2}_)/")
_PARTS = frozenset({"cs_", "im_", "js_", "oe_"})
"""Modifiers of page requisites, frames excepted. The time before them is that of the page."""
_FRAMES = frozenset({"if_", "fr_"})


def coherent_rewriter(base: Any) -> Any:  # noqa: ANN401 - classes of pywb
    """Change the rewriter of pywb so that it shows page requisites that are coherent with their page.

    It marks requests for page requisites, so that our index returns the most coherent copy. It answers them at the
    requested URL: if it redirected to the time of the copy, as it does for pages, a style sheet would request its own
    requisites at that time instead of the time of the page. A frame is a page, so it is redirected.
    """

    class CoherentRewriter(base):  # type: ignore[misc]
        def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 - as pywb has it
            super().__init__(*given, **named)
            self._for_parts = copy.copy(self)
            self._for_parts.redirect_to_exact = False

        def render_content(self, wb_url: str, kwargs: dict[str, Any], environ: dict[str, Any]) -> Any:  # noqa: ANN401
            found = _MODIFIER.match(wb_url)
            of_part = found is not None and found[1] in _PARTS
            return base.render_content(self._for_parts if of_part else self, wb_url, kwargs, environ)

        def get_upstream_url(self, wb_url: Any, kwargs: dict[str, Any], params: dict[str, Any]) -> Any:  # noqa: ANN401
            if wb_url.mod in _PARTS or wb_url.mod in _FRAMES:
                params |= {"param.embedded": "true"}
            return super().get_upstream_url(wb_url, kwargs, params)

    return CoherentRewriter


class PywbGate:
    """Admits clients that sent the token to the dashboard, or all local users if there is none."""

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
    settings = PywbSettings(**json.loads(Path(sys.argv[1]).read_text("utf-8")))
    require("gevent.monkey", "replay").patch_all()
    gevent, pywsgi = require("gevent", "replay"), require("gevent.pywsgi", "replay")
    front_end = require("pywb.apps.frontendapp", "replay").FrontEndApp
    front_end.REWRITER_APP_CLS = coherent_rewriter(front_end.REWRITER_APP_CLS)
    app = front_end(custom_config=configuration(settings))
    server = pywsgi.WSGIServer((settings.host, settings.port), PywbGate(app, settings.cookie), log=None)
    server.start()
    print(f"{LISTENING}{server.server_port}", flush=True)  # noqa: T201 - our parent waits for it

    def until_told() -> None:
        while gevent.get_hub().threadpool.apply(sys.stdin.read, (1,)):
            pass
        server.stop(timeout=1)

    gevent.spawn(until_told).join()


if __name__ == "__main__":
    main()


_ASSETS = ("replay-banner.css", "replay-banner.js")
_TEMPLATES = ("frame_insert.html",)
_FACTS = "@FACTS@"
"""The placeholder in the frame for the URL that its banner requests."""


class PywbReplay:
    """pywb as a subprocess. It gets all content from ``archive``, the URL of our replay server."""

    def __init__(self, archive: str, facts: str, *, host: str, port: int, guard: AccessGuard) -> None:
        """Start, and wait until it accepts requests. ``facts`` is the URL of the sharpness data for its banner.

        Raises:
            RecrawlError: it ended at once; the port may be taken.
        """
        require("pywb", "replay")
        self._folder = TemporaryDirectory(prefix="recrawl-replay-")
        folder = Path(self._folder.name)
        _lay_out(folder, facts)
        cookie = f"{guard.pass_name}={guard.proof}" if guard.token else ""
        settings = folder / "settings.json"
        settings.touch(mode=0o600)
        settings.write_text(
            PywbSettings(archive, COLLECTION, host, port, str(folder), cookie).written(), encoding="utf-8"
        )
        log = (folder / "log").open("wb")
        with log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, and no shell
                [sys.executable, "-m", "recrawl.web.replay.pywb_replay", str(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=folder,
                start_new_session=True,  # Ctrl-C in our terminal is for us; the child ends when we let go of its input
            )
        port_taken = self._port()
        if port_taken is None:
            said = (folder / "log").read_text("utf-8", "replace").strip().rpartition("\n")[2]
            self.close()
            raise RecrawlError(f"pywb did not start: {said}", "Give another --port, or leave out --replay.")
        self.address = f"{address_at(host, port_taken)}/{COLLECTION}/"
        """Where pages are replayed, with a slash at its end."""

    def _port(self) -> int | None:
        """The port that it says it listens at; nothing if it ends before."""
        for line in self._process.stdout or ():
            if line.startswith(LISTENING.encode()):
                return int(line.removeprefix(LISTENING.encode()))
        return None

    def close(self) -> None:
        """End it."""
        if self._process.stdin:
            self._process.stdin.close()
        end_process(self._process)
        if self._process.stdout:
            self._process.stdout.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _lay_out(folder: Path, facts: str) -> None:
    """Put our frame and its scripts where pywb finds them before its own."""
    show = resources.files("recrawl.web")
    for name, source, names in (
        ("templates", show / "templates" / "pywb", _TEMPLATES),
        ("static", show / "assets", _ASSETS),
    ):
        (folder / name).mkdir()
        for one in names:
            text = (source / one).read_text("utf-8").replace(_FACTS, html.escape(facts))
            (folder / name / one).write_text(text, encoding="utf-8")
