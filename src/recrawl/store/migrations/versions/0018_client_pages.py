"""Pages that other crawlers fetch: what is handed out to them, and what they store with a page."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

identity = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the tables; they stay empty where only recrawl itself fetches."""
    op.create_table(
        "client_page",
        sa.Column("page", identity, primary_key=True, autoincrement=False),
        sa.Column("host", sa.BigInteger, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
        sa.Column("done", sa.SmallInteger, nullable=False),
        sa.Column("metadata", sa.LargeBinary, nullable=False),
    )
    for name, columns, where in (
        ("client_page_in_flight", ["host", "until"], "until > 0"),
        ("client_page_done", ["host"], "done <> 0"),
    ):
        some = sa.text(where)
        op.create_index(name, "client_page", columns, sqlite_where=some, postgresql_where=some)
    op.create_table(
        "client_limit",
        sa.Column("host", identity, primary_key=True, autoincrement=False),
        sa.Column("most", sa.BigInteger, nullable=False),
    )
