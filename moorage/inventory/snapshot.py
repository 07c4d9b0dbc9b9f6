"""The fleet at one moment: its hardware, claims, and the memory and ports in use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from moorage.common.values import Value
from moorage.inventory.claims import Capacity, Claim, Resource
from moorage.inventory.clusters import ClusterSnapshot
from moorage.inventory.fleet_engines import CatalogueRow, EngineVersions
from moorage.inventory.registries import Registries
from moorage.spec import EngineName, RuntimeName

SITE_LABEL = "site"

VENDORS = {
    "cuda": "nvidia",
    "rocm": "amd",
    "cann": "huawei",
    "musa": "mthreads",
    "dcu": "hygon",
    "corex": "iluvatar",
    "maca": "metax",
    "hggc": "thead",
    "mlu": "cambricon",
    "xpu": "intel",
    "hpu": "intel",
}


class Accelerator(Value):
    """One accelerator of a host. Memory in bytes; the device reports `memory_free`.

    Attributes:
        exclusive: Whether only one process at a time may use it.
    """

    type: str
    index: int
    name: str = ""
    uuid: str = ""
    memory_total: int
    memory_free: int
    driver: str = ""
    runtime_version: str = ""
    family: str = ""
    node: str = ""
    exclusive: bool = False

    @property
    def identifier(self) -> str:
        """Its identity on its host: the UUID, or the index as text."""
        return self.uuid or str(self.index)


class Program(Value):
    """An engine that is installed on a host for the process runtime.

    Attributes:
        computes_on: Types of accelerators, and `cpu`, that it can use there; empty = unknown.
    """

    engine: EngineName
    path: str
    version: str
    computes_on: tuple[str, ...] = ()


class HostSnapshot(Value):
    """One host at one moment.

    Attributes:
        unreachable: Why the host could not be surveyed; empty = it could.
        troubles: Facts that the survey could not determine, and why.
        hides_accelerators: Whether it has accelerators of which only `troubles` tell.
        docker: Version of its Docker; empty = it has none, or was not surveyed.
        ram_free: Bytes of RAM that are available now.
        ram_reserve: Bytes of RAM that are never claimed.
        accelerator_reserve: Bytes of each accelerator that are never claimed.
        links: Indexes of accelerators that NVLink joins, by group; empty = none, or unknown.
        models: Models that are already staged on the host, as `source@revision`.
        images: References and digests of the images that are already on the host.
        image_disk_free: Free bytes on the disk of a remote host's images; None = not measured.
        catalogue: Images for its hardware in addition to the official ones.
        store: Directory in which a remote host keeps models; empty = this machine's store.
        disk_free: Free bytes on the disk of that directory; None = not measured.
        begun: Bytes of unfinished models in it, by the path of the model there.
        interface: Network interface to the other hosts; empty = unknown.
        exposes_all_gpus: Whether a container sees all NVIDIA GPUs, whatever it requests: under WSL
            the driver does not separate them.
        needs_nvidia_runtime: Whether containers get NVIDIA GPUs only from Docker's runtime
            `nvidia`, because device requests are refused.
    """

    name: str
    address: str = "local"
    bind: str = "127.0.0.1"
    unreachable: str = ""
    troubles: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    runtimes: tuple[RuntimeName, ...] = ()
    docker: str = ""
    programs: tuple[Program, ...] = ()
    architecture: str = "amd64"
    cpus: int = 1
    ram_total: int = 0
    ram_free: int = 0
    ram_reserve: int = 0
    accelerator_reserve: int = 0
    accelerators: tuple[Accelerator, ...] = ()
    hides_accelerators: bool = False
    unified_memory: bool = False
    links: tuple[tuple[int, ...], ...] = ()
    models: frozenset[str] = frozenset()
    images: frozenset[str] = frozenset()
    image_disk_free: int | None = None
    catalogue: tuple[CatalogueRow, ...] = ()
    engines: dict[str, EngineVersions] = {}
    registries: Registries = Registries.defaults()
    store: str = ""
    disk_free: int | None = None
    begun: dict[str, int] = {}
    helper_image: str = ""
    shares_models: bool = False
    port_range: tuple[int, int] = (40000, 40063)
    ray_range: tuple[int, int] = (41000, 41999)
    interface: str = ""
    exposes_all_gpus: bool = False
    needs_nvidia_runtime: bool = False
    ports_in_use: tuple[int, ...] = ()
    claims: tuple[Claim, ...] = ()

    @property
    def site(self) -> str:
        """The site that its label names; empty = it names none."""
        return self.labels.get(SITE_LABEL, "")

    def program(self, engine: EngineName) -> Program | None:
        """The installed program of an engine, if there is one."""
        return next((item for item in self.programs if item.engine == engine), None)

    def engine_versions(self, engine: str) -> EngineVersions:
        """The fleet's versions of an engine, by its name; a custom engine has its own name."""
        return self.engines.get(engine) or EngineVersions.defaults()

    def first(self, kind: str) -> Accelerator | None:
        """The first accelerator of a type; as a rule all of one type share their driver."""
        return next((item for item in self.accelerators if item.type == kind), None)

    def accelerator_name(self, identifiers: Collection[str]) -> str:
        """Name of the first accelerator with one of these identifiers; empty = none has."""
        found = (item.name for item in self.accelerators if item.identifier in identifiers)
        return next(found, "")

    def claimed(self, resource: Resource, index: int = 0) -> int:
        """The claimed amount of a resource."""
        own = (claim for claim in self.claims if claim.resource == resource)
        return sum(claim.amount for claim in own if claim.index == index)

    @property
    def capacities(self) -> tuple[Capacity, ...]:
        """The memory that could be claimed without any claims: RAM, and each accelerator's."""
        ram = Capacity(resource=Resource.RAM, amount=self.ram_total - self.ram_reserve)
        kind, reserve = Resource.ACCELERATOR, self.accelerator_reserve
        memory = (
            Capacity(resource=kind, index=one.index, amount=one.memory_total - reserve)
            for one in self.accelerators
        )
        return (ram, *memory)

    def with_claims(self, claims: tuple[Claim, ...]) -> HostSnapshot:
        """The same host with its share of these claims in place of its own."""
        own = [claim for claim in claims if claim.host == self.name]
        return self.model_copy(update={"claims": self.current_claims(own)})

    def current_claims(self, own: Sequence[Claim]) -> tuple[Claim, ...]:
        """Claims on this host with the indexes that their devices have now.

        A driver numbers GPUs anew when one is lost. A claim on a lost one is left out.
        """
        if not any(claim.device for claim in own):
            return tuple(own)
        now = {item.uuid: item.index for item in self.accelerators if item.uuid}
        taken = set(now.values())
        found = []
        for claim in own:
            index = now.get(claim.device, -1) if claim.device else claim.index
            if index == claim.index or (index < 0 and claim.index not in taken):
                found.append(claim)
            elif index >= 0:
                found.append(replace(claim, index=index))
        return tuple(found)


class FleetSnapshot(Value):
    """All hosts at one moment, in the order of the fleet; or the Ray cluster that a spec names."""

    hosts: tuple[HostSnapshot, ...]
    clusters: tuple[ClusterSnapshot, ...] = ()

    def host(self, name: str) -> HostSnapshot:
        """The host of that name."""
        return next(host for host in self.hosts if host.name == name)

    def cluster(self, name: str) -> ClusterSnapshot:
        """The Ray cluster of that name."""
        return next(cluster for cluster in self.clusters if cluster.name == name)

    def engine_versions(self, engine: str) -> EngineVersions:
        """The fleet's versions of an engine; all hosts have the same."""
        return self.hosts[0].engine_versions(engine)

    def with_ports_in_use(self, claims: Iterable[Claim]) -> FleetSnapshot:
        """The same fleet with every port of some claims in use.

        Without the helper image, a survey of a remote host does not see ports in use.
        """
        found = [claim for claim in claims if claim.resource == Resource.PORT]
        hosts = []
        for host in self.hosts:
            more = tuple(claim.index for claim in found if claim.host == host.name)
            hosts.append(host.model_copy(update={"ports_in_use": host.ports_in_use + more}))
        return self.model_copy(update={"hosts": tuple(hosts)})

    def without(self, release: str) -> FleetSnapshot:
        """The same fleet without the claims of a release.

        The memory that the release uses counts as free: the release will be stopped first.
        """
        hosts = tuple(_without(host, release) for host in self.hosts)
        return self.model_copy(update={"hosts": hosts})

    def without_claims(self, release: str) -> FleetSnapshot:
        """The same fleet without the claims of a release that does not run.

        Whoever uses its memory or listens on its ports is another program.
        """
        claims = tuple(one for host in self.hosts for one in host.claims if one.release != release)
        hosts = tuple(host.with_claims(claims) for host in self.hosts)
        return self.model_copy(update={"hosts": hosts})


def _without(host: HostSnapshot, release: str) -> HostSnapshot:
    freed = [claim for claim in host.claims if claim.release == release]
    if not freed:
        return host
    # A pending release may not use its claims yet, so they do not count as freed memory.
    ports = {claim.index for claim in freed if claim.resource == Resource.PORT}
    ram, memory = 0, Counter[int]()
    for claim in freed:
        if claim.pending:
            continue
        if claim.resource == Resource.ACCELERATOR:
            memory[claim.index] += claim.amount
        elif claim.resource == Resource.RAM:
            ram += claim.amount
    if host.unified_memory:
        ram += memory.total()
        memory.update({item.index: ram - memory[item.index] for item in host.accelerators})
    accelerators = []
    for item in host.accelerators:
        free = min(item.memory_total, item.memory_free + memory[item.index])
        accelerators.append(item.model_copy(update={"memory_free": free}))
    return host.model_copy(
        update={
            "claims": tuple(claim for claim in host.claims if claim.release != release),
            "ram_free": min(host.ram_total, host.ram_free + ram),
            "ports_in_use": tuple(port for port in host.ports_in_use if port not in ports),
            "accelerators": tuple(accelerators),
        }
    )
