"""Which machine a host's name stands for."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "hosts",
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("machine", sa.String(255), nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_hosts"),
    )
