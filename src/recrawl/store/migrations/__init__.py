"""How a store comes to the present schema: alembic's scripts, run by ``recrawl.store.migrate``."""
