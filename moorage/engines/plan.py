"""From everything that was decided to what will run."""

from __future__ import annotations

from moorage.engines.base import Engine
from moorage.engines.isolation import isolation_warnings
from moorage.engines.registry import ENGINES
from moorage.engines.request import LaunchRequest, Peer
from moorage.failures import Cause, Failure
from moorage.images.image import Image
from moorage.launch import LaunchPlan
from moorage.models.placed import on_host
from moorage.models.profile import ModelProfile
from moorage.models.source import ResolvedModel
from moorage.placement.placement import Placement, Seat
from moorage.placement.snapshot import FleetSnapshot
from moorage.spec import ModelSpec, RuntimeName


def plan_launch(
    spec: ModelSpec,
    model: ResolvedModel,
    profile: ModelProfile,
    placement: Placement,
    snapshot: FleetSnapshot,
    image: Image | None,
    release: str,
    ledger: str,
    caches: str = "",
) -> LaunchPlan:
    """The plan of a release: one container for each seat, and what it needs beside it.

    Args:
        spec: What the user wrote.
        model: The model's files.
        profile: What it is.
        placement: Where it runs.
        snapshot: The fleet that it was placed on.
        image: The image of its containers; None for processes.
        release: Id of the release.
        ledger: Identity of the ledger that the release is in.
        caches: Directory of this machine under which engines keep caches, empty = nowhere;
            another machine has one in its store.

    Raises:
        Failure: `BAD_SPEC` when the engine cannot do what the spec asks for.
    """
    engine = ENGINES[placement.engine]
    _require_wishes(spec, engine)
    _require_own_store(spec, placement, snapshot)
    requests = []
    for seat in placement.seats:
        host = snapshot.host(seat.host)
        placed = on_host(model, host.store)
        requests.append(
            LaunchRequest(
                spec=spec,
                profile=profile,
                seat=seat,
                host=host,
                release=release,
                ledger=ledger,
                model_path=placed.path,
                files=placed.files,
                companions=placed.companions,
                updates_folder=placed.updates_folder,
                image=image if seat.runtime == RuntimeName.DOCKER else None,
                caches=f"{host.store.rstrip('/')}/cache" if host.store else caches,
                peers=_peers(placement, snapshot, seat),
            )
        )
    return LaunchPlan(
        release=release,
        engine=engine.name,
        engine_version=_version(requests[0], engine),
        containers=tuple(spec for item in requests for spec in engine.containers(item)),
        warnings=tuple(dict.fromkeys(w for item in requests for w in _warnings(engine, item))),
    )


def _peers(placement: Placement, snapshot: FleetSnapshot, seat: Seat) -> tuple[Peer, ...]:
    """All hosts of a seat's replica; none where it is alone."""
    seats = [other for other in placement.seats if other.replica == seat.replica]
    if len(seats) < 2:
        return ()
    return tuple(Peer(address=snapshot.host(other.host).bind, seat=other) for other in seats)


def _version(request: LaunchRequest, engine: Engine) -> str:
    """The version that will run: of the image, or of the installed program; empty = unknown."""
    spec = request.spec.engine
    if request.image is not None:
        return request.image.engine_version
    if spec.command or spec.entrypoint or spec.custom:
        return spec.version or ""
    installed = request.host.program(engine.name)
    return installed.version if installed else ""


def _warnings(engine: Engine, request: LaunchRequest) -> tuple[str, ...]:
    return (*_idle(engine, request), *isolation_warnings(request), *engine.warnings(request))


def _idle(engine: Engine, request: LaunchRequest) -> tuple[str, ...]:
    """Accelerators that the engine cannot use, where nobody has said that it shall do without."""
    there = {item.type for item in request.host.accelerators}
    if request.seat.accelerators or request.spec.placement.accelerators != "auto" or not there:
        return ()
    kinds, host = ", ".join(sorted(there)), request.host.name
    return (
        f"on CPU: {engine.name} cannot use the accelerators of {host} ({kinds});"
        " `placement.accelerators: 1` asks for one",
    )


def _require_own_store(spec: ModelSpec, placement: Placement, snapshot: FleetSnapshot) -> None:
    """Adapters that come later are put into folders of this machine."""
    remote = [seat.host for seat in placement.seats if snapshot.host(seat.host).store]
    if spec.lora_updates and remote:
        raise Failure(
            Cause.BAD_SPEC,
            f"lora_updates: {remote[0]} is another machine, and adapters are loaded from this one",
            suggestion="List the adapters under `lora`, or place the model on this machine.",
        )


def _require_wishes(spec: ModelSpec, engine: Engine) -> None:
    every = frozenset[str]().union(*(other.wishes for other in ENGINES.values()))
    for field in sorted(every - engine.wishes):
        if getattr(spec, field):
            able = ", ".join(name for name, other in ENGINES.items() if field in other.wishes)
            raise Failure(
                Cause.BAD_SPEC,
                f"{field}: {engine.name} cannot do that",
                suggestion=f"Set `engine.name` to {able}, or leave `{field}` out.",
            )
