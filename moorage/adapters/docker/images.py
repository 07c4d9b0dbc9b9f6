"""The images of a Docker daemon: list, find, pull, tag and remove them."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from moorage.adapters.docker import sdk
from moorage.adapters.docker.client import CONFLICT, connect, daemon, follow
from moorage.adapters.docker.connection import READ_SECONDS, DaemonError, connection
from moorage.adapters.docker.errors import pull_failure
from moorage.adapters.docker.image_list import (
    digests_of,
    find_image,
    image_names,
    local_name,
    names_of,
)
from moorage.common.failures import Cause, Failure
from moorage.common.versions import version_key
from moorage.engines.installed import ImageSize
from moorage.images.image import LACKABLE
from moorage.inventory.access import parse_access
from moorage.spec.image_reference import DEFAULT_TAG, parse_reference

if TYPE_CHECKING:
    from moorage.adapters.registry.connection import Credentials

PULL_TIMEOUT_SECONDS = 3600
MOST_LAYERS = 1000
"""Most layers of one pull whose progress is shown; an image has 127 at most."""

ANSWER_SECONDS = 10
"""Limit for a daemon's answer; it may be pulling."""

SIZES_API = "1.45"
"""Newest API version with the sizes as they are read here; a later one sums them up."""

HELPER_BROKEN = "Credentials store error"
"""Begins Docker's message when the helper that keeps its logins cannot be asked."""

ASKS_FOR_LOGIN = {Cause.IMAGE_MISSING, Cause.REGISTRY_UNAUTHORIZED}
"""Causes of a failed pull after which one with a login may succeed: a registry hides an image."""

NO_HELPER = (
    "Install the program that `credsStore` or `credHelpers` names in ~/.docker/config.json of this"
    " machine, or remove that entry; or set an account under `registries.logins` in the fleet file."
)
Layers = dict[str, tuple[int, int]]
"""Arrived and total bytes of each layer."""


class LocalImage(NamedTuple):
    """An image that a daemon has.

    Attributes:
        digests: Its digests in the repository of the reference.
        architecture: CPU architecture of the image, such as `amd64`; empty = unknown.
        lacks: The words of `LACKABLE` in its label `moorage.lacks`.
        is_pulled: Whether its digests are a registry's. With containerd's image store, and in
            Podman, an image that was only built or loaded has digests too.
    """

    identity: str
    digests: tuple[str, ...] = ()
    architecture: str = ""
    lacks: tuple[str, ...] = ()
    is_pulled: bool = False


class DockerImages:
    """The images of the Docker daemon of one host, by its address as `daemon` takes it."""

    def __init__(self, address: str) -> None:
        self.address = address

    def names(self) -> frozenset[str]:
        """References and digests of all present images; raises `RUNTIME_UNAVAILABLE`."""
        with connection(self.address, READ_SECONDS) as there:
            return image_names(there)

    def sizes(self) -> tuple[ImageSize, ...]:
        """The sizes of all images; raises `RUNTIME_UNAVAILABLE`."""
        with connection(self.address, READ_SECONDS) as there:
            known = there.get("/version")
            newest = min(known["ApiVersion"], SIZES_API, key=version_key)
            version = max(newest, known.get("MinAPIVersion", newest), key=version_key)
            # Older daemons ignore the type, and also measure containers and volumes.
            answer = there.get(f"/v{version}/system/df?type=image")
        return tuple(
            ImageSize(
                identity=image["Id"],
                names=names_of(image),
                bytes=max(0, image["Size"]),
                shared=max(0, image["SharedSize"]),  # -1 = not computed
            )
            for image in answer["Images"] or ()
        )

    def disk_free(self) -> int | None:
        """Free bytes where a daemon of this machine keeps images; None = its folder is not here."""
        with connection(self.address, READ_SECONDS) as there:
            folder = str(there.get("/info").get("DockerRootDir"))
        with suppress(OSError):
            return shutil.disk_usage(folder).free
        return None

    def name_of(self, reference: str) -> str:
        """The name by which the daemon knows an image, as `local_name`."""
        with connection(self.address, READ_SECONDS) as there:
            return local_name(there, reference)

    def find(self, reference: str, *, by_digest: bool = False) -> LocalImage | None:
        """An image by tag, digest or id; None when it is missing.

        Args:
            by_digest: Whether an image with the digest of the reference counts in any repository.
        """
        with connection(self.address, READ_SECONDS) as there:
            try:
                name = local_name(there, reference) if by_digest else reference
                attributes = find_image(there, name)
            except DaemonError as error:
                raise pull_failure(error.explanation, reference) from error
        if attributes is None:
            return None
        labels = (attributes.get("Config") or {}).get("Labels") or {}
        digests = digests_of(attributes, reference)
        # The usual driver of Docker's classic image store; no other store has one of this name.
        is_classic = (attributes.get("GraphDriver") or {}).get("Name") == "overlay2"
        return LocalImage(
            identity=str(attributes["Id"]),
            digests=digests,
            architecture=str(attributes.get("Architecture") or ""),
            lacks=tuple(sorted(LACKABLE.intersection(labels.get("moorage.lacks", "").split(",")))),
            is_pulled=bool(digests) and is_classic,
        )

    def pull(
        self,
        reference: str,
        on_progress: Callable[[int, int], None],
        credentials: Credentials | None = None,
        seconds: float = math.inf,
    ) -> None:
        """Pull an image.

        After an interruption the daemon resumes a layer up to five times, with pauses of 5 to 25 s.
        Complete layers are not fetched again. A daemon without containerd's image store discards
        the layers of a pull that failed.

        Args:
            on_progress: Called with the bytes done and the total known so far.
            credentials: Account of the registry; None = the account of `docker login`, if it can
                be read.
            seconds: How long it may take.
        """
        login = credentials.model_dump() if credentials else None
        try:
            self._pull(reference, on_progress, login, seconds)
        except _NoLoginError as trouble:
            try:
                self._pull(reference, on_progress, {}, seconds)
            except Failure as failure:
                if failure.cause not in ASKS_FOR_LOGIN:
                    raise
                detail = f"{failure.detail}; it was asked for without a login: {trouble}"
                cause = Cause.REGISTRY_UNAUTHORIZED
                raise Failure(cause, detail, suggestion=NO_HELPER) from failure

    def _pull(
        self,
        reference: str,
        on_progress: Callable[[int, int], None],
        login: dict[str, str] | None,
        seconds: float,
    ) -> None:
        """Pull; an empty login means no account, None that of `docker login`."""
        layers: Layers = {}
        with daemon(self.address, PULL_TIMEOUT_SECONDS) as client:
            pulling = partial(
                client.api.pull, reference, stream=True, decode=True, auth_config=login
            )
            access = parse_access(self.address)
            events = follow(pulling, lambda: connect(access, ANSWER_SECONDS).ping(), seconds)
            try:
                for event in events:
                    if "error" in event:
                        raise pull_failure(str(event["error"]), reference)
                    if _update_layers(layers, event):
                        done, total = map(sum, zip(*layers.values(), strict=True))
                        on_progress(done, total)
            except sdk.APIError as error:
                raise pull_failure(str(error.explanation or error), reference) from error
            except sdk.DockerException as error:
                if not str(error).startswith(HELPER_BROKEN):
                    raise
                raise _NoLoginError(str(error)) from None
            except TimeoutError:
                detail = f"{reference}: the pull did not end within {seconds:g} s"
                raise Failure(Cause.IMAGE_PULL_TIMEOUT, detail) from None

    def remove(self, reference: str) -> str:
        """Remove an image by one of its names; returns why it stays, empty = it is not there.

        An image of any existing container stays.
        """
        with daemon(self.address) as client:
            try:
                client.api.remove_image(reference, noprune=False)
            except sdk.ImageNotFound:
                return ""
            except sdk.APIError as error:
                reason = str(error.explanation or error)
                if error.status_code != CONFLICT:
                    raise pull_failure(reason, reference) from error
                return reason
        return ""

    def tag(self, pinned: str, reference: str) -> None:
        """Give an image that was pulled by digest its requested tag."""
        with daemon(self.address) as client:
            wanted = parse_reference(reference)
            client.images.get(pinned).tag(wanted.name, tag=wanted.tag or DEFAULT_TAG)


class _NoLoginError(Exception):
    """The account of `docker login` cannot be read: the helper that keeps it fails."""


def _update_layers(layers: Layers, event: dict[str, Any]) -> bool:
    """Process a daemon's progress event; returns whether it changed the numbers."""
    layer, status = event.get("id", ""), event.get("status", "")
    detail, (_, known) = event.get("progressDetail") or {}, layers.get(layer, (0, 0))
    if len(layers) >= MOST_LAYERS and layer not in layers:
        return False
    if status == "Downloading" and detail.get("total"):
        # After an interruption the daemon counts the remaining bytes only.
        left = int(detail["total"])
        whole = max(left, known)
        layers[layer] = (whole - left + int(detail["current"]), whole)
        return True
    if status == "Download complete" and layer in layers:
        layers[layer] = (known, known)
        return True
    return False
