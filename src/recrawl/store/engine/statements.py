"""Every statement of the store, written once; a dialect fills in the few words in which the engines differ.

Rule of this file: parameters are first used in ascending order ($1, then $2, …), so that both engines number them
alike.

Sections: dialects; dates after the clock; browsing; look-ups by time and by key; checks and copies; learned state and
controls; robots.txt copies; site captures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias

from recrawl.model import ANSWERED, VISIT_COLUMNS, ChangeKind, NoiseCounts, Verdict
from recrawl.model.noise_counts import FAR_WINDOW, LONGEST_RUN, NEAR_WINDOW, NOISE_SUMS, RUNS
from recrawl.store.store_values import QUARANTINED, REVISIT, CaptureOrigin, MementoState

Types: TypeAlias = Mapping[str, str]
"""Columns and their types, as PostgreSQL calls them."""
How: TypeAlias = Literal["set", "raise", "add"]
"""What an update makes of the value before and the new one."""


class UrlFilterTerms(Protocol):
    """A text that URLs contain (``store.client_pages``)."""

    @property
    def text(self) -> str:
        """Empty for any URL."""
        ...

    @property
    def any_case(self) -> bool:
        """Whether capitals count as small letters."""
        ...


class SqlDialect(Protocol):
    """The words in which the engines differ."""

    lock: str
    """At the end of a query: keep the rows for this transaction, waiting for who keeps them now."""
    lock_free: str
    """The same, but passing over rows that another transaction keeps."""
    larger: str
    """The function that returns the larger of two values."""
    first_due: str
    """Of the hosts $1, the pages due by $2, at most $3 a host: page, host, due."""

    def among(self, parameter: int, type_: str = "bigint") -> str:
        """After a column's name: equal to one of the array with that number."""
        ...

    def bytewise(self, column: str) -> str:
        """A text in the order of its bytes."""
        ...

    def insert(self, table: str, columns: Types, conflict: str = "") -> str:
        """Insert rows, given as columns of these types in this order."""
        ...

    def update(self, table: str, key: str, columns: Types, *, how: How = "set") -> str:
        """Set columns of the rows with that bigint key, given as the key and columns of these types in this order.

        With ``raise`` a value stays as it is where the new one is not larger, with ``add`` the new one is added to it.
        """
        ...


# ruff: noqa: S608 - the words that are filled in are our own, values are always parameters


class AheadStatements:
    """Part of :class:`recrawl.store.engine.statements.SqlStatements`, and under its rules."""

    def __init__(self, dialect: SqlDialect) -> None:
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


# ruff: noqa: S608 - the words that are filled in are our own, values are always parameters


class BrowseStatements:
    """Part of :class:`recrawl.store.engine.statements.SqlStatements`, and under its rules.

    Orders come in pairs, ascending and descending; each goes on behind a row, which an index finds.
    """

    def __init__(self, dialect: SqlDialect) -> None:
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


# ruff: noqa: S608 - the words that are filled in are our own, values are always parameters


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


class CaptureIndexStatements:
    """Part of :class:`recrawl.store.engine.statements.SqlStatements`, and under its rules."""

    def __init__(self, dialect: SqlDialect) -> None:
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


# ruff: noqa: S608 - the words that are filled in are our own, values are always parameters


_NOT_HELD = 0.0
_OURS = 0
"""``capture.imported`` of a capture that a visit of our own made."""
_CHECKED_CAPTURE = "page, time, status, mime, digest, size, warc_file, warc_offset, warc_length, imported"


class CheckStatements:
    """Part of :class:`recrawl.store.engine.statements.SqlStatements`, and under its rules."""

    def __init__(self, dialect: SqlDialect) -> None:
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
            f"SELECT {_CHECKED_CAPTURE} FROM capture WHERE (page, time) > ($1, $2) ORDER BY page, time LIMIT $3"
        )
        self.last_offsets = (
            "SELECT warc_file, max(warc_offset) FROM capture "
            f"WHERE imported = {_OURS} AND warc_file <> '' GROUP BY warc_file"
        )


# ruff: noqa: S608 - the words that are filled in are our own, values are always parameters


_NOISE_TYPES = dict.fromkeys(NoiseCounts.__slots__, "bigint")
_FAILING_TYPES = {
    "page": "bigint",
    "since": "float8",
    "time": "float8",
    "failures": "integer",
    "outcome": "smallint",
    "status": "smallint",
    "faults": "integer",
}


class LiveStatements:
    """Part of :class:`recrawl.store.engine.statements.SqlStatements`, and under its rules."""

    def __init__(self, dialect: SqlDialect) -> None:
        among = dialect.among
        self.set_fingerprints = dialect.insert(
            "fingerprint", {"page": "bigint", "data": "bytea"}, "ON CONFLICT (page) DO UPDATE SET data = excluded.data"
        )
        self.fingerprints = f"SELECT page, data FROM fingerprint WHERE page {among(1)}"
        self.add_noise = dialect.insert(
            "noise", _NOISE_TYPES, f"ON CONFLICT (host, page, part) DO UPDATE SET {_faded()}"
        )
        columns = ", ".join(_NOISE_TYPES)
        self.noise = f"SELECT {columns} FROM noise ORDER BY host, page, part"
        self.noise_of = f"SELECT {columns} FROM noise WHERE host {among(1)} ORDER BY host, page, part"
        self.drop_noise = f"DELETE FROM noise WHERE host {among(1)}"
        self.drop_noise_parts = f"DELETE FROM noise WHERE host = $1 AND page = 0 AND part {among(2)}"
        self.drop_noise_pages = f"DELETE FROM noise WHERE host = $1 AND page {among(2)}"
        self.add_validator_trust = dialect.update(
            "host", "id", {"checks": "integer", "lies": "integer", "restless": "integer"}, how="add"
        )
        self._failures(dialect)
        self._settings(dialect)
        self._backlog(dialect)

    def _failures(self, dialect: SqlDialect) -> None:
        self.add_failures = dialect.insert(
            "failing",
            _FAILING_TYPES | {"reason": "text"},
            "ON CONFLICT (page) DO UPDATE SET time = excluded.time, failures = failing.failures + 1, "
            "outcome = excluded.outcome, status = excluded.status, faults = failing.faults + excluded.faults, "
            "reason = excluded.reason WHERE excluded.time > failing.time",
        )
        self.fault_reasons = "SELECT page, reason FROM failing WHERE faults > 0 AND reason <> ''"
        self.quarantined = f"SELECT count(*) FROM failing WHERE faults >= {QUARANTINED}"
        self.drop_failures = f"DELETE FROM failing WHERE page {dialect.among(1)}"
        columns = ", ".join(f"failing.{name}" for name in _FAILING_TYPES)
        self.failing = f"SELECT {columns} FROM failing ORDER BY time DESC, page LIMIT $1"
        self.failing_of_host = (
            f"SELECT {columns} FROM failing JOIN schedule ON schedule.page = failing.page "
            "WHERE schedule.host = $1 ORDER BY time DESC, failing.page LIMIT $2"
        )

    def _settings(self, dialect: SqlDialect) -> None:
        self.set_sources = dialect.insert(
            "source",
            {"page": "bigint", "method": "text", "options": "text"},
            "ON CONFLICT (page) DO UPDATE SET method = excluded.method, options = excluded.options",
        )
        self.drop_sources = f"DELETE FROM source WHERE page {dialect.among(1)}"
        self.sources = f"SELECT page, method, options FROM source WHERE page {dialect.among(1)}"
        self.all_sources = "SELECT page, method, options FROM source ORDER BY page"
        self.any_source = "SELECT 1 FROM source LIMIT 1"
        self.set_control = (
            "INSERT INTO control (name, value, changed) VALUES ($1, $2, $3) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value, changed = excluded.changed"
        )
        self.controls = "SELECT name, value FROM control WHERE value IS NOT NULL ORDER BY name"
        self.controls_changed = "SELECT max(changed) FROM control"

    def _backlog(self, dialect: SqlDialect) -> None:
        """By hosts that have a page due: so these cost what is due, not what there is."""
        due = "FROM host JOIN schedule ON schedule.host = host.id WHERE host.next_due <= $1 AND schedule.due <= $1"
        self.backlog = (
            f"SELECT count(*), coalesce(sum(CASE WHEN host.paused = 0 THEN 1 ELSE 0 END), 0), min(schedule.due), "
            f"coalesce(sum(CASE WHEN host.paused = 0 AND host.ready_at > $1 THEN 1 ELSE 0 END), 0) {due}"
        )
        # Hosts that nobody holds, with a page due, and at most in the pause between two requests.
        self.soon_free = (
            "SELECT min(wake) FROM host WHERE paused = 0 AND held_by IS NULL AND next_due <= $1 "
            f"AND ready_at <= $1 + {dialect.larger}(delay, $2)"
        )
        self.due_pages = f"SELECT page, host, due {due} ORDER BY due, page LIMIT $2"
        self.due_pages_of_host = (
            "SELECT page, host, due FROM schedule WHERE due <= $1 AND host = $2 ORDER BY due, page LIMIT $3"
        )


def _faded() -> str:
    """Add new counts to old ones, which fade: ``detect.noise.learned_noise.NoiseEvidence.plus`` in SQL."""
    sums = {name: f"(noise.{name} + excluded.{name})" for name in NOISE_SUMS}
    run = "(CASE WHEN excluded.near_differed > 0 THEN excluded.run ELSE noise.run + excluded.run END)"
    before = f"({sums['near']} - {run} + 1)"
    longest = " ".join(f"WHEN {b} * {sums['near_differed']} >= {a} * {before} THEN {n}" for a, b, n in RUNS)
    over = f"({sums['near_differed']} > 0 AND {run} >= CASE {longest} ELSE {LONGEST_RUN} END)"
    fresh = {"near": run, "near_differed": "0", "tested": run}
    full = {"near": f"{sums['near']} > {NEAR_WINDOW}", "far": f"{sums['far']} > {FAR_WINDOW}"}
    kept = {"run": run}
    for name, total in sums.items():
        window = full["far" if name.startswith("far") else "near"]
        faded = f"CASE WHEN {window} THEN {total} / 2 ELSE {total} END"
        kept[name] = f"(CASE WHEN {over} THEN {fresh[name]} ELSE {faded} END)" if name in fresh else f"({faded})"
    mostly = f"{full['near']} AND 2 * {kept['near_differed']} >= {kept['near']}"
    empty = {
        "near_pages": f"{kept['near_differed']} = 0",
        "agreed_pages": mostly,
        "far_pages": f"{kept['far_differed']} = 0",
        "times": f"{kept['near_differed']} = 0",
    }
    sets = {name: f"CASE WHEN {when} THEN 0 ELSE noise.{name} | excluded.{name} END" for name, when in empty.items()}
    return ", ".join(f"{name} = {value}" for name, value in (kept | sets).items())


# ruff: noqa: S608 - the words that are filled in are our own, values are always parameters


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
    """Part of :class:`recrawl.store.engine.statements.SqlStatements`, and under its rules."""

    def __init__(self, dialect: SqlDialect) -> None:
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
        self.after = f"SELECT {_FACTS}, body, changed FROM robots WHERE origin > $1 ORDER BY origin LIMIT $2"
        self.forget = "DELETE FROM robots WHERE origin = $1"
        self.drop = "DELETE FROM robots WHERE expires < $1"
        self.changed = f"SELECT {_FACTS}, changed FROM robots WHERE changed >= $1 AND changed > 0"


# ruff: noqa: S608 - the words that are filled in are our own, values are always parameters


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
    """Part of :class:`recrawl.store.engine.statements.SqlStatements`, and under its rules."""

    def __init__(self, dialect: SqlDialect) -> None:
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


# ruff: noqa: S608 - the words that are filled in are our own, values are always parameters


class ClientStatements:
    """Part of :class:`recrawl.store.engine.statements.SqlStatements`, and under its rules."""

    def __init__(self, dialect: SqlDialect) -> None:
        among, larger = dialect.among, dialect.larger
        columns = {"page": "bigint", "host": "bigint", "until": "float8", "done": "smallint", "metadata": "bytea"}
        flying = "SELECT 1 FROM client_page AS c WHERE c.host = host.id AND c.until > 0 AND c.until > $1 LIMIT $2"
        room = f"(SELECT count(*) FROM ({flying}) AS flying) < $2"
        done = "SELECT count(*) FROM client_page AS d WHERE d.host = host.id AND d.done <> 0"
        wanted = f"NOT EXISTS (SELECT 1 FROM client_limit AS m WHERE m.host = host.id AND m.most <= ({done}))"
        ready = f"SELECT id FROM host WHERE paused = 0 AND next_due <= $1 AND wake <= $1 AND {room} AND {wanted}"
        self.ready = f"{ready} ORDER BY next_due, id LIMIT $3 {dialect.lock_free}"
        self.ready_among = f"{ready} AND id {among(3)} ORDER BY next_due, id LIMIT $4 {dialect.lock_free}"
        self.rest = f"UPDATE host SET ready_at = {larger}(ready_at, $1 + {larger}(delay, $2)) WHERE id {among(3)}"
        self.add = dialect.insert("client_page", columns, "ON CONFLICT DO NOTHING")
        self.fly = dialect.insert("client_page", columns, "ON CONFLICT (page) DO UPDATE SET until = excluded.until")
        self.land = f"UPDATE client_page SET until = 0 WHERE page {among(1)}"
        self.land_with = dialect.insert(
            "client_page",
            columns,
            "ON CONFLICT (page) DO UPDATE SET until = 0, done = excluded.done, metadata = excluded.metadata",
        )
        self.drop = f"DELETE FROM client_page WHERE page {among(1)}"
        self.metadata = f"SELECT page, metadata FROM client_page WHERE page {among(1)} AND length(metadata) > 0"
        self.in_flight = "SELECT page FROM client_page WHERE until > 0 AND until > $1 ORDER BY page"
        self.done_among = f"SELECT page FROM client_page WHERE page {among(1)} AND done <> 0 ORDER BY page"
        self.asleep = (
            f"SELECT id FROM page WHERE id {among(1)} AND importance = 0 "
            "AND NOT EXISTS (SELECT 1 FROM client_page WHERE client_page.page = page.id AND done <> 0) ORDER BY id"
        )
        self.host_named = "SELECT id FROM host WHERE name = $1"
        self.hosts_below = "SELECT id FROM host WHERE name LIKE $1 ESCAPE '\\' OR name LIKE $2 ESCAPE '\\' ORDER BY id"
        self.queue_names = "SELECT name FROM host WHERE next_due <= $1 ORDER BY id LIMIT $2 OFFSET $3"
        self.count_queues = "SELECT count(*) FROM host WHERE next_due <= $1"
        of_host = {False: "", True: f" AND {{}} {among(2)}"}
        self.count_hosts = {
            some: "SELECT count(*), coalesce(sum(CASE WHEN next_due < $1 THEN 1 ELSE 0 END), 0) FROM host WHERE id > 0"
            + of_host[some].format("id")
            for some in (False, True)
        }
        self.count_active = {
            some: "SELECT count(*) FROM schedule WHERE due < $1" + of_host[some].format("host")
            for some in (False, True)
        }
        self.count_in_flight = {
            some: "SELECT count(*) FROM client_page WHERE until > 0 AND until > $1" + of_host[some].format("host")
            for some in (False, True)
        }
        self.count_done = {
            False: "SELECT count(*) FROM client_page WHERE done <> 0",
            True: f"SELECT count(*) FROM client_page WHERE done <> 0 AND host {among(1)}",
        }
        self.set_limits = dialect.insert(
            "client_limit",
            {"host": "bigint", "most": "bigint"},
            "ON CONFLICT (host) DO UPDATE SET most = excluded.most",
        )
        self.drop_limits = f"DELETE FROM client_limit WHERE host {among(1)}"
        removable = (
            "SELECT page.id FROM page WHERE (importance > 0 OR EXISTS "
            "(SELECT 1 FROM client_page WHERE client_page.page = page.id AND done <> 0)) "
            "AND discovered < $1 AND page.id > $2"
        )
        self.removable = {
            False: f"{removable} ORDER BY page.id LIMIT $3",
            True: f"{removable} AND page.host {among(3)} ORDER BY page.id LIMIT $4",
        }
        self._among = among

    def listed(self, of_hosts: bool, text: UrlFilterTerms, *, count: bool) -> str:
        """The query for pages behind an id, or for their number: the hosts and the text come next, if given."""
        where, number = " WHERE page.id > $1 AND (importance > 0 OR done <> 0)", 2
        if of_hosts:
            where += f" AND page.host {self._among(number)}"
            number += 1
        if text.text:
            url, wanted = ("lower(page.url)", f"lower(${number})") if text.any_case else ("page.url", f"${number}")
            where += f" AND replace({url}, {wanted}, '') <> {url}"
            number += 1
        where = (
            " FROM page JOIN schedule ON schedule.page = page.id JOIN host ON host.id = page.host "
            f"LEFT JOIN client_page ON client_page.page = page.id{where}"
        )
        if count:
            return f"SELECT count(*){where}"
        columns = "page.id, page.url, host.name, schedule.due, discovered, coalesce(done, 0), metadata"
        return f"SELECT {columns}{where} ORDER BY page.id LIMIT ${number} OFFSET ${number + 1}"


# ruff: noqa: S608 - the words that are filled in are our own, values are always parameters


NOT_HELD = 0.0
"""``host.held_until`` of a host in nobody's hand."""

_VISIT_TYPES = {
    "page": "bigint",
    "time": "float8",
    "outcome": "smallint",
    "verdict": "smallint",
    "kinds": "integer",
    "status": "smallint",
    "size": "bigint",
    "cost": "real",
    "new_internal": "integer",
    "new_external": "integer",
    "added_internal": "integer",
    "added_external": "integer",
    "magnitude": "real",
}
_VISIT = ", ".join(VISIT_COLUMNS)
_HOST = "id, name, ready_at, delay, next_due, paused, checks, lies, restless, bucket"
_COMPARED = int(ChangeKind.LINKS_COMPARED)
_LOOK = f"page, time, outcome, verdict, CASE WHEN new_internal >= 0 THEN kinds | {_COMPARED} ELSE kinds END AS kinds"
_VALIDATOR_TYPES = {
    "etag": "text",
    "last_modified": "text",
    "digest": "bytea",
    "text_digest": "bytea",
    "mime": "text",
    "gone": "smallint",
    "links_read_at": "float8",
}
_VALIDATORS = ", ".join(_VALIDATOR_TYPES)


_CAPTURE_TYPES = {
    "page": "bigint",
    "time": "float8",
    "status": "smallint",
    "mime": "text",
    "digest": "bytea",
    "size": "bigint",
    "warc_file": "text",
    "warc_offset": "bigint",
    "warc_length": "bigint",
}
_CAPTURE_COLUMNS = ", ".join(_CAPTURE_TYPES)
_PLACE = ("warc_file", "warc_offset", "warc_length")
RANKS = ((200, 299), (304, 304), (300, 399), (404, 404), (410, 410), (400, 599))
"""Statuses from the best answer to the worst; after them what is no HTTP, and last where no status is known."""
NO_STATUS = 0
SHA1_BYTES = 20
OURS, LISTED, LOCATED = CaptureOrigin.OURS.value, CaptureOrigin.LISTED.value, CaptureOrigin.LOCATED.value
"""Values of ``capture.imported``. Those above tell the role of a capture, which stays with it."""

_CLAIM_TYPES = {
    "page": "bigint",
    "time": "float8",
    "source": "text",
    "lastmod": "float8",
    "changefreq": "smallint",
    "priority": "float4",
}
_UPLOAD_TYPES = {"name": "text", "location": "text", "size": "bigint", "sha256": "bytea", "uploaded": "float8"}
_MARK_TYPES = {
    "source": "text",
    "fingerprint": "text",
    "position": "bigint",
    "accepted": "bigint",
    "skipped": "bigint",
    "broken": "bigint",
    "finished": "smallint",
}


_ORIGIN = f"imported = CASE WHEN capture.imported > {LOCATED} THEN capture.imported ELSE excluded.imported END"


def _better(*, located: bool) -> str:
    """When a capture is there already, the better record stands.

    Which one that is does not depend on which came first, so sources may come in any order. It brings its place, unless
    it is only listed and the bytes were seen elsewhere. A capture that a visit of our own made stays as it is.
    """
    better = f"({_rank('excluded')}) < ({_rank('capture')})"
    told = [f"{name} = excluded.{name}" for name in ("status", "mime", "digest", "size")]
    seen = f"excluded.status <> capture.status OR capture.imported = {LISTED}"
    placed = [f"{name} = {f'excluded.{name}' if located else _either(seen, name)}" for name in _PLACE]
    placed.append(_ORIGIN if located else f"imported = {_either(seen, 'imported')}")
    return (
        f"ON CONFLICT (page, time) DO UPDATE SET {', '.join(told + placed)} "
        f"WHERE capture.imported <> {OURS} AND {better}"
    )


def _placed(*, located: bool) -> str:
    """When a capture is there already, a place where its bytes were seen replaces any other."""
    placed = ", ".join(f"{name} = excluded.{name}" for name in _PLACE)
    moved = "excluded.warc_file <> capture.warc_file OR excluded.warc_offset <> capture.warc_offset"
    news = (
        f"capture.imported = {LISTED} OR (excluded.digest = capture.digest AND ({moved}))"
        if located
        else "capture.warc_file = '' AND excluded.warc_file <> ''"
    )
    return (
        f"ON CONFLICT (page, time) DO UPDATE SET {placed}, {_ORIGIN} "
        f"WHERE capture.imported <> {OURS} AND excluded.status = capture.status AND ({news})"
    )


def _either(condition: str, name: str) -> str:
    return f"CASE WHEN {condition} THEN excluded.{name} ELSE capture.{name} END"


def _rank(row: str) -> str:
    """By what records of one capture are ordered, the best first: as ``archives.rank`` does."""
    status = " ".join(
        f"WHEN {row}.status BETWEEN {low} AND {high} THEN {rank}" for rank, (low, high) in enumerate(RANKS)
    )
    return (
        f"CASE {status} WHEN {row}.status = {NO_STATUS} THEN {len(RANKS) + 1} ELSE {len(RANKS)} END, {row}.status, "
        f"CASE length({row}.digest) WHEN {SHA1_BYTES} THEN 0 WHEN 0 THEN 2 ELSE 1 END, {row}.digest, "
        f"CASE {row}.mime WHEN '{REVISIT}' THEN 2 WHEN '' THEN 1 ELSE 0 END, -{row}.size"
    )


class SqlStatements:
    """The statements in one dialect."""

    def __init__(self, dialect: SqlDialect) -> None:
        self.dialect = dialect
        self._pages_and_hosts(dialect)
        self._visits(dialect)
        self._links_and_captures(dialect)
        self._uploads(dialect)
        self._resources(dialect)
        self._schedule(dialect)
        self._policy_state_and_counts()
        self.clients = ClientStatements(dialect)

    def _pages_and_hosts(self, dialect: SqlDialect) -> None:
        among = dialect.among
        self.known_pages = f"SELECT key_hash, id FROM page WHERE key_hash {among(1, 'bytea')}"
        self.known_hosts = f"SELECT name, id FROM host WHERE name {among(1, 'text')}"
        self.add_hosts = dialect.insert(
            "host",
            {
                "name": "text",
                "ready_at": "float8",
                "delay": "float8",
                "held_until": "float8",
                "next_due": "float8",
                "bucket": "smallint",
            },
            "ON CONFLICT (name) DO NOTHING",
        )
        self.add_pages = dialect.insert(
            "page",
            {
                "host": "bigint",
                "url": "text",
                "key": "text",
                "key_hash": "bytea",
                "importance": "float8",
                "cost": "float8",
                "discovered": "float8",
                **_VALIDATOR_TYPES,
            },
            "ON CONFLICT (key_hash) DO NOTHING",
        )
        self.pages_after = "SELECT key_hash, id FROM page WHERE id > $1"
        self.schedule_pages = (
            "INSERT INTO schedule (page, host, due) "
            "SELECT id, host, CASE WHEN importance > 0 THEN discovered ELSE CAST($1 AS DOUBLE PRECISION) END "
            f"FROM page WHERE id {among(2)} ON CONFLICT (page) DO NOTHING"
        )
        self.find_page = "SELECT id, host, url, key, importance, discovered FROM page WHERE key_hash = $1"
        self.urls = f"SELECT id, url FROM page WHERE id {among(1)}"
        self.validators = f"SELECT id, {_VALIDATORS} FROM page WHERE id {among(1)}"
        self.pages_all = "SELECT id, host, importance, cost, discovered FROM page ORDER BY id"
        self.pages_some = f"SELECT id, host, importance, cost, discovered FROM page WHERE id {among(1)} ORDER BY id"
        self.pages_in_buckets = (
            "SELECT page.id, page.host, importance, cost, discovered FROM host "
            "JOIN schedule ON schedule.host = host.id JOIN page ON page.id = schedule.page "
            f"WHERE host.bucket {among(1)} ORDER BY page.id"
        )
        self.host_size = "SELECT count(*) FROM schedule WHERE host = (SELECT id FROM host WHERE name = $1) AND due < $2"
        self.pages_of_host = "SELECT page FROM schedule WHERE host = $1"
        wanted_of_key = (
            "FROM page WHERE key_start >= $1 AND key_start < $2 AND importance > 0 "
            "AND NOT EXISTS (SELECT 1 FROM source WHERE source.page = page.id)"
        )
        self.wanted_of_key = f"SELECT url {wanted_of_key}"
        # Taken off its end are all characters of a URL but the slash: the rest ends with its last slash.
        self.folders_of_key = f"SELECT DISTINCT rtrim(url, replace(url, '/', '')) {wanted_of_key}"
        self.any_wanted = "SELECT 1 FROM page WHERE importance > 0 LIMIT 1"
        self.hosts_after = "SELECT id FROM host WHERE id > $1 ORDER BY id LIMIT $2"
        self.never_due_of_hosts = (
            f"SELECT page, host FROM schedule WHERE host {among(1)} AND due = $2 ORDER BY host, page"
        )
        self.last_page = "SELECT coalesce(max(id), 0) FROM page"
        self.hosts_of_pages = f"SELECT page, host FROM schedule WHERE page {among(1)} ORDER BY page"
        self.lock_hosts = f"SELECT id FROM host WHERE id {among(1)} ORDER BY id {dialect.lock}"
        self.hosts_all = f"SELECT {_HOST} FROM host ORDER BY id"
        self.hosts_paused = f"SELECT {_HOST} FROM host WHERE paused <> 0 ORDER BY id"
        self.hosts_some = f"SELECT {_HOST} FROM host WHERE id {among(1)} ORDER BY id"
        self.never_due = (
            "SELECT page.id, discovered FROM page JOIN schedule ON schedule.page = page.id "
            f"WHERE page.id {among(1)} AND due = $2 ORDER BY page.id"
        )
        self.set_importance = dialect.update("page", "id", {"importance": "float8"})
        self.set_gone = dialect.update("page", "id", {"gone": "smallint"})
        self.gone_among = f"SELECT id FROM page WHERE id {among(1)} AND gone <> 0 ORDER BY id"
        self.set_urls = dialect.update("page", "id", {"url": "text"})
        self.set_validators = dialect.update("page", "id", _VALIDATOR_TYPES)

    def _visits(self, dialect: SqlDialect) -> None:
        among = dialect.among
        self.open_segment = (
            f"SELECT id, visits FROM visit_segment WHERE pack IS NULL ORDER BY id LIMIT 1 {dialect.lock_free}"
        )
        self.add_segment = "INSERT INTO visit_segment (visits) VALUES (0) RETURNING id"
        self.add_visits = dialect.insert("visit", {"segment": "bigint", **_VISIT_TYPES}, "ON CONFLICT DO NOTHING")
        replaced = ", ".join(f"{name} = excluded.{name}" for name in _VISIT_TYPES if name not in ("page", "time"))
        self.replace_visits = dialect.insert(
            "visit",
            {"segment": "bigint", **_VISIT_TYPES},
            f"ON CONFLICT (segment, page, time) DO UPDATE SET {replaced}",
        )
        self.grow_segment = "UPDATE visit_segment SET visits = visits + $1 WHERE id = $2"
        self.seal_segment = (
            "UPDATE visit_segment SET visits = $1, changed = $2, failed = $3, first_time = $4, last_time = $5, "
            "pack = $6 WHERE id = $7"
        )
        self.latest_times = "SELECT time FROM visit WHERE segment = $1 ORDER BY time DESC LIMIT $2"
        self.latest_times_of_host = (
            "SELECT time FROM visit WHERE segment = $1 AND page IN (SELECT page FROM schedule WHERE host = $2) "
            "ORDER BY time DESC LIMIT $3"
        )
        self.visits_since = f"SELECT {_VISIT} FROM visit WHERE segment = $1 AND time >= $2 ORDER BY page, time"
        self.visits_since_of_host = (
            f"SELECT {_VISIT} FROM visit WHERE segment = $1 AND time >= $2 "
            "AND page IN (SELECT page FROM schedule WHERE host = $3) ORDER BY page, time"
        )
        # Times are written with the pack; to ask for the pack itself would read it.
        self.segment_states = "SELECT id, last_time IS NOT NULL FROM visit_segment ORDER BY id"
        self.segment_spans = (
            "SELECT id, (SELECT min(page) FROM visit WHERE segment = visit_segment.id), "
            f"(SELECT max(page) FROM visit WHERE segment = visit_segment.id) FROM visit_segment WHERE id {among(1)}"
        )
        self.segment_ends = "SELECT id, last_time FROM visit_segment"
        self.segments = "SELECT count(*), coalesce(sum(visits), 0) FROM visit_segment"
        self.count_sealed_before = (
            "SELECT coalesce(sum(visits), 0), coalesce(sum(changed), 0), coalesce(sum(failed), 0) "
            "FROM visit_segment WHERE pack IS NOT NULL AND last_time < $1"
        )
        self.count_rows_before = (
            "SELECT coalesce(sum(CASE WHEN outcome < $1 THEN 1 ELSE -1 END), 0), "
            f"coalesce(sum(CASE WHEN verdict = {int(Verdict.CHANGED)} THEN 1 ELSE 0 END), 0), "
            f"coalesce(sum(CASE WHEN outcome > {int(ANSWERED)} THEN 1 ELSE 0 END), 0) FROM visit "
            "WHERE time < $2 AND segment IN "
            "(SELECT id FROM visit_segment WHERE pack IS NULL OR (last_time >= $2 AND first_time < $2))"
        )
        self.segments_between = (
            "SELECT id FROM visit_segment WHERE pack IS NULL OR (last_time >= $1 AND first_time <= $2) ORDER BY id"
        )
        self.packs_between = (
            "SELECT id, pack FROM visit_segment "
            "WHERE pack IS NOT NULL AND last_time >= $1 AND first_time <= $2 AND id > $3 ORDER BY id LIMIT $4"
        )
        self.observations_of_segment = f"SELECT {_LOOK} FROM visit WHERE segment = $1 ORDER BY page, time"
        self.observations_of_open = (
            f"SELECT {_LOOK} FROM visit WHERE segment IN (SELECT id FROM visit_segment WHERE pack IS NULL) "
            "ORDER BY segment, page, time"
        )
        self.visits_of_segment = f"SELECT {_VISIT} FROM visit WHERE segment = $1 ORDER BY page, time"
        self.observations_of_pages = (
            f"SELECT {_LOOK} FROM visit WHERE segment {among(1)} AND page {among(2)} ORDER BY segment, page, time"
        )
        self.visits_of_pages = (
            f"SELECT {_VISIT} FROM visit WHERE segment {among(1)} AND page {among(2)} ORDER BY segment, page, time"
        )

    def _resources(self, dialect: SqlDialect) -> None:
        among = dialect.among
        self.add_resources = dialect.insert("resource", {"page": "bigint"}, "ON CONFLICT DO NOTHING")
        self.drop_resources = f"DELETE FROM resource WHERE page {among(1)}"
        self.resources = (
            "SELECT resource.page FROM resource JOIN page ON page.id = resource.page WHERE importance = 0 "
            "ORDER BY resource.page"
        )
        self.resources_some = (
            "SELECT resource.page FROM resource JOIN page ON page.id = resource.page "
            f"WHERE resource.page {among(1)} AND importance = 0 ORDER BY resource.page"
        )

    def _links_and_captures(self, dialect: SqlDialect) -> None:
        among = dialect.among
        columns = {"source": "bigint", "target": "bigint", "first_seen": "float8", "last_seen": "float8"}
        seen_again = (
            "ON CONFLICT (source, target) DO UPDATE SET last_seen = excluded.last_seen "
            "WHERE excluded.last_seen > link.last_seen"
        )
        self.add_links = dialect.insert("link", columns, seen_again)
        self.add_links_of = (
            f"INSERT INTO link ({', '.join(columns)}) SELECT $1, value, $2, $3 FROM carray($4) WHERE true {seen_again}"
        )
        """SQLite's own: from one page to many, seen at the same times."""
        self.links_from = (
            f"SELECT source, target, first_seen, last_seen FROM link WHERE source {among(1)} ORDER BY source, target"
        )
        self.add_captures = dialect.insert("capture", _CAPTURE_TYPES, "ON CONFLICT DO NOTHING RETURNING page")
        imported = {**_CAPTURE_TYPES, "imported": "smallint"}
        self.add_listed = dialect.insert("capture", imported, "ON CONFLICT DO NOTHING")
        self.captured_pages = f"SELECT DISTINCT page FROM capture WHERE page {among(1)}"
        self.capture_times = f"SELECT page, time FROM capture WHERE page {among(1)} AND time >= $2 AND time <= $3"
        self.import_captures = dialect.insert("capture", imported, "ON CONFLICT DO NOTHING RETURNING page, time")
        self.better_captures, self.place_captures = (
            {
                located: dialect.insert("capture", imported, f"{conflict(located=located)} RETURNING page, time")
                for located in (False, True)
            }
            for conflict in (_better, _placed)
        )
        self.capture_offsets = "SELECT warc_offset FROM capture WHERE warc_file = $1 ORDER BY warc_offset"
        self.captures_of = f"SELECT {_CAPTURE_COLUMNS} FROM capture WHERE page {among(1)} ORDER BY page, time"
        self.capture_columns = (
            f"SELECT {_CAPTURE_COLUMNS}, imported FROM capture WHERE page {among(1)} ORDER BY page, time"
        )
        self.captures_of_page = (
            f"SELECT {_CAPTURE_COLUMNS}, imported FROM capture WHERE page = $1 AND time > $2 ORDER BY time LIMIT $3"
        )
        self.capture_counts = f"SELECT page, count(*) FROM capture WHERE page {among(1)} GROUP BY page"
        self.add_unjudged = dialect.insert("unjudged", {"page": "bigint"}, "ON CONFLICT DO NOTHING")
        self.unjudged = "SELECT page FROM unjudged ORDER BY page"
        self.drop_unjudged = f"DELETE FROM unjudged WHERE page {among(1)}"
        self.add_unread = dialect.insert("unread", {"page": "bigint"}, "ON CONFLICT DO NOTHING")
        self.unread = "SELECT page FROM unread ORDER BY page"
        self.unread_files = (
            "SELECT DISTINCT warc_file FROM unread JOIN capture ON capture.page = unread.page WHERE warc_file <> ''"
        )
        self.unread_in = (
            "SELECT DISTINCT unread.page FROM unread JOIN capture ON capture.page = unread.page "
            f"WHERE warc_file {among(1, 'text')} ORDER BY unread.page"
        )
        self.drop_unread = f"DELETE FROM unread WHERE page {among(1)}"
        self.add_claims = dialect.insert("claim", _CLAIM_TYPES, "ON CONFLICT DO NOTHING")
        self.claims_of = (
            f"SELECT {', '.join(_CLAIM_TYPES)} FROM claim WHERE page {among(1)} ORDER BY page, time, source"
        )
        mark = ", ".join(f"{name} = excluded.{name}" for name in _MARK_TYPES if name != "source")
        self.set_mark = dialect.insert("imported", _MARK_TYPES, f"ON CONFLICT (source) DO UPDATE SET {mark}")
        self.any_mark = "SELECT 1 FROM imported LIMIT 1"
        self.sources = "SELECT source FROM imported"
        self.mark = f"SELECT {', '.join(_MARK_TYPES)} FROM imported WHERE source = $1"

        memento = {"page": "bigint", "time": "float8", "question": "bigint", "uri": "text", "state": "smallint"}
        # What waits under another question waits under this one, too; what an archive did not give, another may.
        asked_anew = (
            f"memento.state = {MementoState.WAITING:d} "
            f"OR (memento.state >= {MementoState.MISSING:d} AND memento.uri <> excluded.uri)"
        )
        told = ", ".join(f"{name} = excluded.{name}" for name in ("question", "uri", "state"))
        self.add_mementos = dialect.insert(
            "memento", memento, f"ON CONFLICT (page, time) DO UPDATE SET {told} WHERE {asked_anew}"
        )
        self.set_mementos = dialect.insert(
            "memento", memento, "ON CONFLICT (page, time) DO UPDATE SET state = excluded.state"
        )
        self.mementos = "SELECT page, time FROM memento WHERE question = $1 AND state = $2 ORDER BY page, time"
        self.memento_uri = "SELECT uri FROM memento WHERE page = $1 AND time = $2"
        self.memento_counts = "SELECT state, count(*) FROM memento WHERE question = $1 GROUP BY state"
        self.retry_mementos = (
            f"UPDATE memento SET state = {MementoState.WAITING:d} "
            f"WHERE question = $1 AND state >= {MementoState.MISSING:d}"
        )
        self.sites = SiteStatements(dialect)
        self.live = LiveStatements(dialect)
        self.robots = RobotsStatements(dialect)
        self.ahead = AheadStatements(dialect)
        self.capture_index = CaptureIndexStatements(dialect)
        self.browse = BrowseStatements(dialect)
        self.checks = CheckStatements(dialect)

    def _uploads(self, dialect: SqlDialect) -> None:
        replaced = ", ".join(f"{name} = excluded.{name}" for name in _UPLOAD_TYPES if name != "name")
        self.set_upload = dialect.insert("archive_file", _UPLOAD_TYPES, f"ON CONFLICT (name) DO UPDATE SET {replaced}")
        self.uploads = f"SELECT {', '.join(_UPLOAD_TYPES)} FROM archive_file ORDER BY name"
        self.upload = f"SELECT {', '.join(_UPLOAD_TYPES)} FROM archive_file WHERE name = $1"

    def _schedule(self, dialect: SqlDialect) -> None:
        among = dialect.among
        self.set_due = dialect.update("schedule", "page", {"due": "float8"})
        self.wake_hosts = f"UPDATE host SET next_due = $1 WHERE next_due > $1 AND id {among(2)}"
        self.refresh_hosts = (
            "UPDATE host SET next_due = (SELECT min(due) FROM schedule WHERE schedule.host = host.id) "
            f"WHERE id {among(1)}"
        )
        self.due_of_pages = f"SELECT page, due FROM schedule WHERE page {among(1)} ORDER BY page"
        self.next_wake = "SELECT min(wake) FROM host WHERE paused = 0"
        # A subquery in the condition, not a join: so hosts are read in the order of the index until there are enough.
        owned = "(SELECT owner FROM bucket WHERE bucket.id = host.bucket AND heir IS NULL) = {}"
        self.next_wake_owned = f"SELECT wake FROM host WHERE paused = 0 AND {owned.format('$1')} ORDER BY wake LIMIT 1"
        ready = "SELECT id FROM host WHERE paused = 0 AND next_due <= $1 AND wake <= $1"
        self.ready_hosts = f"{ready} ORDER BY next_due, id LIMIT $2 {dialect.lock_free}"
        self.ready_hosts_owned = f"{ready} AND {owned.format('$2')} ORDER BY next_due, id LIMIT $3 {dialect.lock_free}"
        self.tokens_of_hosts = (
            "SELECT host.id, bucket.token FROM host JOIN bucket ON bucket.id = host.bucket "
            f"WHERE host.id {among(1)} AND bucket.owner = $2 ORDER BY host.id"
        )
        self.first_due = dialect.first_due
        self.leased_pages = f"SELECT id, url, {_VALIDATORS} FROM page WHERE id {among(1)}"
        self.add_leases = dialect.insert(
            "lease", {"page": "bigint", "host": "bigint", "worker": "text", "until": "float8", "token": "bigint"}
        )
        self.hold_hosts = f"UPDATE host SET held_by = $1, held_until = $2 WHERE id {among(3)}"
        self.hold_of_host = "SELECT held_by, held_until, ready_at FROM host WHERE id = $1"
        self.page_without_lease = (
            "SELECT page FROM schedule WHERE host = $1 "
            "AND NOT EXISTS (SELECT 1 FROM lease WHERE lease.page = schedule.page) LIMIT 1"
        )
        self.expire_leases = "DELETE FROM lease WHERE until <= $1"
        # Whoever held the host may have asked it until then: it rests as long as it asks for.
        self.expire_holds = (
            f"UPDATE host SET ready_at = CASE WHEN delay > 0 THEN {dialect.larger}(ready_at, held_until + delay) "
            f"ELSE ready_at END, held_by = NULL, held_until = {NOT_HELD} WHERE held_by IS NOT NULL AND held_until <= $1"
        )
        self.held_hosts = f"SELECT DISTINCT host FROM lease WHERE worker = $1 AND page {among(2)}"
        self.held_by_worker = "SELECT page FROM lease WHERE worker = $1"
        self.renew_leases = f"UPDATE lease SET until = $1 WHERE worker = $2 AND until > $3 AND page {among(4)}"
        self.renew_holds = (
            f"UPDATE host SET held_until = {dialect.larger}(held_until, $1) WHERE held_by = $2 AND id {among(3)}"
        )
        # A lease is void if its bucket changed hands since.
        self.drop_leases = (
            f"DELETE FROM lease WHERE worker = $1 AND page {among(2)} RETURNING page, CASE WHEN token = 0 "
            "OR token = (SELECT bucket.token FROM host JOIN bucket ON bucket.id = host.bucket "
            "WHERE host.id = lease.host) THEN token ELSE -1 END"
        )
        self.lease_holders = "SELECT worker, count(*) FROM lease GROUP BY worker ORDER BY worker"
        self.hosts_held_by = "SELECT id FROM host WHERE held_by = $1 ORDER BY id"
        self.rest_held = (
            f"UPDATE host SET ready_at = {dialect.larger}(ready_at, $1 + {dialect.larger}(delay, $2)), held_by = NULL, "
            f"held_until = {NOT_HELD} WHERE held_by = $3"
        )
        self.drop_leases_of = "DELETE FROM lease WHERE worker = $1"
        self.release_hosts = (
            f"UPDATE host SET held_by = NULL, held_until = {NOT_HELD} WHERE held_by = $1 AND id {among(2)} "
            "AND NOT EXISTS (SELECT 1 FROM lease WHERE lease.host = host.id)"
        )
        self.set_ready = dialect.update("host", "id", {"ready_at": "float8"})
        self.set_delay = dialect.update("host", "id", {"delay": "float8"})
        self.raise_ready = dialect.update("host", "id", {"ready_at": "float8"}, how="raise")
        self.set_bucket = dialect.update("host", "id", {"bucket": "smallint"})
        self.pause_hosts = f"UPDATE host SET paused = $1 WHERE id {among(2)}"
        self._buckets(dialect)
        self._coordination()

    def _coordination(self) -> None:
        columns = "name, time, buckets, pages, waiting, price, asked_for, least, most, prices, asked"
        places = ", ".join(f"${number}" for number in range(1, 12))
        fresh = ", ".join(f"{name} = excluded.{name}" for name in columns.split(", ")[1:])
        self.publish_demand = (
            f"INSERT INTO partition_demand ({columns}) VALUES ({places}) ON CONFLICT (name) DO UPDATE SET {fresh}"
        )
        self.demands = f"SELECT {columns} FROM partition_demand ORDER BY name"
        self.publish_sample = (
            "INSERT INTO partition_sample (name, time, data) VALUES ($1, $2, $3) "
            "ON CONFLICT (name) DO UPDATE SET time = excluded.time, data = excluded.data"
        )
        self.samples = "SELECT name, data FROM partition_sample WHERE time > $1 ORDER BY name"
        self.withdraw_partition = tuple(
            f"DELETE FROM {table} WHERE name = $1" for table in ("partition_demand", "partition_sample")
        )

    def _buckets(self, dialect: SqlDialect) -> None:
        among = dialect.among
        self.buckets = "SELECT id, owner, token, heir, since FROM bucket ORDER BY id"
        self.lock_buckets = f"SELECT id FROM bucket WHERE id {among(1)} ORDER BY id {dialect.lock}"
        self.lock_buckets_of = f"SELECT id FROM bucket WHERE owner = $1 ORDER BY id {dialect.lock}"
        gone = "NOT EXISTS (SELECT 1 FROM control WHERE name = 'worker ' || bucket.owner AND value IS NOT NULL)"
        self.claim_buckets = dialect.insert(
            "bucket",
            {"id": "bigint", "owner": "text", "token": "bigint", "since": "float8"},
            "ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, heir = NULL, token = bucket.token + 1, "
            f"since = excluded.since WHERE bucket.owner IS NULL OR {gone}",
        )
        self.move_buckets = (
            "UPDATE bucket SET heir = $1, since = $2 WHERE owner = $3 AND "
            f"(heir IS NULL OR heir <> $1) AND id {among(4)}"
        )
        self.keep_buckets = f"UPDATE bucket SET heir = NULL WHERE owner = $1 AND heir IS NOT NULL AND id {among(2)}"
        self.hand_over = (
            "UPDATE bucket SET owner = heir, heir = NULL, token = token + 1, since = $1 WHERE owner = $2 "
            "AND heir IS NOT NULL AND (since <= $3 OR id NOT IN (SELECT host.bucket FROM lease "
            "JOIN host ON host.id = lease.host WHERE lease.worker = $2))"
        )
        self.drop_demands = tuple(f"DELETE FROM {table}" for table in ("partition_demand", "partition_sample"))
        self.release_buckets = (
            "UPDATE bucket SET owner = heir, heir = NULL, token = token + 1, since = $1 WHERE owner = $2"
        )
        self.forget_heir = "UPDATE bucket SET heir = NULL WHERE heir = $1"
        self.disown_buckets = (
            "UPDATE bucket SET owner = NULL, heir = NULL, token = token + 1, since = $1 WHERE owner IS NOT NULL"
        )

    def _policy_state_and_counts(self) -> None:
        self.save_state = (
            "INSERT INTO policy_state (name, state, updated) VALUES ($1, $2, $3) "
            "ON CONFLICT (name) DO UPDATE SET state = excluded.state, updated = excluded.updated"
        )
        self.load_state = "SELECT state FROM policy_state WHERE name = $1"
        self.count_rows = "UPDATE row_count SET rows = rows + $1 WHERE name = $2 AND part = 0"
        self.row_counts = "SELECT name, sum(rows) FROM row_count GROUP BY name"
        self.count_leases = "SELECT count(*) FROM lease"
        self.count_sealed = (
            "SELECT coalesce(sum(visits), 0), coalesce(sum(changed), 0), coalesce(sum(failed), 0) "
            "FROM visit_segment WHERE pack IS NOT NULL"
        )
