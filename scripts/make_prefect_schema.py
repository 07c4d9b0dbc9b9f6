"""Write the schema and content of a new database of the installed Prefect server.

python scripts/make_prefect_schema.py
"""

import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from moorage.adapters.prefect import new_database

START = """
import asyncio
from prefect.server.database import provide_database_interface
from prefect.server.models.block_registration import run_block_auto_registration

async def main():
    database = provide_database_interface()
    await database.create_db()
    async with await database.session() as session:
        await run_block_auto_registration(session=session)

asyncio.run(main())
"""
"""The steps of a server's start that fill a new database."""


def make_database(folder: Path) -> None:
    """Let Prefect create the database of a home."""
    # A fixed hash seed, since Prefect writes lists of capabilities in the order of sets.
    own = {"PREFECT_HOME": str(folder), "PREFECT_LOGGING_LEVEL": "ERROR", "PYTHONHASHSEED": "0"}
    subprocess.run([sys.executable, "-c", START], env={**os.environ, **own}, check=True)


def main() -> None:
    """Write the SQL of the database that Prefect creates."""
    with tempfile.TemporaryDirectory() as folder:
        make_database(Path(folder))
        schema = new_database.schema_of(Path(folder, "prefect.db"))
    target = Path(new_database.__file__).with_name(f"prefect-{version('prefect')}.sql")
    for old in target.parent.glob("prefect-*.sql"):
        old.unlink()
    target.write_text(schema)


if __name__ == "__main__":
    main()
