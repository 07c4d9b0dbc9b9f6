"""Write the schema of Prefect's database, as the migrations of the installed version make it.

python scripts/make_prefect_schema.py
"""

import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from moorage.adapters.prefect import new_database


def main() -> None:
    """Migrate an empty database, and write what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        upgrade = ["-m", "prefect", "server", "database", "upgrade", "--yes"]
        subprocess.run(
            [sys.executable, *upgrade], env={**os.environ, "PREFECT_HOME": folder}, check=True
        )
        schema = new_database.schema_of(Path(folder, "prefect.db"))
    target = Path(new_database.__file__).with_name(f"prefect-{version('prefect')}.sql")
    for old in target.parent.glob("prefect-*.sql"):
        old.unlink()
    target.write_text(schema)


if __name__ == "__main__":
    main()
