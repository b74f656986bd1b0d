"""Alembic's entry: migrates on the connection it is given (``store.migrations.upgrade``)."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection)
with context.begin_transaction():
    context.run_migrations()
