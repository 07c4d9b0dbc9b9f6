"""Installing engines: an image on a host, or a virtual environment on this machine."""

from asyncio import CancelledError

from prefect import task

from moorage.adapters.docker.images import DockerImages
from moorage.adapters.engines.installations import Installation, Installations, Installer
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Refusal
from moorage.common.units import human_bytes
from moorage.engines.base import Engine
from moorage.engines.packages import PACKAGES
from moorage.engines.registry import ENGINES
from moorage.images.catalogue import tagged_version
from moorage.images.image import Image
from moorage.inventory.access import parse_access
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.placement import CPU
from moorage.placement.runtime import image_on
from moorage.releases.release import ReleaseRow
from moorage.releases.states import SERVING, UNFINISHED, ReleaseState
from moorage.spec import EngineName, EngineSpec, ModelSpec, RuntimeName
from tasks.context import PLAIN, ledger, settings
from tasks.image import pin, pull_on
from tasks.journal import step, tell
from tasks.survey import take_snapshot

HOLDING = SERVING | UNFINISHED | {ReleaseState.ASLEEP}
"""States of releases that need their engine still."""


def stand_in(engine: EngineName, version: str, runtime: RuntimeName) -> ModelSpec:
    """A spec that asks for an engine, and for no model in particular.

    Raises:
        Failure: `BAD_SETTING` for a name that stands for no engine in particular.
    """
    if engine in (EngineName.AUTO, EngineName.CUSTOM):
        raise Failure(
            Cause.BAD_SETTING,
            f"engine: found {engine}; it stands for no engine in particular",
            suggestion="`moorage engines` lists them.",
        )
    wanted = EngineSpec(name=engine, version=version or None, runtime=runtime)
    name = f"engine-{engine.value.replace('.', '-')}"
    return ModelSpec(name=name, source="hf://none/none", engine=wanted)


async def host_named(fleet: Fleet, name: str) -> HostSnapshot:
    """The surveyed host of that name; without one, the only host of the fleet.

    Raises:
        Failure: `BAD_SETTING` when there is no such host, or several and no name.
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


def way_on(engine: Engine, host: HostSnapshot, spec: ModelSpec) -> tuple[RuntimeName, Image | None]:
    """How an engine is installed on a host: its image where one fits, else its packages.

    Raises:
        Failure: `NO_IMAGE`, or `BAD_SETTING` for a program on another machine.
    """
    wanted = spec.engine.runtime
    if wanted != RuntimeName.PROCESS and RuntimeName.DOCKER in host.runtimes:
        try:
            return RuntimeName.DOCKER, image_on(spec, engine, host, _kind_of(engine, host))
        except (Failure, Refusal):
            if wanted == RuntimeName.DOCKER or engine.name not in PACKAGES:
                raise
    if wanted == RuntimeName.DOCKER:
        raise Failure(Cause.RUNTIME_UNAVAILABLE, f"{host.name} has no Docker that answers")
    if parse_access(host.address).is_remote:
        raise Failure(
            Cause.BAD_SETTING,
            f"{engine.name} cannot be installed as a program on {host.name}, another machine",
            suggestion="There it runs in a container: `--runtime docker`.",
        )
    return RuntimeName.PROCESS, None


def _kind_of(engine: Engine, host: HostSnapshot) -> str:
    kinds = [one.type for one in host.accelerators if one.type in engine.accelerator_types]
    return kinds[0] if kinds else CPU


@task(name="install", task_run_name="install the packages of {engine}", **PLAIN)
async def install_packages(engine: EngineName, version: str) -> Installation:
    """Install an engine as a program of this machine, in an environment of its own."""
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
    """Have an engine's image on a host, by its digest."""
    pinned = await pin(image, host)
    with step("image") as note:
        name = await pull_on(spec, pinned, host, alone=True)
        note.say(f"{name} ({image.reason}) on {host.name}")
        return name


def remove_installed(engine: Engine, host: HostSnapshot, version: str) -> tuple[str, ...]:
    """Remove an engine's images and packages from a host; what was removed.

    Raises:
        Failure: `ENGINE_IN_USE` when a release there needs it.
    """
    if users := sorted({row.model for row in _users(engine, host)}):
        raise Failure(
            Cause.ENGINE_IN_USE,
            f"{engine.name} on {host.name} is used by {', '.join(users)}",
            suggestion="Retire them first.",
        )
    removed = []
    for image in sorted(host.images):
        if "@" not in image and _is(tagged_version(image, engine.name), version):
            DockerImages(host.address).remove(image)
            removed.append(image)
    if not parse_access(host.address).is_remote:
        installed = Installations(settings().engines)
        for one in installed.versions(engine.name):
            if _is(one.version, version) and installed.remove(engine.name, one.version):
                removed.append(one.path)
    return tuple(removed)


def _is(found: str, wanted: str) -> bool:
    return bool(found) and wanted in ("", found)


def _users(engine: Engine, host: HostSnapshot) -> list[ReleaseRow]:
    rows = ledger().releases.in_states(HOLDING)
    return [
        row
        for row in rows
        if row.release
        and row.release.plan
        and row.release.plan.engine == engine.name
        and any(one.host == host.name for one in row.release.plan.containers)
    ]
