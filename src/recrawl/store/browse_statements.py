"""The statements for people who look through pages and hosts, in one dialect."""

# ruff: noqa: S608 - the words that are filled in are our own, values are always parameters

from __future__ import annotations

from recrawl.store.dialect import Dialect


class BrowseStatements:
    """Part of :class:`recrawl.store.statements.Statements`, and under its rules.

    Orders come in pairs, ascending and descending; each goes on behind a row, which an index finds.
    """

    def __init__(self, dialect: Dialect) -> None:
        among = dialect.among
        self.by_key, self.by_id, self.by_due, self.first_of_hosts = {}, {}, {}, {}
        for down, beyond, order, last in ((False, ">", "ASC", "<"), (True, "<", "DESC", ">=")):
            self.by_key[down] = (
                "SELECT key_start, page.id FROM page "
                f"WHERE (key_start, page.id) {beyond} ($1, $2) AND key_start {last} $3 "
                f"ORDER BY key_start {order}, page.id {order} LIMIT $4"
            )
            self.by_id[down] = f"SELECT id FROM page WHERE id {beyond} $1 ORDER BY id {order} LIMIT $2"
            rest = f"schedule.host = {{}} AND (schedule.due, schedule.page) {beyond} ({{}}, {{}})"
            end = f"ORDER BY schedule.due {order}, schedule.page {order} LIMIT"
            self.by_due[down] = f"SELECT due, page FROM schedule WHERE {rest.format('$1', '$2', '$3')} {end} $4"
            inner = rest.format("host.id", "$1", "$2").replace("schedule.", "mine.")
            first = f"(SELECT mine.page FROM schedule AS mine WHERE {inner} {end.replace('schedule.', 'mine.')} 1)"
            self.first_of_hosts[down] = (
                f"SELECT host.id FROM host JOIN schedule ON schedule.page = {first} "
                f"ORDER BY schedule.due {order}, schedule.page {order} LIMIT $3"
            )
        # Those that fail are few: they are looked up, not looked for.
        self.failing_by_id = "SELECT page FROM failing WHERE page > $1 ORDER BY page LIMIT $2"
        self.failing_by_key = {
            down: statement.replace("FROM page ", "FROM failing CROSS JOIN page ").replace(
                "WHERE ", "WHERE page.id = failing.page AND "
            )
            for down, statement in self.by_key.items()
        }
        self.sift = f"SELECT page.id FROM page{{}} WHERE page.id {among(1)}"
        self.with_schedule = " JOIN schedule ON schedule.page = page.id"
        self.with_failing = " JOIN failing ON failing.page = page.id"
        self.of_host = " AND page.host = ${}"
        self.with_text = " AND lower(page.url) LIKE ${} ESCAPE '\\'"
        self.in_state = {
            "due": " AND schedule.due <= ${}",
            "waiting": " AND schedule.due > ${} AND schedule.due < ${}",
            "never": " AND schedule.due = ${}",
            "failing": "",
            "gone": " AND page.gone <> 0",
        }
        self.rows = (
            "SELECT page.id, page.host, page.url, schedule.due, page.importance, page.discovered, page.mime, "
            "page.gone, coalesce(failing.failures, 0) FROM page JOIN schedule ON schedule.page = page.id "
            f"LEFT JOIN failing ON failing.page = page.id WHERE page.id {among(1)}"
        )
        self.host_counts = (
            "SELECT host, count(*), sum(CASE WHEN due <= $1 THEN 1 ELSE 0 END), "
            "sum(CASE WHEN due = $2 THEN 1 ELSE 0 END) FROM schedule GROUP BY host ORDER BY host"
        )
        self.host_failures = (
            "SELECT schedule.host, count(*), sum(CASE WHEN failing.outcome = $1 THEN 1 ELSE 0 END) FROM failing "
            "JOIN schedule ON schedule.page = failing.page GROUP BY schedule.host ORDER BY schedule.host"
        )
