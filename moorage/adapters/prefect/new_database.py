"""A new database for Prefect's server, made at once.

The server itself makes one by a hundred migrations, and writes its kinds of blocks into it, which
takes 17 CPU-seconds at the first start of a home. `prefect-VERSION.sql` is what that version makes
of an empty SQLite file, written by `scripts/make_prefect_schema.py`. For another version there is
no such file, and the server does it all.
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
    """Make Prefect's usual database, unless it is there, or another one is configured.

    Returns:
        Settings of the server that uses it first: there is nothing left to do at its start.
    """
    home = _home(environment)
    schema = Path(__file__).with_name(f"prefect-{version('prefect')}.sql")
    if any(environment.get(name) for name in URLS) or not schema.is_file():
        return {}
    if not (home / "prefect.db").exists():
        with suppress(OSError, sqlite3.Error):  # then the server makes it, or says why it cannot
            _make(home / "prefect.db", schema.read_text())
            return COMPLETE
    return {}


def may_have_database(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether Prefect's server without an address of its own may have stored something here."""
    configured = any(environment.get(name) for name in URLS)
    return configured or (_home(environment) / "prefect.db").exists()


def schema_of(database: Path) -> str:
    """The statements that make such a database."""
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
        os.link(draft, database)  # whoever was quicker has made the same
    finally:
        os.unlink(draft)
