"""Every statement of the store, written once; a dialect fills in the few words in which the engines differ.

Rule of this file: parameters are first used in ascending order ($1, then $2, …): so both engines number them alike.
"""

# ruff: noqa: S608 - the words that are filled in are our own, values are always parameters

from __future__ import annotations

from recrawl.model import VISIT_COLUMNS, ChangeKind
from recrawl.store.ahead_statements import AheadStatements
from recrawl.store.browse_statements import BrowseStatements
from recrawl.store.check_statements import CheckStatements
from recrawl.store.dialect import Dialect
from recrawl.store.live_statements import LiveStatements
from recrawl.store.look_up_statements import LookUpStatements
from recrawl.store.robots_statements import RobotsStatements
from recrawl.store.site_statements import SiteStatements
from recrawl.store.values import REVISIT, MementoState

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
_HOST = "id, name, ready_at, delay, next_due, paused, checks, lies, restless"
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
_CAPTURE = ", ".join(_CAPTURE_TYPES)
_PLACE = ("warc_file", "warc_offset", "warc_length", "imported")
RANKS = ((200, 299), (304, 304), (300, 399), (404, 404), (410, 410), (400, 599))
"""Statuses from the best answer to the worst; after them what is no HTTP, and last where no status is known."""
NO_STATUS = 0
SHA1_BYTES = 20
OURS, LISTED, LOCATED = 0, 1, 2
"""``capture.imported``: made by a visit of our own, listed by an archive, or read from its file."""

_CLAIM_TYPES = {
    "page": "bigint",
    "time": "float8",
    "source": "text",
    "lastmod": "float8",
    "changefreq": "smallint",
    "priority": "float4",
}
_MARK_TYPES = {
    "source": "text",
    "fingerprint": "text",
    "position": "bigint",
    "accepted": "bigint",
    "skipped": "bigint",
    "broken": "bigint",
    "finished": "smallint",
}


def _better(*, located: bool) -> str:
    """When a capture is there already, the better record stands.

    Which one that is does not depend on which came first, so sources may come in any order. It brings its place, unless
    it is only listed and the bytes were seen elsewhere. A capture that a visit of our own made stays as it is.
    """
    better = f"({_rank('excluded')}) < ({_rank('capture')})"
    told = [f"{name} = excluded.{name}" for name in ("status", "mime", "digest", "size")]
    seen = f"excluded.status <> capture.status OR capture.imported <> {LOCATED}"
    placed = [f"{name} = {f'excluded.{name}' if located else _either(seen, name)}" for name in _PLACE]
    return (
        f"ON CONFLICT (page, time) DO UPDATE SET {', '.join(told + placed)} "
        f"WHERE capture.imported <> {OURS} AND {better}"
    )


def _placed(*, located: bool) -> str:
    """When a capture is there already, a place where its bytes were seen replaces any other."""
    moved = "excluded.warc_file <> capture.warc_file OR excluded.warc_offset <> capture.warc_offset"
    news = (
        f"capture.imported = {LISTED} OR (excluded.digest = capture.digest AND ({moved}))"
        if located
        else "capture.warc_file = '' AND excluded.warc_file <> ''"
    )
    return (
        f"ON CONFLICT (page, time) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _PLACE)} "
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


class Statements:
    """The statements in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._pages_and_hosts(dialect)
        self._visits(dialect)
        self._links_and_captures(dialect)
        self._resources(dialect)
        self._schedule(dialect)
        self._policy_state_and_counts()

    def _pages_and_hosts(self, dialect: Dialect) -> None:
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
        self.pages_of_host = "SELECT page FROM schedule WHERE host = $1"
        self.last_page = "SELECT coalesce(max(id), 0) FROM page"
        self.hosts_of_pages = f"SELECT page, host FROM schedule WHERE page {among(1)} ORDER BY page"
        self.lock_hosts = f"SELECT id FROM host WHERE id {among(1)} ORDER BY id {dialect.lock}"
        self.hosts_all = f"SELECT {_HOST} FROM host ORDER BY id"
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

    def _visits(self, dialect: Dialect) -> None:
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
        self.segments_between = (
            "SELECT id FROM visit_segment WHERE pack IS NULL OR (last_time >= $1 AND first_time <= $2) ORDER BY id"
        )
        self.packs_between = (
            "SELECT id, pack FROM visit_segment "
            "WHERE pack IS NOT NULL AND last_time >= $1 AND first_time <= $2 AND id > $3 ORDER BY id LIMIT $4"
        )
        self.looks_of_segment = f"SELECT {_LOOK} FROM visit WHERE segment = $1 ORDER BY page, time"
        self.looks_of_open = (
            f"SELECT {_LOOK} FROM visit WHERE segment IN (SELECT id FROM visit_segment WHERE pack IS NULL) "
            "ORDER BY segment, page, time"
        )
        self.visits_of_segment = f"SELECT {_VISIT} FROM visit WHERE segment = $1 ORDER BY page, time"
        self.looks_of_pages = (
            f"SELECT {_LOOK} FROM visit WHERE segment {among(1)} AND page {among(2)} ORDER BY segment, page, time"
        )
        self.visits_of_pages = (
            f"SELECT {_VISIT} FROM visit WHERE segment {among(1)} AND page {among(2)} ORDER BY segment, page, time"
        )

    def _resources(self, dialect: Dialect) -> None:
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

    def _links_and_captures(self, dialect: Dialect) -> None:
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
        self.add_captures = dialect.insert("capture", _CAPTURE_TYPES, "ON CONFLICT DO NOTHING")
        imported = {**_CAPTURE_TYPES, "imported": "smallint"}
        self.add_listed = dialect.insert("capture", imported, "ON CONFLICT DO NOTHING")
        self.captured_pages = f"SELECT DISTINCT page FROM capture WHERE page {among(1)}"
        self.import_captures = dialect.insert("capture", imported, "ON CONFLICT DO NOTHING RETURNING page, time")
        self.better_captures, self.place_captures = (
            {
                located: dialect.insert("capture", imported, f"{conflict(located=located)} RETURNING page, time")
                for located in (False, True)
            }
            for conflict in (_better, _placed)
        )
        self.capture_offsets = "SELECT warc_offset FROM capture WHERE warc_file = $1 ORDER BY warc_offset"
        self.captures_of = f"SELECT {_CAPTURE} FROM capture WHERE page {among(1)} ORDER BY page, time"
        self.capture_columns = f"SELECT {_CAPTURE}, imported FROM capture WHERE page {among(1)} ORDER BY page, time"
        self.captures_of_page = (
            f"SELECT {_CAPTURE}, imported FROM capture WHERE page = $1 AND time > $2 ORDER BY time LIMIT $3"
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
        self.look_ups = LookUpStatements(dialect)
        self.browse = BrowseStatements(dialect)
        self.checks = CheckStatements(dialect)

    def _schedule(self, dialect: Dialect) -> None:
        among = dialect.among
        self.set_due = dialect.update("schedule", "page", {"due": "float8"})
        self.wake_hosts = f"UPDATE host SET next_due = $1 WHERE next_due > $1 AND id {among(2)}"
        self.refresh_hosts = (
            "UPDATE host SET next_due = (SELECT min(due) FROM schedule WHERE schedule.host = host.id) "
            f"WHERE id {among(1)}"
        )
        self.due_of_pages = f"SELECT page, due FROM schedule WHERE page {among(1)} ORDER BY page"
        self.next_wake = "SELECT min(wake) FROM host WHERE paused = 0"
        self.ready_hosts = (
            "SELECT id FROM host WHERE paused = 0 AND next_due <= $1 AND wake <= $1 "
            f"AND id - id / $2 * $2 = $3 ORDER BY next_due, id LIMIT $4 {dialect.lock_free}"
        )
        self.first_due = dialect.first_due
        self.leased_pages = f"SELECT id, url, {_VALIDATORS} FROM page WHERE id {among(1)}"
        self.add_leases = dialect.insert(
            "lease", {"page": "bigint", "host": "bigint", "worker": "text", "until": "float8"}
        )
        self.hold_hosts = f"UPDATE host SET held_by = $1, held_until = $2 WHERE id {among(3)}"
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
        self.drop_leases = f"DELETE FROM lease WHERE worker = $1 AND page {among(2)} RETURNING page"
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
        self.pause_hosts = f"UPDATE host SET paused = $1 WHERE id {among(2)}"

    def _policy_state_and_counts(self) -> None:
        self.save_state = (
            "INSERT INTO policy_state (name, state, updated) VALUES ($1, $2, $3) "
            "ON CONFLICT (name) DO UPDATE SET state = excluded.state, updated = excluded.updated"
        )
        self.load_state = "SELECT state FROM policy_state WHERE name = $1"
        self.count = (
            "SELECT (SELECT count(*) FROM page), (SELECT count(*) FROM host), (SELECT count(*) FROM link), "
            "(SELECT count(*) FROM capture), (SELECT count(*) FROM lease), "
            "(SELECT count(*) FROM schedule WHERE due <= $1)"
        )
        self.count_sealed = (
            "SELECT coalesce(sum(visits), 0), coalesce(sum(changed), 0), coalesce(sum(failed), 0) "
            "FROM visit_segment WHERE pack IS NOT NULL"
        )
