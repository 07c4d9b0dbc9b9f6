"""Error messages of OpenSSL and Docker about registries, as failures."""

from __future__ import annotations

from typing import NamedTuple

from moorage.common.failures import Cause, Failure

CLOCK = (
    "Compare the host's clock (`date -u`) with the dates of the registry's certificate; set the"
    " clock, or have the certificate renewed."
)
PLAIN_HTTP = (
    "It speaks plain HTTP: list it under `registries.insecure` in the fleet file and under"
    " `insecure-registries` of the host's Docker daemon, or give it a certificate."
)
DOCKER_DISK = (
    "Free some space where Docker keeps its images: `docker system df` shows what is used."
)


class Words(NamedTuple):
    """A text, in lower case, and what it means.

    Attributes:
        fragment: Part of the text.
        cause: What it means.
        suggestion: What to do, where more is known than for the cause in general.
    """

    fragment: str
    cause: Cause
    suggestion: str | None = None


CONNECTION: tuple[Words, ...] = (
    Words("toomanyrequests", Cause.REGISTRY_RATE_LIMITED),
    Words("429 too many requests", Cause.REGISTRY_RATE_LIMITED),
    Words("http 429 response", Cause.REGISTRY_RATE_LIMITED),
    Words("certificate has expired", Cause.REGISTRY_UNTRUSTED, CLOCK),
    Words("not yet valid", Cause.REGISTRY_UNTRUSTED, CLOCK),
    Words("http response to https client", Cause.REGISTRY_UNTRUSTED, PLAIN_HTTP),
    Words("wrong_version_number", Cause.REGISTRY_UNTRUSTED, PLAIN_HTTP),
    Words("record_layer_failure", Cause.REGISTRY_UNTRUSTED, PLAIN_HTTP),
    Words("certificate_verify_failed", Cause.REGISTRY_UNTRUSTED),
    Words("_alert_", Cause.REGISTRY_UNTRUSTED),
    Words("x509: ", Cause.REGISTRY_UNTRUSTED),
    Words("tls: ", Cause.REGISTRY_UNTRUSTED),
)
"""Messages about the connection to a registry; the first match counts."""

PULL: tuple[Words, ...] = (
    *CONNECTION,
    Words("no basic auth credentials", Cause.REGISTRY_UNAUTHORIZED),
    Words("http 401 response", Cause.REGISTRY_UNAUTHORIZED),
    Words("http 403 response", Cause.REGISTRY_UNAUTHORIZED),
    Words("incorrect username or password", Cause.REGISTRY_UNAUTHORIZED),
    Words("no space left on device", Cause.DISK_FULL, DOCKER_DISK),
    Words("no matching manifest", Cause.NO_IMAGE),
    Words("not found", Cause.IMAGE_MISSING),
    Words("manifest unknown", Cause.IMAGE_MISSING),
    Words("does not exist", Cause.IMAGE_MISSING),
    # Also the message for missing images: a registry shows nothing without a login.
    Words("denied", Cause.IMAGE_MISSING),
    Words("unauthorized", Cause.IMAGE_MISSING),
    Words("invalid reference", Cause.IMAGE_MISSING),
    Words("must be lowercase", Cause.IMAGE_MISSING),
)
"""Messages of a daemon about a failed pull; the first match counts."""


def pull_failure(text: str, reference: str) -> Failure:
    """The failure behind a daemon's answer to a pull."""
    return failure_of(text, reference, PULL) or Failure(
        Cause.IMAGE_PULL_FAILED, f"{reference}: {text}"
    )


def failure_of(text: str, subject: str, words: tuple[Words, ...]) -> Failure | None:
    """The failure that a message means; None = no entry matches."""
    lower = text.lower()
    for entry in words:
        if entry.fragment in lower:
            return Failure(entry.cause, f"{subject}: {text}", suggestion=entry.suggestion)
    return None
