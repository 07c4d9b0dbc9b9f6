"""When releases were asked last."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("gateways", sa.Column("used", sa.JSON, nullable=False, server_default="{}"))
