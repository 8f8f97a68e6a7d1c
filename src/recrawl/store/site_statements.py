"""The statements about captures of whole sites, in one dialect."""

# ruff: noqa: S608 - the words that are filled in are our own, values are always parameters

from __future__ import annotations

from recrawl.store.dialect import Dialect

_PAGE_TYPES = {
    "capture": "bigint",
    "number": "integer",
    "page": "bigint",
    "via": "integer",
    "after": "integer",
    "rate": "float8",
    "weight": "float8",
}
_STEP = "step, number, revisit, time, outcome, verdict"


class SiteStatements:
    """Part of :class:`recrawl.store.statements.Statements`, and under its rules."""

    def __init__(self, dialect: Dialect) -> None:
        self.add = "INSERT INTO site_capture (site, terms, delay, started) VALUES ($1, $2, $3, $4) RETURNING id"
        self.begun = "SELECT id FROM site_capture WHERE started = $1 AND site = $2"
        told = "SELECT id, site, terms, delay, started, finished, statement FROM site_capture"
        self.all = f"{told} ORDER BY id"
        self.only = f"{told} WHERE id {dialect.among(1)} ORDER BY id"
        self.latest = "SELECT id FROM site_capture WHERE id < $1 ORDER BY id DESC LIMIT $2"
        self.finish = "UPDATE site_capture SET finished = $1, statement = $2 WHERE id = $3"
        self.add_pages = dialect.insert("site_capture_page", _PAGE_TYPES, "ON CONFLICT DO NOTHING")
        self.pages = "SELECT page, via, after, rate, weight FROM site_capture_page WHERE capture = $1 ORDER BY number"
        self.add_step = (
            f"INSERT INTO site_capture_step (capture, {_STEP}) VALUES ($1, $2, $3, $4, $5, $6, $7) "
            "ON CONFLICT DO NOTHING"
        )
        self.step = f"SELECT {_STEP} FROM site_capture_step WHERE capture = $1 AND step = $2"
        self.steps = f"SELECT {_STEP} FROM site_capture_step WHERE capture = $1 ORDER BY step"
        self.some_steps = f"SELECT {_STEP} FROM site_capture_step WHERE capture = $1 AND step % $2 = 0 ORDER BY step"
        self.count_pages = "SELECT COUNT(*) FROM site_capture_page WHERE capture = $1"
        self.count_steps = (
            "SELECT revisit, COUNT(DISTINCT number), MAX(time) FROM site_capture_step WHERE capture = $1 "
            "GROUP BY revisit"
        )
