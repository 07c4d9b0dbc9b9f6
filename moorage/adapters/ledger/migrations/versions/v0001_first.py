"""The first schema: gate, locks, releases, transitions, claims, workloads."""

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _gate_and_locks()
    _releases()
    _holdings()


def _gate_and_locks() -> None:
    gate = op.create_table(
        "gate",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("identity", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_gate"),
    )
    op.bulk_insert(gate, [{"id": 1, "epoch": 0, "identity": uuid.uuid4().hex}])
    op.create_table(
        "locks",
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("owner", sa.JSON, nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_locks"),
    )


def _releases() -> None:
    op.create_table(
        "releases",
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("model", sa.String(100), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("spec_digest", sa.String(64), nullable=False),
        sa.Column("revision", sa.String(200), nullable=False),
        sa.Column("flow_run_id", sa.String(64), nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("record", sa.JSON, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_releases"),
        sa.UniqueConstraint("model", "number", name="uq_releases_model_number"),
    )
    _unique_where("uq_releases_one_running", "releases", ["model"], "state = 'running'")
    op.create_table(
        "transitions",
        sa.Column("id", sa.Integer, autoincrement=True, nullable=False),
        sa.Column("release", sa.String(200), nullable=False),
        sa.Column("from_state", sa.String(20), nullable=False),
        sa.Column("to_state", sa.String(20), nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_transitions"),
        sa.ForeignKeyConstraint(["release"], ["releases.id"], name="fk_transitions_release"),
    )
    op.create_index("ix_transitions_release", "transitions", ["release"])


def _holdings() -> None:
    op.create_table(
        "claims",
        sa.Column("id", sa.Integer, autoincrement=True, nullable=False),
        sa.Column("release", sa.String(200), nullable=False),
        sa.Column("host", sa.String(100), nullable=False),
        sa.Column("resource", sa.String(20), nullable=False),
        sa.Column("index", sa.Integer, nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_claims"),
        sa.ForeignKeyConstraint(["release"], ["releases.id"], name="fk_claims_release"),
    )
    op.create_index("ix_claims_release", "claims", ["release"])
    op.create_index("ix_claims_host", "claims", ["host"])
    _unique_where("uq_claims_one_port", "claims", ["host", "index"], "resource = 'port'")
    op.create_table(
        "workloads",
        sa.Column("name", sa.String(250), nullable=False),
        sa.Column("release", sa.String(200), nullable=False),
        sa.Column("workload", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_workloads"),
        sa.ForeignKeyConstraint(["release"], ["releases.id"], name="fk_workloads_release"),
    )
    op.create_index("ix_workloads_release", "workloads", ["release"])


def _unique_where(name: str, table: str, columns: list[str], where: str) -> None:
    clause = sa.text(where)
    op.create_index(name, table, columns, unique=True, sqlite_where=clause, postgresql_where=clause)
