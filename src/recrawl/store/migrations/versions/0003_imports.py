"""Which captures came from elsewhere, and pages whose archived bytes wait to be read."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add a column and a table."""
    op.add_column("capture", sa.Column("imported", sa.SmallInteger, nullable=False, server_default=sa.text("0")))
    identity = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table("unread", sa.Column("page", identity, primary_key=True, autoincrement=False))
