"""Docker's error messages as failures: for starts, and for daemons that cannot be reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.adapters.system.os_errors import (
    NETWORK_ERRORS,
    REGISTRY_ERRORS,
    ErrorText,
    failure_of,
    innermost_message,
)
from moorage.common.failures import Cause, Failure
from moorage.inventory.devices import device_kind

if TYPE_CHECKING:
    from docker.errors import APIError

    from moorage.engines.launch import ContainerSpec

LOST_GPU = (
    "`nvidia-smi -L` on the host lists the GPUs that are left. Deploy the model again: it takes"
    " others."
)

START_ERRORS: tuple[ErrorText, ...] = (
    ErrorText("port is already allocated", Cause.PORT_TAKEN),
    ErrorText("address already in use", Cause.PORT_TAKEN),
    ErrorText("unsatisfied condition: cuda", Cause.DRIVER_TOO_OLD),
    ErrorText("could not select device driver", Cause.ACCELERATOR_RUNTIME_MISSING),
    ErrorText("Unknown runtime specified", Cause.ACCELERATOR_RUNTIME_MISSING),
    ErrorText("unresolvable CDI devices", Cause.ACCELERATOR_RUNTIME_MISSING),
    ErrorText("nvidia-container-cli: device error", Cause.PLACE_GONE, LOST_GPU),
    ErrorText("nvidia-container-cli", Cause.ACCELERATOR_RUNTIME_MISSING),
    ErrorText("nvidia-container-runtime", Cause.ACCELERATOR_RUNTIME_MISSING),
    ErrorText("error gathering device information", Cause.ACCELERATOR_RUNTIME_MISSING),
    # From here on: Podman's messages, then messages of both.
    ErrorText("container create: stat /dev/", Cause.ACCELERATOR_RUNTIME_MISSING),
    ErrorText(
        "container-init binary not found",  # Docker ships its own init
        Cause.LAUNCH_REFUSED,
        "Install Podman's init there (package `catatonit`).",
    ),
    ErrorText("no space left on device", Cause.DISK_FULL),
    ErrorText("executable file not found", Cause.PROGRAM_MISSING),
    ErrorText("no such file or directory", Cause.PROGRAM_MISSING),
)

REFUSED_REQUEST = "invoking the NVIDIA Container Runtime Hook directly"
"""Message of NVIDIA's toolkit in the modes `csv` (Jetson) and `cdi`, which take no device request:
https://github.com/NVIDIA/nvidia-container-toolkit, `assertModeIsLegacy`."""

NVIDIA_REMEDY = (
    "Docker there provides GPUs through its runtime `nvidia` only: `nvidia-ctk runtime configure"
    " --runtime=docker`, restart Docker and deploy again. If `docker info` lists that runtime"
    ' already, set `nvidia-container-runtime.mode = "auto"` in the toolkit\'s config.toml.'
)

NO_MOUNT = "bind source path does not exist"
"""Message for a missing directory on the host; the text ends with its path."""

NO_CERTIFICATES = (
    "The directory of `tls` has to hold `ca.pem`, `cert.pem` and `key.pem`, and this user must be"
    " able to read them."
)

REACH_ERRORS = (
    ErrorText(
        "certificate verify failed",
        Cause.HOST_UNTRUSTED,
        "The `ca.pem` of `tls` did not sign the daemon's certificate, or that is for another"
        " address.",
    ),
    ErrorText(
        "bad certificate",
        Cause.HOST_UNAUTHORIZED,
        "The daemon does not take the `cert.pem` of `tls`: its own authority did not sign it.",
    ),
    ErrorText(
        "certificate required", Cause.HOST_UNAUTHORIZED, "The daemon asks for a `tls` certificate."
    ),
    ErrorText(
        "HTTP request to an HTTPS server",
        Cause.HOST_UNAUTHORIZED,
        "The daemon speaks TLS: name the directory of the certificates under `tls`.",
    ),
    ErrorText(
        "wrong version number",
        Cause.RUNTIME_UNAVAILABLE,
        "What listens there does not speak TLS: check the port (TLS is usually on 2376).",
    ),
    ErrorText("Path to a certificate", Cause.HOST_UNAUTHORIZED, NO_CERTIFICATES),
    ErrorText("Invalid CA certificate", Cause.HOST_UNAUTHORIZED, NO_CERTIFICATES),
    ErrorText("no space left on device", Cause.DISK_FULL),
    *NETWORK_ERRORS,
)

DOCKER_DISK = (
    "Free some space where Docker keeps its images: `docker system df` shows what is used."
)

PULL_ERRORS = (
    *REGISTRY_ERRORS,
    ErrorText("no basic auth credentials", Cause.REGISTRY_UNAUTHORIZED),
    ErrorText("http 401 response", Cause.REGISTRY_UNAUTHORIZED),
    ErrorText("http 403 response", Cause.REGISTRY_UNAUTHORIZED),
    ErrorText("incorrect username or password", Cause.REGISTRY_UNAUTHORIZED),
    ErrorText("authorization token has expired", Cause.REGISTRY_UNAUTHORIZED),
    ErrorText("401 unauthorized", Cause.REGISTRY_UNAUTHORIZED),
    ErrorText("no space left on device", Cause.DISK_FULL, DOCKER_DISK),
    ErrorText("no matching manifest", Cause.NO_IMAGE),
    # containerd resolves an image before it reads its parts with this: the image exists.
    ErrorText("httpreadseeker", Cause.IMAGE_PULL_FAILED),
    ErrorText("not found", Cause.IMAGE_MISSING),
    ErrorText("manifest unknown", Cause.IMAGE_MISSING),
    ErrorText("does not exist", Cause.IMAGE_MISSING),
    # Also the message for missing images: a registry does not reveal them without a login.
    ErrorText("denied", Cause.IMAGE_MISSING),
    ErrorText("unauthorized", Cause.IMAGE_MISSING),
    ErrorText("invalid reference", Cause.IMAGE_MISSING),
    ErrorText("must be lowercase", Cause.IMAGE_MISSING),
)


def start_failure(error: APIError, spec: ContainerSpec) -> Failure:
    """The failure behind a daemon's answer to a start."""
    text = str(error.explanation or error)
    kind = device_kind(spec.accelerator_type)
    texts, detail = START_ERRORS, f"{spec.name} on {spec.host}: {text}"
    if REFUSED_REQUEST in text:
        return Failure(Cause.ACCELERATOR_RUNTIME_MISSING, detail, suggestion=NVIDIA_REMEDY)
    if NO_MOUNT in text and text.endswith(kind.mounts):
        texts = (ErrorText(NO_MOUNT, Cause.ACCELERATOR_RUNTIME_MISSING),)
    elif NO_MOUNT in text and text.endswith(tuple(mount.source for mount in spec.mounts)):
        remedy = "Deploy the model again: that brings its files back."
        texts = (ErrorText(NO_MOUNT, Cause.PLACE_GONE, remedy),)
    found = failure_of(text, detail, texts, Cause.LAUNCH_REFUSED)
    if found.cause is Cause.ACCELERATOR_RUNTIME_MISSING and kind.remedy:
        return Failure(found.cause, detail, suggestion=kind.remedy)
    return found


def reach_failure(
    error: Exception, address: str, otherwise: Cause = Cause.RUNTIME_UNAVAILABLE
) -> Failure:
    """The failure behind a daemon that cannot be reached, or that refused a request."""
    text = str(getattr(error, "explanation", None) or error)
    detail = f"Docker at {address}: {innermost_message(text)}"
    return failure_of(text.replace("_", " "), detail, REACH_ERRORS, otherwise)


def pull_failure(text: str, reference: str) -> Failure:
    """The failure behind a daemon's answer to a pull."""
    return failure_of(text, f"{reference}: {text}", PULL_ERRORS, Cause.IMAGE_PULL_FAILED)
