"""How to ask an archive: one request at a time, with pauses, patience and an end.

Rules of this file:
 1. One request runs at a time, and a pause follows every answer, as towards any host (conventions R4).
 2. What may pass (no answer, 429, 500, 502, 503, 504, an answer cut short or garbled) is tried again, each time after a
    longer wait, a few times. ``Retry-After`` is honoured; a wait longer than we have patience for ends the job at once.
 3. A memento is an answer whatever its status: an archived "503" is not a sick archive.
 4. Redirects are followed a few times, over HTTP only. An address that we do not connect to ends the job at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import quote, urlsplit

import numpy as np

from recrawl.errors import ExitCode, FetchError, InputError
from recrawl.fetch.patience import asked_patience
from recrawl.fetch.request import Fetcher, Request
from recrawl.model import Capture
from recrawl.model.failures import NOT_ALLOWED
from recrawl.schedule.politeness import PolitenessRules
from recrawl.schedule.retry import Backoff
from recrawl.time import Clock, format_duration
from recrawl.urls import address

MAX_REDIRECTS = 5
_PASSING = (429, 500, 502, 503, 504)
_CUT_BY_OTHERS = ("time", "disconnect", "unspecified")
_ASCII = "".join(map(chr, range(0x21, 0x7F)))
"""What a request line can hold; the rest of a URL is percent-encoded."""
T = TypeVar("T")


class RateLimitedError(FetchError):
    """The archive wants to be left alone for longer than we wait."""

    exit_code = ExitCode.RATE_LIMITED


class UnansweredError(FetchError):
    """The archive gave no usable answer to one request, however often it was asked; others may fare better."""


class TooLongError(FetchError):
    """An answer is longer than we keep."""


@dataclass(frozen=True, slots=True)
class Manners:
    """How an archive is asked. Seconds."""

    politeness: PolitenessRules = field(default_factory=PolitenessRules)
    """The pause after every answer."""
    backoff: Backoff = field(default_factory=lambda: Backoff(first=5.0, factor=2.0, longest=600.0))
    """The wait after failures in a row."""
    tries: int = 6
    """Requests for one answer before we give up."""
    patience: float = 900.0
    """The longest ``Retry-After`` that is waited for."""


class ArchiveClient:
    """Asks one archive politely. Tasks may share it; they take turns.

    ``clock`` tells when a pause is over; the fetcher is asked for nothing but single requests. ``on_wait`` is told in a
    sentence why it waits before it asks for something again.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        clock: Clock,
        manners: Manners | None = None,
        *,
        on_wait: Callable[[str], None] = lambda _words: None,
    ) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._manners = manners or Manners()
        self._on_wait = on_wait
        self._turn = asyncio.Lock()
        self._free_at = float("-inf")
        self.requests = 0
        """Sent so far, those that failed included."""
        self.received = 0
        """Bytes of bodies that came so far."""
        self.crawl_delay: float | None = None
        """Seconds between requests that the archive's robots.txt asks for, if it does."""

    def rest(self, duration: float = 0.0) -> None:
        """Pause as after an answer that took ``duration`` seconds: somebody else asked the archive just now."""
        self._pause(self._manners.politeness.pause(duration, self.crawl_delay))

    async def ask(
        self, url: str, read: Callable[[Capture], T], *, headers: tuple[tuple[str, str], ...] = (), follow: bool = True
    ) -> T:
        """What ``read`` makes of the answer. If it raises InputError the answer is garbled, and asked for again.

        With ``follow`` false a redirect is an answer too.

        Raises:
            UnansweredError: there is no answer that can be used, after all tries.
            TooLongError: the answer is longer than we keep.
            FetchError: the archive redirects without end, or to where we do not go.
            RateLimitedError: the archive asks for more patience than we have.
        """
        async with self._turn:
            for _ in range(MAX_REDIRECTS + 1):
                place = url
                found, target = await self._insist(place, lambda capture: _follow(capture, read, follow), headers)
                if target is None:
                    assert found is not None  # noqa: S101 - _follow gives one or the other
                    return found[0]
                url = target
        raise FetchError(
            f"{url}: the archive redirects more than {MAX_REDIRECTS} times.", "Check the address of the archive."
        )

    async def _insist(self, url: str, read: Callable[[Capture], T], headers: tuple[tuple[str, str], ...]) -> T:
        for failures in range(1, self._manners.tries + 1):
            await self._wait(url)
            capture = await self._fetcher.fetch(Request(quote(url, safe=_ASCII), headers=headers))
            self.requests += 1
            self.received += len(capture.raw_body)
            self.rest(capture.duration)
            trouble = _trouble(capture)
            if not trouble:
                try:
                    return read(capture)
                except InputError as garbled:
                    trouble = garbled.what.removeprefix(f"{garbled.source}: ")
            asked = asked_patience(capture) or 0.0
            wait = max(asked, float(self._manners.backoff.wait(np.array(failures))))
            self._pause(wait)
            if asked > self._manners.patience:
                break
            if failures < self._manners.tries:
                self._on_wait(f"{urlsplit(url).netloc}: {trouble}; again in {format_duration(wait)}.")
        else:
            raise UnansweredError(
                f"{url}: {trouble}, {self._manners.tries} times.", "Try again later; what was read before is kept."
            )
        raise self._impatient(url, asked)

    async def _wait(self, url: str) -> None:
        left = self._free_at - self._clock.now()
        if left > self._manners.patience + self._manners.backoff.longest:
            raise self._impatient(url, left)
        await self._clock.sleep_until(self._free_at)

    def _pause(self, seconds: float) -> None:
        self._free_at = max(self._free_at, self._clock.now() + seconds)

    def _impatient(self, url: str, wait: float) -> RateLimitedError:
        return RateLimitedError(
            f"{url}: the archive asks us to come back in {format_duration(wait)}.",
            "Go on then; what was read before is kept.",
        )


def _trouble(capture: Capture) -> str:
    """Why an answer is not worth reading but worth asking for again; empty if it can be read."""
    if capture.failure == NOT_ALLOWED:
        raise FetchError(f"{capture.url}: {capture.error}", "If you trust it, name it there, and ask again.")
    if not capture.status:
        return f"no answer ({capture.error})"
    if capture.truncated in _CUT_BY_OTHERS:
        return f"the answer was cut short ({capture.truncated})"
    if capture.truncated:
        raise TooLongError(
            f"{capture.url}: the answer is longer than {len(capture.raw_body)} bytes, the most we keep.",
            "Ask for smaller pages, or narrow the query.",
        )
    if capture.status in _PASSING and not is_memento(capture):
        return f"the archive answered {capture.status}"
    return ""


def _follow(capture: Capture, read: Callable[[Capture], T], follow: bool) -> tuple[tuple[T] | None, str | None]:
    """What was read, or where to ask instead."""
    redirected = 300 <= capture.status < 400 and capture.header("location")  # noqa: PLR2004 - a redirect
    if not follow or not redirected or is_memento(capture):
        return (read(capture),), None
    target = address(capture.header("location"), base=capture.url)
    if target is None:
        raise FetchError(
            f"{capture.url}: the archive redirects to {capture.header('location')!r}.",
            "Check the address of the archive.",
        )
    return None, target.url


def is_memento(capture: Capture) -> bool:
    """Whether the answer is an archived one: it says when it was captured (conventions M2)."""
    return bool(capture.header("memento-datetime"))
