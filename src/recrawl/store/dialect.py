"""The words in which the engines differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias

Types: TypeAlias = Mapping[str, str]
"""Columns and their types, as PostgreSQL calls them."""
How: TypeAlias = Literal["set", "raise", "add"]
"""What an update makes of the value before and the new one."""


class Dialect(Protocol):
    """The words in which the engines differ."""

    lock: str
    """At the end of a query: keep the rows for this transaction, waiting for who keeps them now."""
    lock_free: str
    """The same, but passing over rows that another transaction keeps."""
    larger: str
    """The function that returns the larger of two values."""
    first_due: str
    """Of the hosts $1, the pages due by $2, at most $3 a host: page, host, due."""

    def among(self, parameter: int, type_: str = "bigint") -> str:
        """After a column's name: equal to one of the array with that number."""
        ...

    def bytewise(self, column: str) -> str:
        """A text in the order of its bytes."""
        ...

    def insert(self, table: str, columns: Types, conflict: str = "") -> str:
        """Insert rows, given as columns of these types in this order."""
        ...

    def update(self, table: str, key: str, columns: Types, *, how: How = "set") -> str:
        """Set columns of the rows with that bigint key, given as the key and columns of these types in this order.

        With ``raise`` a value stays as it is where the new one is not larger, with ``add`` the new one is added to it.
        """
        ...
