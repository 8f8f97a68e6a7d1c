"""Archive files that are in object storage."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Create the table of uploads; a file without a row was not uploaded."""
    op.create_table(
        "archive_file",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("location", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("sha256", sa.LargeBinary, nullable=False),
        sa.Column("uploaded", sa.Double, nullable=False),
    )
