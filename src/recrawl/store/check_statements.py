"""The statements of those who check and copy a store, in one dialect."""

# ruff: noqa: S608 - the words that are filled in are our own, values are always parameters

from __future__ import annotations

from recrawl.store.dialect import Dialect

_NOT_HELD = 0.0
_OURS = 0
"""``capture.imported`` of a capture that a visit of our own made."""
_CAPTURE = "page, time, status, mime, digest, size, warc_file, warc_offset, warc_length, imported"


class CheckStatements:
    """Part of :class:`recrawl.store.statements.Statements`, and under its rules."""

    def __init__(self, dialect: Dialect) -> None:
        among, larger = dialect.among, dialect.larger
        self.delete_from = {
            table: f"DELETE FROM {table} WHERE page {among(1)}"
            for table in (
                "schedule",
                "lease",
                "fingerprint",
                "failing",
                "unjudged",
                "unread",
                "resource",
                "source",
                "memento",
            )
        }
        self.drop_dangling_links = (
            f"DELETE FROM link WHERE source {among(1)} "
            "AND (NOT EXISTS (SELECT 1 FROM page WHERE page.id = link.source) "
            "OR NOT EXISTS (SELECT 1 FROM page WHERE page.id = link.target))"
        )
        self.order_link_times = (
            f"UPDATE link SET first_seen = last_seen, last_seen = first_seen WHERE source {among(1)} "
            "AND first_seen > last_seen"
        )
        self.move_to_host = (
            "UPDATE schedule SET host = (SELECT host FROM page WHERE page.id = schedule.page) "
            f"WHERE page {among(1)} AND EXISTS (SELECT 1 FROM page WHERE page.id = schedule.page)"
        )
        self.refresh_hosts = (
            "UPDATE host SET next_due = (SELECT min(due) FROM schedule WHERE schedule.host = host.id) "
            f"WHERE id {among(1)} AND EXISTS (SELECT 1 FROM schedule WHERE schedule.host = host.id)"
        )
        self.set_ready = f"UPDATE host SET ready_at = $1 + delay WHERE id {among(2)}"
        self.hosts_of_leases = f"SELECT DISTINCT host FROM lease WHERE page {among(1)} ORDER BY host"
        self.drop_leases_of_hosts = f"DELETE FROM lease WHERE host {among(1)}"
        self.free_hosts = (
            f"UPDATE host SET held_by = NULL, held_until = {_NOT_HELD} WHERE id {among(1)} "
            "AND NOT EXISTS (SELECT 1 FROM lease WHERE lease.host = host.id)"
        )
        self.rest_held_hosts = (
            f"UPDATE host SET ready_at = {larger}(ready_at, $1 + {larger}(delay, $2)) WHERE held_by IS NOT NULL"
        )
        self.set_key_hash = dialect.update("page", "id", {"key_hash": "bytea"})
        self.lock_segment = f"SELECT id FROM visit_segment WHERE id = $1 {dialect.lock}"
        self.captures_between = (
            f"SELECT page, time FROM capture WHERE page > $1 AND page <= $2 AND imported = {_OURS} ORDER BY page, time"
        )
        self.failing_between = "SELECT page, time FROM failing WHERE page > $1 AND page <= $2"
        self.visits_between = (
            f"SELECT page, time, segment, outcome FROM visit WHERE segment {among(1)} AND page > $2 AND page <= $3"
        )
        self.captures_after = (
            f"SELECT {_CAPTURE} FROM capture WHERE (page, time) > ($1, $2) ORDER BY page, time LIMIT $3"
        )
        self.last_offsets = (
            "SELECT warc_file, max(warc_offset) FROM capture "
            f"WHERE imported = {_OURS} AND warc_file <> '' GROUP BY warc_file"
        )
