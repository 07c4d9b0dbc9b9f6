"""The tables of the ledger. A test compares them with the migrations in `migrations/`."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

NEWEST = "0016"
"""Revision of the last migration."""

WHERE = "where"
"""Key of the condition of a partial index; the migrations create that index. SQLAlchemy's own
`postgresql_where` would import all dialects of PostgreSQL in every command."""


class Utc(sa.TypeDecorator[datetime]):
    """A time in UTC. SQLite returns it without a zone, PostgreSQL in the zone of the session."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:  # noqa: ARG002
        """The time with its zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


METADATA = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

GATE = sa.Table(
    "gate",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("identity", sa.String(32), nullable=False),
)
"""One row. A transaction that has updated `epoch` is exclusive until its end."""

LOCKS = sa.Table(
    "locks",
    METADATA,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("token", sa.String(64), nullable=False),
    sa.Column("owner", sa.JSON, nullable=False),
    sa.Column("expires_at", sa.Float, nullable=False),
)
"""Leases; `expires_at` is in seconds since the epoch."""

RELEASES = sa.Table(
    "releases",
    METADATA,
    sa.Column("id", sa.String(200), primary_key=True),
    sa.Column("model", sa.String(100), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("spec_digest", sa.String(64), nullable=False),
    sa.Column("revision", sa.String(200), nullable=False),
    sa.Column("flow_run_id", sa.String(64), nullable=False),
    sa.Column("cause", sa.Text, nullable=False),
    sa.Column("created_at", Utc, nullable=False),
    sa.Column("updated_at", Utc, nullable=False),
    sa.Column("spec", sa.JSON, nullable=False),
    sa.Column("record", sa.JSON(none_as_null=True), nullable=True),
    sa.Column("canary", sa.JSON(none_as_null=True), nullable=True),
    sa.Column("retired_at", Utc, nullable=True),
    sa.UniqueConstraint("model", "number"),
    sa.Index("ix_releases_state", "state"),
    sa.Index(
        "uq_releases_one_running",
        "model",
        unique=True,
        info={WHERE: "state IN ('running', 'unreachable')"},
    ),
)
"""Triggers guard `state`: it begins as `pending` and changes only to the state of the newest
transition. `canary` has the fields of `Canary` while the release has a share of the requests.
`retired_at` is set for failed releases whose model was retired afterwards."""

VERDICTS = sa.Table(
    "verdicts",
    METADATA,
    sa.Column("release", sa.ForeignKey("releases.id"), primary_key=True),
    sa.Column("verdicts", sa.LargeBinary, nullable=False),
    sa.Column("refusals", sa.JSON, nullable=False),
)
"""The verdicts of each record's placement, as compressed JSON, and the number of refused hosts by
reason. In a large fleet the verdicts are a hundred times as long as the rest of the record."""

ALLOWED = sa.Table(
    "allowed_transitions",
    METADATA,
    sa.Column("from_state", sa.String(20), primary_key=True),
    sa.Column("to_state", sa.String(20), primary_key=True),
)
"""The pairs of `moorage.releases.states.TRANSITIONS`; every transition refers to one of them."""

TRANSITION_LOG = sa.Table(
    "transitions",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("release", sa.ForeignKey("releases.id"), nullable=False, index=True),
    sa.Column("sequence", sa.Integer, nullable=False),
    sa.Column("from_state", sa.String(20), nullable=False),
    sa.Column("to_state", sa.String(20), nullable=False),
    sa.Column("cause", sa.Text, nullable=False),
    sa.Column("at", Utc, nullable=False),
    sa.Column("flow_run_id", sa.String(64), nullable=False),
    sa.Column("requested_by", sa.Text, nullable=False, server_default=""),
    sa.UniqueConstraint("release", "sequence"),
    sa.ForeignKeyConstraint(
        ["from_state", "to_state"],
        ["allowed_transitions.from_state", "allowed_transitions.to_state"],
        name="fk_transitions_allowed",
    ),
)

CLAIMS = sa.Table(
    "claims",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("release", sa.ForeignKey("releases.id"), nullable=False, index=True),
    sa.Column("host", sa.String(100), nullable=False, index=True),
    sa.Column("resource", sa.String(20), nullable=False),
    sa.Column("index", sa.Integer, nullable=False),
    sa.Column("amount", sa.BigInteger, nullable=False),
    sa.Column("device", sa.String(100), nullable=True),
    sa.Index(
        "uq_claims_one_port",
        "host",
        "index",
        unique=True,
        info={WHERE: "resource = 'port'"},
    ),
)
"""`device` identifies an accelerator whose `index` a driver may change; NULL = the index counts."""

WORKLOADS = sa.Table(
    "workloads",
    METADATA,
    sa.Column("name", sa.String(250), primary_key=True),
    sa.Column("release", sa.ForeignKey("releases.id"), nullable=False, index=True),
    sa.Column("workload", sa.JSON, nullable=False),
)

HOSTS = sa.Table(
    "hosts",
    METADATA,
    sa.Column("name", sa.String(100), primary_key=True),
    sa.Column("machine", sa.String(255), nullable=False),
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("capacity", sa.JSON, nullable=False, server_default="[]"),
)
"""How each host is reached as of the last fleet that may change it, and its `Capacity` at its last
claim. Releases on it have their own addresses."""

SIGHTINGS = sa.Table(
    "sightings",
    METADATA,
    sa.Column("host", sa.String(100), primary_key=True),
    sa.Column("unseen_since", Utc, nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
)
"""Hosts that do not answer; a row is deleted when its host answers again."""

REPAIRS = sa.Table(
    "repairs",
    METADATA,
    sa.Column("release", sa.ForeignKey("releases.id"), primary_key=True),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("elsewhere", sa.Integer, nullable=False),
    sa.Column("not_before", Utc, nullable=True),
    sa.Column("failure", sa.Text, nullable=False),
    sa.Column("started_at", Utc, nullable=True),
    sa.Column("well_since", Utc, nullable=True),
    sa.Column("probed_at", Utc, nullable=True),
    sa.Column("missed", sa.Integer, nullable=False),
    sa.Column("tokens", sa.JSON, nullable=False),
    sa.Column("busy_since", sa.JSON, nullable=False, server_default="{}"),
)
"""Records of the reconcile flow: the fields of `RepairRecord`."""

RECONCILE_COUNTS = sa.Table(
    "reconcile_counts",
    METADATA,
    sa.Column("kind", sa.String(20), primary_key=True),
    sa.Column("done", sa.BigInteger, nullable=False),
    sa.Column("not_done", sa.BigInteger, nullable=False),
    sa.Column("latest", Utc, nullable=False),
)
"""Counts of the reconcile flow's actions by kind: the fields of `ReconcileCount`."""

MEASUREMENTS = sa.Table(
    "measurements",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("release", sa.ForeignKey("releases.id"), nullable=False, index=True),
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
    sa.Column("measured_at", Utc, nullable=False),
    sa.Index("ix_measurements_key", "architecture", "shape", "engine", "engine_version"),
)
"""Measured memory of starts, with the fields of `CalibrationKey` as columns. It outlives the
release."""

GATEWAYS = sa.Table(
    "gateways",
    METADATA,
    sa.Column("name", sa.String(100), primary_key=True),
    sa.Column("machine", sa.String(255), nullable=False),
    sa.Column("options", sa.JSON, nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("draining", sa.JSON, nullable=False),
    sa.Column("used", sa.JSON, nullable=False, server_default="{}"),
    sa.Column("problem", sa.Text, nullable=False),
    sa.Column("counted", sa.JSON, nullable=False),
)
"""Gateways: the fields of `Gateway`. `epoch` is the epoch of the gate that the gateway applies."""

API_KEYS = sa.Table(
    "api_keys",
    METADATA,
    sa.Column("name", sa.String(100), primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False, unique=True),
    sa.Column("models", sa.JSON, nullable=False),
    sa.Column("rate", sa.String(20), nullable=False, server_default=""),
    sa.Column("tokens", sa.String(20), nullable=False, server_default=""),
    sa.Column("created_at", Utc, nullable=False),
    sa.Column("expires", Utc, nullable=True),
)
"""Keys of callers: the fields of `ApiKey`. The keys themselves are stored nowhere."""

USAGE = sa.Table(
    "usage",
    METADATA,
    sa.Column("caller", sa.String(100), primary_key=True),
    sa.Column("model", sa.String(200), primary_key=True),
    sa.Column("day", sa.String(10), primary_key=True),
    sa.Column("requests", sa.BigInteger, nullable=False),
    sa.Column("failed", sa.BigInteger, nullable=False),
    sa.Column("prompt_tokens", sa.BigInteger, nullable=False),
    sa.Column("completion_tokens", sa.BigInteger, nullable=False),
    sa.Index("ix_usage_day", "day"),
)
"""Requests and tokens by caller, model and day (UTC): the fields of `Usage`."""


def replace_rows(
    connection: sa.Connection,
    table: sa.Table,
    old: sa.ColumnElement[bool],
    new: Sequence[Mapping[str, Any]],
) -> None:
    """Delete some rows and insert others, inside a transaction."""
    connection.execute(sa.delete(table).where(old))
    if new:
        connection.execute(sa.insert(table), new)
