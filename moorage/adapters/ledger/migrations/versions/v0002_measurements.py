"""What engines report about memory when they start."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "measurements",
        sa.Column("id", sa.Integer, autoincrement=True, nullable=False),
        sa.Column("release", sa.String(200), nullable=False),
        sa.Column("workload", sa.String(250), nullable=False),
        sa.Column("architecture", sa.String(200), nullable=False),
        sa.Column("shape", sa.String(200), nullable=False),
        sa.Column("engine", sa.String(20), nullable=False),
        sa.Column("engine_version", sa.String(100), nullable=False),
        sa.Column("accelerator_type", sa.String(20), nullable=False),
        sa.Column("accelerator", sa.String(200), nullable=False),
        sa.Column("tensor_parallel_size", sa.Integer, nullable=False),
        sa.Column("pipeline_parallel_size", sa.Integer, nullable=False),
        sa.Column("max_num_batched_tokens", sa.BigInteger, nullable=False),
        sa.Column("max_num_seqs", sa.BigInteger, nullable=False),
        sa.Column("eager", sa.Boolean, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("measured", sa.JSON, nullable=False),
        sa.Column("predicted", sa.JSON, nullable=False),
        sa.Column("measured_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_measurements"),
        sa.ForeignKeyConstraint(["release"], ["releases.id"], name="fk_measurements_release"),
    )
    op.create_index("ix_measurements_release", "measurements", ["release"])
    sought = ["architecture", "shape", "engine", "engine_version"]
    op.create_index("ix_measurements_key", "measurements", sought)
