"""Alembic's way in: run the revisions on the connection that ``recrawl.store.migrate`` opened."""

from alembic import context

from recrawl.store.migrate import VERSION_TABLE
from recrawl.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
