"""The interface of a database engine: transactions, and a few ways to run a statement on arrays.

Statements have numbered parameters ($1, $2, …), first used in ascending order: both engines understand that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from recrawl.errors import StoreError
from recrawl.model import AnyArray, FloatArray, IntArray
from recrawl.store.engine.statements import SqlStatements

T = TypeVar("T")

Column: TypeAlias = AnyArray | Sequence[str] | Sequence[bytes]
Parameter: TypeAlias = float | str | bytes | Column | None


class DatabaseSession(Protocol):
    """One transaction of one engine."""

    statements: SqlStatements

    def run(self, statement: str, *parameters: Parameter) -> int:
        """Run a statement; return how many rows it changed. An array is one parameter and must not be empty."""
        ...

    def rows(self, statement: str, *parameters: Parameter) -> list[tuple[Any, ...]]:
        """Run a query; return its rows. For results that are small or hold text."""
        ...

    def table(self, dtype: np.dtype[Any], statement: str, *parameters: Parameter) -> AnyArray:
        """Run a query of numbers without NULLs; return its rows as a structured array."""
        ...

    def apply(self, statement: str, *columns: Column) -> int:
        """Run a statement made by ``Dialect.insert`` or ``Dialect.update`` for every row of equally long columns."""
        ...

    def add_links(self, source: IntArray, target: IntArray, first: FloatArray, last: FloatArray) -> None:
        """Note links by source and target, each once, and when they were seen; those of a source lie together."""
        ...

    def touched(self, statement: str, *columns: Column) -> list[tuple[Any, ...]]:
        """As ``apply`` for a statement that ends with RETURNING; return what that says of the rows it changed."""
        ...


class Database(Protocol):
    """One store, in one engine. May be shared by threads; transactions then wait for each other."""

    def read(self, work: Callable[[DatabaseSession], T]) -> T:
        """Do ``work`` on one snapshot. It may be done again if the connection is lost."""
        ...

    def write(self, work: Callable[[DatabaseSession], T], *, lasting: bool = True) -> T:
        """Do ``work`` entirely or not at all.

        When this returns, the work survives the death of the process and, if ``lasting`` (and the store was not
        opened otherwise), of the machine. ``work`` may be done again if the engine undid the first attempt.
        """
        ...

    def write_ahead(self, work: Callable[[DatabaseSession], object]) -> Callable[[], object]:
        """Do of :meth:`write` what takes the processor; what is returned does the rest, and a thread may call it.

        Only when that has returned too does the work survive, all or nothing; if it fails it is to be done again.
        """
        ...

    def beside(self) -> Database:
        """Another connection to the same store, to be closed: for what takes long, so that nobody waits for it."""
        ...

    def time(self) -> float | None:
        """The time of the server, seconds since the epoch; ``None`` if there is none."""
        ...

    def faults(self, *, thorough: bool) -> list[str]:
        """What the engine finds wrong with its own file; ``thorough`` compares indexes with tables, too."""
        ...

    def rebuild_indexes(self) -> None:
        """Make all indexes anew, where the engine may need that."""
        ...

    def close(self) -> None:
        """Let go of the files and connections. Doing it twice is harmless."""
        ...


def too_long(patience: float) -> StoreError:
    """What is said of a read that was given up."""
    return StoreError(f"The store did not answer within {patience:g} s.", "Ask for less, or ask again later.")


def as_list(column: Column) -> list[Any]:
    """The values of a column as Python objects."""
    return column.tolist() if isinstance(column, np.ndarray) else list(column)
