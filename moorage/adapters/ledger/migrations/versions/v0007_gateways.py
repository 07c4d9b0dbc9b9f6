"""Gateways, the keys of their callers, and what these have used."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "gateways",
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("machine", sa.String(255), nullable=False),
        sa.Column("options", sa.JSON, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("draining", sa.JSON, nullable=False),
        sa.Column("problem", sa.Text, nullable=False),
        sa.Column("counted", sa.JSON, nullable=False),
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
    op.create_table(
        "usage",
        sa.Column("caller", sa.String(100), nullable=False),
        sa.Column("model", sa.String(200), nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("requests", sa.BigInteger, nullable=False),
        sa.Column("failed", sa.BigInteger, nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger, nullable=False),
        sa.Column("completion_tokens", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("caller", "model", "day", name="pk_usage"),
    )
    op.create_index("ix_usage_day", "usage", ["day"])
