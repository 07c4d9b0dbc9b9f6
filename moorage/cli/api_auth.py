"""Whether the Prefect API that flows are served through asks who is there.

Whoever may use it may deploy: run containers and programs on the hosts, and read Secret blocks.
"""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import urlsplit

import httpx
from prefect.settings import get_current_settings

from moorage.failures import Cause, Failure

GUARDED_PATH = "/admin/version"
"""What Prefect answers only to those who log in, where it has an auth string; `/health` it always
answers."""

ASK_SECONDS = 5.0
SUGGESTION = (
    "Set PREFECT_SERVER_API_AUTH_STRING=user:password for the server and"
    " PREFECT_API_AUTH_STRING=user:password for its clients; or `moorage serve --without-auth`,"
    " where nobody else reaches that network."
)


def require_auth_of_own(host: str) -> None:
    """Refuse to start a server that answers other machines without asking who they are.

    Raises:
        Failure: `BAD_SETTING`.
    """
    if is_loopback(host) or _server_auth():
        return
    raise Failure(
        Cause.BAD_SETTING,
        f"PREFECT_SERVER_API_HOST: {host} is reached by other machines, and the API would let"
        " everybody deploy and read secrets",
        suggestion=SUGGESTION,
    )


def require_auth_of_other(url: str) -> None:
    """Refuse to serve through an API on the network that answers who has not logged in.

    Raises:
        Failure: `BAD_SETTING`.
    """
    if is_loopback(urlsplit(url).hostname or ""):
        return
    try:
        answer = httpx.get(f"{url}{GUARDED_PATH}", timeout=ASK_SECONDS, follow_redirects=False)
    except httpx.HTTPError as error:
        raise Failure(Cause.SERVER_UNAVAILABLE, f"{url}: {error}") from None
    if answer.is_success:
        raise Failure(
            Cause.BAD_SETTING,
            f"PREFECT_API_URL: {url} answers everybody who reaches it; they could deploy and read"
            " secrets",
            suggestion=SUGGESTION,
        )


def share_auth() -> None:
    """Let this process and the runs that it starts log in to the server that it starts."""
    if auth := _server_auth():
        os.environ.setdefault("PREFECT_API_AUTH_STRING", auth)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _server_auth() -> str:
    found = get_current_settings().server.api.auth_string
    return found.get_secret_value() if found else ""
