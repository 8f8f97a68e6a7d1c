"""The other log of a crawl: a line for every attempt, as Heritrix writes it (conventions L1 to L4).

Many tools of archives read it, recrawl's own import among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from recrawl.crawl.log import Stream
from recrawl.crawl.target import Visited
from recrawl.formats.warc_records import payload_sha1, sha1, written
from recrawl.model import Outcome, Verdict
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


def log_lines(visited: Sequence[Visited]) -> list[str]:
    """The lines of these attempts, each with its end."""
    digests = iter(written([payload_sha1(one.capture) for one in visited if one.capture is not None]))
    return [_line(one, _NOTHING_CAME if one.capture is None else next(digests)) for one in visited]


def _line(visited: Visited, digest: str) -> str:
    """The twelve fields of an attempt, a dash where there is nothing to say.

    Hop path and via are told of pages that a redirect led to, and not of others: a page that is visited again and again
    is its own seed.
    """
    visit, capture = visited.visit, visited.capture
    second, millionths = seconds_and_millionths(visit.time)
    ended, later = seconds_and_millionths(visit.time + visit.cost)
    size = visit.size if capture is not None else "-"
    url = visited.target.url.replace(" ", "%20")
    return (
        f"{iso_second(ended)}.{later // 1000:03}Z {visit.status:>5} {size:>10} {url} "
        f"{visited.hops or '-'} {visited.via or '-'} {visited.judgement.mime or '-'} #000 "
        f"{_digits(second)}{millionths // 1000:03}+{round(visit.cost * 1000)} "
        f"{'-' if digest == _NOTHING_CAME else digest} - {_annotations(visited)}\n"
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
    cut = _CUT.get(capture.truncated, "") if capture is not None else ""
    return f"{again},{cut}" if again and cut else again or cut or "-"
