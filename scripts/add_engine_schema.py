"""Add schemas of engine versions to the arguments that moorage ships.

    python scripts/add_engine_schema.py FILE...

FILE is the output of `moorage/adapters/engines/extract_*_schema.py` or `scripts.engine_schemas`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from moorage.engines.schema.argument import Schema
from moorage.engines.schema.history import History, history_of, schemas_of, written

ENGINES = Path(__file__).parents[1] / "moorage" / "engines"


def main() -> None:
    for name in sys.argv[1:]:
        schema = Schema.model_validate_json(Path(name).read_text())
        path = ENGINES / schema.engine.replace(".", "_") / "schemas.json"
        known = schemas_of(History.model_validate_json(path.read_text())) if path.exists() else ()
        path.write_text(written(history_of((*known, schema))))
        print(f"{path}: {schema.engine} {schema.version}, {len(schema.arguments)} arguments")


if __name__ == "__main__":
    main()
