"""JSON Schemas next to users' files, where editors find them without a network."""

from pathlib import Path

from moorage.adapters.system.os_errors import unwritten
from moorage.reports.field_reference import FILES
from moorage.reports.file_schema import SCHEMAS, file_schema


def write_schemas(folder: Path) -> None:
    """Write the schema of each kind of file, and replace older schemas.

    Raises:
        Failure: `STORE_UNWRITABLE`.
    """
    place = folder / SCHEMAS
    try:
        place.mkdir(parents=True, exist_ok=True)
        for file in FILES:
            (place / f"{file}.json").write_text(file_schema(file))
    except OSError as error:
        raise unwritten(place, error) from error
