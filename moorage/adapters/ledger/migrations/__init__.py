"""Migrations of the ledger's schema."""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Engine, text

__all__ = ["MIGRATIONS", "CommandError", "is_known", "migrate"]

MIGRATIONS = Path(__file__).parent
MIGRATION_LOCK = 0x6D6F6F72
"""Key of the advisory lock that serialises migrations on PostgreSQL."""

_MIGRATING = threading.Lock()
"""Alembic keeps its context in a global; threads of one process take turns."""


def migrate(engine: Engine) -> None:
    """Upgrade to the newest schema. Several processes may do so at the same time.

    Raises `CommandError` when the database is newer than this program.
    """
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with _MIGRATING, engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def is_known(revision: str) -> bool:
    """Whether this program can migrate a schema."""
    try:
        return ScriptDirectory(str(MIGRATIONS)).get_revision(revision) is not None
    except CommandError:
        return False
