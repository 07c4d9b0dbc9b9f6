"""The Docker runtime: containers without privileges, with exactly the claimed devices."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus

from moorage.adapters.docker import sdk
from moorage.adapters.docker.client import CONFLICT, daemon
from moorage.adapters.docker.container_options import container_arguments, deliver
from moorage.adapters.docker.container_states import belongs, observe_containers
from moorage.adapters.docker.errors import start_failure
from moorage.adapters.docker.images import DockerImages
from moorage.adapters.engines.engine_folders import make_cache_folders
from moorage.adapters.hosts.observation import Observation, log_of_container
from moorage.adapters.secrets import redact
from moorage.common.failures import Cause, Failure
from moorage.engines.labels import LABEL_LEDGER, LABEL_RELEASE
from moorage.engines.launch import ContainerSpec, planned_workload
from moorage.engines.workload import Workload
from moorage.inventory.access import parse_access
from moorage.inventory.devices import require_device_requests

RUN_TIMEOUT_SECONDS = 300
REMOVAL_SECONDS = 60
"""Limit for a removal that another process has started."""


class DockerRuntime:
    """The Docker daemon of one host, by its address as `daemon` takes it."""

    def __init__(self, address: str) -> None:
        self.address, self._images = address, DockerImages(address)

    def version(self) -> str:
        """The daemon's version; raises `RUNTIME_UNAVAILABLE` if it does not answer."""
        with daemon(self.address) as client:
            return str(client.version()["Version"])

    def start(self, spec: ContainerSpec, secrets: Mapping[str, str]) -> Workload:
        """Create and start a container. It replaces a leftover container of the same release."""
        with daemon(self.address) as client:
            self._clear(client, spec)
            if not parse_access(self.address).is_remote:
                make_cache_folders(spec)
            arguments = container_arguments(spec) | {"image": self._images.name_of(spec.image)}
            if arguments["device_requests"]:
                require_device_requests(client.version(), spec.host)
            try:
                container = client.containers.create(**arguments)
                try:
                    deliver(container, spec, secrets)
                    container.start()
                except (sdk.APIError, Failure):
                    remove_container(container)
                    remove_volumes(client, spec.labels[LABEL_RELEASE], spec.labels[LABEL_LEDGER])
                    raise
            except sdk.ImageNotFound as error:
                raise Failure(Cause.IMAGE_MISSING, f"{spec.image} is not on {spec.host}") from error
            except sdk.APIError as error:
                raise start_failure(error, spec) from error
            return planned_workload(spec).model_copy(update={"identity": container.id})

    def observe(self, workload: Workload) -> Observation:
        """The container's state."""
        return observe_containers(self.address, [workload])[0]

    def logs(self, workload: Workload, tail: int) -> str:
        """The last lines of both streams, redacted; empty without the container."""
        with daemon(self.address) as client:
            try:
                container = _find(client, workload)
                return redact(log_of_container(container, tail)) if container else ""
            except sdk.APIError as error:
                if error.status_code not in (HTTPStatus.NOT_FOUND, CONFLICT):
                    raise
                return ""  # another process removes it, or has removed it

    def stop(self, workload: Workload, grace_seconds: float) -> None:
        """Send SIGTERM, SIGKILL after the grace period, then remove. A foreign container stays."""
        with daemon(self.address) as client:
            with suppress(sdk.NotFound):
                if container := _find(client, workload):
                    container.stop(timeout=int(grace_seconds))
                    remove_container(container)
            remove_volumes(client, workload.release, workload.ledger)

    def output_of(self, image: str, program: str, arguments: list[str]) -> str:
        """Output of a program in a temporary container without a network; if empty, its errors.

        Raises:
            Failure: `IMAGE_MISSING` when the host does not have the image, `LAUNCH_REFUSED` when
                the program fails.
        """
        with daemon(self.address, RUN_TIMEOUT_SECONDS) as client:
            try:
                container = client.containers.create(
                    self._images.name_of(image),
                    arguments,
                    entrypoint=[program],
                    network_mode="none",
                    use_config_proxy=False,
                )
            except sdk.ImageNotFound as error:
                raise Failure(Cause.IMAGE_MISSING, f"{image} is not on this host") from error
            try:
                container.start()
                code = container.wait(timeout=RUN_TIMEOUT_SECONDS)["StatusCode"]
                output = log_of_container(container, stdout=True, stderr=code != 0)
                output = output or log_of_container(container, stdout=False, stderr=True)
            finally:
                remove_container(container)
        if code:
            raise Failure(Cause.LAUNCH_REFUSED, f"{image}: {output[-500:]}")
        return output

    def _clear(self, client: sdk.DockerClient, spec: ContainerSpec) -> None:
        try:
            leftover = client.containers.get(spec.name)
        except sdk.NotFound:
            return
        if not belongs(leftover.labels, planned_workload(spec)):
            raise Failure(
                Cause.LAUNCH_REFUSED,
                f"a container named {spec.name} is on {spec.host} that this ledger does not know",
                suggestion="Another ledger may have this model name too: then rename yours."
                f" Otherwise remove the container: `docker rm {spec.name}`.",
            )
        with suppress(sdk.NotFound):
            remove_container(leftover)


def _find(client: sdk.DockerClient, workload: Workload) -> sdk.Container | None:
    """The container of a workload; None also for a foreign container of the same name."""
    try:
        container = client.containers.get(workload.name)
    except sdk.NotFound:
        return None
    return container if belongs(container.labels, workload) else None


def remove_container(container: sdk.Container) -> None:
    """Remove a container with its anonymous volumes, whether it runs or not.

    Docker answers 409 while another removal is in progress. Then this waits for the end of that
    removal, so that the name and ports are free afterwards.

    Raises:
        NotFound: When the container has already been removed.
        APIError: When the daemon refuses for another reason.
    """
    try:
        container.remove(force=True, v=True)
    except sdk.APIError as error:
        if "already in progress" not in str(error.explanation):
            raise
        with suppress(sdk.NotFound):
            container.wait(condition="removed", timeout=REMOVAL_SECONDS)


def remove_volumes(client: sdk.DockerClient, release: str, ledger: str) -> None:
    """Remove the volumes of a release. A volume that a container still uses stays.

    Volumes are found by label, because the process that removed the container may have been killed
    before it removed the volumes.
    """
    own = [f"{LABEL_RELEASE}={release}", f"{LABEL_LEDGER}={ledger}"]
    for volume in client.volumes.list(filters={"label": own}):
        try:
            volume.remove()
        except sdk.APIError as error:
            if error.status_code not in (HTTPStatus.NOT_FOUND, CONFLICT):
                raise
