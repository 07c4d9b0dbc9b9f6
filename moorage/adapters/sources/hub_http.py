"""Requests to the hub, through huggingface_hub. Every error becomes a `Failure`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any
from urllib.parse import quote

from huggingface_hub import hf_hub_url, hf_raise_for_status, is_offline_mode
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from moorage.adapters.system.guarded_http import guarded_client, thread_deadline
from moorage.adapters.transfer.redirects import Guard
from moorage.common.failures import Cause, Failure
from moorage.common.printable import printable
from moorage.common.strict_json import JsonError, JsonLimits, decode
from moorage.common.units import MIB, human_bytes

TIMEOUT_SECONDS = 30.0
LISTING_SECONDS = 60.0
"""For a whole listing. A list of thousands of files comes in a second or two."""

LISTING = JsonLimits(size=32 * MIB, entries=1_000_000)
SHOWN = 1000
"""Characters of what went wrong; it may quote what the hub sent."""


class HubHttp:
    """Requests about one repository on the hub.

    Args:
        repo: `org/repo`.
        endpoint: Address of the hub.
        token: Access token. It is sent to the endpoint and appears nowhere else.
        timeout: Seconds to wait for a connection and for each next byte.
        listing_seconds: Seconds that a listing, and the headers before a file, may take in all.

    Raises:
        Failure: `SOURCE_UNAUTHORIZED` when the token cannot be one.
    """

    def __init__(
        self,
        repo: str,
        endpoint: str,
        token: str | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        listing_seconds: float = LISTING_SECONDS,
    ) -> None:
        self.repo = repo
        self._endpoint = endpoint.rstrip("/")
        self._token = _checked_token(token)
        self._timeout, self._listing_seconds = timeout, listing_seconds

    def listing(self, revision: str) -> dict[str, Any]:
        """The hub's answer about a revision of the repository; empty = the default branch.

        Raises:
            Failure: As `failure_of` says; `HUB_UNAVAILABLE` also when the answer is not the hub's.
        """
        try:
            validate_repo_id(self.repo)
        except HFValidationError as error:
            raise Failure(Cause.SOURCE_MISSING, str(error)) from None
        at = f"/revision/{quote(revision, safe='')}" if revision else ""
        url = f"{self._endpoint}/api/models/{self.repo}{at}"
        with self._failures(revision):
            body = self._read_answer(url)
        try:
            found = decode(body, LISTING)
        except JsonError as error:
            raise self.not_a_hub(f"the answer {error}") from None
        if not isinstance(found, dict):
            raise self.not_a_hub("the answer is no JSON object")
        return found

    @contextmanager
    def file_range(self, commit: str, name: str, start: int, stop: int) -> Iterator[Any]:
        """Ask for a file from one offset up to another, and read the answer inside the block.

        Yields:
            The response of the hub client's HTTP library; it may hold the whole file.

        Raises:
            Failure: As `failure_of` says, for errors while reading too.
        """
        url = hf_hub_url(self.repo, name, revision=commit, endpoint=self._endpoint)
        headers = self._headers() | {"Range": f"bytes={start}-{stop - 1}"}
        with self._failures(commit, name), self._open_stream(url, headers) as response:
            yield response

    def not_a_hub(self, why: str) -> Failure:
        """The failure for an answer that no hub would give."""
        detail = f"{self._endpoint} does not answer like a hub about {self.repo}: {why}"
        return Failure(Cause.HUB_UNAVAILABLE, detail)

    def _headers(self) -> dict[str, str]:
        # Compressed, neither sizes nor offsets would be those of the file.
        headers = {"User-Agent": "moorage", "Accept-Encoding": "identity"}
        return headers | ({"Authorization": f"Bearer {self._token}"} if self._token else {})

    def _read_answer(self, url: str) -> bytes:
        """A whole answer that has one deadline and one limit."""
        found = bytearray()
        with (
            thread_deadline(self._listing_seconds),
            session(self._endpoint).stream(
                "GET",
                url,
                params={"blobs": "true"},
                headers=self._headers(),
                timeout=self._timeout,
            ) as response,
        ):
            require_success(response)
            for piece in response.iter_raw():
                found += piece
                if len(found) > LISTING.size:
                    raise self.not_a_hub(f"the answer is larger than {human_bytes(LISTING.size)}")
        return bytes(found)

    @contextmanager
    def _open_stream(self, url: str, headers: dict[str, str]) -> Iterator[Any]:
        """An answer whose headers have come in time; its body may take as long as it grows."""
        client = session(self._endpoint)
        request = client.build_request("GET", url, headers=headers, timeout=self._timeout)
        with thread_deadline(self._listing_seconds):
            response = client.send(request, stream=True)
        with closing(response):
            require_success(response)
            yield response

    @contextmanager
    def _failures(self, revision: str, name: str = "") -> Iterator[None]:
        try:
            if is_offline_mode():  # the hub client's own switch
                raise OfflineModeIsEnabled("HF_HUB_OFFLINE is set")
            yield
        except HTTP_ERRORS as error:
            failure = failure_of(error, repo=self.repo, revision=revision, name=name)
            detail = printable(failure.detail)
            if self._token:  # an answer may quote the request
                detail = detail.replace(self._token, "***")
            raise Failure(failure.cause, detail[:SHOWN]) from None


def _checked_token(token: str | None) -> str:
    token = (token or "").strip()
    # The HTTP library would refuse such a header, and quote it.
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise Failure(Cause.SOURCE_UNAUTHORIZED, "the token holds characters that no token has")
    return token


http: Any = import_module(HfHubHTTPError.__bases__[0].__module__.partition(".")[0])
"""The hub client's HTTP library: httpx for its versions 1 and httpx2 for 2."""

MOST_ERROR_BYTES = 65_536

CODINGS = ("content-", "transfer-")
"""How headers begin that tell of a body as it came."""


@lru_cache(maxsize=16)
def session(endpoint: str) -> Any:
    """A client of one hub, which keeps its connections."""
    return guarded_client(http, Guard(endpoint))


def require_success(response: Any) -> None:
    """Raise what a refusal stands for, after no more of it than a refusal may have was read."""
    if response.status_code < 400:
        return
    body = bytearray()
    for piece in response.iter_raw():
        body += piece
        if len(body) > MOST_ERROR_BYTES:
            break
    try:
        decode(bytes(body))
    except JsonError:
        body.clear()
    kept = [(k, v) for k, v in response.headers.multi_items() if not k.startswith(CODINGS)]
    hf_raise_for_status(
        http.Response(
            response.status_code, headers=kept, content=bytes(body), request=response.request
        )
    )


HTTP_ERRORS: tuple[type[Exception], ...] = (HfHubHTTPError.__bases__[0], OfflineModeIsEnabled)
"""What a request may end with. The first is the base class of the hub client's HTTP library, which
is httpx for its versions 1 and httpx2 for 2."""

CAUSE_BY_STATUS = {
    401: Cause.SOURCE_UNAUTHORIZED,
    403: Cause.SOURCE_GATED,
    404: Cause.SOURCE_MISSING,
    410: Cause.SOURCE_MISSING,
    416: Cause.DOWNLOAD_CORRUPT,
    429: Cause.HUB_RATE_LIMITED,
    451: Cause.SOURCE_MISSING,
}

RATE_LIMIT = re.compile(r";\s*t=(\d+)")
"""The seconds until more requests are allowed, in the hub's `RateLimit` header."""


def failure_of(error: Exception, *, repo: str, revision: str, name: str = "") -> Failure:
    """Translate one of `HTTP_ERRORS`, which a request for a repository or a file ended with."""
    subject = f"{repo}/{name}" if name else repo
    if isinstance(error, OfflineModeIsEnabled):
        return Failure(Cause.SOURCE_OFFLINE, f"HF_HUB_OFFLINE is set and {subject} is not stored")
    if not isinstance(error, HfHubHTTPError):
        return Failure(Cause.HUB_UNAVAILABLE, f"{subject}: {type(error).__name__} {error}".rstrip())
    if isinstance(error, RevisionNotFoundError):
        return Failure(Cause.SOURCE_MISSING, f"{repo} has no revision {revision!r}")
    if isinstance(error, RemoteEntryNotFoundError):
        return Failure(Cause.SOURCE_INCOMPLETE, f"the hub lists {subject}, but does not have it")
    return _refusal(error, subject, revision)


def _refusal(error: HfHubHTTPError, subject: str, revision: str) -> Failure:
    status = error.response.status_code
    cause = CAUSE_BY_STATUS.get(status, Cause.HUB_UNAVAILABLE)
    if isinstance(error, GatedRepoError):
        cause = Cause.SOURCE_GATED
    message = f": {error.server_message}" if error.server_message else ""
    if status == 404:
        at = f" at revision {revision!r}" if revision else ""
        return Failure(cause, f"the hub has no repository {subject}{at}{message}")
    if status == 416:
        return Failure(cause, f"{subject} is shorter than the hub announced")
    waiting = _waiting(error.response.headers) if status == 429 else ""
    return Failure(cause, f"the hub answered {status} for {subject}{waiting}{message}")


def _waiting(headers: Mapping[str, str]) -> str:
    after = headers.get("retry-after", "").strip()
    if not after and (limit := RATE_LIMIT.search(headers.get("ratelimit", ""))):
        after = limit[1]
    if not after:
        return ""
    return f" and asks to wait {f'{after} s' if after.isdigit() else f'until {after}'}"
