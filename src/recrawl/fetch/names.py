"""From the name of a host to the one address we connect to.

Rules of this file:
 1. A name is looked up once, and the connection goes to the address that was found, checked and waited for: nobody can
    answer with another address in between.
 2. Of several addresses one is used, the first in order, so that hosts on one machine are seen to share it. If no
    connection comes about there, the next one has its turn.
 3. Answers serve for some minutes, failures for some seconds. Names are looked up in threads: the system's own
    resolver knows what /etc/hosts and the local network say.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from recrawl.fetch.reach import Reach
from recrawl.model.failures import NO_NAME, NO_NAME_SERVER, NO_URL, NOT_ALLOWED
from recrawl.time import MINUTE, Clock

LookUp = Callable[[str], Awaitable[Sequence[str]]]
"""All addresses of a host, or an OSError if there are none."""
_PORTS = {"http": 80, "https": 443}
_AT_ONCE = 16
_MOST = 100_000
"""Names that are remembered; beyond that those that are out of date are forgotten."""
_KEEP_SILENCE = 5.0
"""Seconds for which it counts that no name server answered: that is ours as often as the host's, and soon over."""
_NO_SUCH_NAME = (socket.EAI_NONAME, socket.EAI_NODATA)
_MEANT_AS_ADDRESS = re.compile(r"\[.*\]|[0-9a-fx.]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Found:
    """Where a host is, or why nobody can say."""

    address: str = ""
    failure: int = 0
    """A number of ``model.failures`` if there is no address."""
    error: str = ""


@dataclass(slots=True)
class _Entry:
    addresses: Sequence[str]
    found: Found
    expires: float
    next: int = 1


class Names:
    """The addresses of hosts, looked up when they are first asked for. To be closed.

    ``pins`` gives ``"host:port"`` an address without asking. Tasks that ask for one name at once share one look-up.
    """

    def __init__(  # noqa: PLR0913 - what it needs of others, then its settings
        self,
        clock: Clock,
        *,
        reach: Reach | None = None,
        pins: Mapping[str, str] | None = None,
        look_up: LookUp | None = None,
        keep: float = 5 * MINUTE,
        keep_failure: float = 30.0,
        patience: float = 15.0,
    ) -> None:
        """``reach`` says which addresses may be used, without it all; ``look_up`` takes the place of the system's DNS.

        Seconds: answers serve for ``keep``, failures for ``keep_failure``; nobody waits longer than ``patience``.
        """
        self._clock = clock
        self._reach = reach
        self._pins = dict(pins or {})
        self._look_up = look_up or self._ask_system
        self._keep = keep
        self._keep_failure = keep_failure
        self._patience = patience
        self._entries: dict[str, _Entry] = {}
        self._asking: dict[str, asyncio.Task[Found]] = {}
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="names")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Look up nothing more."""
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def find(self, url: str) -> Found:
        """Where the host of this URL is. No waiting for a host that is known."""
        place = _place(url)
        if place is None:
            return Found(failure=NO_URL, error=f"{url!r} is not a URL that can be fetched.")
        host, port = place
        pinned = self._pins.get(f"{host}:{port}") if self._pins else None
        if pinned is not None:
            return self._within_reach([pinned])
        entry = self._entries.get(host)
        if entry is not None and self._clock.now() < entry.expires:
            return entry.found
        task = self._asking.get(host)
        if task is None:
            task = self._asking[host] = asyncio.create_task(self._ask(host))
            task.add_done_callback(lambda _task: self._asking.pop(host, None))
        return await asyncio.shield(task)

    async def all_of(self, url: str) -> Sequence[str]:
        """Every address of the host of this URL that may be used; none if there is none or nobody can say."""
        await self.find(url)
        place = _place(url)
        entry = self._entries.get(place[0]) if place is not None else None
        return entry.addresses if entry is not None else ()

    def use_next(self, url: str) -> None:
        """No connection came about to the address of this host: use its next one, if it has several."""
        place = _place(url)
        entry = self._entries.get(place[0]) if place is not None else None
        if entry is not None and len(entry.addresses) > 1:
            address = entry.addresses[entry.next % len(entry.addresses)]
            entry.next += 1
            entry.found = self._within_reach([address])

    async def _ask(self, host: str) -> Found:
        addresses: Sequence[str] = ()
        try:
            async with asyncio.timeout(self._patience):
                addresses = await self._look_up(host)
        except TimeoutError:
            words = f"DNS did not tell the address of {host} in {self._patience:g} s."
            found = Found(failure=NO_NAME_SERVER, error=words)
        except (OSError, UnicodeError) as error:
            no_such_name = isinstance(error, UnicodeError) or error.errno in _NO_SUCH_NAME
            words = f"The name {host} has no address ({error})."
            found = Found(failure=NO_NAME if no_such_name else NO_NAME_SERVER, error=words)
        else:
            addresses = _ordered(addresses)
            found = self._within_reach(addresses)
        allowed = [one for one in addresses if self._reach is None or self._reach.covers(one)]
        now = self._clock.now()
        self._forget(now)
        keep = self._keep if addresses else self._keep_failure
        if found.failure == NO_NAME_SERVER:
            keep = min(keep, _KEEP_SILENCE)
        self._entries[host] = _Entry(allowed, found, now + keep)
        return found

    def _within_reach(self, addresses: Sequence[str]) -> Found:
        for one in addresses:
            if self._reach is None or self._reach.covers(one):
                return Found(one)
        if not addresses:
            return Found(failure=NO_NAME, error="The name has no address.")
        return Found(failure=NOT_ALLOWED, error=out_of_reach(addresses[0]))

    def _forget(self, now: float) -> None:
        if len(self._entries) >= _MOST:
            self._entries = {host: entry for host, entry in self._entries.items() if now < entry.expires}
            if len(self._entries) >= _MOST:
                self._entries.clear()

    async def _ask_system(self, host: str) -> Sequence[str]:
        if f".{host.rstrip('.')}".endswith(".localhost"):  # this machine, whatever DNS says (RFC 6761, 6.3)
            return ["127.0.0.1", "::1"]
        # Only families that this machine has an address of.
        flags = 0 if _MEANT_AS_ADDRESS.fullmatch(host) else socket.AI_ADDRCONFIG
        loop = asyncio.get_running_loop()
        rows = await loop.run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=flags)
        )
        return [str(row[4][0]) for row in rows]


def out_of_reach(address: str) -> str:
    """Why we do not connect to an address, in words."""
    return f"The address {address} is not public, and fetch.allow_networks does not name it."


def _place(url: str) -> tuple[str, int] | None:
    """Host and port of a URL, the host in lower case and without brackets."""
    end = url.find("/", len("https://"))
    return _place_of(url[:end] if end >= 0 else url)  # host and port stand before the path, wherever else slashes are


@lru_cache(_MOST)
def _place_of(origin: str) -> tuple[str, int] | None:
    try:
        parts = urlsplit(origin)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    return (parts.hostname.lower(), port) if parts.hostname and port and parts.scheme in _PORTS else None


def _ordered(addresses: Sequence[str]) -> list[str]:
    """Without repeats, IPv4 first, and the lowest number first.

    Name servers turn their lists round to spread load. A crawler that asks a machine once in a while is no load, but
    it must see that two names are one machine. Networks whose IPv6 leads nowhere are common, others are not.
    """

    def rank(address: str) -> tuple[int, int]:
        number = ip_address(address.partition("%")[0])
        return number.version, int(number)

    return sorted(dict.fromkeys(addresses), key=rank)
