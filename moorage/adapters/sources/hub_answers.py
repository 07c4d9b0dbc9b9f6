"""What the hub's answers mean: refusals as causes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RevisionNotFoundError,
)

from moorage.common.failures import Cause, Failure

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
    """Translate what a request for a repository or one of its files ended with.

    Args:
        error: One of `HTTP_ERRORS`.
        repo: `org/repo`.
        revision: Branch, tag or commit; empty = the default branch.
        name: The requested file, if it was a file.
    """
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
