"""The address policy: which IP addresses may be connected to.

A page can name any host, and any name can resolve to anything: this machine, the router, the cloud's metadata service.
So the rule is about addresses, not names, and is applied after DNS for each new connection. No URL, redirect or DNS
server can get around it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Self

from recrawl.errors import ConfigError

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
