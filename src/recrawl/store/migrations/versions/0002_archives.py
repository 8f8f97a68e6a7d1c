"""Claims about change, pages whose captures wait for judgement, and how far each source was imported."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the tables."""
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
    identity = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
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
