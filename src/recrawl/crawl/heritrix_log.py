"""The other log of a crawl: a line for every attempt, as Heritrix writes it (conventions L1 to L4).

Many tools of archives read it, recrawl's own import among them.
"""

from __future__ import annotations

from collections.abc import Sequence

from recrawl.crawl.log import Stream
from recrawl.crawl.target import Visited
from recrawl.detect import unchunked
from recrawl.formats.warc_records import payload_sha1, written
from recrawl.model import Outcome, Verdict
from recrawl.time import iso_second, seconds_and_millionths

_DIGITS = str.maketrans("", "", "-T:.")
"""Leaves nothing but the digits of a time."""
_CUT = {"length": "lenTrunc", "time": "timeTrunc"}


class HeritrixLog:
    """Appends lines to a text stream, flushed batch by batch."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def write(self, visited: Sequence[Visited]) -> None:
        """One line a visit."""
        self._stream.write("".join([line + "\n" for line in log_lines(visited)]))
        self._stream.flush()


def log_lines(visited: Sequence[Visited]) -> list[str]:
    """The lines of these attempts."""
    answers = [one.capture for one in visited if one.capture is not None and unchunked(one.capture)]
    digests = dict(zip(map(id, answers), written([payload_sha1(answer) for answer in answers]), strict=True))
    return [_line(one, digests.get(id(one.capture), "-")) for one in visited]


def _line(visited: Visited, digest: str) -> str:
    """The twelve fields of an attempt, a dash where there is nothing to say.

    Hop path and via are told of pages that a redirect led to, and not of others: a page that is visited again and again
    is its own seed.
    """
    visit, capture = visited.visit, visited.capture
    began, ended = _moment(visit.time), _moment(visit.time + visit.cost)
    return " ".join(
        (
            f"{ended}Z",
            f"{visit.status:>5}",
            f"{visit.size if capture is not None else '-':>10}",
            visited.target.url.replace(" ", "%20"),
            visited.hops or "-",
            visited.via or "-",
            visited.judgement.mime or "-",
            "#000",
            f"{began.translate(_DIGITS)}+{round(visit.cost * 1000)}",
            digest,
            "-",
            ",".join(_annotations(visited)) or "-",
        )
    )


def _moment(when: float) -> str:
    """A time with its thousandths, those that have begun."""
    second, millionths = seconds_and_millionths(when)
    return f"{iso_second(second)}.{millionths // 1000:03}"


def _annotations(visited: Visited) -> list[str]:
    notes = []
    if visited.visit.outcome == Outcome.NOT_MODIFIED:
        notes.append("duplicate:server-not-modified")
    elif visited.visit.verdict == Verdict.UNCHANGED and not visited.visit.kinds:
        notes.append("duplicate:digest")
    if visited.capture is not None and visited.capture.truncated in _CUT:
        notes.append(_CUT[visited.capture.truncated])
    return notes
