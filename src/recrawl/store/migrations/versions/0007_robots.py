"""Copies of robots.txt that all workers share."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the table."""
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
