"""Confirmations that tested a difference, and runs of agreements. Earlier ones count as tests where they differed."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add the columns; what was learned to be noise stays."""
    for name in ("tested", "run"):
        op.add_column("noise", sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))
    op.execute("UPDATE noise SET tested = near_differed")
