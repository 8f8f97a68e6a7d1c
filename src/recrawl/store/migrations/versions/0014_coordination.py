"""Coordination: the demand of each partition of a crawl, and samples of their histories."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Create both tables; nothing is published yet."""
    op.create_table(
        "partition_demand",
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
    op.create_table(
        "partition_sample",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("time", sa.Double, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
