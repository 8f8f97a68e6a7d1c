"""Writes the items of many streams together.

Each commit waits for the disk once. So while one is written, what arrives meanwhile is collected, and written with the
next. A stream waits only for its own items.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class GroupWriter(Generic[T, R]):
    """Collects batches and hands them to a function in a thread; used from one event loop."""

    def __init__(self, write: Callable[[list[T]], list[R]], executor: Executor, most: int) -> None:
        """``write`` returns one result per item. It gets at most ``most`` items, or one batch if that has more."""
        self._write, self._executor, self._most = write, executor, most
        self._waiting: deque[tuple[Sequence[T], asyncio.Future[list[R]]]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, items: Sequence[T]) -> list[R]:
        """Write items; what became of each. A cancellation leaves them to be written.

        Raises:
            Exception: whatever writing raised, for all batches that were written together.
        """
        future: asyncio.Future[list[R]] = asyncio.get_running_loop().create_future()
        self._waiting.append((items, future))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        return await future

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            items: list[T] = []
            parts: list[tuple[int, asyncio.Future[list[R]]]] = []
            while self._waiting and (not items or len(items) + len(self._waiting[0][0]) <= self._most):
                some, future = self._waiting.popleft()
                items += some
                parts.append((len(some), future))
            try:
                results = await loop.run_in_executor(self._executor, self._write, items)
            except Exception as error:  # noqa: BLE001 - the streams say what they make of it
                for _, future in parts:
                    if not future.done():
                        future.set_exception(error)
                continue
            start = 0
            for count, future in parts:
                if not future.done():
                    future.set_result(results[start : start + count])
                start += count
        self._task = None
