"""Creates a database for Prefect's server in one step.

The server itself would run a hundred migrations and register its block types, which takes 17
CPU-seconds at the first start of a home. `prefect-VERSION.sql` is the dump of a database that this
version has created, written by `scripts/make_prefect_schema.py`. Other versions have no such file:
their server creates its database itself.
"""

import os
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing, suppress
from importlib.metadata import version
from pathlib import Path

URLS = ("PREFECT_API_DATABASE_CONNECTION_URL", "PREFECT_SERVER_DATABASE_CONNECTION_URL")

COMPLETE = {
    "PREFECT_SERVER_DATABASE_MIGRATE_ON_START": "false",
    "PREFECT_SERVER_REGISTER_BLOCKS_ON_START": "false",
}


def provide_database(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Create Prefect's usual database, unless it exists or another database is configured.

    Returns:
        Settings of the first server that uses a new database: it skips migrations and block types.
    """
    home = _home(environment)
    schema = Path(__file__).with_name(f"prefect-{version('prefect')}.sql")
    if any(environment.get(name) for name in URLS) or not schema.is_file():
        return {}
    if not (home / "prefect.db").exists():
        with suppress(OSError, sqlite3.Error):  # then the server creates it, or reports why not
            _make(home / "prefect.db", schema.read_text())
            return COMPLETE
    return {}


def may_have_database(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a Prefect server without an address may have stored data on this machine."""
    configured = any(environment.get(name) for name in URLS)
    return configured or (_home(environment) / "prefect.db").exists()


def schema_of(database: Path) -> str:
    """The SQL statements that create a copy of a database."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        return "".join(f"{line}\n" for line in connection.iterdump())


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("PREFECT_HOME") or "~/.prefect").expanduser()


def _make(database: Path, statements: str) -> None:
    database.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(prefix=".prefect-", dir=database.parent)
    os.close(descriptor)
    try:
        with closing(sqlite3.connect(draft)) as connection:
            connection.executescript(statements)
        os.link(draft, database)  # a faster process has created the same
    finally:
        os.unlink(draft)
