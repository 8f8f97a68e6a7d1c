"""What is asked of copies of robots.txt in the store, in SQL."""

# ruff: noqa: S608 - the words that are filled in are our own, values are always parameters

from __future__ import annotations

from recrawl.store.dialect import Dialect

_TYPES = {
    "origin": "text",
    "fetched_at": "float8",
    "expires": "float8",
    "status": "smallint",
    "reason": "text",
    "available": "smallint",
    "url": "text",
}
_FACTS = ", ".join(_TYPES)


class RobotsStatements:
    """Part of :class:`recrawl.store.statements.Statements`, and under its rules."""

    def __init__(self, dialect: Dialect) -> None:
        self.get = f"SELECT {_FACTS}, body, changed FROM robots WHERE origin = $1"
        columns = {**_TYPES, "body": "bytea", "changed": "float8"}
        sets = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in {"origin", "changed"})
        same = "robots.body = excluded.body AND robots.status = excluded.status"
        self.keep = dialect.insert(
            "robots",
            columns,
            f"ON CONFLICT (origin) DO UPDATE SET {sets}, "
            f"changed = CASE WHEN {same} THEN robots.changed ELSE excluded.fetched_at END",
        )
        self.expire = dialect.insert(
            "robots",
            columns,
            "ON CONFLICT (origin) DO UPDATE SET expires = CASE WHEN robots.expires < excluded.expires "
            "THEN robots.expires ELSE excluded.expires END, changed = excluded.changed",
        )
        self.drop = "DELETE FROM robots WHERE expires < $1"
        self.changed = f"SELECT {_FACTS}, changed FROM robots WHERE changed >= $1 AND changed > 0"
