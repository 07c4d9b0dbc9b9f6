"""Logging in to a registry: what its challenge asks for, and the token it gives.

The token protocol is that of the distribution project: the registry names a realm, a service and a
scope; the realm gives a token for them, to an account or to anybody.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import httpx

from moorage.failures import Cause, Failure
from moorage.values import Value

PARAMETER = re.compile(r'(\w+)="([^"]*)"')


class Credentials(Value):
    """An account of a registry."""

    username: str
    password: str

    def __repr__(self) -> str:
        return f"Credentials({self.username!r}, ...)"

    __str__ = __repr__


def authorization(
    client: httpx.Client, challenge: httpx.Response, credentials: Credentials | None
) -> str | None:
    """The value of `Authorization` that a challenge (401) asks for; None = no account to show.

    Raises:
        Failure: `REGISTRY_UNAUTHORIZED` when the realm refuses the account.
        httpx.TransportError: The realm cannot be reached.
    """
    header = challenge.headers.get("www-authenticate", "")
    scheme = header.partition(" ")[0].lower()
    if scheme == "bearer":
        return _token(client, challenge, dict(PARAMETER.findall(header)), credentials)
    if scheme == "basic" and credentials:
        basic = httpx.BasicAuth(credentials.username, credentials.password)
        request = next(basic.auth_flow(httpx.Request("GET", challenge.url)))
        return request.headers["Authorization"]
    return None


def _token(
    client: httpx.Client,
    challenge: httpx.Response,
    asked: dict[str, str],
    credentials: Credentials | None,
) -> str | None:
    realm = asked.pop("realm", "")
    parts = urlsplit(realm)
    if parts.scheme not in ("http", "https"):
        return None
    if parts.scheme == "http" and challenge.url.scheme == "https":
        # A password must not leave over plain HTTP because a header says so.
        credentials = None
    auth = (credentials.username, credentials.password) if credentials else None
    wanted = {key: value for key, value in asked.items() if key in ("service", "scope")}
    answer = client.get(realm, params={**dict(_query(parts.query)), **wanted}, auth=auth)
    if answer.status_code in (400, 401, 403):
        who = f"of {credentials.username}" if credentials else "without an account"
        raise Failure(
            Cause.REGISTRY_UNAUTHORIZED,
            f"{challenge.url.netloc.decode()}: {parts.netloc} refused the login {who}",
        )
    if answer.status_code >= 500 or answer.status_code == 429:
        reason = f"{parts.netloc} answered {answer.status_code} {answer.reason_phrase}"
        raise httpx.RemoteProtocolError(reason)
    try:
        body = answer.json()
        token = body.get("token") or body.get("access_token")
    except (ValueError, AttributeError):
        token = None
    return f"Bearer {token}" if token else None


def _query(text: str) -> list[tuple[str, str]]:
    return httpx.QueryParams(text).multi_items()
