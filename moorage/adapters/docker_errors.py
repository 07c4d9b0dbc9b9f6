"""What Docker's words mean when it cannot start or pull something."""

from __future__ import annotations

from docker.errors import APIError

from moorage.adapters.network_errors import NETWORK_ERRORS, plain
from moorage.failures import Cause, Failure
from moorage.launch import ContainerSpec

START_ERRORS: tuple[tuple[str, Cause], ...] = (
    ("port is already allocated", Cause.PORT_TAKEN),
    ("address already in use", Cause.PORT_TAKEN),
    ("unsatisfied condition: cuda", Cause.DRIVER_TOO_OLD),
    ("could not select device driver", Cause.ACCELERATOR_RUNTIME_MISSING),
    ("Unknown runtime specified", Cause.ACCELERATOR_RUNTIME_MISSING),
    ("unresolvable CDI devices", Cause.ACCELERATOR_RUNTIME_MISSING),
    ("nvidia-container-cli", Cause.ACCELERATOR_RUNTIME_MISSING),
    ("nvidia-container-runtime", Cause.ACCELERATOR_RUNTIME_MISSING),
    ("no space left on device", Cause.DISK_FULL),
    ("executable file not found", Cause.PROGRAM_MISSING),
    ("no such file or directory", Cause.PROGRAM_MISSING),
)
"""Texts of the daemon when a start fails, and what they mean; the first that matches counts."""

PULL_ERRORS: tuple[tuple[str, Cause], ...] = (
    ("no basic auth credentials", Cause.REGISTRY_UNAUTHORIZED),
    ("incorrect username or password", Cause.REGISTRY_UNAUTHORIZED),
    ("no space left on device", Cause.DISK_FULL),
    ("not found", Cause.IMAGE_MISSING),
    ("manifest unknown", Cause.IMAGE_MISSING),
    ("does not exist", Cause.IMAGE_MISSING),
    # Said of what is not there, too: a registry shows nothing to somebody without a login.
    ("denied", Cause.IMAGE_MISSING),
    ("unauthorized", Cause.IMAGE_MISSING),
    ("invalid reference", Cause.IMAGE_MISSING),
    ("must be lowercase", Cause.IMAGE_MISSING),
)
"""Texts of a daemon when a pull fails, and what they mean; the first that matches counts."""

NO_CERTIFICATES = (
    "The directory of `tls` has to hold `ca.pem`, `cert.pem` and `key.pem`, and this user must be"
    " able to read them."
)

REACH_ERRORS: tuple[tuple[str, Cause, str], ...] = (
    (
        "certificate verify failed",
        Cause.HOST_UNTRUSTED,
        "The `ca.pem` of `tls` did not sign the daemon's certificate, or that is for another"
        " address.",
    ),
    (
        "bad certificate",
        Cause.HOST_UNAUTHORIZED,
        "The daemon does not take the `cert.pem` of `tls`: its own authority did not sign it.",
    ),
    ("certificate required", Cause.HOST_UNAUTHORIZED, "The daemon asks for a `tls` certificate."),
    (
        "HTTP request to an HTTPS server",
        Cause.HOST_UNAUTHORIZED,
        "The daemon speaks TLS: name the directory of the certificates under `tls`.",
    ),
    (
        "wrong version number",
        Cause.RUNTIME_UNAVAILABLE,
        "What listens there does not speak TLS: check the port (TLS is usually on 2376).",
    ),
    ("Path to a certificate", Cause.HOST_UNAUTHORIZED, NO_CERTIFICATES),
    ("Invalid CA certificate", Cause.HOST_UNAUTHORIZED, NO_CERTIFICATES),
    *NETWORK_ERRORS,
)
"""Texts when a daemon cannot be talked to, and what they mean."""


def start_failure(error: APIError, spec: ContainerSpec) -> Failure:
    """The failure behind a daemon's answer to a start."""
    text = str(error.explanation or error)
    for fragment, cause in START_ERRORS:
        if fragment.lower() in text.lower():
            return Failure(cause, f"{spec.name} on {spec.host}: {text}")
    return Failure(Cause.LAUNCH_REFUSED, f"{spec.name} on {spec.host}: {text}")


def pull_failure(text: str, reference: str) -> Failure:
    """The failure behind a daemon's answer to a pull."""
    for fragment, cause in PULL_ERRORS:
        if fragment in text.lower():
            return Failure(cause, f"{reference}: {text}")
    return Failure(Cause.IMAGE_PULL_FAILED, f"{reference}: {text}")


def reach_failure(
    error: Exception, address: str, otherwise: Cause = Cause.RUNTIME_UNAVAILABLE
) -> Failure:
    """The failure behind a daemon that cannot be talked to, or that refused what was asked."""
    text = str(getattr(error, "explanation", None) or error)
    detail = f"Docker at {address}: {plain(text)}"
    for fragment, cause, suggestion in REACH_ERRORS:
        if fragment.lower() in text.lower().replace("_", " "):
            return Failure(cause, detail, suggestion=suggestion)
    return Failure(otherwise, detail)
