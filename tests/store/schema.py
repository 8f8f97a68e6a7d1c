"""The schema of a store, the same for both engines. The present state; how a store gets there is in ``migrations/``.

Rules of this schema:
 1. Visits are only ever added; one that is taken back is added once more, as taken back. Their rows come in segments
    (see ``store/history.py``), and the key begins with the segment: so an append touches the few blocks of the newest
    segment, however many visits there are, and the visits of a page are found with one look into each segment.
 2. ``host.next_due`` is the smallest ``due`` of the host's pages. ``host.wake`` is the earliest time at which a
    page of the host may be leased; the engine computes it. Paused hosts are in none of the indexes by which pages
    to lease are found.
 3. A lease exists only on a page of a host that is held, by the same worker, for at least as long.
 4. A bucket without a row, or without an owner, is owned by nobody. ``bucket.token`` grows whenever the owner changes.
    ``lease.token`` is that of the bucket when the page was leased; it is 0 for a lease that needs no bucket.
 5. Hot tables have no foreign keys: a check per visit would cost more than the visit. Pages are never deleted.
"""

from __future__ import annotations

import sqlalchemy as sa

from recrawl.store.store_values import KEY_START_LENGTH

WAKE = (
    "CASE WHEN next_due >= ready_at AND next_due >= held_until THEN next_due "
    "WHEN ready_at >= held_until THEN ready_at ELSE held_until END"
)
"""The largest of the three, in words both engines know."""

KEY_START = f"substr(key, 1, {KEY_START_LENGTH})"
"""As much of a key as any index takes."""

metadata = sa.MetaData()

_running = sa.text("paused = 0")
"""Of which hosts pages may be leased."""

_identity = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""SQLite numbers rows by itself only in a column declared INTEGER."""

_bytewise = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""Text in the order of its bytes, which is the only one that SQLite has."""

host = sa.Table(
    "host",
    metadata,
    sa.Column("id", _identity, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("ready_at", sa.Double, nullable=False),
    sa.Column("delay", sa.Double, nullable=False),
    sa.Column("held_by", sa.Text),
    sa.Column("held_until", sa.Double, nullable=False),
    sa.Column("next_due", sa.Double, nullable=False),
    sa.Column("wake", sa.Double, sa.Computed(WAKE, persisted=True)),
    sa.Column("paused", sa.SmallInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("checks", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("lies", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("restless", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("bucket", sa.SmallInteger, nullable=False, server_default=sa.text("0")),
    sa.UniqueConstraint("name", name="host_by_name"),
    sa.Index("host_by_due", "next_due", "id", "wake", "bucket", sqlite_where=_running, postgresql_where=_running),
    sa.Index("host_paused", "id", sqlite_where=sa.text("paused <> 0"), postgresql_where=sa.text("paused <> 0")),
    sa.Index("host_by_wake", "wake", "bucket", sqlite_where=_running, postgresql_where=_running),
    sa.Index(
        "host_by_hold",
        "held_until",
        sqlite_where=sa.text("held_by IS NOT NULL"),
        postgresql_where=sa.text("held_by IS NOT NULL"),
    ),
)

page = sa.Table(
    "page",
    metadata,
    sa.Column("id", _identity, primary_key=True),
    sa.Column("host", sa.BigInteger, nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    # A SURT may be longer than an index entry of PostgreSQL, so its 128-bit hash is what is unique.
    sa.Column("key_hash", sa.LargeBinary, nullable=False),
    sa.Column("importance", sa.Double, nullable=False),
    sa.Column("cost", sa.Double, nullable=False),
    sa.Column("discovered", sa.Double, nullable=False),
    sa.Column("etag", sa.Text, nullable=False),
    sa.Column("last_modified", sa.Text, nullable=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("text_digest", sa.LargeBinary, nullable=False),
    sa.Column("mime", sa.Text, nullable=False),
    sa.Column("gone", sa.SmallInteger, nullable=False),
    sa.Column("links_read_at", sa.Double, nullable=False),
    # For the same reason pages are sorted by the beginning of their keys; byte by byte, as indexes of archives are.
    sa.Column("key_start", _bytewise, sa.Computed(KEY_START)),
    sa.UniqueConstraint("key_hash", name="page_by_key"),
    sa.Index("page_by_start", "key_start"),
)

visit_segment = sa.Table(
    "visit_segment",
    metadata,
    sa.Column("id", _identity, primary_key=True),
    sa.Column("visits", sa.BigInteger, nullable=False),
    # What follows is written once, when the segment is full and will not change again.
    sa.Column("changed", sa.BigInteger),
    sa.Column("failed", sa.BigInteger),
    sa.Column("first_time", sa.Double),
    sa.Column("last_time", sa.Double),
    sa.Column("pack", sa.LargeBinary),
    sa.Index(
        "visit_segment_open", "id", sqlite_where=sa.text("pack IS NULL"), postgresql_where=sa.text("pack IS NULL")
    ),
)

visit = sa.Table(
    "visit",
    metadata,
    sa.Column("page", sa.BigInteger, nullable=False),
    sa.Column("time", sa.Double, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("segment", sa.Integer, nullable=False),
    sa.Column("kinds", sa.Integer, nullable=False),
    sa.Column("cost", sa.REAL, nullable=False),
    sa.Column("new_internal", sa.Integer, nullable=False),
    sa.Column("new_external", sa.Integer, nullable=False),
    sa.Column("added_internal", sa.Integer, nullable=False),
    sa.Column("added_external", sa.Integer, nullable=False),
    sa.Column("outcome", sa.SmallInteger, nullable=False),
    sa.Column("verdict", sa.SmallInteger, nullable=False),
    sa.Column("status", sa.SmallInteger, nullable=False),
    sa.Column("magnitude", sa.REAL, nullable=False, server_default=sa.text("-1")),
    sa.PrimaryKeyConstraint("segment", "page", "time"),
    sqlite_with_rowid=False,
)

link = sa.Table(
    "link",
    metadata,
    sa.Column("source", sa.BigInteger, nullable=False),
    sa.Column("target", sa.BigInteger, nullable=False),
    sa.Column("first_seen", sa.Double, nullable=False),
    sa.Column("last_seen", sa.Double, nullable=False),
    sa.PrimaryKeyConstraint("source", "target"),
    sqlite_with_rowid=False,
)

capture = sa.Table(
    "capture",
    metadata,
    sa.Column("page", sa.BigInteger, nullable=False),
    sa.Column("time", sa.Double, nullable=False),
    sa.Column("status", sa.SmallInteger, nullable=False),
    sa.Column("mime", sa.Text, nullable=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("warc_file", sa.Text, nullable=False),
    sa.Column("warc_offset", sa.BigInteger, nullable=False),
    sa.Column("warc_length", sa.BigInteger, nullable=False),
    sa.Column("imported", sa.SmallInteger, nullable=False, server_default=sa.text("0")),
    sa.PrimaryKeyConstraint("page", "time"),
    sqlite_with_rowid=False,
)

schedule = sa.Table(
    "schedule",
    metadata,
    sa.Column("page", _identity, primary_key=True, autoincrement=False),
    sa.Column("host", sa.BigInteger, nullable=False),
    sa.Column("due", sa.Double, nullable=False),
    sa.Index("schedule_by_host", "host", "due", "page"),
)

lease = sa.Table(
    "lease",
    metadata,
    sa.Column("page", _identity, primary_key=True, autoincrement=False),
    sa.Column("host", sa.BigInteger, nullable=False),
    sa.Column("worker", sa.Text, nullable=False),
    sa.Column("until", sa.Double, nullable=False),
    sa.Column("token", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Index("lease_by_host", "host"),
    sa.Index("lease_by_until", "until"),
)

bucket = sa.Table(
    "bucket",
    metadata,
    sa.Column("id", _identity, primary_key=True, autoincrement=False),
    sa.Column("owner", sa.Text),
    sa.Column("token", sa.BigInteger, nullable=False),
    sa.Column("heir", sa.Text),
    sa.Column("since", sa.Double, nullable=False),
)

partition_demand = sa.Table(
    "partition_demand",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("time", sa.Double, nullable=False),
    sa.Column("buckets", sa.Integer, nullable=False),
    sa.Column("pages", sa.BigInteger, nullable=False),
    sa.Column("waiting", sa.BigInteger, nullable=False),
    sa.Column("price", sa.Double),
    sa.Column("asked_for", sa.Double, nullable=False),
    sa.Column("least", sa.Double, nullable=False),
    sa.Column("most", sa.Double, nullable=False),
    sa.Column("prices", sa.LargeBinary, nullable=False),
    sa.Column("asked", sa.LargeBinary, nullable=False),
)

partition_sample = sa.Table(
    "partition_sample",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("time", sa.Double, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

unit_exchange = sa.Table(
    "unit_exchange",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("bucket", sa.SmallInteger, nullable=False),
    sa.Column("sender", sa.Text, nullable=False),
    sa.Column("sent", sa.Double, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Index("unit_exchange_by_bucket", "bucket", "id"),
)

client_page = sa.Table(
    "client_page",
    metadata,
    sa.Column("page", _identity, primary_key=True, autoincrement=False),
    sa.Column("host", sa.BigInteger, nullable=False),
    sa.Column("until", sa.Double, nullable=False),
    sa.Column("done", sa.SmallInteger, nullable=False),
    sa.Column("metadata", sa.LargeBinary, nullable=False),
    sa.Index(
        "client_page_in_flight",
        "host",
        "until",
        sqlite_where=sa.text("until > 0"),
        postgresql_where=sa.text("until > 0"),
    ),
    sa.Index("client_page_done", "host", sqlite_where=sa.text("done <> 0"), postgresql_where=sa.text("done <> 0")),
)

client_limit = sa.Table(
    "client_limit",
    metadata,
    sa.Column("host", _identity, primary_key=True, autoincrement=False),
    sa.Column("most", sa.BigInteger, nullable=False),
)

fingerprint = sa.Table(
    "fingerprint",
    metadata,
    sa.Column("page", _identity, primary_key=True, autoincrement=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

noise = sa.Table(
    "noise",
    metadata,
    sa.Column("host", sa.BigInteger, nullable=False),
    sa.Column("page", sa.BigInteger, nullable=False),
    sa.Column("part", sa.BigInteger, nullable=False),
    sa.Column("near", sa.BigInteger, nullable=False),
    sa.Column("near_differed", sa.BigInteger, nullable=False),
    sa.Column("tested", sa.BigInteger, nullable=False),
    sa.Column("run", sa.BigInteger, nullable=False),
    sa.Column("far", sa.BigInteger, nullable=False),
    sa.Column("far_differed", sa.BigInteger, nullable=False),
    sa.Column("near_pages", sa.BigInteger, nullable=False),
    sa.Column("agreed_pages", sa.BigInteger, nullable=False),
    sa.Column("far_pages", sa.BigInteger, nullable=False),
    sa.Column("times", sa.BigInteger, nullable=False),
    sa.PrimaryKeyConstraint("host", "page", "part"),
    sqlite_with_rowid=False,
)

source = sa.Table(
    "source",
    metadata,
    sa.Column("page", _identity, primary_key=True, autoincrement=False),
    sa.Column("method", sa.Text, nullable=False),
    sa.Column("options", sa.Text, nullable=False),
)

failing = sa.Table(
    "failing",
    metadata,
    sa.Column("page", _identity, primary_key=True, autoincrement=False),
    sa.Column("since", sa.Double, nullable=False),
    sa.Column("time", sa.Double, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("outcome", sa.SmallInteger, nullable=False),
    sa.Column("status", sa.SmallInteger, nullable=False),
    sa.Column("faults", sa.Integer, nullable=False, server_default="0"),
    sa.Column("reason", sa.Text, nullable=False, server_default=""),
    sa.Index("failing_by_time", "time"),
)

control = sa.Table(
    "control",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text),
    sa.Column("changed", sa.Double, nullable=False),
)

robots = sa.Table(
    "robots",
    metadata,
    sa.Column("origin", sa.Text, primary_key=True),
    sa.Column("fetched_at", sa.Double, nullable=False),
    sa.Column("expires", sa.Double, nullable=False),
    sa.Column("status", sa.SmallInteger, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("available", sa.SmallInteger, nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    # Compressed, at most 500 KiB before that.
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("changed", sa.Double, nullable=False),
    sa.Index("robots_by_expires", "expires"),
    sa.Index(
        "robots_by_changed",
        "changed",
        sqlite_where=sa.text("changed > 0"),
        postgresql_where=sa.text("changed > 0"),
    ),
)

policy_state = sa.Table(
    "policy_state",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("state", sa.LargeBinary, nullable=False),
    sa.Column("updated", sa.Double, nullable=False),
)

claim = sa.Table(
    "claim",
    metadata,
    sa.Column("page", sa.BigInteger, nullable=False),
    sa.Column("time", sa.Double, nullable=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("lastmod", sa.Double, nullable=False),
    sa.Column("changefreq", sa.SmallInteger, nullable=False),
    sa.Column("priority", sa.REAL, nullable=False),
    sa.PrimaryKeyConstraint("page", "time", "source"),
    sqlite_with_rowid=False,
)

unjudged = sa.Table(
    "unjudged",
    metadata,
    sa.Column("page", _identity, primary_key=True, autoincrement=False),
)

unread = sa.Table(
    "unread",
    metadata,
    sa.Column("page", _identity, primary_key=True, autoincrement=False),
)

resource = sa.Table(
    "resource",
    metadata,
    sa.Column("page", _identity, primary_key=True, autoincrement=False),
)

imported = sa.Table(
    "imported",
    metadata,
    sa.Column("source", sa.Text, primary_key=True),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("accepted", sa.BigInteger, nullable=False),
    sa.Column("skipped", sa.BigInteger, nullable=False),
    sa.Column("broken", sa.BigInteger, nullable=False),
    sa.Column("finished", sa.SmallInteger, nullable=False),
)

archive_file = sa.Table(
    "archive_file",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("location", sa.Text, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("sha256", sa.LargeBinary, nullable=False),
    sa.Column("uploaded", sa.Double, nullable=False),
)

memento = sa.Table(
    "memento",
    metadata,
    sa.Column("page", sa.BigInteger, nullable=False),
    sa.Column("time", sa.Double, nullable=False),
    sa.Column("question", sa.BigInteger, nullable=False),
    sa.Column("uri", sa.Text, nullable=False),
    sa.Column("state", sa.SmallInteger, nullable=False),
    sa.PrimaryKeyConstraint("page", "time"),
    sa.Index("memento_by_question", "question", "state"),
    sqlite_with_rowid=False,
)

site_capture = sa.Table(
    "site_capture",
    metadata,
    sa.Column("id", _identity, primary_key=True),
    sa.Column("site", sa.Text, nullable=False),
    sa.Column("terms", sa.Text, nullable=False),
    sa.Column("delay", sa.Double, nullable=False),
    sa.Column("started", sa.Double, nullable=False),
    # What follows is written once, when the capture is complete.
    sa.Column("finished", sa.Double),
    sa.Column("statement", sa.Text),
)

site_capture_page = sa.Table(
    "site_capture_page",
    metadata,
    sa.Column("capture", sa.BigInteger, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("page", sa.BigInteger, nullable=False),
    sa.Column("via", sa.Integer, nullable=False),
    sa.Column("after", sa.Integer, nullable=False),
    sa.Column("rate", sa.Double, nullable=False),
    sa.Column("weight", sa.Double, nullable=False),
    sa.PrimaryKeyConstraint("capture", "number"),
    sqlite_with_rowid=False,
)

site_capture_step = sa.Table(
    "site_capture_step",
    metadata,
    sa.Column("capture", sa.BigInteger, nullable=False),
    sa.Column("step", sa.Integer, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("revisit", sa.SmallInteger, nullable=False),
    sa.Column("time", sa.Double, nullable=False),
    sa.Column("outcome", sa.SmallInteger, nullable=False),
    sa.Column("verdict", sa.SmallInteger, nullable=False),
    sa.PrimaryKeyConstraint("capture", "step"),
    sqlite_with_rowid=False,
)

row_count = sa.Table(
    "row_count",
    metadata,
    sa.Column("name", sa.Text, nullable=False),
    # PostgreSQL has a row for each connection that counted, so that none waits for another.
    sa.Column("part", sa.BigInteger, nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.PrimaryKeyConstraint("name", "part"),
    sqlite_with_rowid=False,
)
