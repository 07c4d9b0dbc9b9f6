"""Alembic's entry: run the migrations on the connection that `database.py` hands over."""

from alembic import context

from moorage.adapters.ledger.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,
    transactional_ddl=True,
)
# The caller's transaction is the migration's: it commits all or nothing.
context.run_migrations()
