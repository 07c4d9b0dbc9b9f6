"""Tokens that callers may use on one day."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    tokens = sa.Column("tokens", sa.String(20), nullable=False, server_default="")
    op.add_column("api_keys", tokens)
