"""How much changed, fingerprints, learned noise, conduct of hosts, access methods, failing pages and live controls."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add columns and tables. Visits made before say that nobody measured how much changed."""
    op.add_column("visit", sa.Column("magnitude", sa.REAL, nullable=False, server_default=sa.text("-1")))
    for name, kind in (("paused", sa.SmallInteger), ("checks", sa.Integer), ("lies", sa.Integer)):
        op.add_column("host", sa.Column(name, kind, nullable=False, server_default=sa.text("0")))
    op.add_column("host", sa.Column("restless", sa.Integer, nullable=False, server_default=sa.text("0")))
    _leave_out_paused_hosts()
    identity = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "fingerprint",
        sa.Column("page", identity, primary_key=True, autoincrement=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "noise",
        sa.Column("host", sa.BigInteger, nullable=False),
        sa.Column("part", sa.BigInteger, nullable=False),
        sa.Column("near", sa.BigInteger, nullable=False),
        sa.Column("near_differed", sa.BigInteger, nullable=False),
        sa.Column("far", sa.BigInteger, nullable=False),
        sa.Column("far_differed", sa.BigInteger, nullable=False),
        sa.Column("pages", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("host", "part"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "source",
        sa.Column("page", identity, primary_key=True, autoincrement=False),
        sa.Column("method", sa.Text, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
    )
    op.create_table(
        "failing",
        sa.Column("page", identity, primary_key=True, autoincrement=False),
        sa.Column("since", sa.Double, nullable=False),
        sa.Column("time", sa.Double, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("outcome", sa.SmallInteger, nullable=False),
        sa.Column("status", sa.SmallInteger, nullable=False),
    )
    op.create_table(
        "control",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.Text),
        sa.Column("changed", sa.Double, nullable=False),
    )


def _leave_out_paused_hosts() -> None:
    """So many of them as there may be, none is looked at when a worker asks what is due."""
    running = sa.text("paused = 0")
    for name, columns in (("host_by_due", ["next_due", "id", "wake"]), ("host_by_wake", ["wake"])):
        op.drop_index(name, "host")
        op.create_index(name, "host", columns, sqlite_where=running, postgresql_where=running)
