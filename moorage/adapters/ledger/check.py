"""Checks of a ledger: its file, its schema, contradictions, and rows that cannot be decoded."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, Table, func, select
from sqlalchemy.exc import SQLAlchemyError

from moorage.adapters.ledger import tables
from moorage.adapters.ledger.claims import claim_of
from moorage.adapters.ledger.database import UNDECODABLE, open_database, reading
from moorage.adapters.ledger.decoding import release_of, workload_of
from moorage.adapters.ledger.locks import Owner
from moorage.adapters.ledger.observations import (
    capacities_of,
    count_of,
    key_of,
    measurement_of,
    record_of,
)
from moorage.adapters.ledger.release_rows import spec_of
from moorage.adapters.ledger.routes import canary_of
from moorage.adapters.ledger.transitions import transition_of
from moorage.adapters.ledger.verdicts import verdicts_of
from moorage.gateway.gateway import Gateway
from moorage.gateway.table import ApiKey
from moorage.gateway.usage import Usage
from moorage.releases.states import ReleaseState

MOST = 20
"""Limit of the listed problems of one kind."""

LONGEST = 200
"""Limit of the characters of a reason."""

Decode = Callable[[Row[Any]], object]

DECODERS: Mapping[Table, Decode] = {
    tables.RELEASES: lambda row: (release_of(row, (), row.record), spec_of(row), canary_of(row)),
    tables.VERDICTS: verdicts_of,
    tables.TRANSITION_LOG: lambda row: transition_of(row, ""),
    tables.CLAIMS: lambda row: claim_of(row[1:], pending=False),
    tables.WORKLOADS: lambda row: workload_of(row.release, row.workload),
    tables.LOCKS: lambda row: (Owner.from_record(row.owner), float(row.expires_at)),
    tables.REPAIRS: record_of,
    tables.SIGHTINGS: lambda row: row.unseen_since.utcoffset(),
    tables.HOSTS: lambda row: ("".join((row.name, row.machine, row.address)), capacities_of(row)),
    tables.RECONCILE_COUNTS: count_of,
    tables.MEASUREMENTS: lambda row: measurement_of(row, key_of(row)),
    tables.GATEWAYS: lambda row: Gateway.from_record(row._asdict()),
    tables.API_KEYS: lambda row: ApiKey.from_record(row._asdict()),
    tables.USAGE: lambda row: Usage.from_record(row._asdict()),
}
"""The decoder of each table's rows: the functions that commands use."""


def problems_of_file(path: Path) -> tuple[str, ...]:
    """Problems of an SQLite file that should hold a ledger. The file is not changed."""
    from moorage.adapters.ledger.migrations import is_known  # noqa: PLC0415  (see open_database)

    if not path.stat().st_size:
        return ("it is empty (0 bytes)",)
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as own:
            logged = own.execute(f"PRAGMA integrity_check({MOST})").fetchall()
            if logged != [("ok",)]:
                return tuple(str(row[0]) for row in logged)
            dangling = own.execute("PRAGMA foreign_key_check").fetchmany(MOST)
            schema = own.execute("SELECT version_num FROM alembic_version").fetchall()
            gates = own.execute("SELECT count(*) FROM gate").fetchone()[0]
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return (str(error),)
    problems = [f"a row of {row[0]} refers to a row of {row[2]} that is gone" for row in dangling]
    problems += [f"it has {gates} rows in `gate` instead of one"] * (gates != 1)
    revisions = [row[0] for row in schema]
    if len(revisions) != 1 or not is_known(revisions[0]):
        shown = ", ".join(revisions) or "none"
        problems.append(f"its schema is {shown}, which this moorage does not know")
    return tuple(problems)


def problems_of_content(url: str) -> tuple[str, ...]:
    """Contradictions and undecodable rows of a readable ledger. A file is migrated."""
    engine = open_database(url)
    try:
        with reading(engine) as connection:
            gates = connection.scalar(select(func.count()).select_from(tables.GATE))
            return (
                *undecodable(connection, MOST),
                *[f"`gate` has {gates} rows instead of one"] * (gates != 1),
                *_unlogged_states(connection),
                *_ended_with_claims(connection),
            )
    finally:
        engine.dispose()


def _unlogged_states(connection: Connection) -> list[str]:
    release, log = tables.RELEASES.c, tables.TRANSITION_LOG.c
    last = select(log.to_state).where(log.release == release.id).order_by(log.sequence.desc())
    logged = func.coalesce(last.limit(1).scalar_subquery(), ReleaseState.PENDING.value)
    query = select(release.id, release.state, logged.label("logged"))
    rows = connection.execute(query.where(release.state != logged).order_by(release.id).limit(MOST))
    return [f"{row.id} is {row.state}, but its log ends with {row.logged}" for row in rows]


def _ended_with_claims(connection: Connection) -> list[str]:
    release = tables.RELEASES.c
    ended = release.state.in_([ReleaseState.STOPPED, ReleaseState.SUPERSEDED])
    holding = release.id.in_(select(tables.CLAIMS.c.release))
    query = select(release.id, release.state).where(ended, holding).order_by(release.id)
    rows = connection.execute(query.limit(MOST))
    return [f"{row.id} is {row.state} and still holds claims" for row in rows]


def undecodable(connection: Connection, most: int) -> tuple[str, ...]:
    """Rows that commands cannot decode, each with its reason; at most `most` of each table."""
    return tuple(
        reason
        for table, decode in DECODERS.items()
        for reason in islice(_rows(connection, table, decode), most)
    )


def _rows(connection: Connection, table: Table, decode: Decode) -> Iterator[str]:
    try:
        for row in connection.execute(select(table)):
            decode(row)
        return
    except (*UNDECODABLE, SQLAlchemyError):
        keys = list(table.primary_key.columns)
    for values in connection.execute(select(*keys)).all():
        own = [column == value for column, value in zip(keys, values, strict=True)]
        try:
            decode(connection.execute(select(table).where(*own)).one())
        except (*UNDECODABLE, SQLAlchemyError) as error:
            why = " ".join(str(error).split())[:LONGEST]
            name = ", ".join(map(str, values))
            yield f"row {name} of `{table.name}` cannot be decoded: {why}"
