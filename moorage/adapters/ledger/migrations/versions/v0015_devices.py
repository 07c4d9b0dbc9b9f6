"""The identifier of each claimed accelerator that a container gets by it."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.add_column("claims", sa.Column("device", sa.String(100), nullable=True))
