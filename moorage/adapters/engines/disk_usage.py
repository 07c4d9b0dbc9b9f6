"""Disk usage of engines on the hosts of a fleet: images, packages and caches."""

from collections.abc import Callable, Sequence

from moorage.adapters.docker.images import DockerImages
from moorage.adapters.engines.installations import Installations
from moorage.adapters.system.parallel import map_parallel
from moorage.adapters.system.settings import Settings
from moorage.adapters.transfer.store_cleanup import stores_of
from moorage.engines.installed import HostDisk, InstalledVersion
from moorage.engines.packages import PACKAGES
from moorage.inventory.access import parse_access
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import HostSnapshot

SECONDS = 20.0
"""Limit for all hosts together; answers that come later count as unknown."""


def measure_disks(
    fleet: Fleet, hosts: Sequence[HostSnapshot], settings: Settings
) -> dict[str, HostDisk]:
    """Disk usage of each surveyed host; a part is unknown if its daemon does not answer.

    The packages and caches of this machine count for the first of its hosts.
    """
    answering = {host.name: host for host in hosts if not host.unreachable}
    here = next((host.name for host in hosts if not parse_access(host.address).is_remote), "")
    asking: dict[tuple[str, str], Callable[[], object]] = {
        ("images", name): DockerImages(host.address).sizes
        for name, host in answering.items()
        if host.docker
    }
    stores = stores_of(fleet, settings)
    asking |= {("caches", one.host): one.caches for one in stores if one.host in answering}
    answers = map_parallel(lambda ask: ask(), tuple(asking.values()), SECONDS)
    known = {
        key: None if isinstance(answer, Exception) else answer
        for key, answer in zip(asking, answers, strict=True)
    }
    return {
        host.name: HostDisk.model_validate(
            {
                "images": known.get(("images", host.name), () if host.name in answering else None),
                "packages": _packages(settings) if host.name == here else (),
                "caches": known.get(("caches", host.name), () if host.name in answering else None),
            }
        )
        for host in hosts
    }


def _packages(settings: Settings) -> tuple[InstalledVersion, ...]:
    """The environments that moorage installed on this machine."""
    installed = Installations(settings.engines)
    return tuple(
        InstalledVersion(
            engine=engine, version=one.version, form="package", name=one.path, bytes=one.bytes
        )
        for engine in PACKAGES
        for one in installed.versions(engine)
    )
