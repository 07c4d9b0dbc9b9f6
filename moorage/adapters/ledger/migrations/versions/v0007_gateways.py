"""Gateways, and the keys of their callers."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "gateways",
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("machine", sa.String(255), nullable=False),
        sa.Column("options", sa.JSON, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("draining", sa.JSON, nullable=False),
        sa.Column("problem", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_gateways"),
    )
    op.create_table(
        "api_keys",
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("models", sa.JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_api_keys"),
        sa.UniqueConstraint("digest", name="uq_api_keys_digest"),
    )


def downgrade() -> None:
    op.drop_table("api_keys")
    op.drop_table("gateways")
