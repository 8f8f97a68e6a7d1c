"""Hosts, pages, visits, links, captures, schedule and policy state."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_WAKE = (
    "CASE WHEN next_due >= ready_at AND next_due >= held_until THEN next_due "
    "WHEN ready_at >= held_until THEN ready_at ELSE held_until END"
)


def upgrade() -> None:
    """Create all tables."""
    identity = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
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
        sa.UniqueConstraint("name", name="host_by_name"),
    )
    op.create_index("host_by_due", "host", ["next_due", "id", "wake"])
    op.create_index("host_by_wake", "host", ["wake"])
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
        sa.UniqueConstraint("key_hash", name="page_by_key"),
    )
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
        sa.PrimaryKeyConstraint("page", "time"),
        sqlite_with_rowid=False,
    )
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
    if op.get_bind().dialect.name == "postgresql":
        # Room for validators to grow in place; packs are numbers that do not compress.
        op.execute("ALTER TABLE page SET (fillfactor = 85)")
        op.execute("ALTER TABLE visit_segment ALTER COLUMN pack SET STORAGE EXTERNAL")
