"""Shares of requests that canaries get."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("releases", sa.Column("canary", sa.JSON, nullable=True))
