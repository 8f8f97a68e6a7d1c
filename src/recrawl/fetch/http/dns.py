"""Addresses of hosts: which one a name resolves to, which may be connected to, and how many requests each gets.

Rules of resolving (:class:`HostResolver`):

1. A name is resolved once, and the connection goes to the address that was resolved, checked and waited for. No other
   DNS answer can come in between.
2. Of several addresses the first in order is used, so that hosts on one machine are seen to share it. If no connection
   succeeds there, the next one is used.
3. Answers are cached for minutes, failures for seconds. Names are resolved in threads by the system's resolver, which
   knows /etc/hosts and the local network.

A page can name any host, and any name can resolve to anything: this machine, the router, the cloud's metadata service.
So :class:`AddressPolicy` is about addresses, not names, and is applied after DNS for each new connection. No URL,
redirect or DNS server can get around it.

:class:`IpGate` admits requests to an IP address, in turn for the hosts that share it, by the rules of
``schedule.politeness.host_politeness``.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from recrawl.errors import ConfigError
from recrawl.model.visits import NO_NAME, NO_NAME_SERVER, NO_URL, NOT_ALLOWED
from recrawl.schedule.politeness.host_politeness import IpLimiter
from recrawl.time import MINUTE, Clock

_GLOBAL = IPv6Network("2000::/3")
"""The range of all public IPv6 addresses. Others are private or unassigned."""
_NAT64 = IPv6Network("64:ff9b::/96")
_WITH_IPV4 = (_NAT64, IPv6Network("::/96"), IPv6Network("::ffff:0:0:0/96"))
"""IPv6 addresses whose last 32 bits are an IPv4 address: of a public translator, and two old forms."""
_LAST_32_BITS = 0xFFFF_FFFF
_NOT_PUBLIC = tuple(map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20")))
"""Reserved for protocols and examples (IANA); not every Python knows."""


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """Public addresses, and explicitly allowed networks."""

    allowed: tuple[IPv4Network | IPv6Network, ...] = field(default=())

    @classmethod
    def of(cls, networks: Iterable[str] = ()) -> Self:
        """Allow these networks (``10.0.0.0/8``) and single addresses beside all public ones.

        >>> AddressPolicy.of(["127.0.0.1"]).covers("127.0.0.1"), AddressPolicy.of().covers("127.0.0.1")
        (True, False)

        Raises:
            ConfigError: one of them is no network.
        """
        try:
            return cls(tuple(ip_network(one) for one in networks))
        except ValueError as error:
            raise ConfigError(
                f"This is no network of addresses: {error}.",
                "Write a network as 10.0.0.0/8 or fd00::/8, a single address as 127.0.0.1.",
            ) from error

    def covers(self, address: str) -> bool:
        """Whether a connection to this address may be opened.

        >>> [AddressPolicy().covers(one) for one in ("93.184.216.34", "169.254.169.254", "::ffff:127.0.0.1", "junk")]
        [True, False, False, False]
        """
        try:
            found = ip_address(address.partition("%")[0])  # an IPv6 address may carry its interface
        except ValueError:
            return False
        if any(found in network for network in self.allowed if network.version == found.version):
            return True
        meant = _meant(found)
        if any(meant in network for network in self.allowed if network.version == meant.version):
            return True
        return _is_public(meant) and (_is_public(found) or _stands_for_another(found))


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    reserved = any(address in network for network in _NOT_PUBLIC if network.version == address.version)
    elsewhere = isinstance(address, IPv6Address) and address not in _GLOBAL
    return address.is_global and not (address.is_multicast or reserved or elsewhere)


def _stands_for_another(address: IPv4Address | IPv6Address) -> bool:
    """Whether a connection to a non-public IPv6 address leads to a public one."""
    return isinstance(address, IPv6Address) and (address.ipv4_mapped is not None or address in _NAT64)


def _meant(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 address stands for, if it does."""
    if isinstance(address, IPv4Address):
        return address
    inside = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    of_its_own = address.is_loopback or address.is_unspecified
    if inside is None and not of_its_own and any(address in network for network in _WITH_IPV4):
        inside = IPv4Address(int(address) & _LAST_32_BITS)
    return inside or address


CaptureLookup = Callable[[str], Awaitable[Sequence[str]]]
"""All addresses of a host, or an OSError if there are none."""
_PORTS = {"http": 80, "https": 443}
_AT_ONCE = 16
_MOST = 100_000
"""Maximum names in the cache; beyond that expired ones are dropped."""
_KEEP_SILENCE = 5.0
"""Seconds for which a missing DNS answer is cached: the cause is as often ours as the host's, and soon over."""
_NO_SUCH_NAME = (socket.EAI_NONAME, socket.EAI_NODATA)
_MEANT_AS_ADDRESS = re.compile(r"\[.*\]|[0-9a-fx.]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ResolvedHost:
    """The address of a host, or why there is none."""

    address: str = ""
    failure: int = 0
    """If there is no address: the failure code, such as ``NO_NAME`` of ``model.visits``."""
    error: str = ""


@dataclass(slots=True)
class _CachedAddress:
    addresses: Sequence[str]
    found: ResolvedHost
    expires: float
    next: int = 1


class HostResolver:
    """Resolves and caches addresses of hosts. Close it.

    ``pins`` maps ``"host:port"`` to an address without DNS. Tasks that request one name at once share one look-up.
    """

    def __init__(  # noqa: PLR0913 - its parts, then its settings
        self,
        clock: Clock,
        *,
        reach: AddressPolicy | None = None,
        pins: Mapping[str, str] | None = None,
        look_up: CaptureLookup | None = None,
        keep: float = 5 * MINUTE,
        keep_failure: float = 30.0,
        patience: float = 15.0,
    ) -> None:
        """``reach`` limits the addresses, without it all are allowed; ``look_up`` replaces the system's DNS.

        Seconds: answers are cached for ``keep``, failures for ``keep_failure``; no caller waits longer than
        ``patience``.
        """
        self._clock = clock
        self._reach = reach
        self._pins = dict(pins or {})
        self._look_up = look_up or self._ask_system
        self._keep = keep
        self._keep_failure = keep_failure
        self._patience = patience
        self._entries: dict[str, _CachedAddress] = {}
        self._resolving: dict[str, asyncio.Task[ResolvedHost]] = {}
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="names")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop resolving."""
        for task in self._resolving.values():
            task.cancel()
        await asyncio.gather(*self._resolving.values(), return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def find(self, url: str) -> ResolvedHost:
        """The address of the host of this URL. No wait for a cached host."""
        place = _place(url)
        if place is None:
            return ResolvedHost(failure=NO_URL, error=f"{url!r} is not a URL that can be fetched.")
        host, port = place
        pinned = self._pins.get(f"{host}:{port}") if self._pins else None
        if pinned is not None:
            return self._within_reach([pinned])
        entry = self._entries.get(host)
        if entry is not None and self._clock.now() < entry.expires:
            return entry.found
        task = self._resolving.get(host)
        if task is None:
            task = self._resolving[host] = asyncio.create_task(self._resolve(host))
            task.add_done_callback(lambda _task: self._resolving.pop(host, None))
        return await asyncio.shield(task)

    async def all_of(self, url: str) -> Sequence[str]:
        """Every allowed address of the host of this URL; empty if there is none or it is unknown."""
        await self.find(url)
        place = _place(url)
        entry = self._entries.get(place[0]) if place is not None else None
        return entry.addresses if entry is not None else ()

    def use_next(self, url: str) -> None:
        """Use the next address of this host, if it has several: no connection to the current one succeeded."""
        place = _place(url)
        entry = self._entries.get(place[0]) if place is not None else None
        if entry is not None and len(entry.addresses) > 1:
            address = entry.addresses[entry.next % len(entry.addresses)]
            entry.next += 1
            entry.found = self._within_reach([address])

    async def _resolve(self, host: str) -> ResolvedHost:
        addresses: Sequence[str] = ()
        try:
            async with asyncio.timeout(self._patience):
                addresses = await self._look_up(host)
        except TimeoutError:
            words = f"DNS did not tell the address of {host} in {self._patience:g} s."
            found = ResolvedHost(failure=NO_NAME_SERVER, error=words)
        except (OSError, UnicodeError) as error:
            no_such_name = isinstance(error, UnicodeError) or error.errno in _NO_SUCH_NAME
            words = f"The name {host} has no address ({error})."
            found = ResolvedHost(failure=NO_NAME if no_such_name else NO_NAME_SERVER, error=words)
        else:
            addresses = _ordered(addresses)
            found = self._within_reach(addresses)
        allowed = [one for one in addresses if self._reach is None or self._reach.covers(one)]
        now = self._clock.now()
        self._forget(now)
        keep = self._keep if addresses else self._keep_failure
        if found.failure == NO_NAME_SERVER:
            keep = min(keep, _KEEP_SILENCE)
        self._entries[host] = _CachedAddress(allowed, found, now + keep)
        return found

    def _within_reach(self, addresses: Sequence[str]) -> ResolvedHost:
        for one in addresses:
            if self._reach is None or self._reach.covers(one):
                return ResolvedHost(one)
        if not addresses:
            return ResolvedHost(failure=NO_NAME, error="The name has no address.")
        return ResolvedHost(failure=NOT_ALLOWED, error=out_of_reach(addresses[0]))

    def _forget(self, now: float) -> None:
        if len(self._entries) >= _MOST:
            self._entries = {host: entry for host, entry in self._entries.items() if now < entry.expires}
            if len(self._entries) >= _MOST:
                self._entries.clear()

    async def _ask_system(self, host: str) -> Sequence[str]:
        if f".{host.rstrip('.')}".endswith(".localhost"):  # this machine, whatever DNS says (RFC 6761, 6.3)
            return ["127.0.0.1", "::1"]
        # Only address families that this machine has.
        flags = 0 if _MEANT_AS_ADDRESS.fullmatch(host) else socket.AI_ADDRCONFIG
        loop = asyncio.get_running_loop()
        rows = await loop.run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=flags)
        )
        return [str(row[4][0]) for row in rows]


def out_of_reach(address: str) -> str:
    """Why an address is not connected to."""
    return f"The address {address} is not public, and fetch.allow_networks does not name it."


def _place(url: str) -> tuple[str, int] | None:
    """Host and port of a URL, the host in lower case and without brackets."""
    end = url.find("/", len("https://"))
    return _place_of(url[:end] if end >= 0 else url)  # host and port come before the path, wherever else slashes are


@lru_cache(_MOST)
def _place_of(origin: str) -> tuple[str, int] | None:
    try:
        parts = urlsplit(origin)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    return (parts.hostname.lower(), port) if parts.hostname and port and parts.scheme in _PORTS else None


def _ordered(addresses: Sequence[str]) -> list[str]:
    """Without repeats, IPv4 first, then in ascending order.

    DNS servers rotate their lists to spread load. A crawler with few requests is no load, but it must see that two
    names are one machine. Networks whose IPv6 does not work are common, the opposite is not.
    """

    def rank(address: str) -> tuple[int, int]:
        number = ip_address(address.partition("%")[0])
        return number.version, int(number)

    return sorted(dict.fromkeys(addresses), key=rank)


@dataclass(frozen=True, slots=True)
class IpAdmission:
    """A request at an address: admitted, or deferred until a time."""

    address: str
    """Empty if the address of the host is unknown: then there is nothing to wait for."""
    who: int
    until: float
    """Seconds since the epoch; ``-inf`` if admitted."""

    @property
    def is_open(self) -> bool:
        """Whether the request may be made now."""
        return self.until == float("-inf")


class IpGate:
    """Resolves the address of a URL, and admits hosts there one after the other."""

    def __init__(self, names: HostResolver, turns: IpLimiter, clock: Clock) -> None:
        self._names = names
        self._turns = turns
        self._clock = clock

    def share(self, workers: int) -> None:
        """Set the number of workers that request the same hosts, this one included."""
        self._turns.workers = workers

    async def enter(self, url: str, who: int) -> IpAdmission:
        """Enter, or get the time to retry.

        Call ``leave`` after an admission; ``who`` is a host, which is admitted once only.
        """
        found = await self._names.find(url)
        if not found.address:
            return IpAdmission("", who, float("-inf"))
        now = self._clock.now()
        until = self._turns.begin(found.address, who, now)
        return IpAdmission(found.address, who, float("-inf") if until <= now else until)

    async def wait(self, url: str, who: int) -> IpAdmission:
        """Enter as soon as possible."""
        while not (door := await self.enter(url, who)).is_open:
            await self._clock.sleep_until(door.until)
        return door

    def leave(self, door: IpAdmission) -> None:
        """End the request."""
        if door.address and door.is_open:
            self._turns.done(door.address, door.who, self._clock.now())
