"""Logins at Prefect APIs. That of this home's server is made once and sent to it alone.

Two files of this user alone, in `MOORAGE_HOME/api`: `login` holds `user:password`, `server` the
process and its address. A client uses the login only if that process listens at the address, so
that a later owner of the port does not get it.
"""

import contextlib
import os
import re
import secrets
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
from prefect.context import refresh_global_settings_context
from prefect.settings import get_current_settings
from pydantic import ValidationError

from moorage.adapters.files.safe_files import read_private, unsafe, write_private
from moorage.adapters.ledger.locks import Owner
from moorage.adapters.prefect.api_server import is_loopback
from moorage.adapters.secrets import remember
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure
from moorage.common.values import Value

FOLDER, LOGIN, SERVER = "api", "login", "server"
USER, PASSWORD_BYTES = "moorage", 32
LOGIN_FORMAT = re.compile(r"[!-9;-~]+:[!-~]+")

CLIENT_VARIABLE, SERVER_VARIABLE = "PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING"
ORIGINS = "PREFECT_SERVER_CORS_ALLOWED_ORIGINS"
NO_ORIGIN = "http://127.0.0.1"
"""Replaces Prefect's default, every origin. No page has this one."""

GUARDED_PATH = "/admin/version"
"""What Prefect answers only to those who log in, where it has an auth string; `/health` it always
answers."""

ASK_SECONDS = 5.0
NO_LOGIN = (
    "--no-login: every user of this machine may deploy through this API, which is to run programs"
    " as you, and may read Secret blocks"
)
SUGGESTION = (
    "Start the server with PREFECT_SERVER_API_AUTH_STRING=user:password and set"
    " PREFECT_API_AUTH_STRING=user:password for its clients; or unset PREFECT_API_URL: then"
    " `moorage serve` starts a server of its own, which has a login."
)


class RunningServer(Value):
    """A server of this home: the address of its API, and the process that listens there."""

    url: str
    process: Owner


def find_login(home: Path) -> str | None:
    """The login of this home's server; None = none was made.

    Raises:
        Failure: `BAD_SETTING` when others could have read or written it.
    """
    written = read_private(home / FOLDER / LOGIN)
    if written is None:
        return None
    if not LOGIN_FORMAT.fullmatch(written.strip()):
        raise unsafe(home / FOLDER / LOGIN, "does not hold user:password")
    return written.strip()


def provide_login(home: Path) -> tuple[str, bool]:
    """The login of this home's server, and whether it was made just now.

    Raises:
        Failure: `BAD_SETTING`; `STORE_UNWRITABLE` when it cannot be kept.
    """
    if found := find_login(home):
        return found, False
    login = f"{USER}:{secrets.token_urlsafe(PASSWORD_BYTES)}"
    made = write_private(home / FOLDER / LOGIN, login, over=False)
    return find_login(home) or login, made


def record_server(home: Path, url: str, pid: int) -> None:
    """Record which process answers at an address, for clients of this home."""
    server = RunningServer(url=url, process=Owner.of(pid))
    write_private(home / FOLDER / SERVER, server.model_dump_json(), over=True)


def forget_server(home: Path) -> None:
    """Remove the record of the server."""
    with contextlib.suppress(OSError):
        (home / FOLDER / SERVER).unlink(missing_ok=True)


def login_for(home: Path, url: str) -> tuple[str, str] | None:
    """The login for an address, and the address to send it to; None = it is not for that one.

    Raises:
        Failure: `BAD_SETTING`.
    """
    try:
        server = RunningServer.model_validate_json(read_private(home / FOLDER / SERVER) or "")
    except ValidationError:
        return None
    same = _place(url) == _place(server.url) and server.process.is_running
    if not same or not is_listening(server.process.pid, urlsplit(server.url).port):
        return None
    login = find_login(home)
    return (login, server.url) if login else None


def is_listening(pid: int, port: int | None) -> bool:
    """Whether a process listens on a port of this machine."""
    try:
        sockets = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:
        return False
    listening = (one.laddr for one in sockets if one.status == psutil.CONN_LISTEN and one.laddr)
    return any(address.port == port for address in listening)


def _place(url: str) -> tuple[str, int | None, str]:
    """An API's address, normalized: all names of the loopback are equal."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    near = "here" if host in ("localhost", "127.0.0.1", "::1") else host
    return f"{parts.scheme}://{near}", parts.port, parts.path.rstrip("/")


def sign_in() -> None:
    """Use the login of the configured server, unless the user has set one.

    The server is this home's, or a temporary one that Prefect starts for this command.

    Raises:
        Failure: `BAD_SETTING` when the login of this home is no secret of this user.
    """
    api = get_current_settings().api
    if not api.url:
        # Never a configured login: that is for a permanent server.
        if client_login() != (login := _temporary_login()):
            use_login(login, {SERVER_VARIABLE: login, ORIGINS: NO_ORIGIN})
    elif not api.auth_string and not api.key and (found := login_for(Settings().root, api.url)):
        login, url = found
        use_login(login, {"PREFECT_API_URL": url})


def use_login(login: str, more: dict[str, str]) -> None:
    """Use a login in this process and in its child processes."""
    remember({CLIENT_VARIABLE: login, "its password": login.partition(":")[2]})
    os.environ.update({CLIENT_VARIABLE: login, **more})
    refresh_global_settings_context()


def configured_login() -> str:
    """The login that the user has set for a server of this machine; empty = none."""
    found = get_current_settings().server.api.auth_string
    return found.get_secret_value() if found else client_login()


def client_login() -> str:
    """The login that is set for clients of any server; empty = none."""
    found = get_current_settings().api.auth_string
    return found.get_secret_value() if found else ""


def login_refused() -> Failure:
    """The failure when the API requires a login, or another one than this process has."""
    return Failure(
        Cause.BAD_SETTING,
        f"PREFECT_API_URL: {get_current_settings().api.url} asks for a login, and"
        f" {CLIENT_VARIABLE} is {'not the one' if client_login() else 'not set'}",
        suggestion=f"Set {CLIENT_VARIABLE} to that server's user:password. A server that"
        " `moorage serve` has started keeps it in its MOORAGE_HOME, for commands with the same"
        " MOORAGE_HOME.",
    )


def login_of_own(host: str, *, no_login: bool) -> tuple[str, bool]:
    """The login of a server that will listen on a host, and whether it was made just now.

    With `no_login` it is empty.

    Raises:
        Failure: `BAD_SETTING`.
    """
    _require_named_origins()
    if not no_login:
        configured = configured_login()
        return (configured, False) if configured else provide_login(Settings().root)
    if not is_loopback(host):
        raise Failure(
            Cause.BAD_SETTING,
            f"--no-login, and PREFECT_SERVER_API_HOST: {host} is reached by other machines; the API"
            " would let everybody deploy and read secrets",
            suggestion="Leave out --no-login: a login is made, and `moorage serve --show-login`"
            " shows it.",
        )
    if configured_login():
        raise Failure(
            Cause.BAD_SETTING,
            "--no-login, and there is a login in PREFECT_SERVER_API_AUTH_STRING or"
            " PREFECT_API_AUTH_STRING",
            suggestion="Leave out one of them.",
        )
    return "", False


def require_login_of_other(url: str, *, no_login: bool) -> None:
    """Refuse to serve through an API that answers who has not logged in, or not who has.

    With `no_login` it may answer everybody, but on this machine alone.

    Raises:
        Failure: `BAD_SETTING`, or `SERVER_UNAVAILABLE`.
    """
    if _answers(url, login=""):
        near = is_loopback(urlsplit(url).hostname or "")
        if near and no_login:
            return
        who = "every user of this machine" if near else "everybody who reaches it"
        raise Failure(
            Cause.BAD_SETTING,
            f"PREFECT_API_URL: {url} answers {who}; they could deploy and read secrets",
            suggestion=SUGGESTION
            + " `moorage serve --no-login` allows it where you trust them all." * near,
        )
    if get_current_settings().api.key or _answers(url, login=client_login()):
        return
    raise login_refused()


def current_login() -> str:
    """The login of the server that commands of this user ask: as it is set, else this home's."""
    return configured_login() or provide_login(Settings().root)[0]


def _answers(url: str, *, login: str) -> bool:
    user, _, password = login.partition(":")
    auth = httpx.BasicAuth(user, password) if login else None
    try:
        return httpx.get(f"{url}{GUARDED_PATH}", auth=auth, timeout=ASK_SECONDS).is_success
    except httpx.HTTPError as error:
        raise Failure(Cause.SERVER_UNAVAILABLE, f"{url}: {error}") from None


def _require_named_origins() -> None:
    api = get_current_settings().server.api
    if "cors_allowed_origins" in api.model_fields_set and "*" in api.cors_allowed_origins:
        raise Failure(
            Cause.BAD_SETTING,
            f"PREFECT_SERVER_CORS_ALLOWED_ORIGINS: {api.cors_allowed_origins} lets every page of"
            " the web use the API",
            suggestion="Unset it, or name the origins, such as https://prefect.example.com.",
        )


@cache
def _temporary_login() -> str:
    return f"{USER}:{secrets.token_urlsafe(24)}"
