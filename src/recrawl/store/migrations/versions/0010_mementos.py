"""Captures of other archives whose bytes are to be fetched, and what became of that."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the table."""
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
