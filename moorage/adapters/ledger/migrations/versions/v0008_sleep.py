"""Releases that sleep and wake, and rates of callers."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

ALLOWED = {
    "stopping": ("asleep",),
    "asleep": ("waking", "stopped", "superseded", "error"),
    "waking": ("running", "asleep", "error"),
}
PAIRS = [(before, after) for before, states in ALLOWED.items() for after in states]
TABLE = sa.table("allowed_transitions", sa.column("from_state"), sa.column("to_state"))


def upgrade() -> None:
    rate = sa.Column("rate", sa.String(20), nullable=False, server_default="")
    op.add_column("api_keys", rate)
    op.bulk_insert(TABLE, [{"from_state": one, "to_state": other} for one, other in PAIRS])
