"""Client of the distribution API: the digest and platforms of a reference.

Ours, because Podman lacks the API behind Docker's `get_registry_data` (podman issue 17726), oras-py
reads several challenges as one, python-dxf needs a scope, and both have no time or size limit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from ssl import SSLContext
from typing import Any

import httpx
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from moorage.adapters.registry.connection import (
    Credentials,
    authorization,
    bounded_request,
    endpoints,
)
from moorage.adapters.system.guarded_http import guarded_client, thread_deadline
from moorage.adapters.system.os_errors import REGISTRY_ERRORS, failure_of
from moorage.adapters.transfer.redirects import Guard
from moorage.common.failures import Cause, Failure
from moorage.common.printable import short
from moorage.common.strict_json import JsonError, decode
from moorage.common.values import Value
from moorage.inventory.registries import DOCKER_HUB, HUB_NAMES
from moorage.spec.image_reference import Reference, parse_reference

TIMEOUT = httpx.Timeout(10.0, connect=4.0)
ASK_SECONDS = 30.0
"""Limit for all requests about one image, including the login."""

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


@dataclass
class RegistryClient:
    """One registry.

    Attributes:
        host: Host and port; empty or `docker.io` = Docker Hub.
        insecure: Whether to skip the verification of its certificate and allow plain HTTP. A
            registry on this machine is always treated so.
        known: Acceptable digests, for which no index is read: a read counts as a pull where pulls
            are limited.
        attempts: Number of attempts when the registry cannot be reached.
    """

    host: str = ""
    _: KW_ONLY
    credentials: Credentials | None = None
    insecure: bool = False
    known: Collection[str] = ()
    attempts: int = ATTEMPTS

    def __post_init__(self) -> None:
        self.host = DOCKER_HUB if self.host in HUB_NAMES else self.host

    def find(self, reference: str) -> RegistryImage:
        """Digest and platforms of a reference.

        Raises:
            Failure: `IMAGE_MISSING`, `REGISTRY_UNAUTHORIZED`, `REGISTRY_UNTRUSTED`,
                `REGISTRY_RATE_LIMITED`, or `REGISTRY_UNAVAILABLE` after every attempt.
        """
        tries = Retrying(
            stop=stop_after_attempt(self.attempts),
            wait=wait_exponential(multiplier=0.2, max=2),
            retry=retry_if_exception(
                lambda e: isinstance(e, Failure) and e.cause is Cause.REGISTRY_UNAVAILABLE
            ),
            reraise=True,
        )
        return tries(self._find, parse_reference(reference))

    def _find(self, reference: Reference) -> RegistryImage:
        (*first, last), trust = endpoints(self.host, insecure=self.insecure)
        try:
            for base in first:
                with suppress(httpx.ConnectError):
                    return self._find_at(base, trust, reference)
            return self._find_at(last, trust, reference)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            # The last two: the realm of a login is no address.
            raise self._unavailable(reference, str(error) or type(error).__name__) from error

    def _find_at(self, base: str, trust: SSLContext, reference: Reference) -> RegistryImage:
        with thread_deadline(ASK_SECONDS), self._client(base, trust) as client:
            head = self._request(client, "HEAD", reference)
            digest = reference.digest or head.headers.get("docker-content-digest", "")
            kind = head.headers.get("content-type", "").partition(";")[0]
            if digest and (kind in MANIFESTS or digest in self.known):
                return RegistryImage(reference=str(reference), digest=digest)
            return self._parse(self._request(client, "GET", reference).content, digest, reference)

    def _client(self, base: str, trust: SSLContext) -> httpx.Client:
        return guarded_client(
            Guard(base),
            verify=trust,
            base_url=base,
            timeout=TIMEOUT,
            headers={"Accept": ACCEPT, "Accept-Encoding": "identity"},
        )

    def _parse(self, body: bytes, digest: str, reference: Reference) -> RegistryImage:
        actual = f"sha256:{hashlib.sha256(body).hexdigest()}"
        if digest.startswith("sha256:") and digest != actual:
            raise self._unavailable(reference, f"it sent {actual} for {digest}")
        built = platforms(body)
        if built is None:
            raise self._unavailable(reference, "it sent no manifest")
        return RegistryImage(reference=str(reference), digest=digest or actual, platforms=built)

    def _request(self, client: httpx.Client, method: str, reference: Reference) -> httpx.Response:
        """Answer about a manifest; 405 or 501 if the registry does not support HEAD."""
        # Docker Hub keeps its own images below `library`.
        official = self.host == DOCKER_HUB and "/" not in reference.path
        path = f"library/{reference.path}" if official else reference.path
        url = f"/v2/{path}/manifests/{reference.wanted}"
        answer = bounded_request(client, method, url)
        if answer.status_code == 401:
            value = authorization(client, answer, self.credentials)
            if value:
                client.headers["Authorization"] = value
                answer = bounded_request(client, method, url)
        if answer.is_success or (method == "HEAD" and answer.status_code in (405, 501)):
            return answer
        raise self._refusal(reference, answer)

    def _refusal(self, reference: Reference, answer: httpx.Response) -> Failure:
        status = answer.status_code
        if status in (401, 403):
            who = (
                f"refused the login of {self.credentials.username}"
                if self.credentials
                else "asks for a login, and none is configured for it; it may have no such image"
            )
            return Failure(Cause.REGISTRY_UNAUTHORIZED, f"{reference}: {self.host} {who}")
        if status in (400, 404):
            what = "digest" if reference.digest else f"tag {reference.wanted}"
            detail = f"{reference}: {self.host} has no such image or {what}"
            return Failure(Cause.IMAGE_MISSING, detail)
        if status == 429:
            later = answer.headers.get("retry-after", "")
            when = f", and says to wait {later} s" if later.isdigit() else ""
            detail = f"{reference}: {self.host} answered 429 Too Many Requests{when}"
            return Failure(Cause.REGISTRY_RATE_LIMITED, detail)
        return self._unavailable(reference, f"it answered {status}")

    def _unavailable(self, reference: Reference, reason: str) -> Failure:
        detail = f"{reference}: {self.host}: {reason}"
        return failure_of(reason, detail, REGISTRY_ERRORS, Cause.REGISTRY_UNAVAILABLE)


class RegistryImage(Value):
    """An image in a registry.

    Attributes:
        reference: The reference at which it was found.
        digest: `sha256:...` of the index, or of the manifest if there is no index.
        platforms: `linux/amd64`, ... of an index; empty without an index.
    """

    reference: str
    digest: str
    platforms: tuple[str, ...] = ()


def platforms(body: bytes) -> tuple[str, ...] | None:
    """Platforms of an index, empty for a manifest; None = neither."""
    try:
        content = decode(body)
    except JsonError:
        return None
    if not isinstance(content, dict) or "schemaVersion" not in content:
        return None
    entries = content.get("manifests")
    names = map(_platform, entries if isinstance(entries, list) else ())
    # Attachments of an image, such as attestations, have the platform `unknown`.
    return tuple(dict.fromkeys(name for name in names if "unknown" not in name))


def _platform(entry: Any) -> str:
    platform = entry.get("platform") if isinstance(entry, dict) else None
    if not isinstance(platform, dict):
        return "unknown"
    return short(f"{platform.get('os')}/{platform.get('architecture')}")
