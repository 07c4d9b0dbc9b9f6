"""What hosts have of what is claimed there, and how often reconciling did what."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("hosts", sa.Column("capacity", sa.JSON, nullable=False, server_default="[]"))
    op.create_table(
        "reconcile_counts",
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("done", sa.BigInteger, nullable=False),
        sa.Column("not_done", sa.BigInteger, nullable=False),
        sa.Column("latest", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("kind", name="pk_reconcile_counts"),
    )


def downgrade() -> None:
    op.drop_table("reconcile_counts")
    op.drop_column("hosts", "capacity")
