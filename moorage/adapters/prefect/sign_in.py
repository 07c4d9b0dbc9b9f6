"""How this process logs in to the Prefect API that it uses. What the user has set comes first."""

from __future__ import annotations

import os
import secrets
from functools import cache

from prefect.context import refresh_global_settings_context
from prefect.settings import get_current_settings

from moorage.adapters.prefect.api_login import USER, login_for
from moorage.adapters.secrets.redacting import remember
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure

CLIENT, SERVER = "PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING"
ORIGINS = "PREFECT_SERVER_CORS_ALLOWED_ORIGINS"
NO_ORIGIN = "http://127.0.0.1"
"""Prefect's default is every origin. No page has this one: the server is on another port."""

TEMPORARY_BYTES = 24


def sign_in() -> None:
    """Take the login of the server that is to be asked, where the user has set none.

    That is this home's server; or one that Prefect starts for this command alone, whose login lives
    as long.

    Raises:
        Failure: `BAD_SETTING` when the login of this home is no secret of this user.
    """
    api = get_current_settings().api
    if not api.url:
        # Never one that is set: it is for a server that stays.
        if client_login() != (login := _temporary_login()):
            adopt(login, {SERVER: login, ORIGINS: NO_ORIGIN})
    elif not api.auth_string and not api.key and (found := login_for(Settings().root, api.url)):
        login, url = found
        adopt(login, {"PREFECT_API_URL": url})


def adopt(login: str, more: dict[str, str]) -> None:
    """Log in from now on, in this process and in those that it starts."""
    remember({CLIENT: login, "its password": login.partition(":")[2]})
    os.environ.update({CLIENT: login, **more})
    refresh_global_settings_context()


def configured_login() -> str:
    """The login that the user has set for a server of this machine; empty = none."""
    found = get_current_settings().server.api.auth_string
    return found.get_secret_value() if found else client_login()


def client_login() -> str:
    """The login that is set for whatever server is asked; empty = none."""
    found = get_current_settings().api.auth_string
    return found.get_secret_value() if found else ""


def login_refused() -> Failure:
    """What to say where the API does not take the login of this process, or misses one."""
    return Failure(
        Cause.BAD_SETTING,
        f"PREFECT_API_URL: {get_current_settings().api.url} asks for a login, and"
        f" {CLIENT} is {'not the one' if client_login() else 'not set'}",
        suggestion=f"Set {CLIENT} to that server's user:password. A server that `moorage serve`"
        " has started keeps it in its MOORAGE_HOME, for commands with the same MOORAGE_HOME.",
    )


@cache
def _temporary_login() -> str:
    return f"{USER}:{secrets.token_urlsafe(TEMPORARY_BYTES)}"
