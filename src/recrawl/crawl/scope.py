"""Which of the URLs that are found belong to the archive."""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.urls import Address


@dataclass(frozen=True, slots=True)
class HostScope:
    """Everything on these hosts (host and, if it is not the default, port)."""

    hosts: frozenset[str]

    def covers(self, address: Address) -> bool:
        """Whether the URL is to be visited. Others are remembered as links, never fetched."""
        return address.host in self.hosts
