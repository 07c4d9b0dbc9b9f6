"""The fleet file: `Fleet`, its hosts and clusters. Without a file: this machine, detected."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import ByteSize, Field, StringConstraints, field_validator, model_validator

from moorage.common.failures import Cause, Failure
from moorage.common.units import MIB, Bytes
from moorage.common.values import InputValue
from moorage.inventory.access import (
    ADDRESS_IN_WORDS,
    ADDRESS_PATTERN,
    Access,
    SshWay,
    TlsWay,
    access_of,
    is_loopback,
)
from moorage.inventory.clusters import URL_IN_WORDS, URL_PATTERN, RayCluster
from moorage.inventory.fleet_engines import EngineVersions, ImageName
from moorage.inventory.registries import ACCOUNT_PATTERN, HOST_PATTERN, REGISTRY_PATTERN, Registries
from moorage.inventory.snapshot import SITE_LABEL
from moorage.spec import EngineName, Folder, Name

PORTS_PATTERN = r"^\d{1,5}-\d{1,5}$"
TYPE_PATTERN = r"^[a-z]+$"
BIND_PATTERN = r"^[0-9a-fA-F.:]+$"
VERSION_PATTERN = r"^\d+(\.[\w]+)*$"
NODE_PATTERN = r"^/dev/dri/renderD\d+$"
INTERFACE_PATTERN = r"^[A-Za-z0-9_][\w.@-]{0,14}$"
RAY_LEAST = 32
"""Fewest ports that Ray's services and workers need."""

PATTERNS_IN_WORDS = {
    ADDRESS_PATTERN: ADDRESS_IN_WORDS,
    URL_PATTERN: URL_IN_WORDS,
    PORTS_PATTERN: "a range of ports such as 40000-40063",
    TYPE_PATTERN: "a type in lower case, such as cuda",
    BIND_PATTERN: "an IP address",
    VERSION_PATTERN: "a version such as 12.9",
    INTERFACE_PATTERN: "a network interface such as eth0",
    NODE_PATTERN: "a render node such as /dev/dri/renderD128",
    REGISTRY_PATTERN: "a registry such as mirror.example.com:5000/hub, without http://",
    ACCOUNT_PATTERN: "the name of an account, without blanks and ':'",
    HOST_PATTERN: "the host of a registry, such as registry.example.com:5000",
}
"""What each pattern requires, in the words of an error message."""


class StaticAccelerator(InputValue):
    """An accelerator that is listed instead of detected."""

    type: str = Field(
        "cuda", pattern=TYPE_PATTERN, description="Kind of accelerator: `cuda`, `rocm`, `cann`, ..."
    )
    index: int = Field(ge=0, description="Index on its host.")
    name: str = Field("", description="Product name, such as `NVIDIA H200`.")
    memory: Bytes = Field(description="Memory in bytes or as `80GiB`.")
    runtime_version: str | None = Field(
        None,
        pattern=VERSION_PATTERN,
        description="Newest version of its runtime that the driver supports, such as `12.9` of"
        " CUDA; it selects the image. Empty = unknown.",
    )
    family: str = Field(
        "",
        description="Chip family, if images differ by it: such as `Ascend910B3`, or the compute"
        " capability of an NVIDIA GPU, such as `7.0`. Empty = unknown.",
    )
    node: str | None = Field(
        None,
        pattern=NODE_PATTERN,
        description="Its render node (`rocm`, `dcu`, `maca`, `xpu`), such as"
        " `/dev/dri/renderD128`: a container gets only this one. Empty = it gets all of"
        " `/dev/dri`, and a variable names its own.",
    )
    exclusive: bool = Field(
        False,
        description="Whether it lets in only one process at a time, so that only one model may use"
        " it. NVIDIA's compute mode `Exclusive_Process` is detected.",
    )

    @field_validator("memory")
    @classmethod
    def _check_unit(cls, memory: ByteSize) -> ByteSize:
        if memory < MIB:  # somebody has counted in GiB
            raise ValueError("a size such as 80GiB; without a unit it counts bytes")
        return memory


class Reserve(InputValue):
    """Memory of a host that is never claimed."""

    ram: Bytes = Field(ByteSize(0), description="RAM that is never claimed.")
    accelerator_memory: Bytes = Field(
        ByteSize(0), description="Memory of each accelerator that is never claimed."
    )


class Avoided(InputValue):
    """A host, or some of its accelerators, for no new models. A model there stays until it dies."""

    host: Name = Field(description="Name of the host.")
    accelerators: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        (), description="Indexes of its accelerators. Empty = the whole host."
    )
    reason: str = Field("", description="The reason, which refusals show.")


class Host(InputValue):
    """A machine that can run engines."""

    name: Name = Field(description="Name of the host in placements, claims and releases.")
    address: str = Field(
        "local",
        pattern=ADDRESS_PATTERN,
        description="How its Docker daemon is reached: `local`, `unix:///var/run/docker.sock`,"
        " `ssh://user@host` or `tcp://host:2376`. A remote host needs `bind` too.",
    )
    ssh: SshWay | None = Field(None, description="The login over `ssh://`.")
    tls: TlsWay | None = Field(None, description="Certificates for `tcp://`.")
    labels: dict[str, str] = Field(
        {}, description='Labels that `placement.host_labels` matches, such as `{"site": "site-a"}`.'
    )
    runtimes: Literal["auto"] | tuple[Literal["docker", "process"], ...] = Field(
        "auto", description="Runtimes that may be used; `auto` = all that the host has."
    )
    accelerators: Literal["auto"] | tuple[StaticAccelerator, ...] = Field(
        "auto", description="Accelerators; `auto` detects them."
    )
    ram: Literal["auto"] | Bytes = Field("auto", description="RAM in total; `auto` detects it.")
    cores: Literal["auto"] | Annotated[int, Field(ge=1)] = Field(
        "auto", description="Processor cores in total; `auto` counts them."
    )
    unified_memory: bool = Field(
        False, description="Whether accelerators and host share the same memory."
    )
    reserve: Reserve = Field(
        Reserve.defaults(), description="Memory of this host that is never claimed."
    )
    ports: Annotated[str, StringConstraints(pattern=PORTS_PATTERN)] = Field(
        "40000-40063", description="Range of the engines' ports, both ends included."
    )
    bind: str = Field(
        "127.0.0.1",
        pattern=BIND_PATTERN,
        description="Address of the host on which engines listen. The default is only for this"
        " machine; for a remote host, name an address that this machine can reach. The hosts of a"
        " replica reach each other at these addresses.",
    )
    interface: str | None = Field(
        None,
        pattern=INTERFACE_PATTERN,
        description="Network interface to the other hosts, such as `eth0`, for replicas over"
        " several hosts. Empty = the one that has `bind`, if the survey finds it.",
    )
    ray_ports: Annotated[str, StringConstraints(pattern=PORTS_PATTERN)] = Field(
        "41000-41999",
        description="Range for the Ray cluster of a replica over several hosts, both ends included."
        " One cluster at a time uses it on a host.",
    )
    store: Folder = Field(
        "/var/lib/moorage",
        description="Directory of a remote host that keeps models; it is created if missing. This"
        " machine keeps them in `MOORAGE_HOME`.",
    )

    @field_validator("bind")
    @classmethod
    def _check_bind(cls, bind: str) -> str:
        ipaddress.ip_address(bind)
        return bind

    @model_validator(mode="after")
    def _check_fields(self) -> Host:
        (low, high), (first, last) = self.ray_range, self.port_range
        if not 1 <= first <= last <= 65535:
            raise ValueError(f"ports {self.ports} must ascend within 1-65535")
        if not 1 <= low <= high - RAY_LEAST + 1 <= 65535:
            raise ValueError(f"ray_ports {self.ray_ports} must ascend, and be {RAY_LEAST} or more")
        # Default ray_ports may overlap with ports: most hosts never start a Ray cluster.
        wanted = "ray_ports" in self.model_fields_set
        if high > 65535 or (wanted and low <= last and first <= high):
            raise ValueError(f"ray_ports {self.ray_ports} must lie outside of ports {self.ports}")
        # Claims know an accelerator by its index alone.
        listed = () if self.accelerators == "auto" else self.accelerators
        if twice := _repeated([str(one.index) for one in listed]):
            raise ValueError(
                f"the accelerator index {', '.join(twice)} is used more than once: list each"
                " accelerator once, and those of one type only"
            )
        if self.access.is_remote and is_loopback(self.bind):
            raise ValueError(
                f"bind {self.bind} cannot be reached from here: name an address of {self.name}"
            )
        return self

    @property
    def access(self) -> Access:
        """How to reach its Docker daemon."""
        return access_of(self.address, self.ssh, self.tls)

    @property
    def port_range(self) -> tuple[int, int]:
        """First and last port for engines."""
        low, high = self.ports.split("-")
        return int(low), int(high)

    @property
    def ray_range(self) -> tuple[int, int]:
        """First and last port for Ray clusters."""
        low, high = self.ray_ports.split("-")
        return int(low), int(high)


def _repeated(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


class Fleet(InputValue):
    """The hosts that models are placed on."""

    hosts: tuple[Host, ...] = Field(
        (Host.model_construct(name="local"),),
        min_length=1,
        description="The hosts, in order of preference.",
    )
    clusters: dict[Name, RayCluster] = Field(
        {},
        description="Ray clusters by name, for `placement.cluster` of a spec, such as"
        ' `{"ray-a": {"dashboard": "http://head:8265", "serve": "http://head:8000"}}`. They are no'
        " hosts: nothing is claimed on them.",
    )
    engines: dict[Name, EngineVersions] = Field(
        {},
        description="Versions of engines with their own image or command, by engine (`vllm`,"
        " `transformers`), or by a name of your choice for a custom engine (`engine.custom` of a"
        ' spec): `{"vllm": {"default_version": "0.32.0"}}`.',
    )
    registries: Registries = Field(
        Registries.defaults(), description="Registries of container images."
    )
    helper_image: ImageName = Field(
        "python:3.12-slim",
        description="Image of the small containers that survey remote hosts and stage models"
        " there; it needs a shell and Python's standard library.",
    )
    avoid: tuple[Avoided, ...] = Field(
        (),
        description="Hosts and accelerators that get no new models, for example before"
        " maintenance.",
    )
    share_models: bool = Field(
        True,
        description="Whether a remote host that has a complete model sends it to other hosts, on a"
        " port of its range at its `bind`; otherwise each downloads it from its source.",
    )

    @model_validator(mode="after")
    def _check_fields(self) -> Fleet:
        names = [host.name for host in self.hosts]
        if twice := _repeated(names):
            raise ValueError(f"the host name {', '.join(twice)} is used more than once")
        if both := sorted(self.clusters.keys() & set(names)):
            raise ValueError(f"{', '.join(both)} is the name of a host and of a cluster")
        # Two names for one remote machine would let its memory be claimed twice.
        remote = [host.access.machine for host in self.hosts if host.access.is_remote]
        if twice := _repeated(remote):
            raise ValueError(f"the machine {', '.join(twice)} has more than one name")
        for name in (EngineName.AUTO, EngineName.CUSTOM):
            if name in self.engines:
                raise ValueError(f"engines.{name}: give a custom engine a name of its own")
        return self

    @property
    def avoided_hosts(self) -> frozenset[str]:
        """Hosts that take no new placement on any accelerator."""
        return frozenset(one.host for one in self.avoid if not one.accelerators)

    def avoided_accelerators(self, host: str) -> frozenset[int]:
        """Indexes of a host's accelerators that take no new placement."""
        return frozenset(at for one in self.avoid if one.host == host for at in one.accelerators)


def at_site(fleet: Fleet, site: str) -> Fleet:
    """The hosts of a fleet that a site can reach: its own, and those without a site.

    Without a site, this machine can reach all hosts.

    Raises:
        Failure: `BAD_FLEET` when no host remains.
    """
    if not site:
        return fleet
    hosts = tuple(host for host in fleet.hosts if host.labels.get(SITE_LABEL, site) == site)
    if not hosts:
        others = ", ".join(dict.fromkeys(host.labels[SITE_LABEL] for host in fleet.hosts))
        raise Failure(
            Cause.BAD_FLEET,
            f"this worker is at the site {site}, and the fleet has hosts at {others} only",
            suggestion="Send the run to the work queue of that site, or correct MOORAGE_SITE of"
            f" the worker or the label `{SITE_LABEL}` of the hosts.",
        )
    return fleet.model_copy(update={"hosts": hosts})
