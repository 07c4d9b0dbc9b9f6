"""The folder, ports and secrets of a team's server."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from moorage.adapters.files.safe_files import read_private, write_private

LOOPBACK = "127.0.0.1"
ROLES = ("postgres", "prefect", "moorage")
PREFECT_URL = "PREFECT_SERVER_DATABASE_CONNECTION_URL"
LEDGER_URL = "MOORAGE_LEDGER_URL"
CLIENT_LOGIN, SERVER_LOGIN = "PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING"


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of a team's server, and its ports on this machine's loopback.

    Attributes:
        folder: Folder of data, logs, passwords and process ids.
        server_port: Port of the Prefect server.
        postgres_port: Port of PostgreSQL.
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
        """The file of passwords, in the format that every PostgreSQL client reads."""
        return self.folder / "pgpass"

    @property
    def environment_file(self) -> Path:
        """The file that a shell of the team sources."""
        return self.folder / "environment"

    @property
    def own_postgres(self) -> bool:
        """Whether this machine runs PostgreSQL; else variables have both URLs of another server."""
        return not (os.environ.get(PREFECT_URL) and os.environ.get(LEDGER_URL))

    def passwords(self) -> dict[str, str]:
        """The password of each role, generated at the first call."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.pgpass.exists():
            lines = [f"{LOOPBACK}:*:*:{role}:{secrets.token_urlsafe(24)}\n" for role in ROLES]
            # Created with mode 0600, so that no other user can ever read them.
            with os.fdopen(os.open(self.pgpass, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.writelines(lines)
        fields = [line.split(":") for line in self.pgpass.read_text().splitlines()]
        return {role: password for _, _, _, role, password in fields}

    def login(self) -> str:
        """The login of the Prefect server, `user:password`, generated at the first call."""
        if given := os.environ.get(SERVER_LOGIN):
            return given
        path = self.folder / "api" / "login"
        write_private(path, f"moorage:{secrets.token_urlsafe(24)}", over=False)
        return (read_private(path) or "").strip()

    def environment(self) -> dict[str, str]:
        """Variables for `moorage serve` and commands, without passwords of databases."""
        common = {
            "PREFECT_API_URL": self.api,
            CLIENT_LOGIN: self.login(),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        }
        if not self.own_postgres:
            return {**common, LEDGER_URL: os.environ[LEDGER_URL]}
        return {
            **common,
            LEDGER_URL: self._url("psycopg", "moorage"),
            "PGPASSFILE": str(self.pgpass),
        }

    def server_environment(self) -> dict[str, str]:
        """Additional variables for the Prefect server."""
        given = os.environ.get(PREFECT_URL) if not self.own_postgres else ""
        database = given or self._url("asyncpg", "prefect")
        return {PREFECT_URL: database, SERVER_LOGIN: self.login()}

    def write_environment(self) -> None:
        """Write the variables for a shell; only this user can read the file: it has the login."""
        lines = [f"export {name}={quote(value)}\n" for name, value in self.environment().items()]
        # A new file, so that no permission or open handle of an older one remains.
        self.environment_file.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(self.environment_file, flags, 0o600), "w") as file:
            file.writelines(lines)

    def _url(self, driver: str, name: str) -> str:
        return f"postgresql+{driver}://{name}@{LOOPBACK}:{self.postgres_port}/{name}"
