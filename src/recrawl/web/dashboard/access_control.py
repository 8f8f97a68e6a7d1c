"""Access control: who may read, and who may make changes.

Rules of this file:
 1. Every change needs the token, always: a server on this machine can be reached by every user and every program of it.
    Every request other than GET, HEAD or OPTIONS is refused without it, before routing; so a route that is added later
    is protected, too.
 2. Reading needs the token where other machines can connect. A server that only this machine can reach lets every local
 user read, under a loopback name only: a web page that points its own name here (DNS rebinding) is refused by the
 Host header.
 3. The token is sent as ``Authorization: Bearer``, or once in the address, and from then on by a cookie that only this
    process can make. Secrets are compared in constant time.
 4. A browser, which sends cookies by itself, needs more for a change: the token of a form of its session (which other
    sites cannot read, and whose cookie browsers do not send for them: SameSite=Strict), and no other origin:
    if Origin or Sec-Fetch-Site is sent, it is our own.
 5. Pages run no script but our own files: no inline script, no frames, nothing from elsewhere.

The token of a workspace: a file that only its owner can read, made when ``recrawl serve`` first needs it.

It persists between starts, so that programs on this machine can read it there. If the file is deleted, the next start
creates another token.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import os
import re
import secrets
import stat
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from recrawl.formats.atomic_files import unfinished_file

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


SESSION = "recrawl_session"
"""The cookie with a random name for a browser."""
FORM_TOKEN = "csrf"  # noqa: S105 - the name of a field
HEADER_TOKEN = "x-csrf-token"  # noqa: S105 - the name of a header
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing (RFC 9110, 9.2.1)."""
HEALTH_PATHS = ("/healthz", "/readyz")
"""Container managers request these without a token, and then get only a status."""
SHOW_TOKEN = "Open the address that recrawl serve printed, or send Authorization: Bearer."  # noqa: S105
CHALLENGE = {"www-authenticate": 'Bearer realm="recrawl"'}
"""Of every response that requires the token (RFC 6750)."""
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""Charts and tooltips set styles by themselves; scripts come from files only."""
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Referrers are sent only to our own origin; with none at all, browsers would not send the origin of our own forms."""


def is_loopback(host: str) -> bool:
    """Whether a name or address is this machine's own.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def name_of(authority: str) -> str:
    """The name in a Host header, without its port.

    >>> name_of("localhost:8080"), name_of("[::1]:8080"), name_of("Example.org")
    ('localhost', '::1', 'example.org')
    """
    if authority.startswith("["):
        return authority[1:].partition("]")[0].lower()
    return authority.partition(":")[0].lower()


@dataclass(frozen=True, slots=True)
class AccessGuard:
    """The access rules for requests."""

    token: str = ""
    """The token for reading; empty if every local user may read."""
    write_token: str = field(default="", repr=False)
    """The token for changes: ``token`` if there is one, else this, or a new one."""
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """Of this process: sessions of an earlier one are void."""

    def __post_init__(self) -> None:
        """There is always something that a change needs."""
        object.__setattr__(self, "write_token", self.token or self.write_token or secrets.token_urlsafe(24))

    def form_token(self, session: str) -> str:
        """What forms of a session carry."""
        return hmac.new(self.key, f"form {session}".encode(), hashlib.sha256).hexdigest()

    @property
    def pass_name(self) -> str:
        """The cookie of who showed the token. Cookies know no ports, so each server has a name of its own for it."""
        return f"recrawl_pass_{hashlib.sha256(self.key).hexdigest()[:8]}"

    @property
    def proof(self) -> str:
        """The cookie value of a browser that sent the token."""
        return hmac.new(self.key, f"pass {self.write_token}".encode(), hashlib.sha256).hexdigest()

    @property
    def pass_cookie(self) -> str:
        """The header that sets it."""
        return f"{self.pass_name}={self.proof}; Path=/; HttpOnly; SameSite=Strict"

    def may_look(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> bool:
        """Whether the request may read."""
        return not self.token or self.has_shown(headers, cookies)

    def has_shown(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> bool:
        """Whether the client has sent the token, now or before."""
        return self.shows_bearer(headers) or _same(cookies.get(self.pass_name, ""), self.proof)

    def shows_bearer(self, headers: Mapping[str, str]) -> bool:
        """Whether the request carries the token itself, as programs send it."""
        kind, _, shown = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self.is_token(shown.strip())

    def is_token(self, shown: str) -> bool:
        """Whether a text is the token."""
        return _same(shown, self.write_token)

    def refuses_host(self, headers: Mapping[str, str]) -> bool:
        """Whether the request was sent to a name that is not ours. With a token for all, the token decides."""
        return not self.token and not is_loopback(name_of(headers.get("host", "")))

    def why_not_change(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> AccessRefusal | None:
        """Why a request may change nothing, whatever else it says; ``None`` if it may (rules 1 and 4)."""
        if self.shows_bearer(headers):
            return None
        if not self.has_shown(headers, cookies):
            return AccessRefusal(401, "A change needs the token.", SHOW_TOKEN)
        if comes_from_elsewhere(headers):
            return AccessRefusal(403, "The request comes from another site.", "Reload the page and try again.")
        return None

    def why_not_act(self, headers: Mapping[str, str], cookies: Mapping[str, str], shown: str) -> AccessRefusal | None:
        """Why an order of a page may change nothing; ``None`` if it may. ``shown`` is the token of its form."""
        refusal = self.why_not_change(headers, cookies)
        if refusal is not None or self.shows_bearer(headers):
            return refusal
        session = cookies.get(SESSION, "")
        if not session or not _same(shown, self.form_token(session)):
            return AccessRefusal(403, "The form does not belong to this session.", "Reload the page and try again.")
        return None


class AccessRefusal(NamedTuple):
    """Why a request is refused."""

    status: int
    why: str
    remedy: str


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


class AccessGate:
    """Stands before the whole server: turns strangers away, names sessions, and adds the headers of rule 4."""

    def __init__(self, app: ASGIApp, guard: AccessGuard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, cookies = headers_of(scope), cookies_of(headers_of(scope))
        if self._guard.refuses_host(headers):
            await say(send, 421, "This server only accepts the host names of this machine.", HEADERS)
            return
        safe = scope["method"] in SAFE_METHODS
        shown = token_in_address(scope) if safe else None
        if shown is not None:
            await self._admit(scope, send, shown)
            return
        refusal = None if safe else self._guard.why_not_change(headers, cookies)
        if not self._guard.may_look(headers, cookies) and not (safe and scope["path"] in HEALTH_PATHS):
            refusal = AccessRefusal(401, "Reading needs the token.", SHOW_TOKEN)
        if refusal is not None:
            await refuse(send, refusal, headers)
            return
        session = cookies.get(SESSION, "")
        new = "" if _is_session(session) else secrets.token_hex(16)
        scope.setdefault("state", {})["session"] = new or session

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                _seal(message, new)
            await send(message)

        await self._app(scope, receive, sealed)

    async def _admit(self, scope: Scope, send: Send, shown: str) -> None:
        """Take the token out of the address bar, where others could read it, into a cookie."""
        if not self._guard.is_token(shown):
            await refuse(send, WRONG_TOKEN, headers_of(scope))
            return
        rest = [pair for pair in parse_qsl(scope["query_string"].decode("latin-1")) if pair[0] != "token"]
        place = "/" + scope["path"].lstrip("/\\") + (f"?{urlencode(rest)}" if rest else "")
        await say(send, 303, "", {**HEADERS, "location": _in_ascii(place), "set-cookie": self._guard.pass_cookie})


def token_in_address(scope: Scope) -> str | None:
    """The token that the address of a request shows, right or wrong; ``None`` if it shows none."""
    try:
        return dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), max_num_fields=_MOST_FIELDS)).get(
            "token"
        )
    except ValueError:
        return None


def comes_from_elsewhere(headers: Mapping[str, str]) -> bool:
    """Whether a browser says that a page of another origin sent this request."""
    origin = headers.get("origin", "")
    try:
        if origin and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
            return True
    except ValueError:  # it is no origin at all
        return True
    return headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}


def headers_of(scope: Scope) -> dict[str, str]:
    """Headers by lower-case name; of several with one name the last, but several names of a host are none of ours."""
    found: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name == "host" and name in found else value
    return found


def cookies_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Cookies by name; none if they make no sense."""
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}


def _is_session(text: str) -> bool:
    return len(text) == 32 and all(letter in "0123456789abcdef" for letter in text)  # noqa: PLR2004 - as token_hex(16)


def _in_ascii(place: str) -> str:
    from urllib.parse import quote

    return quote(place, safe="/?&=%:;,+@~!$'()*-._")


def _seal(message: MutableMapping[str, Any], session: str) -> None:
    """Add what every answer carries, where the answer does not say otherwise itself."""
    there = {name.lower() for name, _ in message["headers"]}
    added = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in there]
    if b"cache-control" not in there:
        added.append((b"cache-control", b"no-store"))
    if session:
        added.append((b"set-cookie", f"{SESSION}={session}; Path=/; HttpOnly; SameSite=Strict".encode()))
    message["headers"] = [*message["headers"], *added]


WRONG_TOKEN = AccessRefusal(401, "The token is wrong.", SHOW_TOKEN)
_MOST_FIELDS = 1_000
"""Maximum length of a query that is parsed."""


async def refuse(
    send: Send, refusal: AccessRefusal, headers: Mapping[str, str], also: Mapping[str, str] = HEADERS
) -> None:
    """Answer a request with why it is refused: a sentence for people, JSON for programs."""
    more = {**also, **(CHALLENGE if refusal.status == 401 else {})}  # noqa: PLR2004 - HTTP
    if "text/html" in headers.get("accept", ""):
        await say(send, refusal.status, f"{refusal.why} {refusal.remedy}", more)
        return
    body = json.dumps({"error": refusal.why, "remedy": refusal.remedy})
    await say(send, refusal.status, body, {"content-type": "application/json", **more})


async def say(send: Send, status: int, sentence: str, headers: Mapping[str, str]) -> None:
    """Answer a request with a sentence."""
    body = sentence.encode()
    told = {
        "content-type": "text/plain; charset=utf-8",
        "x-content-type-options": "nosniff",
        "content-length": str(len(body)),
        "cache-control": "no-store",
        **headers,
    }
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in told.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


TOKEN_FILE = "serve.token"  # noqa: S105 - the name of a file
_TOKEN = re.compile(r"[A-Za-z0-9_.~-]{16,200}")
_LONGEST = 1_000
_TRIES = 5


def stored_token(folder: Path) -> str:
    """The token of the workspace; a new one if there is none, or if others could have read or written it.

    If the folder cannot be written, a token that is not stored.
    """
    path = folder / TOKEN_FILE
    for _ in range(_TRIES):
        if (found := _read(path)) is not None:
            return found
        made = secrets.token_urlsafe(24)
        try:
            _replace(path, made)
        except FileExistsError:
            continue  # another process was quicker: its token holds
        except OSError:
            return made
        return made
    return secrets.token_urlsafe(24)


def _read(path: Path) -> str | None:
    """The token in a file that only we can read and write."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(file.fileno())
        others = about.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        is_ours = not hasattr(os, "geteuid") or about.st_uid == os.geteuid()
        if not stat.S_ISREG(about.st_mode) or (os.name == "posix" and others) or not is_ours:
            return None
        text = file.read(_LONGEST).decode("ascii", "replace").strip()
    return text if _TOKEN.fullmatch(text) else None


def _replace(path: Path, token: str) -> None:
    """Write a token into a new file. One that cannot be trusted is removed first; what another process made is not.

    Raises:
        FileExistsError: another process made one meanwhile.
    """
    with unfinished_file(path) as part:
        part.chmod(0o600)  # before anything is in it
        part.write_bytes(f"{token}\n".encode())
        if path.is_symlink() or (path.exists() and _read(path) is None):
            path.unlink()
        try:
            os.link(part, path)  # unlike a rename, this fails if the name is taken
        except FileExistsError:
            raise
        except OSError:  # a file system without such links
            part.replace(path)
