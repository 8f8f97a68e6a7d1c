"""Buckets: every host has one by its registered domain, and workers own them."""

import sqlalchemy as sa
from alembic import op

from recrawl.urls import bucket_of

revision = "0013"
down_revision = "0012"

_AT_ONCE = 10_000
"""Hosts that are read and written together."""


def upgrade() -> None:
    """Give each host its bucket; create the table of owners, where a bucket without a row has none."""
    op.add_column("host", sa.Column("bucket", sa.SmallInteger, nullable=False, server_default=sa.text("0")))
    op.add_column("lease", sa.Column("token", sa.BigInteger, nullable=False, server_default=sa.text("0")))
    op.create_table(
        "bucket",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=False),
        sa.Column("owner", sa.Text),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("heir", sa.Text),
        sa.Column("since", sa.Double, nullable=False),
    )
    _fill_buckets(op.get_bind())
    running = sa.text("paused = 0")
    for name, columns in (("host_by_due", ["next_due", "id", "wake", "bucket"]), ("host_by_wake", ["wake", "bucket"])):
        op.drop_index(name, "host")
        op.create_index(name, "host", columns, sqlite_where=running, postgresql_where=running)


def _fill_buckets(connection: sa.Connection) -> None:
    some = sa.text("SELECT id, name FROM host WHERE id > :last ORDER BY id LIMIT :most")
    write = sa.text("UPDATE host SET bucket = :bucket WHERE id = :id")
    last = -(2**62)
    while rows := connection.execute(some, {"last": last, "most": _AT_ONCE}).all():
        connection.execute(write, [{"id": number, "bucket": bucket_of(name)} for number, name in rows])
        last = rows[-1][0]
