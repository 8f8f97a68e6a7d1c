"""Who may look, and who may send lines of an index: the rules of the dashboard, where addresses hold other addresses.

The token is taken from the address of the start page only: an archived URL may have an argument of that name. Whatever
is no GET, HEAD or OPTIONS needs the token itself, before any route is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recrawl.show.dashboard.security import (
    SAFE_METHODS,
    SHOW_TOKEN,
    WRONG_TOKEN,
    Guard,
    Refusal,
    cookies_of,
    headers_of,
    refuse,
    say,
    token_in_address,
)

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
        safe = scope["method"] in SAFE_METHODS
        shown = token_in_address(scope) if safe and scope["path"] == "/" else None
        if shown:
            if self._guard.is_token(shown):
                await say(send, 303, "", {"location": "/", "set-cookie": self._guard.pass_cookie})
            else:
                await refuse(send, WRONG_TOKEN, headers, {})
            return
        if not self._guard.may_look(headers, cookies_of(headers)):
            await refuse(send, Refusal(401, "Nobody looks without the token.", SHOW_TOKEN), headers, {})
            return
        if not safe and not self._guard.shows_bearer(headers):
            # A cookie is not enough: whoever looks at an archived page has it, and what the page holds is not ours.
            await refuse(send, Refusal(401, "A change needs the token.", ONLY_PROGRAMS), headers, {})
            return
        await self._app(scope, receive, send)


ONLY_PROGRAMS = "Only programs that show the token may send captures: Authorization: Bearer TOKEN."
"""Said to whoever sends something without."""
