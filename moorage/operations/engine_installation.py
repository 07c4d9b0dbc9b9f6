"""How an engine is installed on a host, and which models need it there."""

from collections.abc import Iterable, Mapping

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Refusal
from moorage.common.versions import is_version
from moorage.engines.base import Engine
from moorage.engines.packages import PACKAGES
from moorage.images.image import Image
from moorage.inventory.access import parse_access
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.placement import CPU
from moorage.placement.runtime import Hardware, hardware_on, image_on
from moorage.placement.view import Chip
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import ReleaseState
from moorage.spec import EngineName, EngineSpec, ModelSpec, RuntimeName

NOT_PLACED = frozenset({ReleaseState.PENDING, ReleaseState.ANALYZING})
"""States of releases that have no host yet."""


def stand_in(engine: EngineName, version: str, runtime: RuntimeName) -> ModelSpec:
    """A spec that requests an engine, with a placeholder as its model.

    Raises:
        Failure: `BAD_SETTING` for the names `auto` and `custom`.
    """
    if engine in (EngineName.AUTO, EngineName.CUSTOM):
        raise no_engine(engine)
    wanted = EngineSpec(name=engine, version=version or None, runtime=runtime)
    name = f"engine-{engine.value.replace('.', '-')}"
    return ModelSpec(name=name, source="hf://none/none", engine=wanted)


def no_engine(name: EngineName) -> Failure:
    """The failure for a name that stands for no particular engine."""
    return Failure(
        Cause.BAD_SETTING,
        f"engine: found {name}, which names no engine",
        suggestion="`moorage engines` lists them.",
    )


def way_on(engine: Engine, host: HostSnapshot, spec: ModelSpec) -> tuple[RuntimeName, Image | None]:
    """How to install an engine on a host: by an image if one fits, else as packages (no image).

    Raises:
        Failure: `NO_IMAGE`; `RUNTIME_UNAVAILABLE` when Docker is required and does not answer;
            `BAD_SETTING` for packages on another machine.
    """
    wanted = spec.engine.runtime
    if wanted != RuntimeName.PROCESS and RuntimeName.DOCKER in host.runtimes:
        try:
            return RuntimeName.DOCKER, image_on(spec, engine, _hardware(engine, host))
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


def _hardware(engine: Engine, host: HostSnapshot) -> Hardware:
    usable = (one for one in hardware_on(host) if one.chip.type in engine.accelerator_types)
    return next(usable, Hardware(host, Chip(CPU)))


def is_meant(found: str, wanted: str) -> bool:
    """Whether a found version is wanted; empty `wanted` = all, empty `found` = never."""
    return bool(found) and (not wanted or is_version(found, wanted))


def hosts_with(engine: Engine, row: ReleaseRow) -> tuple[str, ...]:
    """The hosts on which a release runs an engine; empty if it runs another engine."""
    if row.plan is None or row.plan.engine != engine.name:
        return ()
    return tuple(sorted({one.host for one in row.plan.containers}))


def users_of(
    engine: Engine,
    version: str,
    host: HostSnapshot,
    rows: Iterable[ReleaseRow],
    specs: Mapping[str, ModelSpec],
) -> list[str]:
    """The models whose releases, all in states `KEPT`, may need an engine on a host.

    Args:
        version: The version in question; empty = any. An unknown version may be this one.
        host: With the ledger's claims.
        specs: The spec of each release.
    """
    found = set()
    for row in rows:
        if row.plan:
            known, here = row.plan.engine_version, host.name in hosts_with(engine, row)
        else:  # it has no record until it serves
            own = specs[row.id].engine
            may_run_it = own.stated_name in (engine.name, EngineName.AUTO)
            known, here = _build(engine, own.version or ""), may_run_it and _may_be_on(host, row)
        wanted = version if row.plan else _build(engine, version)
        if here and (not known or is_meant(known, wanted)):
            found.add(row.model)
    return sorted(found)


def _build(engine: Engine, version: str) -> str:
    """The version by which placement compares what is installed with what a spec states."""
    return engine.argument_version(version) or version


def _may_be_on(host: HostSnapshot, row: ReleaseRow) -> bool:
    return row.state in NOT_PLACED or any(one.release == row.id for one in host.claims)
