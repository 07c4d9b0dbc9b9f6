"""Install engines: an image on a host, or a virtual environment on this machine."""

from asyncio import CancelledError

from moorage.adapters.docker.images import DockerImages
from moorage.adapters.engines.installations import Installation, Installations, Installer
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Cause, Failure
from moorage.common.units import human_bytes
from moorage.engines.base import Engine
from moorage.engines.installed import image_version
from moorage.engines.registry import ENGINES
from moorage.images.image import Image
from moorage.inventory.access import parse_access
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import HostSnapshot
from moorage.operations.engine_installation import is_meant, users_of
from moorage.releases.states import KEPT
from moorage.spec import EngineName, ModelSpec
from tasks.context import ledger, settings
from tasks.flow_task import flow_task
from tasks.image import pin, pull_on
from tasks.journal import step, tell
from tasks.survey import take_snapshot


async def host_named(fleet: Fleet, name: str) -> HostSnapshot:
    """Survey the host of that name; without a name, the only host of the fleet.

    Raises:
        Failure: `BAD_SETTING` when the fleet has no such host, or several hosts and no name is
            given; `RUNTIME_UNAVAILABLE` when the host does not answer.
    """
    names = [host.name for host in fleet.hosts]
    if name not in names and (name or len(names) != 1):
        raise Failure(
            Cause.BAD_SETTING,
            f"host: found '{name}'; allowed: {', '.join(names)}",
            suggestion="Name one with `--host`.",
        )
    chosen = [host for host in fleet.hosts if host.name == (name or names[0])]
    snapshot = await take_snapshot(fleet.model_copy(update={"hosts": tuple(chosen)}))
    (seen,) = snapshot.hosts
    if seen.unreachable:
        raise Failure(Cause.RUNTIME_UNAVAILABLE, f"{seen.name}: {seen.unreachable}")
    return seen


@flow_task("install", "install the packages of {engine}")
async def install_packages(engine: EngineName, version: str) -> Installation:
    """Install an engine on this machine, in its own virtual environment."""
    with step("install") as note:
        installer = Installer(settings().engines, ENGINES[engine], version, tell)
        try:
            made = await in_thread(installer.run)
        except CancelledError:
            installer.stop()
            raise
        note.say(f"{engine} {made.version}, {human_bytes(made.bytes)}, at {made.path}")
        return made


async def install_image(spec: ModelSpec, image: Image, host: HostSnapshot) -> str:
    """Pull an engine's image on a host, by its digest."""
    pinned = await pin(image, host)
    with step("image") as note:
        name = await pull_on(spec, pinned, host, alone=True)
        note.say(f"{name} ({image.reason}) on {host.name}")
        return name


def remove_installed(engine: Engine, host: HostSnapshot, version: str) -> tuple[str, ...]:
    """Remove an engine's images and packages from a host; returns their names and paths.

    Raises:
        Failure: `ENGINE_IN_USE` when a release on the host may need this version of the engine, or,
            after the rest is removed, when another container keeps an image.
    """
    rows = ledger().releases.in_states(KEPT)
    specs = ledger().releases.specs(row.id for row in rows)
    if users := users_of(engine, version, host, rows, specs):
        named = f"{engine.name} {version}".rstrip()
        raise Failure(
            Cause.ENGINE_IN_USE,
            f"{named} on {host.name} is used by {', '.join(users)}",
            suggestion="Retire them first.",
        )
    removed, kept = list[str](), list[str]()
    for image in sorted(host.images):
        if "@" not in image and is_meant(image_version(image, engine, host), version):
            why = DockerImages(host.address).remove(image)
            kept += [f"{image}: {why}"] if why else []
            removed += [] if why else [image]
    if not parse_access(host.address).is_remote:
        installed = Installations(settings().engines)
        for one in installed.versions(engine.name):
            if is_meant(one.version, version) and installed.remove(engine.name, one.version):
                removed.append(one.path)
    if kept:
        done = f"; removed: {', '.join(removed)}" if removed else ""
        raise Failure(
            Cause.ENGINE_IN_USE,
            f"{host.name} keeps {'; '.join(kept)}{done}",
            suggestion="Remove the containers that use it: `docker ps --all` on the host.",
        )
    return tuple(removed)
