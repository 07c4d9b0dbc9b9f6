"""The time since which a replica is only too busy to answer a probe."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    column = sa.Column("busy_since", sa.JSON, nullable=False, server_default="{}")
    op.add_column("repairs", column)
