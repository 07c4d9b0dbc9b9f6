"""What reconciling keeps: how often releases were started again, which hosts cannot be seen."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "sightings",
        sa.Column("host", sa.String(100), nullable=False),
        sa.Column("unseen_since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("host", name="pk_sightings"),
    )
    op.create_table(
        "repairs",
        sa.Column("release", sa.String(200), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("elsewhere", sa.Integer, nullable=False),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failure", sa.Text, nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("well_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("probed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("missed", sa.Integer, nullable=False),
        sa.Column("tokens", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("release", name="pk_repairs"),
        sa.ForeignKeyConstraint(["release"], ["releases.id"], name="fk_repairs_release_releases"),
    )
