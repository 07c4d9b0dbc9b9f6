"""Verdicts of placements out of the records, into a table of their own."""

import json
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

RELEASES = sa.table("releases", sa.column("id", sa.String), sa.column("record", sa.JSON))
VERDICTS = sa.table(
    "verdicts",
    sa.column("release", sa.String),
    sa.column("verdicts", sa.LargeBinary),
    sa.column("refusals", sa.JSON),
)


def upgrade() -> None:
    op.create_table(
        "verdicts",
        sa.Column("release", sa.String(200), nullable=False),
        sa.Column("verdicts", sa.LargeBinary, nullable=False),
        sa.Column("refusals", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("release", name="pk_verdicts"),
        sa.ForeignKeyConstraint(["release"], ["releases.id"], name="fk_verdicts_release"),
    )
    for identity, record in _placed():
        found = record["placement"]["verdicts"]
        if isinstance(found, list) and all(isinstance(one, dict) for one in found) and found:
            refusals = Counter(one["refusal"] for one in found if one.get("refusal"))
            packed = zlib.compress(json.dumps(found).encode())
            row = {"release": identity, "verdicts": packed, "refusals": dict(refusals)}
            op.execute(sa.insert(VERDICTS).values(**row))
            _write(identity, record, [])


def _placed() -> Iterator[tuple[str, dict[str, Any]]]:
    """The records that have verdicts, one at a time: each may have a megabyte of them."""
    connection = op.get_bind()
    for identity in connection.scalars(sa.select(RELEASES.c.id)).all():
        query = sa.select(RELEASES.c.record).where(RELEASES.c.id == identity)
        record: Any = connection.scalar(query)
        placement = record.get("placement") if isinstance(record, dict) else None
        if isinstance(placement, dict) and "verdicts" in placement:
            yield identity, record


def _write(identity: str, record: dict[str, Any], verdicts: list[Any]) -> None:
    changed = {**record, "placement": {**record["placement"], "verdicts": verdicts}}
    op.execute(sa.update(RELEASES).where(RELEASES.c.id == identity).values(record=changed))
