"""Rows that cannot be decoded, by name: what no moorage wrote, and no command can read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Row, Table, select
from sqlalchemy.exc import SQLAlchemyError

from moorage.adapters.ledger.claims import claim_of
from moorage.adapters.ledger.locks import owner_of
from moorage.adapters.ledger.measurements import key_of, measurement_of
from moorage.adapters.ledger.releases import release_of, spec_of, workload_of
from moorage.adapters.ledger.repairs import record_of
from moorage.adapters.ledger.tables import (
    CLAIMS,
    HOSTS,
    LOCKS,
    MEASUREMENTS,
    RELEASES,
    REPAIRS,
    SIGHTINGS,
    TRANSITION_LOG,
    WORKLOADS,
)
from moorage.adapters.ledger.transitions import transition_of, utc
from moorage.adapters.ledger.troubles import UNDECODABLE
from moorage.releases.states import ReleaseState

LONGEST = 200
"""Characters of a reason."""

Decode = Callable[[Row[Any]], object]

DECODERS: Mapping[Table, Decode] = {
    RELEASES: lambda row: (release_of(row, ()), spec_of(row)),
    TRANSITION_LOG: lambda row: transition_of(row, ""),
    CLAIMS: lambda row: claim_of(row, ReleaseState.RUNNING),
    WORKLOADS: lambda row: workload_of(row.release, row.workload),
    LOCKS: lambda row: (owner_of(row), float(row.expires_at)),
    REPAIRS: record_of,
    SIGHTINGS: lambda row: utc(row.unseen_since),
    HOSTS: lambda row: "".join((row.name, row.machine, row.address)),
    MEASUREMENTS: lambda row: measurement_of(row, key_of(row)),
}
"""What commands make of the rows of each table."""


def undecodable(connection: Connection, most: int) -> tuple[str, ...]:
    """Rows that commands cannot read, with the reason of each.

    Args:
        connection: For reading.
        most: How many of each table are named.
    """
    return tuple(
        reason
        for table, decode in DECODERS.items()
        for reason in islice(_rows(connection, table, decode), most)
    )


def _rows(connection: Connection, table: Table, decode: Decode) -> Iterator[str]:
    try:
        for row in connection.execute(select(table)):
            decode(row)
    except (*UNDECODABLE, SQLAlchemyError):
        yield from _one_by_one(connection, table, decode)


def _one_by_one(connection: Connection, table: Table, decode: Decode) -> Iterator[str]:
    keys = list(table.primary_key.columns)
    for values in connection.execute(select(*keys)).all():
        own = [column == value for column, value in zip(keys, values, strict=True)]
        try:
            decode(connection.execute(select(table).where(*own)).one())
        except (*UNDECODABLE, SQLAlchemyError) as error:
            why = " ".join(str(error).split())[:LONGEST]
            name = ", ".join(map(str, values))
            yield f"row {name} of `{table.name}` cannot be decoded: {why}"
