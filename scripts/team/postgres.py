"""The team's own PostgreSQL server, from the programs installed on this machine."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path
from signal import Signals
from typing import Any

from scripts.team.place import LOOPBACK, Place
from scripts.team.program import Program, Trouble, must_be_free, say

START_SECONDS = 60.0
STOP_SECONDS = 60.0
TOOL_SECONDS = 120.0
DATABASES = Path(__file__).with_name("databases.sql")


def program(place: Place) -> Program:
    """The server; SIGINT stops it cleanly, without waiting for its clients."""
    return Program("PostgreSQL", place.folder, Signals.SIGINT, STOP_SECONDS)


def up(place: Place) -> None:
    """Start the server where it does not run, and create both databases."""
    server, where = program(place), f"{LOOPBACK}:{place.postgres_port}"
    passwords = place.passwords()
    if server.process() is None:
        must_be_free(place.postgres_port, "--postgres-port")
        account = _account()
        data = place.folder / "postgres"
        if not (data / "PG_VERSION").exists():
            _create(data, passwords["postgres"], account)
        options = (f"listen_addresses={LOOPBACK}", f"port={place.postgres_port}")
        more = ("unix_socket_directories=", "max_connections=200")
        words = [word for option in (*options, *more) for word in ("-c", option)]
        server.start([_tool("postgres"), "-D", data, *words], {}, cwd="/", **account)
    ask: list[str | Path] = [
        _tool("pg_isready"),
        "-q",
        "-h",
        LOOPBACK,
        "-p",
        str(place.postgres_port),
    ]
    server.wait(lambda: subprocess.run(ask, check=False).returncode == 0, START_SECONDS, where)
    _make_databases(place, passwords)


def _create(data: Path, password: str, account: dict[str, Any]) -> None:
    say(f"PostgreSQL: making {data}")
    shutil.rmtree(data, ignore_errors=True)  # left by an interrupted creation
    data.mkdir(mode=0o700)
    secret = data.with_name("initial-password")
    try:
        with os.fdopen(os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(password)
        for path in (data, secret):
            if account:
                os.chown(path, account["user"], account["group"])
        words = ["-U", "postgres", "-A", "scram-sha-256", "-E", "UTF8", "--locale", "C"]
        where: list[str | Path] = ["-D", data, "--pwfile", secret]
        _run([_tool("initdb"), *where, *words, "--no-instructions"], {}, cwd="/", **account)
    except Trouble:
        shutil.rmtree(data, ignore_errors=True)
        raise
    finally:
        secret.unlink(missing_ok=True)


def _make_databases(place: Place, passwords: dict[str, str]) -> None:
    words = ["-X", "-q", "-h", LOOPBACK, "-p", str(place.postgres_port), "-U", "postgres"]
    environment = {
        "PGPASSFILE": str(place.pgpass),
        "PREFECT_DATABASE_PASSWORD": passwords["prefect"],
        "MOORAGE_DATABASE_PASSWORD": passwords["moorage"],
    }
    _run([_tool("psql"), *words, "-d", "postgres", "-f", str(DATABASES)], environment)


def _account() -> dict[str, Any]:
    """The account for the server: this user, or another one for root, which it refuses."""
    if os.geteuid():
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _tool(name: str) -> Path:
    """A program of the newest installed PostgreSQL; Debian keeps them out of PATH."""
    found = sorted(
        Path("/usr/lib/postgresql").glob(f"*/bin/{name}"),
        key=lambda path: float(path.parts[-3]),
    )
    if found:
        return found[-1]
    if on_path := shutil.which(name):
        return Path(on_path)
    raise Trouble(
        f"PostgreSQL's program {name} is not installed: install postgresql (14 or newer),"
        " use `make up WITH=compose`, or name a server of yours (docs/team.md)"
    )


def _run(command: list[str | Path], environment: dict[str, str], **options: Any) -> None:
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TOOL_SECONDS,
        check=False,
        **options,
    )
    if done.returncode:
        raise Trouble(f"{Path(command[0]).name} failed: {done.stderr.strip()}")
