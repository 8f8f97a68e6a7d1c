"""The schema: hosts, pages, visits, links, captures, schedule, what was learned, imports and site captures."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = None

_WAKE = (
    "CASE WHEN next_due >= ready_at AND next_due >= held_until THEN next_due "
    "WHEN ready_at >= held_until THEN ready_at ELSE held_until END"
)
identity = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
bytewise = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create all tables."""
    on_postgres = op.get_bind().dialect.name == "postgresql"
    _create_pages(on_postgres=on_postgres)
    _create_history(on_postgres=on_postgres)
    _create_schedule()
    _create_learned_facts()
    _create_imports()
    _create_site_captures()


def _create_pages(*, on_postgres: bool) -> None:
    op.create_table(
        "host",
        sa.Column("id", identity, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("ready_at", sa.Double, nullable=False),
        sa.Column("delay", sa.Double, nullable=False),
        sa.Column("held_by", sa.Text),
        sa.Column("held_until", sa.Double, nullable=False),
        sa.Column("next_due", sa.Double, nullable=False),
        sa.Column("wake", sa.Double, sa.Computed(_WAKE, persisted=True)),
        sa.Column("paused", sa.SmallInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("checks", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("lies", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("restless", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.UniqueConstraint("name", name="host_by_name"),
    )
    # Paused hosts, however many there are, are not looked at when a worker leases pages.
    running = sa.text("paused = 0")
    for name, columns in (("host_by_due", ["next_due", "id", "wake"]), ("host_by_wake", ["wake"])):
        op.create_index(name, "host", columns, sqlite_where=running, postgresql_where=running)
    held = sa.text("held_by IS NOT NULL")
    op.create_index("host_by_hold", "host", ["held_until"], sqlite_where=held, postgresql_where=held)
    op.create_table(
        "page",
        sa.Column("id", identity, primary_key=True),
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
        # Pages in the order of their keys: PostgreSQL indexes only what is stored, SQLite computes it.
        sa.Column("key_start", bytewise, sa.Computed("substr(key, 1, 256)", persisted=on_postgres)),
        sa.UniqueConstraint("key_hash", name="page_by_key"),
    )
    op.create_index("page_by_start", "page", ["key_start"])
    op.create_table(
        "source",
        sa.Column("page", identity, primary_key=True, autoincrement=False),
        sa.Column("method", sa.Text, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
    )
    if on_postgres:  # room for validators to grow in place
        op.execute("ALTER TABLE page SET (fillfactor = 85)")


def _create_history(*, on_postgres: bool) -> None:
    op.create_table(
        "visit_segment",
        sa.Column("id", identity, primary_key=True),
        sa.Column("visits", sa.BigInteger, nullable=False),
        # What follows is written once, when the segment is full and will not change again.
        sa.Column("changed", sa.BigInteger),
        sa.Column("failed", sa.BigInteger),
        sa.Column("first_time", sa.Double),
        sa.Column("last_time", sa.Double),
        sa.Column("pack", sa.LargeBinary),
    )
    unpacked = sa.text("pack IS NULL")
    op.create_index("visit_segment_open", "visit_segment", ["id"], sqlite_where=unpacked, postgresql_where=unpacked)
    op.create_table(
        "visit",
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
    op.create_table(
        "link",
        sa.Column("source", sa.BigInteger, nullable=False),
        sa.Column("target", sa.BigInteger, nullable=False),
        sa.Column("first_seen", sa.Double, nullable=False),
        sa.Column("last_seen", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("source", "target"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "capture",
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
    if on_postgres:  # packs are numbers that do not compress
        op.execute("ALTER TABLE visit_segment ALTER COLUMN pack SET STORAGE EXTERNAL")


def _create_schedule() -> None:
    op.create_table(
        "schedule",
        sa.Column("page", identity, primary_key=True, autoincrement=False),
        sa.Column("host", sa.BigInteger, nullable=False),
        sa.Column("due", sa.Double, nullable=False),
    )
    op.create_index("schedule_by_host", "schedule", ["host", "due", "page"])
    op.create_table(
        "lease",
        sa.Column("page", identity, primary_key=True, autoincrement=False),
        sa.Column("host", sa.BigInteger, nullable=False),
        sa.Column("worker", sa.Text, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
    )
    op.create_index("lease_by_host", "lease", ["host"])
    op.create_index("lease_by_until", "lease", ["until"])
    op.create_table(
        "policy_state",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("state", sa.LargeBinary, nullable=False),
        sa.Column("updated", sa.Double, nullable=False),
    )
    op.create_table(
        "failing",
        sa.Column("page", identity, primary_key=True, autoincrement=False),
        sa.Column("since", sa.Double, nullable=False),
        sa.Column("time", sa.Double, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("outcome", sa.SmallInteger, nullable=False),
        sa.Column("status", sa.SmallInteger, nullable=False),
        sa.Column("faults", sa.Integer, nullable=False, server_default="0"),
        sa.Column("reason", sa.Text, nullable=False, server_default=""),
    )
    op.create_table(
        "control",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.Text),
        sa.Column("changed", sa.Double, nullable=False),
    )


def _create_learned_facts() -> None:
    op.create_table(
        "fingerprint",
        sa.Column("page", identity, primary_key=True, autoincrement=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    evidence = ("near", "near_differed", "far", "far_differed", "near_pages", "agreed_pages", "far_pages", "times")
    op.create_table(
        "noise",
        sa.Column("host", sa.BigInteger, nullable=False),
        sa.Column("page", sa.BigInteger, nullable=False),
        sa.Column("part", sa.BigInteger, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in evidence),
        *(sa.Column(name, sa.BigInteger, nullable=False, server_default="0") for name in ("tested", "run")),
        sa.PrimaryKeyConstraint("host", "page", "part"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "robots",
        sa.Column("origin", sa.Text, primary_key=True),
        sa.Column("fetched_at", sa.Double, nullable=False),
        sa.Column("expires", sa.Double, nullable=False),
        sa.Column("status", sa.SmallInteger, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("available", sa.SmallInteger, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("changed", sa.Double, nullable=False),
    )
    op.create_index("robots_by_expires", "robots", ["expires"])
    some = sa.text("changed > 0")
    op.create_index("robots_by_changed", "robots", ["changed"], sqlite_where=some, postgresql_where=some)


def _create_imports() -> None:
    op.create_table(
        "claim",
        sa.Column("page", sa.BigInteger, nullable=False),
        sa.Column("time", sa.Double, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("lastmod", sa.Double, nullable=False),
        sa.Column("changefreq", sa.SmallInteger, nullable=False),
        sa.Column("priority", sa.REAL, nullable=False),
        sa.PrimaryKeyConstraint("page", "time", "source"),
        sqlite_with_rowid=False,
    )
    op.create_table("unjudged", sa.Column("page", identity, primary_key=True, autoincrement=False))
    op.create_table(
        "imported",
        sa.Column("source", sa.Text, primary_key=True),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("accepted", sa.BigInteger, nullable=False),
        sa.Column("skipped", sa.BigInteger, nullable=False),
        sa.Column("broken", sa.BigInteger, nullable=False),
        sa.Column("finished", sa.SmallInteger, nullable=False),
    )
    op.create_table("unread", sa.Column("page", identity, primary_key=True, autoincrement=False))
    op.create_table("resource", sa.Column("page", identity, primary_key=True, autoincrement=False))
    op.create_table(
        "memento",
        sa.Column("page", sa.BigInteger, nullable=False),
        sa.Column("time", sa.Double, nullable=False),
        sa.Column("question", sa.BigInteger, nullable=False),
        sa.Column("uri", sa.Text, nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.PrimaryKeyConstraint("page", "time"),
        sqlite_with_rowid=False,
    )
    op.create_index("memento_by_question", "memento", ["question", "state"])


def _create_site_captures() -> None:
    op.create_table(
        "site_capture",
        sa.Column("id", identity, primary_key=True),
        sa.Column("site", sa.Text, nullable=False),
        sa.Column("terms", sa.Text, nullable=False),
        sa.Column("delay", sa.Double, nullable=False),
        sa.Column("started", sa.Double, nullable=False),
        # What follows is written once, when the capture is complete.
        sa.Column("finished", sa.Double),
        sa.Column("statement", sa.Text),
    )
    op.create_table(
        "site_capture_page",
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
    op.create_table(
        "site_capture_step",
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
