"""Whether the Prefect API that flows are served through asks who is there.

Whoever may use it may deploy: run containers and programs on the hosts, and read Secret blocks.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx
from prefect.settings import get_current_settings

from moorage.adapters.prefect.api_login import (
    client_login,
    configured_login,
    login_refused,
    provide_login,
)
from moorage.adapters.prefect.api_server import is_loopback
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure

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


def login_of_own(host: str, *, no_login: bool) -> tuple[str, bool]:
    """The login of the server that is about to be started, and whether it was made just now.

    Args:
        host: Address that it will listen on.
        no_login: Whether it shall ask nobody; then the login is empty.

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

    Args:
        url: Its address.
        no_login: Whether it may answer everybody; on this machine alone.

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
