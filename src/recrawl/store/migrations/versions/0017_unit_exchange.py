"""Pages on their way between units, in a coordination database."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Create the table; it stays empty in the store of a unit."""
    op.create_table(
        "unit_exchange",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("bucket", sa.SmallInteger, nullable=False),
        sa.Column("sender", sa.Text, nullable=False),
        sa.Column("sent", sa.Double, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_index("unit_exchange_by_bucket", "unit_exchange", ["bucket", "id"])
