"""Registries: the digest that a tag stands for, asked over the distribution API."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Callable, Sequence
from typing import Any

import httpx
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from moorage.adapters.registry_auth import Credentials, authorization
from moorage.failures import Cause, Failure
from moorage.images.reference import Reference, parse_reference
from moorage.images.registries import DOCKER_HUB
from moorage.values import Value

HUB_HOST = "registry-1.docker.io"
TIMEOUT = httpx.Timeout(10.0, connect=4.0)
ATTEMPTS = 3

INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
ACCEPT = ", ".join((*INDEXES, *MANIFESTS))


class Found(Value):
    """An image as its registry knows it.

    Attributes:
        reference: Where it was found, as it was written.
        digest: `sha256:...` of the index, or of the manifest where there is no index.
        platforms: `linux/amd64`, ... of an index; empty where there is none.
    """

    reference: str
    digest: str
    platforms: tuple[str, ...] = ()


class RegistryClient:
    """One registry.

    Args:
        host: Host and port; empty or `docker.io` = Docker Hub.
        credentials: Account to log in with, or None.
        insecure: Whether it speaks plain HTTP; registries on this machine always may.
        transport: Way to it, for tests.
        attempts: How often it is asked when it cannot be reached.
    """

    def __init__(
        self,
        host: str = "",
        *,
        credentials: Credentials | None = None,
        insecure: bool = False,
        transport: httpx.BaseTransport | None = None,
        attempts: int = ATTEMPTS,
    ) -> None:
        self.host = host or DOCKER_HUB
        plain = insecure or _is_loopback(self.host)
        address = HUB_HOST if self.host == DOCKER_HUB else self.host
        self._base = f"{'http' if plain else 'https'}://{address}"
        self._credentials = credentials
        self._transport = transport
        self._attempts = attempts

    def find(self, reference: str) -> Found:
        """The digest of a reference, and the platforms that it is built for.

        Raises:
            Failure: `IMAGE_MISSING`, `REGISTRY_UNAUTHORIZED`, or `REGISTRY_UNAVAILABLE` after
                every attempt.
        """
        tries = Retrying(
            stop=stop_after_attempt(self._attempts),
            wait=wait_exponential(multiplier=0.2, max=2),
            retry=retry_if_exception(_is_passing),
            reraise=True,
        )
        return tries(self._find, parse_reference(reference))

    def _find(self, reference: Reference) -> Found:
        with httpx.Client(
            transport=self._transport,
            timeout=TIMEOUT,
            follow_redirects=True,
            headers={"Accept": ACCEPT},
        ) as client:
            try:
                return self._asked(client, reference)
            except httpx.HTTPError as error:
                reason = str(error) or type(error).__name__
                raise self._away(reference, reason) from error

    def _asked(self, client: httpx.Client, reference: Reference) -> Found:
        head = self._manifest(client, "HEAD", reference)
        digest = reference.digest or head.headers.get("docker-content-digest", "")
        kind = head.headers.get("content-type", "").partition(";")[0]
        if digest and kind in MANIFESTS:
            return Found(reference=str(reference), digest=digest)
        body = self._manifest(client, "GET", reference)
        actual = f"sha256:{hashlib.sha256(body.content).hexdigest()}"
        if digest.startswith("sha256:") and digest != actual:
            raise self._away(reference, f"it sent {actual} for {digest}")
        try:
            content = body.json()
        except ValueError as error:
            raise self._away(reference, "it sent no manifest") from error
        if not isinstance(content, dict) or "schemaVersion" not in content:
            raise self._away(reference, "it sent no manifest")
        return Found(
            reference=str(reference), digest=digest or actual, platforms=_platforms(content)
        )

    def _manifest(self, client: httpx.Client, method: str, reference: Reference) -> httpx.Response:
        url = f"{self._base}/v2/{self._path(reference)}/manifests/{reference.wanted}"
        answer = client.request(method, url)
        if answer.status_code == 401:
            value = authorization(client, answer, self._credentials)
            if value:
                client.headers["Authorization"] = value
                answer = client.request(method, url)
        if answer.is_success:
            return answer
        raise self._refused(reference, answer.status_code)

    def _path(self, reference: Reference) -> str:
        """Docker Hub keeps its own images below `library`."""
        official = self.host == DOCKER_HUB and "/" not in reference.path
        return f"library/{reference.path}" if official else reference.path

    def _refused(self, reference: Reference, status: int) -> Failure:
        if status in (401, 403):
            who = (
                f"refused the login of {self._credentials.username}"
                if self._credentials
                else "asks for a login, and none is configured for it"
            )
            return Failure(Cause.REGISTRY_UNAUTHORIZED, f"{reference}: {self.host} {who}")
        if status in (400, 404):
            what = "digest" if reference.digest else f"tag {reference.wanted}"
            return Failure(
                Cause.IMAGE_MISSING, f"{reference}: {self.host} has no such image or {what}"
            )
        return self._away(reference, f"it answered {status}")

    def _away(self, reference: Reference, reason: str) -> Failure:
        return Failure(Cause.REGISTRY_UNAVAILABLE, f"{reference}: {self.host}: {reason}")


def find_first(
    places: Sequence[str], client_for: Callable[[str], RegistryClient], architecture: str
) -> Found:
    """The image at the first of its places whose registry is there.

    Args:
        places: References of one image in several registries, the preferred one first.
        client_for: The client for a reference's registry.
        architecture: CPU architecture of the hosts, such as `amd64`.

    Raises:
        Failure: What the first registry that answers says; `REGISTRY_UNAVAILABLE` with every
            reason when none does; `NO_IMAGE` when the image is not built for the architecture.
    """
    away: list[str] = []
    for place in places:
        try:
            found = client_for(place).find(place)
        except Failure as failure:
            if failure.cause is not Cause.REGISTRY_UNAVAILABLE:
                raise
            away.append(failure.detail)
            continue
        _require(found, architecture)
        return found
    raise Failure(Cause.REGISTRY_UNAVAILABLE, "; ".join(away))


def _require(found: Found, architecture: str) -> None:
    if not found.platforms or f"linux/{architecture}" in found.platforms:
        return
    raise Failure(
        Cause.NO_IMAGE,
        f"{found.reference} is built for {', '.join(found.platforms)}, the host is {architecture}",
    )


def _platforms(content: dict[str, Any]) -> tuple[str, ...]:
    entries = content.get("manifests") or ()
    platforms = (entry.get("platform") or {} for entry in entries)
    names = (f"{item.get('os')}/{item.get('architecture')}" for item in platforms)
    # What is attached to an image, such as its attestations, says `unknown`.
    return tuple(dict.fromkeys(name for name in names if "unknown" not in name))


def _is_passing(error: BaseException) -> bool:
    return isinstance(error, Failure) and error.cause is Cause.REGISTRY_UNAVAILABLE


def _is_loopback(host: str) -> bool:
    name = host.rpartition(":")[0] or host
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
