"""Client of one repository on a hub, through huggingface_hub. Every error becomes a `Failure`."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from http.client import HTTPException, HTTPResponse
from importlib import import_module
from typing import Any
from urllib.parse import quote, urlsplit

from huggingface_hub import errors, hf_raise_for_status, is_offline_mode
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from moorage.adapters.sources.remote_source import (
    WAITS,
    RemoteClient,
    retryable_failures,
    with_retries,
)
from moorage.adapters.sources.store import CHECKSUM, COMMIT, MOST_FILES, is_size, require_inside
from moorage.adapters.transfer.http_answer import body_of, headers_of
from moorage.adapters.transfer.http_pool import HttpPool
from moorage.adapters.transfer.range_answer import Answer
from moorage.common.failures import Cause, Failure
from moorage.common.printable import printable
from moorage.common.strict_json import JsonError, JsonLimits, decode
from moorage.common.units import MIB, human_bytes
from moorage.models.source import ModelFile, ResolvedModel

TIMEOUT_SECONDS = 30.0
LISTING_SECONDS = 60.0
"""Limit for a whole listing. A listing of thousands of files arrives in a second or two."""

LISTING = JsonLimits(size=32 * MIB, entries=1_000_000)
SHOWN = 1000
"""Limit of the characters of an error's detail, which may quote the hub's answer."""

MOST_ERROR_BYTES = 65_536
BODY_HEADERS = ("content-", "transfer-")
"""Prefixes of the headers that describe the encoding of a body."""

http: Any = import_module(errors.HfHubHTTPError.__bases__[0].__module__.partition(".")[0])
"""The hub client's HTTP library: httpx for version 1 of the client, httpx2 for version 2."""

HTTP_ERRORS: tuple[type[Exception], ...] = (
    errors.HfHubHTTPError,
    errors.OfflineModeIsEnabled,
    HTTPException,
    OSError,
)
"""Errors that a request may raise."""

CAUSE_BY_STATUS = {
    401: Cause.SOURCE_UNAUTHORIZED,
    403: Cause.SOURCE_GATED,
    404: Cause.SOURCE_MISSING,
    410: Cause.SOURCE_MISSING,
    416: Cause.DOWNLOAD_CORRUPT,
    429: Cause.HUB_RATE_LIMITED,
    451: Cause.SOURCE_MISSING,
}

UNTRUSTED = (
    "This machine does not trust the certificate of the hub, or of a proxy on the way: name the"
    " file of its authority in SSL_CERT_FILE."
)
SET_TOKEN = "set the variable HF_TOKEN, or `secrets: {HF_TOKEN: NAME}` in the spec"

RATE_LIMIT = re.compile(r";\s*t=(\d+)")
"""The seconds until more requests are allowed, in the hub's `RateLimit` header."""


class HubClient(RemoteClient):
    """One repository on the hub. Requests are retried while the hub cannot be reached.

    Args:
        token: Access token. It is sent to the endpoint only, and appears in no message.
        timeout: Seconds to wait for a connection and for each next byte.
        listing_seconds: Seconds that a listing, and the headers before a file, may take in all.

    Raises:
        Failure: `SOURCE_UNAUTHORIZED` when the token has characters that no token has.
    """

    def __init__(
        self,
        repo: str,
        endpoint: str,
        token: str | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        listing_seconds: float = LISTING_SECONDS,
        waits: tuple[float, ...] = WAITS,
    ) -> None:
        super().__init__(repo, waits)
        self._endpoint, self._host = endpoint.rstrip("/"), urlsplit(endpoint).hostname or ""
        self._token = (token or "").strip()
        # The HTTP client would refuse such a header, and quote it.
        if self._token and not re.fullmatch(r"[!-~]+", self._token):
            raise Failure(Cause.SOURCE_UNAUTHORIZED, "the token holds characters that no token has")
        self._listing_seconds = listing_seconds
        self._pool = HttpPool(
            self._endpoint,
            seconds=timeout,
            head_seconds=listing_seconds,
            proxied=True,
            context=authorities,
        )

    def list_files(self, revision: str) -> tuple[str, tuple[ModelFile, ...]]:
        """The current commit of a revision, and its files; empty = the default branch.

        Raises:
            Failure: As `failure_of` and `require_inside`; `HUB_UNAVAILABLE` when the answer is not
                a hub's, `SOURCE_CORRUPT` when there are too many files.
        """
        listing = with_retries(partial(self._listing, revision), self._waits)
        commit, entries = listing.get("sha"), listing.get("siblings")
        if not isinstance(commit, str) or not COMMIT.fullmatch(commit):
            raise self._not_a_hub("it names no commit")
        if not isinstance(entries, list):
            raise self._not_a_hub("it lists no files")
        if len(entries) > MOST_FILES:
            detail = f"there are more than {MOST_FILES:,} files in {self.repo}"
            raise Failure(Cause.SOURCE_CORRUPT, detail)
        files = tuple(self._file(entry) for entry in entries)
        if len({file.name for file in files}) < len(files):
            raise self._not_a_hub("it lists a file twice")
        return commit, files

    @contextmanager
    def open_range(self, commit: str, file: ModelFile, start: int, stop: int) -> Iterator[Answer]:
        """Request a range of a file; retryable if the hub cannot be reached."""
        url, headers = self._url(commit, file), {"Range": f"bytes={start}-{stop - 1}"}
        with ExitStack() as stack:
            with retryable_failures(), self._failures(commit, file.name):
                answer = stack.enter_context(self._pool.get(url, self._headers(headers)))
                headers = headers_of(answer)
                request = http.Request("GET", url)
                require_success(request, answer.status, headers.items(), body_of(answer))
            yield Answer(answer.status, headers, partial(self._blocks, commit, file, answer))

    def mirror(self, model: ResolvedModel, seconds: float) -> dict[str, Any]:  # noqa: ARG002
        """The hub's own addresses, which do not expire. The token is sent to the hub only."""
        return {
            "name": "hub",
            "headers": {"Authorization": f"Bearer {self._token}"} if self._token else {},
            "urls": {file.name: self._url(model.revision, file) for file in model.files},
        }

    def _blocks(
        self, commit: str, file: ModelFile, answer: HTTPResponse, into: memoryview | None
    ) -> Iterator[bytes | memoryview]:
        with retryable_failures(), self._failures(commit, file.name):
            yield from body_of(answer, into)

    def _url(self, commit: str, file: ModelFile) -> str:
        # `hf_hub_url` would import the whole downloader of the hub's client.
        return f"{self._endpoint}/{self.repo}/resolve/{commit}/{quote(file.name)}"

    @retryable_failures()
    def _listing(self, revision: str) -> dict[str, Any]:
        try:
            validate_repo_id(self.repo)
        except errors.HFValidationError as error:
            raise Failure(Cause.SOURCE_MISSING, str(error)) from None
        at = f"/revision/{quote(revision, safe='')}" if revision else ""
        url = f"{self._endpoint}/api/models/{self.repo}{at}?blobs=true"
        body = bytearray()
        with self._failures(revision), self._pool.get(url, self._headers({})) as answer:
            headers = headers_of(answer).items()
            require_success(http.Request("GET", url), answer.status, headers, body_of(answer))
            answer.lift_deadline(self._listing_seconds)
            for piece in body_of(answer):
                body += piece
                if len(body) > LISTING.size:
                    raise self._not_a_hub(f"the answer is larger than {human_bytes(LISTING.size)}")
        try:
            found = decode(bytes(body), LISTING)
        except JsonError as error:
            raise self._not_a_hub(f"the answer {error}") from None
        if not isinstance(found, dict):
            raise self._not_a_hub("the answer is no JSON object")
        return found

    def _headers(self, own: Mapping[str, str]) -> dict[str, str]:
        # In a compressed answer, sizes and offsets would differ from those of the file.
        sent = {"User-Agent": "moorage", "Accept-Encoding": "identity", **own}
        return sent | ({"Authorization": f"Bearer {self._token}"} if self._token else {})

    def _file(self, entry: Any) -> ModelFile:
        """A file from its entry in the listing; an entry that no hub would send is refused."""
        if not isinstance(entry, dict):
            raise self._not_a_hub("it lists what is no file")
        name, large = require_inside(entry.get("rfilename")), entry.get("lfs")
        record = large if isinstance(large, dict) else entry
        size = record.get("size")
        if not is_size(size):
            raise self._not_a_hub(f"it does not tell the size of {name}")
        kind, key = ("sha256", "sha256") if large else ("git_oid", "blobId")
        checksum = record.get(key)
        if checksum and not (isinstance(checksum, str) and CHECKSUM.fullmatch(checksum)):
            raise self._not_a_hub(f"it gives no checksum of {name}")
        return ModelFile.model_validate({"name": name, "size": size, kind: checksum or ""})

    def _not_a_hub(self, why: str) -> Failure:
        detail = f"{self._endpoint} does not answer like a hub about {self.repo}: {why}"
        return Failure(Cause.HUB_UNAVAILABLE, detail)

    @contextmanager
    def _failures(self, revision: str, name: str = "") -> Iterator[None]:
        try:
            if is_offline_mode():  # the hub client's own switch
                raise errors.OfflineModeIsEnabled("HF_HUB_OFFLINE is set")
            yield
        except HTTP_ERRORS as error:
            failure = failure_of(error, self._host, self.repo, revision, name)
            detail = printable(failure.detail)
            if self._token:  # the answer may quote the request
                detail = detail.replace(self._token, "***")
            way_out = self._way_in(failure.cause) or failure.suggestion
            raise Failure(failure.cause, detail[:SHOWN], suggestion=way_out) from None

    def _way_in(self, cause: Cause) -> str:
        """Advice when the hub refuses access; empty for other causes."""
        page = f"{self._endpoint}/{self.repo}"
        advice = {
            (Cause.SOURCE_GATED, True): f"Request access at {page} with the account of the token,"
            " then try again.",
            (Cause.SOURCE_GATED, False): f"Request access at {page}, and send a token of that"
            f" account: {SET_TOKEN}.",
            (Cause.SOURCE_UNAUTHORIZED, True): f"Replace the token that was sent: {SET_TOKEN}.",
            (Cause.SOURCE_UNAUTHORIZED, False): "Check the name: a hub answers the same for a model"
            f" that does not exist. If it is private, send a token: {SET_TOKEN}.",
        }
        return advice.get((cause, bool(self._token)), "")


@lru_cache(maxsize=1)
def authorities() -> Any:
    """The TLS context with the hub client's certificate authorities; loading them takes 40 ms."""
    return http.create_ssl_context()


def require_success(
    request: Any, status: int, headers: Iterable[tuple[str, str]], body_pieces: Iterable[bytes]
) -> None:
    """Raise the hub client's error for a refusal; reads about `MOST_ERROR_BYTES` of its body."""
    if status < 400:
        return
    body = bytearray()
    for piece in body_pieces:
        body += piece
        if len(body) > MOST_ERROR_BYTES:
            break
    try:
        decode(bytes(body))
    except JsonError:
        body.clear()
    kept = [(k, v) for k, v in headers if not k.startswith(BODY_HEADERS)]
    hf_raise_for_status(http.Response(status, headers=kept, content=bytes(body), request=request))


def failure_of(error: Exception, host: str, repo: str, revision: str, name: str) -> Failure:
    """The failure for one of `HTTP_ERRORS`, raised by a request to the hub's host for a file.

    Without a name, the request was for the listing of the repository.
    """
    subject = f"{repo}/{name}" if name else repo
    if isinstance(error, errors.OfflineModeIsEnabled):
        return Failure(Cause.SOURCE_OFFLINE, f"HF_HUB_OFFLINE is set and {subject} is not stored")
    if not isinstance(error, errors.HfHubHTTPError):
        at = "" if name else f" ({host})"  # a file may be elsewhere
        detail = f"{subject}: {type(error).__name__} {error}".rstrip() + at
        untrusted = "CERTIFICATE_VERIFY_FAILED" in detail
        return Failure(Cause.HUB_UNAVAILABLE, detail, suggestion=UNTRUSTED if untrusted else None)
    if isinstance(error, errors.RevisionNotFoundError):
        return Failure(Cause.SOURCE_MISSING, f"{repo} has no revision {revision!r}")
    if isinstance(error, errors.RemoteEntryNotFoundError):
        return Failure(Cause.SOURCE_INCOMPLETE, f"the hub lists {subject}, but does not have it")
    status = error.response.status_code
    cause = CAUSE_BY_STATUS.get(status, Cause.HUB_UNAVAILABLE)
    if isinstance(error, errors.GatedRepoError):
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
    limit = RATE_LIMIT.search(headers.get("ratelimit", ""))
    after = headers.get("retry-after", "").strip() or (limit[1] if limit else "")
    if not after:
        return ""
    return f" and asks to wait {after} s" if after.isdigit() else f" and asks to wait until {after}"
