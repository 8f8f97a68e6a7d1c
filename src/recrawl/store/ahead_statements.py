"""The statements about what lies ahead of the clock, in one dialect."""

# ruff: noqa: S608 - the words that are filled in are our own, values are always parameters

from __future__ import annotations

from recrawl.store.dialect import Dialect


class AheadStatements:
    """Part of :class:`recrawl.store.statements.Statements`, and under its rules."""

    def __init__(self, dialect: Dialect) -> None:
        among = dialect.among
        self.shorten_leases = "UPDATE lease SET until = $1 WHERE until > $2"
        self.shorten_holds = "UPDATE host SET held_until = $1 WHERE held_by IS NOT NULL AND held_until > $2"
        self.end_pauses = "UPDATE host SET ready_at = $1 + delay WHERE ready_at > $2"
        self.expire_robots = "UPDATE robots SET expires = $1, fetched_at = $1 WHERE expires > $2"
        self.robots_changed = "UPDATE robots SET changed = $1 WHERE changed > $1"
        self.ready_at = f"SELECT id, ready_at FROM host WHERE id {among(1)} ORDER BY id"
        self.newest_pages = "SELECT discovered FROM page ORDER BY id DESC LIMIT $1"
        self.found_later = (
            "SELECT page.id, due FROM page JOIN schedule ON schedule.page = page.id "
            "WHERE discovered > $1 ORDER BY page.id"
        )
        self.find_now = "UPDATE page SET discovered = $1 WHERE discovered > $1"
        self.read_links = f"UPDATE page SET links_read_at = $1 WHERE links_read_at > $1 AND id {among(2)}"
        smaller = "CASE WHEN {0} > $1 THEN $1 ELSE {0} END"
        self.see_links = (
            f"UPDATE link SET first_seen = {smaller.format('first_seen')}, last_seen = $1 "
            f"WHERE last_seen > $1 AND source {among(2)}"
        )
        self.fail_now = (
            f"UPDATE failing SET since = {smaller.format('since')}, time = $1 WHERE time > $1 AND page {among(2)}"
        )
        self.claims_later = "SELECT page, time, source FROM claim WHERE time > $1 ORDER BY page, time, source"
        self.hear_claim = "UPDATE claim SET time = $1 WHERE page = $2 AND time = $3 AND source = $4"
