"""When the model of a failed release was retired."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

BACKFILL = """
UPDATE releases SET retired_at = (
    SELECT max(transitions.at) FROM transitions
    JOIN releases AS other ON other.id = transitions.release
    WHERE other.model = releases.model AND other.state = 'stopped'
    AND transitions.to_state = 'stopped' AND transitions.at > releases.updated_at
) WHERE state = 'error'
"""


def upgrade() -> None:
    op.add_column("releases", sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True))
    op.execute(BACKFILL)
