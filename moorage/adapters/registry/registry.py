"""Registries: the digest that a tag stands for, asked over the distribution API."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

import httpx
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from moorage.adapters.registry.auth import Credentials, authorization, bounded
from moorage.adapters.registry.manifest import ACCEPT, MANIFESTS, Found, platforms
from moorage.adapters.registry.registry_errors import CONNECTION, failure_of
from moorage.adapters.registry.transport import Way, ways
from moorage.adapters.system.guarded_http import guarded_client, within
from moorage.adapters.transfer.redirects import Guard
from moorage.common.failures import Cause, Failure
from moorage.inventory.registries import DOCKER_HUB, HUB_NAMES
from moorage.spec.image_reference import Reference, parse_reference

TIMEOUT = httpx.Timeout(10.0, connect=4.0)
ASK_SECONDS = 30.0
"""For all that is asked about one image, the login included."""

ATTEMPTS = 3
NO_HEAD = (405, 501)
"""What is answered where a method is not known."""


class RegistryClient:
    """One registry.

    Args:
        host: Host and port; empty or `docker.io` = Docker Hub.
        credentials: Account to log in with, or None.
        insecure: Whether its certificate does not count, or it may speak plain HTTP; registries on
            this machine always may.
        known: Digests that suit, so that nothing but them is asked: an index that is read counts
            as a pull where pulls are counted.
        transport: Way to it, for tests.
        attempts: How often it is asked when it cannot be reached.
    """

    def __init__(
        self,
        host: str = "",
        *,
        credentials: Credentials | None = None,
        insecure: bool = False,
        known: Collection[str] = (),
        transport: httpx.BaseTransport | None = None,
        attempts: int = ATTEMPTS,
    ) -> None:
        self.host = DOCKER_HUB if host in HUB_NAMES else host
        self._insecure = insecure
        self._known = known
        self._credentials = credentials
        self._transport = transport
        self._attempts = attempts

    def find(self, reference: str) -> Found:
        """The digest of a reference, and the platforms that it is built for.

        Raises:
            Failure: `IMAGE_MISSING`, `REGISTRY_UNAUTHORIZED`, `REGISTRY_UNTRUSTED`,
                `REGISTRY_RATE_LIMITED`, or `REGISTRY_UNAVAILABLE` after every attempt.
        """
        tries = Retrying(
            stop=stop_after_attempt(self._attempts),
            wait=wait_exponential(multiplier=0.2, max=2),
            retry=retry_if_exception(_is_passing),
            reraise=True,
        )
        return tries(self._find, parse_reference(reference))

    def _find(self, reference: Reference) -> Found:
        *first, last = ways(self.host, insecure=self._insecure)
        try:
            for way in first:
                try:
                    return self._find_by(way, reference)
                except httpx.ConnectError:
                    continue
            return self._find_by(last, reference)
        except httpx.HTTPError as error:
            raise self._away(reference, str(error) or type(error).__name__) from error

    def _find_by(self, way: Way, reference: Reference) -> Found:
        with within(ASK_SECONDS), self._client(way) as client:
            head = self._head(client, reference)
            digest = reference.digest or head.headers.get("docker-content-digest", "")
            kind = head.headers.get("content-type", "").partition(";")[0]
            if digest and (kind in MANIFESTS or digest in self._known):
                return Found(reference=str(reference), digest=digest)
            return self._read(self._manifest(client, reference).content, digest, reference)

    def _client(self, way: Way) -> httpx.Client:
        options: dict[str, Any] = {
            "base_url": way.base,
            "timeout": TIMEOUT,
            "headers": {"Accept": ACCEPT, "Accept-Encoding": "identity"},
        }
        if self._transport:
            return httpx.Client(transport=self._transport, follow_redirects=True, **options)
        client: httpx.Client = guarded_client(httpx, Guard(way.base), verify=way.trust, **options)
        return client

    def _read(self, body: bytes, digest: str, reference: Reference) -> Found:
        actual = f"sha256:{hashlib.sha256(body).hexdigest()}"
        if digest.startswith("sha256:") and digest != actual:
            raise self._away(reference, f"it sent {actual} for {digest}")
        built = platforms(body)
        if built is None:
            raise self._away(reference, "it sent no manifest")
        return Found(reference=str(reference), digest=digest or actual, platforms=built)

    def _head(self, client: httpx.Client, reference: Reference) -> httpx.Response:
        """The answer without a body; without its headers where the registry knows no HEAD."""
        answer = self._asked(client, "HEAD", reference)
        if answer.is_success or answer.status_code in NO_HEAD:
            return answer
        raise self._refused(reference, answer)

    def _manifest(self, client: httpx.Client, reference: Reference) -> httpx.Response:
        answer = self._asked(client, "GET", reference)
        if answer.is_success:
            return answer
        raise self._refused(reference, answer)

    def _asked(self, client: httpx.Client, method: str, reference: Reference) -> httpx.Response:
        url = f"/v2/{self._path(reference)}/manifests/{reference.wanted}"
        answer = bounded(client, method, url)
        if answer.status_code == 401:
            value = authorization(client, answer, self._credentials)
            if value:
                client.headers["Authorization"] = value
                answer = bounded(client, method, url)
        return answer

    def _path(self, reference: Reference) -> str:
        """Docker Hub keeps its own images below `library`."""
        official = self.host == DOCKER_HUB and "/" not in reference.path
        return f"library/{reference.path}" if official else reference.path

    def _refused(self, reference: Reference, answer: httpx.Response) -> Failure:
        status = answer.status_code
        if status in (401, 403):
            who = (
                f"refused the login of {self._credentials.username}"
                if self._credentials
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
        return self._away(reference, f"it answered {status}")

    def _away(self, reference: Reference, reason: str) -> Failure:
        subject = f"{reference}: {self.host}"
        known = failure_of(reason, subject, CONNECTION)
        return known or Failure(Cause.REGISTRY_UNAVAILABLE, f"{subject}: {reason}")


def _is_passing(error: BaseException) -> bool:
    return isinstance(error, Failure) and error.cause is Cause.REGISTRY_UNAVAILABLE
