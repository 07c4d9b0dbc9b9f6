"""The two programs of a gateway: Envoy, and the service that updates its routes."""

from collections.abc import Iterable
from hashlib import sha256

from moorage.engines.flags import Flag, Variable, default_flag
from moorage.engines.labels import (
    LABEL_LEDGER,
    LABEL_MODEL,
    LABEL_RELEASE,
    LABEL_REPLICA,
    LABEL_ROLE,
)
from moorage.engines.launch import ContainerSpec, Isolation, Mount
from moorage.gateway.envoy import OWN_FOLDER
from moorage.gateway.gateway import GatewayHost, GatewayOptions
from moorage.placement.role import Role
from moorage.spec import NetworkMode, RestartPolicy, RuntimeName

OWNER = "gateway"
"""Stands in for the ledger in labels: reconciling ignores containers of other ledgers."""

ENVOY_IMAGE = "envoyproxy/envoy:distroless-v1.40.0"
"""The official image, in the version that the tests use."""

ENVOY = "envoy"
"""Name of the program on the PATH of the image."""

HOST_FOLDER = "/moorage"
"""Mount point of a gateway's files in the containers on a host."""

HOST_USER = 65_532
"""User id of these containers, unused on the host, so that no other process can inspect them."""

FLUSH_MILLISECONDS = 1000
"""Interval at which the access log is flushed."""


def envoy_program(name: str, program: str, bootstrap: str) -> ContainerSpec:
    """Envoy of a gateway as a process; `program` and `bootstrap` are paths."""
    return _program(f"{name}-envoy", *_envoy_command(program, bootstrap))


def envoy_container(
    name: str, options: GatewayOptions, folder: str, bootstrap: str, user: str
) -> ContainerSpec:
    """Envoy of a gateway in a container.

    It uses the network of its machine, where the engines listen, and sees its files under the same
    paths as outside. The mount is the folder, not its files: Envoy watches the folder for renames.

    Args:
        folder: Folder of the gateway; it makes the container's name unique among ledgers.
        bootstrap: Path of the file that Envoy starts with.
        user: `id:group` of the owner of these files.
    """
    own, tls = f"{folder}/{OWN_FOLDER}", (options.tls_certificate, options.tls_key)
    mounts = (
        Mount(source=folder, target=folder),
        Mount(source=own, target=own, read_only=False),
        *(Mount(source=file, target=file) for file in dict.fromkeys(tls) if file),
    )
    capabilities = ("NET_BIND_SERVICE",)  # for ports below 1024, if this user is root
    return _contained(_workload(name, folder), options, bootstrap, mounts, user, capabilities)


def envoy_on_host(
    workload: str, host: GatewayHost, options: GatewayOptions, bootstrap: str
) -> ContainerSpec:
    """Envoy of a gateway in a container on a host of the fleet, with its files in volumes.

    `workload` is a result of `host_workload` and names the container and its volumes.
    """
    own, user = f"{HOST_FOLDER}/{OWN_FOLDER}", f"{HOST_USER}:{HOST_USER}"
    mounts = (
        Mount(source=f"{workload}-files", target=HOST_FOLDER, volume=True),
        Mount(source=f"{workload}-own", target=own, volume=True, read_only=False),
    )
    place = {"host": host.name, "address": host.address}
    return _contained(workload, options, bootstrap, mounts, user).model_copy(update=place)


def host_workload(name: str, machine: str, folder: str) -> str:
    """Name of the container of a gateway on a host, unique among ledgers.

    Machine and folder are those of the gateway's service.
    """
    return _workload(name, f"{machine}:{folder}")


def _workload(name: str, folder: str) -> str:
    return f"moorage-gateway-{name}-{sha256(folder.encode()).hexdigest()[:8]}"


def _contained(
    workload: str,
    options: GatewayOptions,
    bootstrap: str,
    mounts: tuple[Mount, ...],
    user: str,
    capabilities: tuple[str, ...] = (),
) -> ContainerSpec:
    isolation = Isolation(
        user=user,
        network=NetworkMode.HOST,
        restart=RestartPolicy.UNLESS_STOPPED,
        capabilities=capabilities,
        locked=True,
    )
    contained = {"runtime": RuntimeName.DOCKER, "image": options.image, "mounts": mounts}
    envoy = _program(workload, *_envoy_command(ENVOY, bootstrap))
    return envoy.model_copy(update={**contained, "isolation": isolation})


def _envoy_command(program: str, bootstrap: str) -> tuple[Flag, ...]:
    return (
        default_flag("Envoy", program),
        default_flag("its configuration", "-c", bootstrap),
        default_flag("no shared memory with another Envoy", "--disable-hot-restart"),
        default_flag("the log", "--log-level", "warn"),
        default_flag("the access log", "--file-flush-interval-msec", f"{FLUSH_MILLISECONDS}"),
    )


def service_program(
    name: str, python: str, module: str, environment: Iterable[Variable]
) -> ContainerSpec:
    """The service of a gateway as a process."""
    command = default_flag("the service", python, "-m", module, name)
    return _program(f"{name}-service", command, environment=environment)


def _program(name: str, *command: Flag, environment: Iterable[Variable] = ()) -> ContainerSpec:
    labels = {LABEL_LEDGER: OWNER, LABEL_MODEL: "", LABEL_RELEASE: name}
    return ContainerSpec(
        name=name,
        host="this machine",
        address="local",
        runtime=RuntimeName.PROCESS,
        command=command,
        environment=tuple(environment),
        accelerator_type="cpu",
        bind="127.0.0.1",
        port=0,
        labels={**labels, LABEL_ROLE: Role.LEADER, LABEL_REPLICA: "0"},
    )
