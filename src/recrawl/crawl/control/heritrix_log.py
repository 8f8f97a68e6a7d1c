"""The crawl log: one line per fetch attempt, in the format of Heritrix (conventions L1 to L4).

Many archive tools read it, recrawl's own import among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from http import HTTPStatus

from recrawl.crawl.control.json_log import TextStream
from recrawl.crawl.visit.visit_machine import VisitDone
from recrawl.crawl.visit.warc_archive import payload_digest
from recrawl.detect import media_type
from recrawl.formats.warc.warc_records import payload_sha1, sha1, written
from recrawl.model import Capture, Outcome, Verdict
from recrawl.time import iso_second, seconds_and_millionths

_DIGITS = str.maketrans("", "", "-T:")
"""Removes everything but the digits of a time."""
_NOTHING_CAME = sha1(b"")
"""The digest of no payload."""
_CUT = {"length": "lenTrunc", "time": "timeTrunc"}


class HeritrixLog:
    """Appends lines to a text stream, flushed per batch."""

    def __init__(self, stream: TextStream) -> None:
        self._stream = stream

    def write(self, visited: Sequence[VisitDone]) -> None:
        """Write one line per visit."""
        self._stream.write("".join(log_lines(visited)))
        self._stream.flush()

    def write_auxiliary(self, capture: Capture, hops: str) -> None:
        """Write one line for a fetch that belongs to no page; it reaches the file with the next visits.

        ``hops`` is the letter of its purpose (conventions L2): ``P`` for robots.txt.
        """
        self._stream.write(_aside_line(capture, hops))


def log_lines(visited: Sequence[VisitDone]) -> list[str]:
    """The lines of these attempts, each with its end of line."""
    digests = iter(written([payload_digest(one, one.capture) for one in visited if one.capture is not None]))
    return [_line(one, _NOTHING_CAME if one.capture is None else next(digests)) for one in visited]


def _line(visited: VisitDone, digest: str) -> str:
    """The line of a visit.

    Hop path and via are given only for pages that a redirect led to: a page that is visited again and again is its own
    seed.
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
    """The twelve fields of an attempt, with a dash for an empty one.

    ``when`` is its start and duration, ``how`` its hop path, via and media type.
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


def _annotations(visited: VisitDone) -> str:
    visit, capture = visited.visit, visited.capture
    again = ""
    if visit.outcome == Outcome.NOT_MODIFIED:
        again = "duplicate:server-not-modified"
    elif visit.verdict == Verdict.UNCHANGED and not visit.kinds:
        again = "duplicate:digest"
    return _noted(again, capture)


def _noted(again: str, capture: Capture | None) -> str:
    """The annotations: that it is a duplicate, that it was truncated."""
    cut = _CUT.get(capture.truncated, "") if capture is not None else ""
    return f"{again},{cut}" if again and cut else again or cut or "-"
