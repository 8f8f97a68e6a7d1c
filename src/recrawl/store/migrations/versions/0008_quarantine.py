"""How often a page broke our own code, and at what: such pages are quarantined."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the columns."""
    op.add_column("failing", sa.Column("faults", sa.Integer, nullable=False, server_default="0"))
    op.add_column("failing", sa.Column("reason", sa.Text, nullable=False, server_default=""))
