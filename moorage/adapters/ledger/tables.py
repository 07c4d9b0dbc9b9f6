"""The tables. Migrations are in `migrations/`; a test compares the two."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)


class Utc(TypeDecorator[datetime]):
    """A time in UTC. SQLite returns it without a zone, PostgreSQL in the zone of the session."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:  # noqa: ARG002
        """The time with its zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

GATE = Table(
    "gate",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("identity", String(32), nullable=False),
)
"""One row. A transaction that has updated `epoch` is exclusive until its end."""

LOCKS = Table(
    "locks",
    METADATA,
    Column("name", String(200), primary_key=True),
    Column("token", String(64), nullable=False),
    Column("owner", JSON, nullable=False),
    Column("expires_at", Float, nullable=False),
)
"""Leases; `expires_at` is in seconds since the epoch."""

RELEASES = Table(
    "releases",
    METADATA,
    Column("id", String(200), primary_key=True),
    Column("model", String(100), nullable=False),
    Column("number", Integer, nullable=False),
    Column("state", String(20), nullable=False),
    Column("spec_digest", String(64), nullable=False),
    Column("revision", String(200), nullable=False),
    Column("flow_run_id", String(64), nullable=False),
    Column("cause", Text, nullable=False),
    Column("created_at", Utc, nullable=False),
    Column("updated_at", Utc, nullable=False),
    Column("spec", JSON, nullable=False),
    Column("record", JSON(none_as_null=True), nullable=True),
    UniqueConstraint("model", "number"),
    Index(
        "uq_releases_one_running",
        "model",
        unique=True,
        sqlite_where=text("state IN ('running', 'unreachable')"),
        postgresql_where=text("state IN ('running', 'unreachable')"),
    ),
)
"""Triggers keep `state`: it begins as `pending` and changes as the newest transition says."""

ALLOWED = Table(
    "allowed_transitions",
    METADATA,
    Column("from_state", String(20), primary_key=True),
    Column("to_state", String(20), primary_key=True),
)
"""The pairs of `moorage.releases.states.EDGES`; every transition refers to one."""

TRANSITION_LOG = Table(
    "transitions",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("release", ForeignKey("releases.id"), nullable=False, index=True),
    Column("sequence", Integer, nullable=False),
    Column("from_state", String(20), nullable=False),
    Column("to_state", String(20), nullable=False),
    Column("cause", Text, nullable=False),
    Column("at", Utc, nullable=False),
    Column("flow_run_id", String(64), nullable=False),
    Column("requested_by", Text, nullable=False, server_default=""),
    UniqueConstraint("release", "sequence"),
    ForeignKeyConstraint(
        ["from_state", "to_state"],
        ["allowed_transitions.from_state", "allowed_transitions.to_state"],
        name="fk_transitions_allowed",
    ),
)

CLAIMS = Table(
    "claims",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("release", ForeignKey("releases.id"), nullable=False, index=True),
    Column("host", String(100), nullable=False, index=True),
    Column("resource", String(20), nullable=False),
    Column("index", Integer, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Index(
        "uq_claims_one_port",
        "host",
        "index",
        unique=True,
        sqlite_where=text("resource = 'port'"),
        postgresql_where=text("resource = 'port'"),
    ),
)

WORKLOADS = Table(
    "workloads",
    METADATA,
    Column("name", String(250), primary_key=True),
    Column("release", ForeignKey("releases.id"), nullable=False, index=True),
    Column("workload", JSON, nullable=False),
)

HOSTS = Table(
    "hosts",
    METADATA,
    Column("name", String(100), primary_key=True),
    Column("machine", String(255), nullable=False),
    Column("address", Text, nullable=False),
)
"""The machine and address of each host at the time of its last claim."""

SIGHTINGS = Table(
    "sightings",
    METADATA,
    Column("host", String(100), primary_key=True),
    Column("unseen_since", Utc, nullable=False),
    Column("detail", Text, nullable=False),
)
"""Hosts that do not answer; a row is deleted when its host answers again."""

REPAIRS = Table(
    "repairs",
    METADATA,
    Column("release", ForeignKey("releases.id"), primary_key=True),
    Column("attempts", Integer, nullable=False),
    Column("elsewhere", Integer, nullable=False),
    Column("not_before", Utc, nullable=True),
    Column("failure", Text, nullable=False),
    Column("started_at", Utc, nullable=True),
    Column("well_since", Utc, nullable=True),
    Column("probed_at", Utc, nullable=True),
    Column("missed", Integer, nullable=False),
    Column("tokens", JSON, nullable=False),
)
"""Records of the reconcile flow: the fields of `RepairRecord`."""

MEASUREMENTS = Table(
    "measurements",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("release", ForeignKey("releases.id"), nullable=False, index=True),
    Column("workload", String(250), nullable=False),
    Column("architecture", String(200), nullable=False),
    Column("shape", String(200), nullable=False),
    Column("engine", String(20), nullable=False),
    Column("engine_version", String(100), nullable=False),
    Column("accelerator_type", String(20), nullable=False),
    Column("accelerator", String(200), nullable=False),
    Column("tensor_parallel_size", Integer, nullable=False),
    Column("pipeline_parallel_size", Integer, nullable=False),
    Column("max_num_batched_tokens", BigInteger, nullable=False),
    Column("max_num_seqs", BigInteger, nullable=False),
    Column("eager", Boolean, nullable=False),
    Column("options", Text, nullable=False),
    Column("measured", JSON, nullable=False),
    Column("predicted", JSON, nullable=False),
    Column("measured_at", Utc, nullable=False),
    Index("ix_measurements_key", "architecture", "shape", "engine", "engine_version"),
)
"""Measured memory of starts, under the columns of `CalibrationKey`; it outlives the release."""
