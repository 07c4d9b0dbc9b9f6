"""What hosts have of what is claimed there, how often reconciling did what, and states by index."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_index("ix_releases_state", "releases", ["state"])
    op.add_column("hosts", sa.Column("capacity", sa.JSON, nullable=False, server_default="[]"))
    op.create_table(
        "reconcile_counts",
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("done", sa.BigInteger, nullable=False),
        sa.Column("not_done", sa.BigInteger, nullable=False),
        sa.Column("latest", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("kind", name="pk_reconcile_counts"),
    )
