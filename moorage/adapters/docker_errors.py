"""What Docker's words mean when it cannot start something."""

from __future__ import annotations

from docker.errors import APIError

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


def start_failure(error: APIError, spec: ContainerSpec) -> Failure:
    """The failure behind a daemon's answer to a start."""
    text = str(error.explanation or error)
    for fragment, cause in START_ERRORS:
        if fragment.lower() in text.lower():
            return Failure(cause, f"{spec.name} on {spec.host}: {text}")
    return Failure(Cause.LAUNCH_REFUSED, f"{spec.name} on {spec.host}: {text}")
