"""Who may look, and who may send lines of an index: the rules of the dashboard, where addresses hold other addresses.

The token is taken from the address of the start page only: an archived URL may have an argument of that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from recrawl.show.dashboard.security import Guard, comes_from_elsewhere, cookies_of, headers_of, say

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class Door:
    """Stands before the server of archived content. It sets no cookie but that of who shows the token."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = headers_of(scope)
        if self._guard.refuses_host(headers):
            await say(send, 421, "This server answers to the names of this machine only.", {})
            return
        shown = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"))).get("token", "")
        if self._guard.token and scope["path"] == "/" and shown:
            if self._guard.shows_bearer({"authorization": f"Bearer {shown}"}):
                cookie = f"{self._guard.pass_name}={self._guard.proof}; Path=/; HttpOnly; SameSite=Strict"
                await say(send, 303, "", {"location": "/", "set-cookie": cookie})
            else:
                await say(send, 401, "That is not the token. Open the address that recrawl serve printed.", {})
            return
        if not self._guard.knows(headers, cookies_of(headers)):
            await say(send, 401, "Show the token: open the address that recrawl serve printed.", {})
            return
        await self._app(scope, receive, send)


def why_not_write(guard: Guard, scope: Scope) -> str:
    """Why this request may change nothing; empty if it may.

    Programs show the token, or work on this machine where none is needed. What a browser sends for another site, or for
    an archived page, which has no origin at all, says so and is refused.
    """
    headers = headers_of(scope)
    if guard.shows_bearer(headers):
        return ""
    if guard.token:
        return "Only programs that show the token may send captures: Authorization: Bearer TOKEN."
    return "The request comes from another site." if comes_from_elsewhere(headers) else ""
