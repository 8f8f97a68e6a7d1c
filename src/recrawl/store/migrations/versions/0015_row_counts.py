"""Counts of pages, hosts, links and captures, kept by triggers; indexes for what ``recrawl status`` shows."""

import sqlalchemy as sa
from alembic import op

# ruff: noqa: S608 - names of our own

revision = "0015"
down_revision = "0014"

_COUNTED = ("page", "host", "link", "capture")


def upgrade() -> None:
    """Count the rows once, and let triggers keep the counts."""
    op.create_table(
        "row_count",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("part", sa.BigInteger, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", "part"),
        sqlite_with_rowid=False,
    )
    for table in _COUNTED:
        op.execute(f"INSERT INTO row_count (name, part, rows) SELECT '{table}', 0, count(*) FROM {table}")
    if op.get_bind().dialect.name == "postgresql":
        _count_in_parts()
    else:
        _count_each_row()
    paused = sa.text("paused <> 0")
    op.create_index("host_paused", "host", ["id"], sqlite_where=paused, postgresql_where=paused)
    op.create_index("failing_by_time", "failing", ["time"])


def _count_each_row() -> None:
    for table in _COUNTED:
        for event, sign in (("INSERT", "+"), ("DELETE", "-")):
            op.execute(
                f"CREATE TRIGGER {table}_count_{event.lower()} AFTER {event} ON {table} BEGIN "
                f"UPDATE row_count SET rows = rows {sign} 1 WHERE name = '{table}' AND part = 0; END"
            )


def _count_in_parts() -> None:
    """Once per statement. Every connection has rows of its own, so that none waits for another's transaction."""
    for event, sign in (("INSERT", ""), ("DELETE", "-")):
        op.execute(
            f"CREATE FUNCTION count_{event.lower()}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "INSERT INTO row_count (name, part, rows) "
            f"SELECT TG_TABLE_NAME, 1 + pg_backend_pid() % 65536, {sign}count(*) FROM touched HAVING count(*) > 0 "
            "ON CONFLICT (name, part) DO UPDATE SET rows = row_count.rows + excluded.rows; RETURN NULL; END $$"
        )
        which = "NEW" if event == "INSERT" else "OLD"
        for table in _COUNTED:
            op.execute(
                f"CREATE TRIGGER {table}_count_{event.lower()} AFTER {event} ON {table} "
                f"REFERENCING {which} TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION count_{event.lower()}()"
            )
