"""Where a team's server lives: its folder, its ports, its secrets."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

LOOPBACK = "127.0.0.1"
ROLES = ("postgres", "prefect", "moorage")
PREFECT_URL = "PREFECT_SERVER_DATABASE_CONNECTION_URL"
LEDGER_URL = "MOORAGE_LEDGER_URL"


@dataclass(frozen=True, slots=True)
class Place:
    """A folder, and ports of this machine's loopback.

    Attributes:
        folder: Holds data, logs, passwords and process numbers.
        server_port: Of the Prefect server.
        postgres_port: Of PostgreSQL.
    """

    folder: Path
    server_port: int
    postgres_port: int

    @property
    def api(self) -> str:
        """Address of the Prefect server's API."""
        return f"http://{LOOPBACK}:{self.server_port}/api"

    @property
    def pgpass(self) -> Path:
        """Passwords, in the form that every PostgreSQL client reads by itself."""
        return self.folder / "pgpass"

    @property
    def environment_file(self) -> Path:
        """What a shell of the team sources."""
        return self.folder / "environment"

    @property
    def own_postgres(self) -> bool:
        """Whether PostgreSQL is started here; else both URLs of one elsewhere are given."""
        return not (os.environ.get(PREFECT_URL) and os.environ.get(LEDGER_URL))

    def passwords(self) -> dict[str, str]:
        """The password of each role, made at the first time."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.pgpass.exists():
            lines = [f"{LOOPBACK}:*:*:{role}:{secrets.token_urlsafe(24)}\n" for role in ROLES]
            # Nobody else may read them, from the first moment on.
            with os.fdopen(os.open(self.pgpass, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.writelines(lines)
        fields = [line.split(":") for line in self.pgpass.read_text().splitlines()]
        return {role: password for _, _, _, role, password in fields}

    def environment(self) -> dict[str, str]:
        """What the Prefect server, `moorage serve` and commands need. No password is in it."""
        common = {"PREFECT_API_URL": self.api, "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
        if not self.own_postgres:
            return {**common, LEDGER_URL: os.environ[LEDGER_URL]}
        return {
            **common,
            LEDGER_URL: self._url("psycopg", "moorage"),
            "PGPASSFILE": str(self.pgpass),
        }

    def server_environment(self) -> dict[str, str]:
        """What the Prefect server needs besides."""
        given = os.environ.get(PREFECT_URL) if not self.own_postgres else ""
        return {PREFECT_URL: given or self._url("asyncpg", "prefect")}

    def write_environment(self) -> None:
        """Write down what a shell needs; only this user may read it, for URLs hold passwords."""
        lines = [f"export {name}={quote(value)}\n" for name, value in self.environment().items()]
        with os.fdopen(
            os.open(self.environment_file, os.O_WRONLY | os.O_CREAT, 0o600), "w"
        ) as file:
            file.truncate()
            file.writelines(lines)

    def _url(self, driver: str, name: str) -> str:
        return f"postgresql+{driver}://{name}@{LOOPBACK}:{self.postgres_port}/{name}"
