"""Decodes rows of releases and workloads. The types of a record are imported for a record only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from sqlalchemy import Connection, Row, and_, select, union

from moorage.adapters.ledger.tables import CLAIMS, RELEASES, WORKLOADS
from moorage.engines.workload import Workload
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import ReleaseState

if TYPE_CHECKING:
    from moorage.releases.release import Release

MOST_PARAMETERS = 10_000
"""Limit of one query; SQLite accepts 32,766."""

NOT_UNDONE = and_(
    RELEASES.c.state == ReleaseState.ERROR,
    RELEASES.c.id.in_(union(select(WORKLOADS.c.release), select(CLAIMS.c.release))),
)
"""Failed releases with claims or workloads."""

_COLUMNS = [one.name for one in fields(ReleaseRow) if one.name in RELEASES.c]


def workloads_of(
    connection: Connection, releases: Sequence[str]
) -> defaultdict[str, list[Workload]]:
    """The workloads of releases, by release.

    Workloads that serve come first and are stopped first: the others support them.
    """
    found = defaultdict[str, list[Workload]](list)
    for start in range(0, len(releases), MOST_PARAMETERS):
        some = WORKLOADS.c.release.in_(releases[start : start + MOST_PARAMETERS])
        for row in connection.execute(select(WORKLOADS).where(some).order_by(WORKLOADS.c.name)):
            found[row.release].append(workload_of(row.release, row.workload))
    for own in found.values():
        own.sort(key=lambda one: not one.serves)
    return found


def release_of(row: Row[Any], workloads: Iterable[Workload], written: Any) -> ReleaseRow:
    """A release from its row, its workloads, and the JSON of its record."""
    record = None if written is None else _record(written)
    found = row._mapping
    columns = {name: found[name] for name in _COLUMNS}
    return ReleaseRow(
        **{**columns, "state": ReleaseState(row.state)},
        release=record,
        foreign_record=written if record is None else None,
        workloads=tuple(workloads),
    )


def _record(written: Any) -> Release | None:
    """A record from its JSON; None where another version has written it in another shape.

    Another shape is not a failure, because releases must stay manageable after an upgrade.

    Raises:
        TypeError: It is not a mapping, so no version has written it.
    """
    if not isinstance(written, dict):
        raise TypeError(f"its record is a {type(written).__name__}, no mapping")
    from moorage.releases.release import Release  # noqa: PLC0415  (a list has no records)

    with suppress(ValidationError):
        return Release.from_record(written)
    return None


def workload_of(release: str, written: dict[str, Any]) -> Workload:
    """A workload of a release from its JSON."""
    return Workload.from_record({"release": release, **written})
