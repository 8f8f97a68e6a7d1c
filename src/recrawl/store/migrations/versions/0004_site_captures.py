"""Captures of whole sites: what was asked for, the pages in the order found, and every step."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the tables."""
    identity = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
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
