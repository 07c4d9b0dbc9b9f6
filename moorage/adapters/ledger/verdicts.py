"""The verdicts of placements: compressed, and in another table than their records."""

import json
import zlib
from collections import Counter
from typing import Any

from pydantic_core import to_json
from sqlalchemy import Connection, Row, select

from moorage.adapters.ledger.tables import VERDICTS, replace_rows

MOST_BYTES = 1 << 30
"""Limit of the unpacked size of one release's verdicts."""


def take_verdicts(connection: Connection, release: str, record: dict[str, Any]) -> dict[str, Any]:
    """Write the verdicts of a record, inside a transaction; return the record without them."""
    columns, rest = split_verdicts(record)
    if columns:
        own = VERDICTS.c.release == release
        replace_rows(connection, VERDICTS, own, [{"release": release, **columns}])
    return rest


def split_verdicts(record: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns for a record's verdicts (empty if it has none), and the record without them."""
    placement = record["placement"]
    if not placement or not placement["verdicts"]:
        return {}, record
    verdicts = placement["verdicts"]
    columns = {
        "verdicts": zlib.compress(to_json(verdicts)),
        "refusals": Counter(one["refusal"] for one in verdicts if one["refusal"]),
    }
    return columns, {**record, "placement": {**placement, "verdicts": []}}


def with_verdicts(connection: Connection, release: str, record: Any) -> Any:
    """A record with its verdicts, the inverse of `take_verdicts`; another shape is unchanged."""
    placement = record.get("placement") if isinstance(record, dict) else None
    if not isinstance(placement, dict):
        return record
    query = select(VERDICTS).where(VERDICTS.c.release == release)
    if row := connection.execute(query).first():
        placement = {**placement, "verdicts": verdicts_of(row)}
    return {**record, "placement": placement}


def verdicts_of(row: Row[Any]) -> list[dict[str, Any]]:
    """Verdicts from their row; raises `ValueError` if the row is damaged."""
    try:
        unpacked = zlib.decompressobj().decompress(row.verdicts, MOST_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    found: list[dict[str, Any]] = json.loads(unpacked)
    return found
