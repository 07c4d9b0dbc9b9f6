"""Docker: containers without privileges, with exactly the devices that were claimed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.models.containers import Container

from moorage.access import parse_access
from moorage.adapters.docker_arguments import container_arguments
from moorage.adapters.docker_client import connect, forget_clients
from moorage.adapters.docker_errors import pull_failure, reach_failure, start_failure
from moorage.adapters.observation import Observation
from moorage.adapters.registry_auth import Credentials
from moorage.failures import Cause, Failure
from moorage.images.reference import DEFAULT_TAG, parse_reference, repository
from moorage.launch import LABEL_LEDGER, LABEL_RELEASE, ContainerSpec, Workload, planned_workload

TIMEOUT_SECONDS = 60
PULL_TIMEOUT_SECONDS = 3600


class DockerRuntime:
    """The Docker daemon of one host.

    Args:
        address: A line of `Access`; `local` means what the Docker client itself would use.
    """

    def __init__(self, address: str) -> None:
        self.address = address

    def version(self) -> str:
        """The daemon's version.

        Raises:
            Failure: `RUNTIME_UNAVAILABLE`.
        """
        with self._client() as client:
            return str(client.version()["Version"])

    def images(self) -> frozenset[str]:
        """References and digests of the images that the daemon has.

        Raises:
            Failure: `RUNTIME_UNAVAILABLE`.
        """
        with self._client() as client:
            images = client.api.images()
        names = (image.get(key) or () for image in images for key in ("RepoTags", "RepoDigests"))
        return frozenset(name for some in names for name in some)

    def start(self, spec: ContainerSpec, secrets: Mapping[str, str]) -> Workload:
        """Create and start a container; one left over from the same release is replaced.

        Raises:
            Failure: With the cause that the daemon's answer stands for.
        """
        with self._client() as client:
            self._clear(client, spec)
            try:
                container = client.containers.create(**container_arguments(spec, secrets))
                try:
                    container.start()
                except APIError:
                    container.remove(force=True)
                    raise
            except ImageNotFound as error:
                raise Failure(Cause.IMAGE_MISSING, f"{spec.image} is not on {spec.host}") from error
            except APIError as error:
                raise start_failure(error, spec) from error
            return planned_workload(spec).model_copy(update={"identity": container.id})

    def observe(self, workload: Workload) -> Observation:
        """The container's state."""
        with self._client() as client:
            container = _find(client, workload)
            if container is None:
                return Observation(running=False, detail="the container is gone")
            state = container.attrs["State"]
        running = state["Status"] in ("running", "paused", "restarting")
        killed = bool(state.get("OOMKilled"))
        said = "it ran out of memory" if killed else state.get("Error") or ""
        return Observation(
            running=running,
            exit_code=None if running else state["ExitCode"],
            out_of_memory=killed,
            detail=f"the container is {state['Status']}{f': {said}' if said else ''}",
        )

    def logs(self, workload: Workload, tail: int) -> str:
        """The last lines of both streams."""
        with self._client() as client:
            container = _find(client, workload)
            raw = container.logs(tail=tail) if container else b""
        return bytes(raw).decode(errors="replace")

    def stop(self, workload: Workload, grace_seconds: float) -> None:
        """SIGTERM, SIGKILL after the grace period, and removal; a foreign container stays."""
        with self._client() as client:
            try:
                if container := _find(client, workload):
                    container.stop(timeout=int(grace_seconds))
                    container.remove(force=True)
            except NotFound:
                return

    def image_identity(self, reference: str) -> tuple[str, str] | None:
        """Local id of an image, and its digest in the repository that the reference names.

        None when the host does not have it; no digest when it was never pulled from there.
        """
        with self._client() as client:
            try:
                image = client.images.get(reference)
            except ImageNotFound:
                return None
            except APIError as error:
                raise pull_failure(str(error.explanation or error), reference) from error
        known = dict(entry.split("@", 1) for entry in image.attrs.get("RepoDigests") or ())
        return str(image.id), known.get(repository(reference).removeprefix("docker.io/"), "")

    def pull(
        self,
        reference: str,
        on_progress: Callable[[int, int], None],
        credentials: Credentials | None = None,
    ) -> None:
        """Pull an image; layers that are there already, from an earlier try too, are kept.

        Args:
            reference: By tag or by digest.
            on_progress: Told the bytes, done and known so far.
            credentials: Account of the registry; None = what Docker was logged in with.

        Raises:
            Failure: `IMAGE_MISSING` or `IMAGE_PULL_FAILED`.
        """
        with self._client(PULL_TIMEOUT_SECONDS) as client:
            layers: dict[str, tuple[int, int]] = {}
            try:
                login = credentials.model_dump() if credentials else None
                for event in client.api.pull(
                    reference, stream=True, decode=True, auth_config=login
                ):
                    if "error" in event:
                        raise pull_failure(str(event["error"]), reference)
                    detail = event.get("progressDetail") or {}
                    if event.get("status") == "Downloading" and detail.get("total"):
                        layers[event["id"]] = (int(detail["current"]), int(detail["total"]))
                        done, total = map(sum, zip(*layers.values(), strict=True))
                        on_progress(done, total)
            except APIError as error:
                raise pull_failure(str(error.explanation or error), reference) from error

    def tag(self, pinned: str, reference: str) -> None:
        """Give an image that was pulled by digest the tag that it was asked for by."""
        with self._client() as client:
            wanted = parse_reference(reference)
            client.images.get(pinned).tag(wanted.name, tag=wanted.tag or DEFAULT_TAG)

    def _clear(self, client: docker.DockerClient, spec: ContainerSpec) -> None:
        try:
            leftover = client.containers.get(spec.name)
        except NotFound:
            return
        if not _belongs(leftover, planned_workload(spec)):
            raise Failure(
                Cause.LAUNCH_REFUSED,
                f"a container named {spec.name} is on {spec.host} that this ledger does not know",
                suggestion=f"Rename or remove it: `docker rm {spec.name}`.",
            )
        leftover.remove(force=True)

    @contextmanager
    def _client(self, timeout: int = TIMEOUT_SECONDS) -> Iterator[docker.DockerClient]:
        try:
            yield connect(parse_access(self.address), timeout)
        except APIError as error:
            raise reach_failure(error, self._shown, Cause.LAUNCH_REFUSED) from error
        except (DockerException, requests.exceptions.RequestException) as error:
            forget_clients()
            raise reach_failure(error, self._shown) from error

    @property
    def _shown(self) -> str:
        return parse_access(self.address).address


def _find(client: docker.DockerClient, workload: Workload) -> Container | None:
    """The container of a workload; one of the same name that is not ours counts as none."""
    try:
        container = client.containers.get(workload.name)
    except NotFound:
        return None
    return container if _belongs(container, workload) else None


def _belongs(container: Container, workload: Workload) -> bool:
    labels = container.labels
    return (labels.get(LABEL_RELEASE), labels.get(LABEL_LEDGER)) == (
        workload.release,
        workload.ledger,
    )
