"""Requests to an archive: one at a time, with pauses, retries and limits.

Rules of this file:

1. One request runs at a time, and a pause follows every response, as for any host (conventions R4).
2. Transient failures (no answer, 429, 500, 502, 503, 504, a truncated or garbled response) are retried a few times,
   each after a longer wait. ``Retry-After`` is honoured; if it exceeds our limit the job ends at once.
3. A memento is a valid response whatever its status: an archived "503" is not a failing archive.
4. Redirects are followed a few times, over HTTP only. An address that the policy forbids ends the job at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import quote, urlsplit

import numpy as np

from recrawl.errors import ExitCode, FetchError, InputError
from recrawl.fetch.http.transfer import retry_after
from recrawl.fetch.request import Fetcher, FetchRequest
from recrawl.model import Capture
from recrawl.model.visits import NOT_ALLOWED
from recrawl.schedule.politeness.host_politeness import PolitenessRules
from recrawl.schedule.politeness.retry import Backoff
from recrawl.time import Clock, format_duration
from recrawl.urls import address

MAX_REDIRECTS = 5
_PASSING = (429, 500, 502, 503, 504)
_CUT_BY_OTHERS = ("time", "disconnect", "unspecified")
_ASCII = "".join(map(chr, range(0x21, 0x7F)))
"""Characters of a request line; the rest of a URL is percent-encoded."""
T = TypeVar("T")


class RateLimitedError(FetchError):
    """The archive asks for a longer wait than we accept."""

    exit_code = ExitCode.RATE_LIMITED


class NoAnswerError(FetchError):
    """The archive gave no usable response to one request after all retries; other requests may succeed."""


class TooLongError(FetchError):
    """A response exceeds the size limit."""


@dataclass(frozen=True, slots=True)
class ArchivePoliteness:
    """Pauses and retries towards an archive. Seconds."""

    politeness: PolitenessRules = field(default_factory=PolitenessRules)
    """The pause after every response."""
    backoff: Backoff = field(default_factory=lambda: Backoff(first=5.0, factor=2.0, longest=600.0))
    """The wait after failures in a row."""
    tries: int = 6
    """Maximum requests for one response."""
    patience: float = 900.0
    """The longest ``Retry-After`` that is waited for."""


class ArchiveClient:
    """Sends requests to one archive. Tasks may share it; they take turns.

    ``clock`` times the pauses; the fetcher makes single requests. ``on_wait`` receives a sentence with the reason for a
    wait before a retry.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        clock: Clock,
        treatment: ArchivePoliteness | None = None,
        *,
        on_wait: Callable[[str], None] = lambda _words: None,
    ) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._treatment = treatment or ArchivePoliteness()
        self._on_wait = on_wait
        self._turn = asyncio.Lock()
        self._free_at = float("-inf")
        self.requests = 0
        """Requests sent so far, failed ones included."""
        self.received = 0
        """Bytes of bodies received so far."""
        self.crawl_delay: float | None = None
        """Crawl delay in the archive's robots.txt, seconds; ``None`` if there is none."""
        self.before_redirect: Callable[[str], Awaitable[None]] | None = None
        """Receives the target before a redirect is followed; raises a ``FetchError`` to refuse it."""

    def rest(self, duration: float = 0.0) -> None:
        """Pause as after a response of ``duration`` seconds: another client requested the archive just now."""
        self._pause(self._treatment.politeness.pause(duration, self.crawl_delay))

    async def ask(
        self, url: str, read: Callable[[Capture], T], *, headers: tuple[tuple[str, str], ...] = (), follow: bool = True
    ) -> T:
        """Return what ``read`` makes of the response; if it raises InputError, request it again.

        With ``follow`` false a redirect is a response, too.

        Raises:
            NoAnswerError: there is no usable response after all tries.
            TooLongError: the response exceeds the size limit.
            FetchError: the archive redirects without end, or to a forbidden address.
            RateLimitedError: the archive asks for a longer wait than we accept.
        """
        async with self._turn:
            for _ in range(MAX_REDIRECTS + 1):
                place = url
                found, target = await self._insist(place, lambda capture: _follow(capture, read, follow), headers)
                if target is None:
                    assert found is not None  # noqa: S101 - _follow gives one or the other
                    return found[0]
                if self.before_redirect is not None:
                    await self.before_redirect(target)
                url = target
        raise FetchError(
            f"{url}: the archive redirects more than {MAX_REDIRECTS} times.", "Check the address of the archive."
        )

    async def _insist(self, url: str, read: Callable[[Capture], T], headers: tuple[tuple[str, str], ...]) -> T:
        for failures in range(1, self._treatment.tries + 1):
            await self._wait(url)
            capture = await self._fetcher.fetch(FetchRequest(quote(url, safe=_ASCII), headers=headers))
            self.requests += 1
            self.received += len(capture.raw_body)
            self.rest(capture.duration)
            trouble = _failure_of(capture)
            if not trouble:
                try:
                    return read(capture)
                except InputError as garbled:
                    trouble = garbled.what.removeprefix(f"{garbled.source}: ")
            asked = retry_after(capture) or 0.0
            wait = max(asked, float(self._treatment.backoff.wait(np.array(failures))))
            self._pause(wait)
            if asked > self._treatment.patience:
                break
            if failures < self._treatment.tries:
                self._on_wait(f"{urlsplit(url).netloc}: {trouble}; again in {format_duration(wait)}.")
        else:
            raise NoAnswerError(
                f"{url}: {trouble}, {self._treatment.tries} times.", "Try again later; what was read before is kept."
            )
        raise self._impatient(url, asked)

    async def _wait(self, url: str) -> None:
        left = self._free_at - self._clock.now()
        if left > self._treatment.patience + self._treatment.backoff.longest:
            raise self._impatient(url, left)
        await self._clock.sleep_until(self._free_at)

    def _pause(self, seconds: float) -> None:
        self._free_at = max(self._free_at, self._clock.now() + seconds)

    def _impatient(self, url: str, wait: float) -> RateLimitedError:
        return RateLimitedError(
            f"{url}: the archive asks us to come back in {format_duration(wait)}.",
            "Go on then; what was read before is kept.",
        )


def _failure_of(capture: Capture) -> str:
    """Why a response is to be requested again; empty if it can be read."""
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
    """What was read, or the redirect target."""
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
    """Whether the response is a memento: it has a Memento-Datetime (conventions M2)."""
    return bool(capture.header("memento-datetime"))
