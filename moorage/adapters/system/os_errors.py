"""Translates error messages of disks, networks and registry connections to failures."""

import errno
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from moorage.common.failures import Cause, Failure

CAUSES = {
    errno.ENOSPC: Cause.DISK_FULL,
    errno.EDQUOT: Cause.DISK_FULL,
    errno.EACCES: Cause.STORE_UNWRITABLE,
    errno.EPERM: Cause.STORE_UNWRITABLE,
    errno.EROFS: Cause.STORE_UNWRITABLE,
    errno.EIO: Cause.STORE_UNWRITABLE,
    errno.ESTALE: Cause.STORE_UNWRITABLE,
}
"""Causes of errors of a disk; the last two are those of a broken disk, and of NFS."""


class ErrorText(NamedTuple):
    """Part of an error message, in upper or lower case, with the cause that it indicates.

    Attributes:
        suggestion: What to do, if it is more specific than the suggestion for the cause.
    """

    fragment: str
    cause: Cause
    suggestion: str | None = None


def failure_of(text: str, detail: str, texts: Sequence[ErrorText], otherwise: Cause) -> Failure:
    """The failure for a message: the first entry that matches decides, otherwise `otherwise`."""
    found = (entry for entry in texts if entry.fragment.lower() in text.lower())
    _, cause, suggestion = next(found, ErrorText("", otherwise))
    return Failure(cause, detail, suggestion=suggestion)


NO_NAME = "No machine has that name: correct `address`, or make the name known (DNS, /etc/hosts)."
NOTHING_LISTENS = (
    "The machine answers, but nothing listens there: start Docker (or `sshd`), or correct the port."
)
SILENT = "See whether the machine is up and not overloaded, and whether a firewall is between."

NETWORK_ERRORS = (
    ErrorText("Could not resolve", Cause.RUNTIME_UNAVAILABLE, NO_NAME),
    ErrorText("Failed to resolve", Cause.RUNTIME_UNAVAILABLE, NO_NAME),
    ErrorText("Name or service not known", Cause.RUNTIME_UNAVAILABLE, NO_NAME),
    ErrorText("Connection refused", Cause.RUNTIME_UNAVAILABLE, NOTHING_LISTENS),
    ErrorText("timed out", Cause.RUNTIME_UNAVAILABLE, SILENT),
    ErrorText("No route to host", Cause.RUNTIME_UNAVAILABLE, SILENT),
    ErrorText("Network is unreachable", Cause.RUNTIME_UNAVAILABLE, SILENT),
)

CLOCK = (
    "Compare the host's clock (`date -u`) with the dates of the registry's certificate; set the"
    " clock, or have the certificate renewed."
)
PLAIN_HTTP = (
    "It speaks plain HTTP: list it under `registries.insecure` in the fleet file and under"
    " `insecure-registries` of the host's Docker daemon, or give it a certificate."
)
REGISTRY_ERRORS = (
    ErrorText("toomanyrequests", Cause.REGISTRY_RATE_LIMITED),
    ErrorText("429 too many requests", Cause.REGISTRY_RATE_LIMITED),
    ErrorText("http 429 response", Cause.REGISTRY_RATE_LIMITED),
    ErrorText("certificate has expired", Cause.REGISTRY_UNTRUSTED, CLOCK),
    ErrorText("not yet valid", Cause.REGISTRY_UNTRUSTED, CLOCK),
    ErrorText("http response to https client", Cause.REGISTRY_UNTRUSTED, PLAIN_HTTP),
    ErrorText("wrong_version_number", Cause.REGISTRY_UNTRUSTED, PLAIN_HTTP),
    ErrorText("record_layer_failure", Cause.REGISTRY_UNTRUSTED, PLAIN_HTTP),
    ErrorText("certificate_verify_failed", Cause.REGISTRY_UNTRUSTED),
    ErrorText("_alert_", Cause.REGISTRY_UNTRUSTED),
    ErrorText("x509: ", Cause.REGISTRY_UNTRUSTED),
    ErrorText("tls: ", Cause.REGISTRY_UNTRUSTED),
)

_NESTING = re.compile(r""": |, '|, \"""")
_IN_WORDS = (
    (re.compile(r".*handshake operation timed out"), "timed out: no answer over TLS"),
    (re.compile(r"Read timed out\. \(read timeout=(\d+).*\)"), r"timed out: no answer within \1 s"),
    (
        re.compile(r".* timed out\. \(connect timeout=(\d+).*\)"),
        r"timed out: no connection within \1 s",
    ),
    (re.compile(r"\('Connection aborted\.', \w+\((?:\d+, )?'([^']*)'\)\)"), r"\1"),
)
"""Messages of Python's libraries when a machine does not answer, and what a person reads."""


def unwritten(path: object, error: OSError) -> Failure:
    """The failure for a failed write: `DISK_FULL`, also for a quota, or `STORE_UNWRITABLE`."""
    cause = CAUSES.get(error.errno or 0, Cause.STORE_UNWRITABLE)
    return Failure(cause, f"{path}: {error.strerror or error}")


@contextmanager
def disk_failures(folder: Path) -> Iterator[None]:
    """Raise `DISK_FULL`, also for a quota, or `STORE_UNWRITABLE` for such errors in the block."""
    try:
        yield
    except OSError as error:
        if (cause := CAUSES.get(error.errno or 0)) is None:
            raise
        raise Failure(cause, f"writing below {folder}: {error}") from None


def innermost_message(text: str) -> str:
    """The first line of an error; if it wraps other errors, the innermost message."""
    message = text.partition("\n")[0]
    if "ConnectionPool(" in message:
        inner = _NESTING.split(message)[-1].rstrip("\"')")
        message = inner + ")" * (inner.count("(") - inner.count(")"))
    for pattern, plain in _IN_WORDS:
        message = pattern.sub(plain, message)
    return message[:300]
