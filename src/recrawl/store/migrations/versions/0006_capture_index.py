"""Pages in the order of their keys, for whoever asks for all that begin alike."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the beginning of each key, computed by the engine, and an index over it.

    PostgreSQL indexes only what is stored; SQLite adds only what is not.
    """
    stored = op.get_bind().dialect.name == "postgresql"
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.add_column("page", sa.Column("key_start", text, sa.Computed("substr(key, 1, 256)", persisted=stored)))
    op.create_index("page_by_start", "page", ["key_start"])
