"""Evidence on noise by page, position and kind of difference. What was counted by path alone is learned anew."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Make the table again, empty."""
    op.drop_table("noise")
    columns = ("near", "near_differed", "far", "far_differed", "near_pages", "agreed_pages", "far_pages", "times")
    op.create_table(
        "noise",
        sa.Column("host", sa.BigInteger, nullable=False),
        sa.Column("page", sa.BigInteger, nullable=False),
        sa.Column("part", sa.BigInteger, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in columns),
        sa.PrimaryKeyConstraint("host", "page", "part"),
        sqlite_with_rowid=False,
    )
