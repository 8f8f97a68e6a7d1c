"""The statements of those who look captures up by time and by key, in one dialect."""

# ruff: noqa: S608 - the words that are filled in are our own, values are always parameters

from __future__ import annotations

from recrawl.store.dialect import Dialect

_CAPTURE = (
    "page",
    "time",
    "status",
    "mime",
    "digest",
    "size",
    "warc_file",
    "warc_offset",
    "warc_length",
    "imported",
)
_COLUMNS = ", ".join(_CAPTURE)
_JOINED = ", ".join(f"capture.{name}" for name in _CAPTURE)


class LookUpStatements:
    """Part of :class:`recrawl.store.statements.Statements`, and under its rules."""

    def __init__(self, dialect: Dialect) -> None:
        of_page = f"SELECT {_COLUMNS} FROM capture WHERE page = $1 AND time >= $2 AND time <= $3"
        self.captures_between = {
            False: f"{of_page} ORDER BY time LIMIT $4",
            True: f"{of_page} ORDER BY time DESC LIMIT $4",
        }
        self.capture_ends = "SELECT min(time), max(time), count(*) FROM capture WHERE page = $1"
        key = dialect.bytewise("page.key")
        # CROSS JOIN is what makes SQLite go by key and not by page.
        by_key = (
            f"SELECT page.key, page.url, {_JOINED} FROM page CROSS JOIN capture "
            f"WHERE page.key_start >= $1 AND page.key_start <= $2 AND {key} >= $3 AND {key} <= $4 "
            "AND capture.page = page.id AND capture.time >= $5 AND capture.time <= $6 "
        )
        self.count_by_key = by_key.replace(f"SELECT page.key, page.url, {_JOINED}", "SELECT count(*)")
        self.captures_by_key = {
            False: f"{by_key} AND (page.key <> $7 OR capture.time > $8) "
            f"ORDER BY page.key_start, {key}, capture.time LIMIT $9 OFFSET $10",
            True: f"{by_key} AND (page.key <> $7 OR capture.time < $8) "
            f"ORDER BY page.key_start DESC, {key} DESC, capture.time DESC LIMIT $9 OFFSET $10",
        }
        self.drop_captures = "DELETE FROM capture WHERE page = $1 AND time = $2 AND imported <> 0 RETURNING page, time"
