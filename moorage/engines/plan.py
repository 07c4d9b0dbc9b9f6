"""The launch plan of a release, on hosts or on a Ray cluster."""

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from moorage.common.failures import Cause, Failure
from moorage.engines.application import (
    ApplicationParts,
    ApplicationRequest,
    application,
    custom_application,
)
from moorage.engines.base import Engine
from moorage.engines.launch import LaunchPlan
from moorage.engines.registry import ENGINES
from moorage.engines.request import LaunchRequest, Peer
from moorage.engines.schema.argument import Schema
from moorage.engines.seat import isolation_warnings
from moorage.engines.vllm.ray_application import vllm_application
from moorage.images.image import Image
from moorage.models.source import on_host
from moorage.placement.engine_checks import require_adapter_format
from moorage.placement.placement import Placed, Seat
from moorage.placement.runtime import program_version
from moorage.placement.seating import overcommit_warnings
from moorage.readiness.diagnosis import LogCause
from moorage.spec import EngineName, ModelSpec, RuntimeName


def plan_launch(
    placed: Placed,
    image: Image | None,
    ledger: str,
    caches: str = "",
    arguments: Schema | None = None,
) -> LaunchPlan:
    """The plan of a release: one container for each seat, and Ray heads where needed.

    Args:
        caches: Directory on this machine for engines' caches, empty = no caches; another machine
            keeps them in its store.
        arguments: The arguments of the version that runs, if the engine needs their types.

    Raises:
        Failure: `BAD_SPEC` when the engine cannot do what the spec requests.
    """
    engine = ENGINES[placed.placement.engine]
    _require_features(placed.spec, engine)
    require_adapter_format(engine, placed.model.companions)
    _require_own_store(placed)
    requests = [
        _request(placed, seat, image, ledger, caches, arguments) for seat in placed.placement.seats
    ]
    return LaunchPlan(
        release=placed.release,
        engine=engine.name,
        engine_version=_version(requests[0], engine),
        key_variable=placed.spec.engine.api_key_variable or "",
        containers=tuple(spec for item in requests for spec in engine.containers(item)),
        warnings=(
            *overcommit_warnings(placed.placement, placed.snapshot),
            *dict.fromkeys(w for item in requests for w in _warnings(engine, item)),
        ),
    )


def _request(
    placed: Placed,
    seat: Seat,
    image: Image | None,
    ledger: str,
    caches: str,
    arguments: Schema | None,
) -> LaunchRequest:
    host = placed.snapshot.host(seat.host)
    return LaunchRequest(
        spec=placed.spec,
        profile=placed.profile,
        model=on_host(placed.model, host.store),
        seat=seat,
        host=host,
        release=placed.release,
        ledger=ledger,
        image=image if seat.runtime == RuntimeName.DOCKER else None,
        caches=f"{host.store.rstrip('/')}/cache" if host.store else caches,
        arguments=arguments,
        peers=_peers(placed, seat),
    )


def _peers(placed: Placed, seat: Seat) -> tuple[Peer, ...]:
    """All hosts of a seat's replica; none if the replica has one host."""
    seats = [other for other in placed.placement.seats if other.replica == seat.replica]
    if len(seats) < 2:
        return ()
    return tuple(Peer(seat=one, host=placed.snapshot.host(one.host)) for one in seats)


def _version(request: LaunchRequest, engine: Engine) -> str:
    """The version that will run, from the image or the installed program; empty = unknown."""
    if request.image is not None:
        return request.image.engine_version
    return program_version(request.spec.engine, engine, request.host)


def _warnings(engine: Engine, request: LaunchRequest) -> Iterator[str]:
    spec, host = request.spec, request.host
    if spec.engine.command is not None and spec.engine.args:
        yield "engine.args: not used, for `engine.command` is the whole line"
    kinds = ", ".join(sorted({item.type for item in host.accelerators}))
    if kinds and not request.seat.accelerators and spec.placement.accelerators == "auto":
        yield (
            f"on CPU: {engine.name} cannot use the accelerators of {host.name} ({kinds});"
            " `placement.accelerators: 1` asks for one"
        )
    yield from isolation_warnings(request)
    yield from engine.warnings(request)


def _require_own_store(placed: Placed) -> None:
    """Refuse later adapters on other machines: they are stored in folders of this machine."""
    hosts = [seat.host for seat in placed.placement.seats]
    remote = [name for name in hosts if placed.snapshot.host(name).store]
    if placed.spec.lora_updates and remote:
        raise Failure(
            Cause.BAD_SPEC,
            f"lora_updates: {remote[0]} is another machine, and adapters are loaded from this one",
            suggestion="List the adapters under `lora`, or place the model on this machine.",
        )


def _require_features(spec: ModelSpec, engine: Engine) -> None:
    _require_own_key(spec, engine)
    every = frozenset[str]().union(*(other.features for other in ENGINES.values()))
    for field in sorted(every - engine.features):
        outer, _, inner = field.partition(".")
        stated = getattr(spec, outer)
        if (getattr(stated, inner) not in (None, False)) if stated and inner else stated:
            able = ", ".join(name for name, other in ENGINES.items() if field in other.features)
            raise Failure(
                Cause.BAD_SPEC,
                f"{field}: {engine.name} cannot do that",
                suggestion=f"Set `engine.name` to {able}, or leave `{field}` out.",
            )


def _require_own_key(spec: ModelSpec, engine: Engine) -> None:
    """Raise `BAD_SPEC` for a key that the engine would not check: it would serve everybody."""
    usual, stated = engine.api_key_variable, spec.engine.api_key_variable
    own_line = spec.engine.command or spec.engine.entrypoint or engine.name == EngineName.CUSTOM
    if stated in (None, usual) or own_line:
        return
    does = f"reads its key from {usual}, not {stated}" if usual else "checks no key"
    instead = f"Name the secret as {usual} in `secrets`, and leave" if usual else "Leave"
    raise Failure(
        Cause.BAD_SPEC,
        f"engine.api_key_variable: {engine.name} {does}",
        suggestion=f"{instead} the field out.",
    )


BUILDERS: dict[EngineName, Callable[[ApplicationRequest], ApplicationParts]] = {
    EngineName.VLLM: vllm_application,
    EngineName.CUSTOM: custom_application,
}

CLUSTER_CAUSES = (
    LogCause(
        pattern=r"ModuleNotFoundError: No module named '(?P<module>[^']+)'",
        cause=Cause.PROGRAM_MISSING,
        suggestion="{module} is not in the Python of the cluster's nodes. vLLM there takes"
        " `ray[serve,llm]`; an application of your own brings its packages in"
        " `engine.application.runtime_env`.",
    ),
)
"""Patterns in an application's messages that do not come from its engine."""


def plan_on_cluster(request: ApplicationRequest, engine: EngineName) -> LaunchPlan:
    """The plan of a release on a Ray cluster.

    Raises:
        Failure: `BAD_SPEC` when the engine cannot run on a Ray cluster.
    """
    if engine not in BUILDERS:
        raise Failure(Cause.BAD_SPEC, f"engine.name: {engine} cannot run on a Ray cluster")
    return LaunchPlan(
        release=request.release,
        engine=engine,
        engine_version=request.spec.engine.version or "",
        containers=(application(request, BUILDERS[engine](request)),),
        warnings=tuple(_cluster_warnings(request, engine)),
    )


def _cluster_warnings(request: ApplicationRequest, engine: EngineName) -> Iterator[str]:
    spec, cluster, serve = request.spec, request.cluster.name, request.cluster.serve
    host = urlsplit(serve).hostname or ""
    if host not in ("localhost", "::1") and not host.startswith("127."):
        # Ray Serve requires no key, and Ray's dashboard would show one in the config.
        yield (
            f"the application answers everybody who reaches {serve}, and knows no key;"
            " a proxy in front of it can ask for one"
        )
    if not request.model.source.startswith("hf://"):
        yield f"{request.source} has to be on every node of {cluster}; nothing is copied"
    if "HF_TOKEN" in spec.secrets:
        yield (
            f"HF_TOKEN is used here only: the nodes of {cluster} need one in their own environment,"
            " for Ray's dashboard would show it"
        )
    if engine == EngineName.VLLM and not spec.engine.version:
        yield (
            f"arguments are written as for vLLM {request.arguments.version}; which one {cluster}"
            " has is not known, `engine.version` says it"
        )
