"""A workspace with millions of captures and visits, made in bulk, and the same index as a file for others to search."""

from __future__ import annotations

from pathlib import Path

import apsw
import numpy as np
from store_population import populate_sqlite

from recrawl.app.workspace.workspace import Workspace, make_workspace
from recrawl.model import Outcome, Verdict
from recrawl.store.history import LOOK, SEGMENT_VISITS, pack

START = 1_600_000_000
ROUND = 2_592_000
"""Seconds from one visit of a page to the next, give or take."""

_TIME = f"({START} + {{n}} * {ROUND} + (id * 7919) % {ROUND})"
_CAPTURES = f"""INSERT INTO capture (page, time, status, mime, digest, size, warc_file, warc_offset, warc_length)
SELECT id, {_TIME.format(n="n")}, 200, 'text/html', CAST(printf('%020d', id * 10 + n / 2) AS BLOB), 5000,
'bench-' || (id / 10000) || '.warc.gz', (id % 10000) * 3000, 2900
FROM page CROSS JOIN ({{rounds}}) ORDER BY id, n"""
_VISITS = f"""INSERT INTO visit (page, time, size, segment, kinds, cost, new_internal, new_external, added_internal,
added_external, outcome, verdict, status) SELECT id, {_TIME}, 5000, {{segment}}, {{verdict}} / 2, 0.1, 0, 0, 0, 0, 0,
{{verdict}}, 200 FROM page WHERE id BETWEEN {{first}} AND {{last}} ORDER BY id"""
_LINES = f"""SELECT key || ' ' || strftime('%Y%m%d%H%M%S', {_TIME.format(n="n")}, 'unixepoch') ||
' {{{{"url": "' || url || '", "mime": "text/html", "status": "200", "digest": "' || printf('%020d', id * 10 + n / 2) ||
'", "length": "2900", "offset": "' || ((id % 10000) * 3000) ||
'", "filename": "bench-' || (id / 10000) || '.warc.gz"}}}}'
FROM page CROSS JOIN ({{rounds}}) ORDER BY key, n"""


def time_of(page: int, number: int) -> int:
    """When a visit to a page was made."""
    return START + number * ROUND + page * 7919 % ROUND


def url_of(page: int, hosts: int) -> str:
    """The URL of a page, as the population has it."""
    return f"http://h{page * 7919 % hosts + 1}.example/section/page-{page}.html"


def build(folder: Path, pages: int, hosts: int, each: int) -> Workspace:
    """A workspace whose pages were visited and captured ``each`` times; every second visit found a change."""
    place = make_workspace(folder, {})
    path = Path(place.store)
    path.unlink()
    populate_sqlite(path, pages, hosts, found_by_url=True)
    connection = apsw.Connection(str(path))
    for name, value in (("journal_mode", "off"), ("synchronous", "off"), ("cache_size", -1_000_000)):
        connection.pragma(name, value)
    with connection:
        connection.execute(_CAPTURES.format(rounds=_rounds(each)))
        segment = 0
        for number in range(each):
            for first in range(1, pages + 1, SEGMENT_VISITS):
                segment += 1
                _add_segment(connection, segment, number, first, min(first + SEGMENT_VISITS - 1, pages))
    connection.execute("ANALYZE")
    connection.close()
    return place


def _add_segment(connection: apsw.Connection, segment: int, number: int, first: int, last: int) -> None:
    verdict = Verdict.UNKNOWN if number == 0 else Verdict.CHANGED if number % 2 == 0 else Verdict.UNCHANGED
    connection.execute(_VISITS.format(n=number, segment=segment, verdict=int(verdict), first=first, last=last))
    observations = np.zeros(last - first + 1, LOOK)
    observations["page"] = np.arange(first, last + 1)
    observations["time"] = START + number * ROUND + observations["page"] * 7919 % ROUND
    observations["outcome"], observations["verdict"] = Outcome.FETCHED, verdict
    changed = len(observations) if verdict is Verdict.CHANGED else 0
    span = float(observations["time"].min()), float(observations["time"].max())
    connection.execute(
        "INSERT INTO visit_segment (id, visits, changed, failed, first_time, last_time, pack) "
        "VALUES (?, ?, ?, 0, ?, ?, ?)",
        (segment, len(observations), changed, *span, pack(observations)),
    )


def write_index(place: Workspace, file: Path, each: int) -> None:
    """The captures as sorted lines of CDXJ."""
    connection = apsw.Connection(place.store, flags=apsw.SQLITE_OPEN_READONLY)
    connection.pragma("cache_size", -500_000)
    with file.open("w", encoding="ascii", newline="\n") as stream:
        stream.writelines(f"{line}\n" for (line,) in connection.execute(_LINES.format(rounds=_rounds(each))))
    connection.close()


def _rounds(each: int) -> str:
    return " UNION ALL ".join(f"SELECT {number} AS n" for number in range(each))
