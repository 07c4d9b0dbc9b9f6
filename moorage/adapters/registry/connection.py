"""Connections to a registry: its address, trusted certificates, the login, error messages."""

import re
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from pydantic import Field

from moorage.common.failures import Cause, Failure
from moorage.common.strict_json import JsonError, decode
from moorage.common.units import MIB, human_bytes
from moorage.common.values import Value
from moorage.inventory.access import PORT, is_loopback
from moorage.inventory.registries import DOCKER_HUB

CERTIFICATES = (Path("/etc/docker/certs.d"), Path("~/.config/docker/certs.d"))
"""Folders in which Docker daemons, with and without root, look for certificates."""

MOST_BYTES = 4 * MIB
"""Limit of an answer: registries accept no larger manifest."""

CODINGS = ("content-encoding", "content-length", "transfer-encoding")
"""Headers about the transferred body, which do not apply to the decoded one."""

SCHEME = re.compile(r"(?i)(?:^|,)\s*([a-z][\w-]*)(?=\s*(?:,|$)|\s+[\w-]+=)")
"""Start of a login scheme. A registry may offer several schemes, in one header or more."""

PARAMETER = re.compile(r'(\w+)=(?:"([^"]*)"|([^\s",]+))')
MANIFEST_PATH = re.compile(r"/v2/(?P<name>.+)/manifests/")


def endpoints(host: str, *, insecure: bool) -> tuple[tuple[str, ...], ssl.SSLContext]:
    """Addresses of a registry (host and port, or `docker.io`) to try in order, and its TLS context.

    Raises:
        Failure: `REGISTRY_UNTRUSTED` when a certificate of this machine for it cannot be read.
    """
    address = "registry-1.docker.io" if host == DOCKER_HUB else host
    trust = httpx.create_ssl_context()
    if not insecure and not is_loopback(PORT.sub("", host)):
        trust.load_default_certs()
        for folder in (place.expanduser() / host for place in CERTIFICATES):
            try:
                for authority in sorted(folder.glob("*.crt")):
                    trust.load_verify_locations(authority)
                for own in sorted(folder.glob("*.cert")):
                    trust.load_cert_chain(own, own.with_suffix(".key"))
            except OSError as error:
                detail = f"the certificates in {folder} cannot be read: {error}"
                raise Failure(Cause.REGISTRY_UNTRUSTED, detail) from error
        return (f"https://{address}",), trust
    trust.check_hostname = False
    trust.verify_mode = ssl.CERT_NONE
    return (f"https://{address}", f"http://{address}"), trust


class Credentials(Value):
    """An account of a registry."""

    username: str
    password: str = Field(repr=False)


def authorization(
    client: httpx.Client, challenge: httpx.Response, credentials: Credentials | None
) -> str | None:
    """The `Authorization` header for a challenge (401); None = there is no suitable account.

    Raises:
        Failure: `REGISTRY_UNAUTHORIZED` when the realm refuses the account.
        httpx.TransportError: The realm cannot be reached.
    """
    offered = _schemes(challenge.headers.get("www-authenticate", ""))
    if "bearer" in offered:
        return _token(client, challenge, offered["bearer"], credentials)
    if "basic" in offered and credentials:
        basic = httpx.BasicAuth(credentials.username, credentials.password)
        request = next(basic.auth_flow(httpx.Request("GET", challenge.url)))
        return request.headers["Authorization"]
    return None


def _schemes(header: str) -> dict[str, dict[str, str]]:
    """Parameters of each offered login scheme, by lower-case name."""
    _, *parts = SCHEME.split(header)
    return {
        scheme.lower(): {name: quoted or plain for name, quoted, plain in PARAMETER.findall(rest)}
        for scheme, rest in zip(parts[::2], parts[1::2], strict=True)
    }


def _token(
    client: httpx.Client,
    challenge: httpx.Response,
    parameters: dict[str, str],
    credentials: Credentials | None,
) -> str | None:
    realm = parameters.pop("realm", "")
    parts = urlsplit(realm)
    if parts.scheme not in ("http", "https"):
        return None
    if parts.scheme == "http" and challenge.url.scheme == "https":
        # A header must not cause a password to be sent over plain HTTP.
        credentials = None
    auth = (credentials.username, credentials.password) if credentials else None
    wanted = {key: value for key, value in parameters.items() if key in ("service", "scope")}
    if name := MANIFEST_PATH.match(challenge.url.path):
        wanted.setdefault("scope", f"repository:{name['name']}:pull")
    query = {**dict(httpx.QueryParams(parts.query).multi_items()), **wanted}
    answer = bounded_request(client, "GET", realm, params=query, auth=auth)
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
        body = decode(answer.content)
        token = body.get("token") or body.get("access_token")
    except (JsonError, AttributeError):
        token = None
    usable = isinstance(token, str) and token.isascii() and token.isprintable()
    return f"Bearer {token}" if token and usable else None


def bounded_request(client: httpx.Client, method: str, url: str, **options: Any) -> httpx.Response:
    """Send a request, and read at most `MOST_BYTES` of the answer."""
    with client.stream(method, url, **options) as answer:
        body = bytearray()
        for piece in answer.iter_bytes():
            body += piece
            if len(body) > MOST_BYTES:
                reason = f"{answer.url.host} sent more than {human_bytes(MOST_BYTES)}"
                raise httpx.RemoteProtocolError(reason)
        headers = [(k, v) for k, v in answer.headers.multi_items() if k not in CODINGS]
        return httpx.Response(
            answer.status_code, headers=headers, content=bytes(body), request=answer.request
        )
