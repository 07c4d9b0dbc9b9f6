"""The Prefect server of a home: its login, its address, and the server that commands start.

Only this user can read the files in `MOORAGE_HOME/api`: `login` contains `user:password`, and
`server` the process and its address. A client sends the login only if that process listens at the
address, so that a later owner of the port does not get it.

If no server is configured, the first command that changes something starts one in the background,
the *kept* server: on the loopback, with Prefect's usual database. Later commands use it at once,
and the UI shows every run. It exits by itself after some time without requests.
"""

import contextlib
import re
import secrets
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from pydantic import ValidationError

from moorage.adapters.files.safe_files import open_private, read_private, unsafe, write_private
from moorage.adapters.hosts.reachability import listen
from moorage.adapters.ledger.locks import Owner
from moorage.adapters.prefect import api_server
from moorage.adapters.prefect.new_database import provide_database
from moorage.adapters.system.environment import given_environment
from moorage.adapters.system.file_locks import locked
from moorage.adapters.system.listeners import is_listening
from moorage.adapters.system.process import INTERPRETER
from moorage.common.failures import Cause, Failure
from moorage.common.values import Value

FOLDER, LOGIN, SERVER, LOG, LOCK = "api", "login", "server", "log", "lock"
USER, PASSWORD_BYTES = "moorage", 32
LOGIN_FORMAT = re.compile(r"[!-9;-~]+:[!-~]+")
SERVER_VARIABLE = "PREFECT_SERVER_API_AUTH_STRING"

HOST, PORT = "127.0.0.1", 4200
START_SECONDS = 120.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.05
PORT_ATTEMPTS = 3
LINE_BYTES = 1000

ANALYTICS = "PREFECT_SERVER_ANALYTICS_ENABLED"

QUIET = {
    ANALYTICS: "false",
    "PREFECT_SERVER_SERVICES_CLEANUP_RECONCILER_LOOP_SECONDS": "60",
    "PREFECT_SERVER_SERVICES_FOREMAN_LOOP_SECONDS": "60",
    "PREFECT_SERVER_SERVICES_LATE_RUNS_LOOP_SECONDS": "60",
    "PREFECT_SERVER_SERVICES_REPOSSESSOR_LOOP_SECONDS": "60",
    # Otherwise each state of each task run has its own transaction: half of a deploy's load.
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
}
"""Defaults of the kept server, for settings that the user has not set. It is mostly idle."""

CLIENT_DEFAULTS = {
    # The command line shows the steps itself. The run's log still goes to the server.
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    ANALYTICS: "false",
    "PREFECT_CLI_PROMPT": "false",
    # In addition to 408, 429, 502 and 503. Each is retried for about a minute.
    "PREFECT_CLIENT_RETRY_EXTRA_CODES": "500,504",
}
"""Defaults of a command, for settings that the user has not set; set before Prefect's import."""


class RunningServer(Value):
    """A server of this home.

    Attributes:
        url: Address of its API.
        process: The process that listens at the address.
        kept: Whether a command started it. Otherwise `moorage serve` started it, and stops it.
    """

    url: str
    process: Owner
    kept: bool = False

    @property
    def listens(self) -> bool:
        """Whether that process listens at that address."""
        return is_listening(self.process.pid, urlsplit(self.url).port)


def find_login(home: Path) -> str | None:
    """The login of this home's server; None = it has not been created.

    Raises:
        Failure: `BAD_SETTING` when other users could have read or written it.
    """
    written = read_private(home / FOLDER / LOGIN)
    if written is None:
        return None
    if not LOGIN_FORMAT.fullmatch(written.strip()):
        raise unsafe(home / FOLDER / LOGIN, "does not hold user:password")
    return written.strip()


def provide_login(home: Path) -> tuple[str, bool]:
    """The login of this home's server, and whether it has just been created.

    Raises:
        Failure: `BAD_SETTING`; `STORE_UNWRITABLE` when it cannot be written.
    """
    if found := find_login(home):
        return found, False
    login = f"{USER}:{secrets.token_urlsafe(PASSWORD_BYTES)}"
    made = write_private(home / FOLDER / LOGIN, login, over=False)
    return find_login(home) or login, made


def record_server(home: Path, url: str, pid: int, *, kept: bool = False) -> RunningServer:
    """Record the process that answers at an address, for clients of this home."""
    server = RunningServer(url=url, process=Owner.of(pid), kept=kept)
    write_private(home / FOLDER / SERVER, server.model_dump_json(), over=True)
    return server


def forget_server(home: Path) -> None:
    """Remove the record of the server."""
    with contextlib.suppress(OSError):
        (home / FOLDER / SERVER).unlink(missing_ok=True)


def login_for(home: Path, url: str) -> tuple[str, str] | None:
    """The login for an address, and the address of the server; None = no login is for it.

    Raises:
        Failure: `BAD_SETTING`.
    """
    server = running_server(home)
    if server is None or _place(url) != _place(server.url):
        return None
    login = find_login(home)
    return (login, server.url) if login else None


def kept_server(home: Path, idle_seconds: float) -> RunningServer:
    """The server of this home; it is started if none runs.

    If several commands begin at once, one of them starts the server, and the others wait for it.

    Raises:
        Failure: `SERVER_UNAVAILABLE` when it does not start; `BAD_SETTING` as `find_login`.
    """
    if found := running_server(home):
        return found
    login, _ = provide_login(home)
    with start_lock(home):
        for _ in range(PORT_ATTEMPTS):
            # A killed command may have begun to start a server, which still starts.
            server = _recorded(home) or _launch(home, login, idle_seconds)
            if _has_started(server):
                return server
            stop_server(home)
            if _if_free(urlsplit(server.url).port or 0):
                break
            # Another process took the port before the server, whose imports take seconds.
        raise Failure(
            Cause.SERVER_UNAVAILABLE,
            f"Prefect's server did not start: {_last_line(server_log(home))}",
            suggestion="`moorage server logs` shows more. With `moorage --ephemeral` a command"
            " starts a server of its own instead.",
        )


@contextmanager
def start_lock(home: Path) -> Iterator[None]:
    """Held while a server of this home starts, so that nobody starts or replaces it meanwhile.

    Raises:
        Failure: `SERVER_UNAVAILABLE` when another process holds it for too long.
    """
    with locked(home / FOLDER / LOCK, START_SECONDS) as is_ours:
        if not is_ours:
            detail = f"another command has been starting it for {START_SECONDS:g} s"
            raise Failure(Cause.SERVER_UNAVAILABLE, detail)
        yield


def running_server(home: Path) -> RunningServer | None:
    """The server of this home that listens now, kept or of `moorage serve`; None = no server."""
    server = _recorded(home)
    return server if server and server.listens else None


def stop_server(home: Path) -> RunningServer | None:
    """Stop the server of this home if it is a kept one; returns the server, kept or not."""
    server = _recorded(home)
    if server is None or not server.kept:
        return server
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(server.process.pid)
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait()
    forget_server(home)
    return server


def server_log(home: Path) -> Path:
    """The log file of the kept server, with its output since its start."""
    return home / FOLDER / LOG


def _place(url: str) -> tuple[str, int | None, str]:
    """An API's address, normalized: all names of the loopback are equal."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    near = "here" if host in ("localhost", "127.0.0.1", "::1") else host
    return f"{parts.scheme}://{near}", parts.port, parts.path.rstrip("/")


def _recorded(home: Path) -> RunningServer | None:
    """The recorded server, if its process still runs."""
    try:
        server = RunningServer.model_validate_json(read_private(home / FOLDER / SERVER) or "")
    except ValidationError:
        return None
    return server if server.process.is_running else None


def _launch(home: Path, login: str, idle_seconds: float) -> RunningServer:
    port = _free_port()
    arguments = ["--host", HOST, "--port", str(port), "--idle-seconds", str(idle_seconds)]
    with open_private(server_log(home), "wb") as log:
        process = subprocess.Popen(
            [*INTERPRETER, "-m", api_server.__name__, *arguments],
            env={**QUIET, **provide_database(), **given_environment(), SERVER_VARIABLE: login},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # it outlives this command and its terminal
        )
    return record_server(home, f"http://{HOST}:{port}/api", process.pid, kept=True)


def _has_started(server: RunningServer) -> bool:
    """Wait until the server listens, which it does only when it can answer; False = it does not."""
    give_up = time.monotonic() + START_SECONDS
    while not (_answers(server) and server.listens):
        if not server.process.is_running or time.monotonic() > give_up:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _last_line(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LINE_BYTES))
        lines = file.read(LINE_BYTES).decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "its log is empty")


def _answers(server: RunningServer) -> bool:
    """Whether any process listens at the address; cheaper to poll than `listens`."""
    with contextlib.suppress(OSError):
        socket.create_connection((HOST, urlsplit(server.url).port), POLL_SECONDS).close()
        return True
    return False


def _free_port() -> int:
    """Prefect's usual port; any other if that is taken."""
    if port := _if_free(PORT) or _if_free(0):
        return port
    raise Failure(Cause.PORT_TAKEN, f"no port of {HOST} is free")


def _if_free(port: int) -> int:
    """A port, or any for 0, if it is free; 0 = it is taken."""
    with contextlib.suppress(OSError), listen(HOST, port) as found:
        return int(found.getsockname()[1])
    return 0
