"""Who asked for each transition."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "transitions", sa.Column("requested_by", sa.Text, nullable=False, server_default="")
    )


def downgrade() -> None:
    # Not in a batch, which would recreate the table below the trigger that reads it.
    op.drop_column("transitions", "requested_by")
