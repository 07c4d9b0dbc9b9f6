"""Logins at Prefect APIs: those that this process uses, and those that servers require."""

import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from prefect import context
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    get_current_settings,
    temporary_settings,
)

from moorage.adapters.prefect.home_server import (
    ANALYTICS,
    SERVER_VARIABLE,
    USER,
    RunningServer,
    find_login,
    kept_server,
    login_for,
    provide_login,
    running_server,
)
from moorage.adapters.prefect.new_database import may_have_database
from moorage.adapters.secrets import KEPT_VARIABLE, has_api, remember
from moorage.adapters.system.environment import add_variables
from moorage.adapters.system.process import SAFE_PATH
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure
from moorage.inventory.access import is_loopback

CLIENT_VARIABLE, URL = "PREFECT_API_AUTH_STRING", "PREFECT_API_URL"
AUTHORITIES = "PREFECT_API_SSL_CERT_FILE"
NO_AUTHORITY = Path(__file__).with_name("no-authority.pem")
ORIGINS = "PREFECT_SERVER_CORS_ALLOWED_ORIGINS"
NO_ORIGIN = "http://127.0.0.1"
"""Replaces Prefect's default, which allows every origin. No page has this origin."""

_starting = threading.Lock()
"""Without it Prefect would start a temporary server for each of several concurrent threads."""

_prepared: dict[frozenset[tuple[str, str]], context.SettingsContext] = {}
"""Prefect's settings by the variables that `_set` adds."""

GUARDED_PATH = "/admin/version"
"""Path that a Prefect server with an auth string answers only after a login. It answers `/health`
to everybody."""

ASK_SECONDS = 5.0
NO_LOGIN = (
    "--no-login: every user of this machine may deploy through this API, which is to run programs"
    " as you, and may read Secret blocks"
)


def sign_in() -> None:
    """Use the login of the configured server, unless the user has set one.

    The server is the one of this home, or a temporary one that Prefect starts for this command.

    Raises:
        Failure: `BAD_SETTING` when other users could have read or written the login of this home.
    """
    api = get_current_settings().api
    if not api.url:
        # A configured login belongs to a permanent server, so it is never used here.
        if client_login() != (login := _temporary_login()):
            analytics = {ANALYTICS: os.environ.get(ANALYTICS, "false")}
            server = {SERVER_VARIABLE: login, ORIGINS: NO_ORIGIN, SAFE_PATH: "1", **analytics}
            use_login(login, server)
    elif not api.auth_string and not api.key and (found := login_for(Settings().root, api.url)):
        login, url = found
        use_login(login, {URL: url})
    elif api.ssl_cert_file != str(NO_AUTHORITY) and (authorities := _authorities(api.url)):
        _set(authorities)


@contextmanager
def readable_server() -> Iterator[bool]:
    """Sign in to the configured server, or to the one of this home; yields whether one exists.

    Otherwise Prefect would start a temporary server for each thread of a command: that takes ten
    seconds to find a missing variable, and all but one of these servers would never be stopped.

    Raises:
        Failure: `SERVER_UNAVAILABLE`, `BAD_SETTING`.
    """
    settings = Settings()
    if has_api():
        sign_in()
        yield True
    elif settings.server == "temporary":
        with _starting:
            sign_in()
            yield True
    elif may_have_database() or running_server(settings.root):
        server = kept_server(settings.root, settings.server_idle_seconds)
        login = find_login(settings.root) or ""
        _remember(login)
        # Only for this block: the server may exit before this process does.
        with temporary_settings({PREFECT_API_URL: server.url, PREFECT_API_AUTH_STRING: login}):
            yield True
    else:
        yield False


def use_kept_server(server: RunningServer) -> None:
    """Use the server of this home, in this process, as if it were configured."""
    use_login(*_kept_login(server, Settings().root))


def prepare_kept_server(server: RunningServer, home: Path) -> None:
    """Read Prefect's settings for `use_kept_server` in forks of this process, which saves 40 ms."""
    variables, before = _variables(*_kept_login(server, home)), dict(os.environ)
    os.environ.update(variables)
    try:
        _prepared[frozenset(variables.items())] = context.root_settings_context()
    finally:
        os.environ.clear()
        os.environ.update(before)


def _kept_login(server: RunningServer, home: Path) -> tuple[str, dict[str, str]]:
    return find_login(home) or "", {URL: server.url, KEPT_VARIABLE: server.url}


def use_login(login: str, more: dict[str, str]) -> None:
    """Use a login in this process and in its child processes."""
    _remember(login)
    _set(_variables(login, more))


def _variables(login: str, more: dict[str, str]) -> dict[str, str]:
    url = more.get(URL) or get_current_settings().api.url or NO_ORIGIN
    return {CLIENT_VARIABLE: login, **_authorities(url), **more}


def configured_login() -> str:
    """The login that the user has set for a server of this machine; empty = none."""
    found = get_current_settings().server.api.auth_string
    return found.get_secret_value() if found else client_login()


def client_login() -> str:
    """The login that is set for clients of any server; empty = none."""
    found = get_current_settings().api.auth_string
    return found.get_secret_value() if found else ""


def login_refused() -> Failure:
    """The failure when the API requires a login that this process does not have."""
    return Failure(
        Cause.BAD_SETTING,
        f"PREFECT_API_URL: {get_current_settings().api.url} asks for a login, and"
        f" {CLIENT_VARIABLE} is {'not the one' if client_login() else 'not set'}",
        suggestion=f"Set {CLIENT_VARIABLE} to that server's user:password. A server that"
        " `moorage serve` has started keeps it in its MOORAGE_HOME, for commands with the same"
        " MOORAGE_HOME.",
    )


def login_of_own(host: str, *, no_login: bool) -> tuple[str, bool]:
    """The login of a server that will listen on a host, and whether it has just been created.

    With `no_login` the login is empty. Raises `BAD_SETTING` for settings that do not go together.
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
    """Refuse an API that answers requests without a login, or refuses the login of this process.

    It raises `BAD_SETTING`, or `SERVER_UNAVAILABLE` for an API that does not answer. With
    `no_login` the API may answer everybody, but only on this machine.
    """
    if _answers(url, login=""):
        near = is_loopback(urlsplit(url).hostname or "")
        if near and no_login:
            return
        who = "every user of this machine" if near else "everybody who reaches it"
        raise Failure(
            Cause.BAD_SETTING,
            f"PREFECT_API_URL: {url} answers {who}; they could deploy and read secrets",
            suggestion="Start the server with PREFECT_SERVER_API_AUTH_STRING=user:password and set"
            " PREFECT_API_AUTH_STRING=user:password for its clients; or unset PREFECT_API_URL: then"
            " `moorage serve` starts a server of its own, which has a login."
            + " `moorage serve --no-login` allows it where you trust them all."
            * near,
        )
    if get_current_settings().api.key or _answers(url, login=client_login()):
        return
    raise login_refused()


def reached_server() -> str:
    """Address of the configured API, once it accepts this login; empty = none is configured.

    Raises:
        Failure: `SERVER_UNAVAILABLE`, or `BAD_SETTING` when it wants another login.
    """
    api = get_current_settings().api
    if not api.url:
        return ""
    sign_in()
    if api.key or _answers(api.url, login=client_login()):
        return api.url
    raise login_refused()


def current_login() -> str:
    """The login of the server for this user's commands: the configured one, else this home's."""
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


def _remember(login: str) -> None:
    remember({CLIENT_VARIABLE: login, "its password": login.partition(":")[2]})


def _authorities(url: str) -> dict[str, str]:
    """A setting that lets Prefect's clients skip the public certificate authorities if possible.

    Each client would read them: half of the processor time of a flow run that finds nothing to do.
    A server on another machine may redirect from HTTP to HTTPS; a server on this machine does not.
    """
    parts = urlsplit(url)
    near = parts.scheme == "http" and is_loopback(parts.hostname or "")
    return {AUTHORITIES: str(NO_AUTHORITY)} if near else {}


def _set(variables: dict[str, str]) -> None:
    """Set variables for this process and its children, and refresh Prefect's settings (40 ms)."""
    add_variables(variables)
    if prepared := _prepared.get(frozenset(variables.items())):
        context.GLOBAL_SETTINGS_CONTEXT = prepared
    else:
        context.refresh_global_settings_context()


@cache
def _temporary_login() -> str:
    return f"{USER}:{secrets.token_urlsafe(24)}"
