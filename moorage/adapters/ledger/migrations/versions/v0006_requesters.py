"""Who asked for each transition."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column(
        "transitions", sa.Column("requested_by", sa.Text, nullable=False, server_default="")
    )
