"""How a store comes to the present schema: alembic's revisions, run by ``recrawl.store.engine.database``."""
