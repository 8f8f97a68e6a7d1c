"""The other log of a crawl: a line for every attempt, as Heritrix writes it (conventions L1 to L4).

Many tools of archives read it, recrawl's own import among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from http import HTTPStatus

from recrawl.crawl.archive import payload_digest
from recrawl.crawl.log import Stream
from recrawl.crawl.target import Visited
from recrawl.detect import media_type
from recrawl.formats.warc_records import payload_sha1, sha1, written
from recrawl.model import Capture, Outcome, Verdict
from recrawl.time import iso_second, seconds_and_millionths

_DIGITS = str.maketrans("", "", "-T:")
"""Leaves nothing but the digits of a time."""
_NOTHING_CAME = sha1(b"")
"""The digest of no payload."""
_CUT = {"length": "lenTrunc", "time": "timeTrunc"}


class HeritrixLog:
    """Appends lines to a text stream, flushed batch by batch."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def write(self, visited: Sequence[Visited]) -> None:
        """One line a visit."""
        self._stream.write("".join(log_lines(visited)))
        self._stream.flush()

    def write_aside(self, capture: Capture, hops: str) -> None:
        """One line for an answer that belongs to no page, or for its absence; it reaches the file with the next visits.

        ``hops`` is the letter of what it was asked for (conventions L2): ``P`` for the rules of a host.
        """
        self._stream.write(_aside_line(capture, hops))


def log_lines(visited: Sequence[Visited]) -> list[str]:
    """The lines of these attempts, each with its end."""
    digests = iter(written([payload_digest(one, one.capture) for one in visited if one.capture is not None]))
    return [_line(one, _NOTHING_CAME if one.capture is None else next(digests)) for one in visited]


def _line(visited: Visited, digest: str) -> str:
    """The line of a visit.

    Hop path and via are told of pages that a redirect led to, and not of others: a page that is visited again and again
    is its own seed.
    """
    visit, capture = visited.visit, visited.capture
    how = visited.hops, visited.via, visited.judgement.mime
    size = visit.size if capture is not None else "-"
    url = visited.target.url if capture is None else capture.url
    return _fields((visit.time, visit.cost), visit.status, size, url, how, digest, _annotations(visited))


def _aside_line(capture: Capture, hops: str) -> str:
    when, how = (capture.time, capture.duration), (hops, "", media_type(capture) if capture.raw_head else "")
    [digest] = written([payload_sha1(capture)])
    size = len(capture.raw_body) if capture.raw_head else "-"
    again = "duplicate:server-not-modified" if capture.status == HTTPStatus.NOT_MODIFIED else ""
    return _fields(when, capture.status or capture.failure, size, capture.url, how, digest, _noted(again, capture))


def _fields(  # noqa: PLR0913, PLR0917 - of a line
    when: tuple[float, float],
    status: int,
    size: int | str,
    url: str,
    how: tuple[str, str, str],
    digest: str,
    annotations: str,
) -> str:
    """The twelve fields of an attempt, a dash where there is nothing to say.

    ``when`` is its beginning and its duration, ``how`` hop path, via and media type.
    """
    began, duration = when
    hops, via, mime = how
    second, millionths = seconds_and_millionths(began)
    ended, later = seconds_and_millionths(began + duration)
    return (
        f"{iso_second(ended)}.{later // 1000:03}Z {status:>5} {size:>10} {url.replace(' ', '%20')} "
        f"{hops or '-'} {via.replace(' ', '%20') or '-'} {''.join(mime.split()) or '-'} #000 "
        f"{_digits(second)}{millionths // 1000:03}+{round(duration * 1000)} "
        f"{'-' if digest == _NOTHING_CAME else digest} - {annotations}\n"
    )


@lru_cache(64)  # as of iso_second
def _digits(second: int) -> str:
    """The fourteen digits of a second."""
    return iso_second(second).translate(_DIGITS)


def _annotations(visited: Visited) -> str:
    visit, capture = visited.visit, visited.capture
    again = ""
    if visit.outcome == Outcome.NOT_MODIFIED:
        again = "duplicate:server-not-modified"
    elif visit.verdict == Verdict.UNCHANGED and not visit.kinds:
        again = "duplicate:digest"
    return _noted(again, capture)


def _noted(again: str, capture: Capture | None) -> str:
    """The annotations: that it repeats what was known, that it was cut."""
    cut = _CUT.get(capture.truncated, "") if capture is not None else ""
    return f"{again},{cut}" if again and cut else again or cut or "-"
