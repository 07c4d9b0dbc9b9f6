"""A launch case as a deploy sees it: spec, profile, placement, fleet snapshot.

What a spec says in another way is translated here, each with its reason. What is read back out of
the plan is translated in `launch_answer.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB
from moorage.common.values import Origin
from moorage.engines.registry import ENGINES
from moorage.engines.vllm.launch_facts import arguments_of
from moorage.inventory.fleet_engines import EngineVersion, EngineVersions
from moorage.inventory.snapshot import Accelerator, FleetSnapshot, HostSnapshot
from moorage.models.config import TEXT_CONFIG_KEYS
from moorage.models.pin import AssetRole
from moorage.models.profile import ModelProfile, derive_profile
from moorage.models.source import Companion, ResolvedModel, WeightSummary
from moorage.placement.memory import memory_request
from moorage.placement.parallelism import split_over_hosts, stated_parallelism
from moorage.placement.placement import Links, Placed, Placement, Seat
from moorage.placement.role import Role
from moorage.spec import Distributed, EngineName, Mode, ModelSpec, RuntimeName
from moorage.spec.patterns import check_environment
from tests.conformance.launch_words import written_entries

Json = Mapping[str, Any]

SOURCE, RELEASE, ADAPTER = "hf://conformance/model", "model.v1", "adapter-"
RAY_RANGE = (41000, 41999)
UNREAD_PARTS = frozenset(TEXT_CONFIG_KEYS) - {"text_config"}
"""Parts of a configuration that GPUStack does not take for the language model."""

SPLITTING = (
    *("--tensor-parallel-size", "-tp", "--pipeline-parallel-size", "-pp"),
    *("--data-parallel-size", "-dp"),
)
MODES = {"image": Mode.IMAGE_GENERATION, "embedding": Mode.EMBEDDING, "reranker": Mode.RERANKING}


def a_placed(given: Json) -> Placed:
    """All that a launch is planned from, but its image."""
    _require_one_type(given)
    model, spec = given["model"], a_spec(given)
    resolved = _resolved(model, spec)
    profile = _profile(model, spec, resolved)
    return Placed(
        spec=spec,
        model=resolved,
        profile=profile,
        placement=Placement(
            engine=EngineName.VLLM,
            engine_origin=Origin.USER,
            engine_reason="",
            policy=spec.placement.policy,
            seats=_seats(given, spec, profile),
            verdicts=(),
        ),
        snapshot=FleetSnapshot(hosts=_hosts(given)),
        release=RELEASE,
    )


def number(text: str | None, kind: type[Any]) -> Any:
    """What is no number counts as absent, as the peer has it; our spec refuses it."""
    try:
        return kind(text) if text else None
    except ValueError:
        return None


def position_of(placement: Json) -> int:
    """Which of the replica's hosts the case is about."""
    if placement["role"] != "follower":
        return 0
    return int(placement.get("follower_index") or 0) + 1


def ray_range(given: Json) -> tuple[int, int]:
    """First and last port of Ray."""
    text = given.get("ray_port_range")
    if not text:
        return RAY_RANGE
    first, last = map(int, text.split("-"))
    return first, last


def is_on(text: str | None) -> bool:
    """Whether one of the user's strings is a yes."""
    return str(text or "").lower() in ("1", "true", "yes", "on", "t", "y")


def a_spec(given: Json) -> ModelSpec:
    """The peer's containers share the host's network, which a spec has to ask for."""
    model, options = given["model"], given.get("options") or {}
    packages = [] if is_on(options.get("script_disabled")) else _packages(options)
    uid, gid = number(options.get("uid"), int), number(options.get("gid"), int)
    # A spec says a group only together with a user; `launch_read.py` leaves this one out again.
    user = 0 if uid is None and gid is not None else uid
    shm = number(options.get("shm_gib"), float)
    env = model.get("env") or {}
    secrets = [name for name, value in env.items() if _is_secret(name, value)]
    return ModelSpec.model_validate(
        {
            "name": model["name"],
            "source": SOURCE,
            "engine": {
                "name": "vllm",
                "version": model.get("backend_version") or None,
                "args": written_entries(given),
                "env": {name: value for name, value in env.items() if name not in secrets},
                "api_key": "none",
                "packages": packages,
                "keep_cuda_compat": not is_on(options.get("cuda_minor_compat")),
                "container": {"network": "host", "user": user, "group": gid},
                **({} if shm is None else {"shm": int(shm * GIB)}),
            },
            "placement": {"policy": "baseline", "across_hosts": True},
            "secrets": {name: name for name in secrets},
            "speculative": _speculative(model.get("speculative")),
            "lora": [
                {"name": f"{ADAPTER}{at}", "source": f"file://{item['path']}"}
                for at, item in enumerate(adapters(model))
            ],
            "extended_kv_cache": _cache(model.get("extended_kv_cache")),
        }
    )


def _is_secret(name: str, value: str) -> bool:
    """What a spec may only name, and the plan therefore does not hold."""
    try:
        check_environment({name: value})
    except ValueError:
        return True
    return False


def adapters(model: Json) -> list[Json]:
    """Those that have a name and a directory; the peer passes the others over."""
    return [i for i in model.get("lora") or () if i.get("name") and i.get("path")]


def _packages(options: Json) -> list[str]:
    return (options.get("extra_packages") or "").replace(",", " ").split()


def _speculative(entry: Json | None) -> dict[str, Any] | None:
    if not entry or not entry.get("enabled") or not entry.get("algorithm"):
        return None
    draft = entry.get("draft_path")
    return {
        "method": entry["algorithm"],
        "tokens": entry.get("num_draft_tokens"),
        "ngram_min": entry.get("ngram_min"),
        "ngram_max": entry.get("ngram_max"),
        "model": f"file://{draft}" if draft else None,
    }


def _cache(entry: Json | None) -> dict[str, Any] | None:
    if not entry or not entry.get("enabled"):
        return None
    size, ratio, chunk = (entry.get(key) for key in ("ram_size_gib", "ram_ratio", "chunk_size"))
    found: dict[str, Any] = {"chunk": chunk if chunk and chunk > 0 else None}
    found |= {"ram": int(size * GIB)} if size and size > 0 else {}
    return found | ({"ratio": ratio} if ratio and ratio > 0 else {})


def _resolved(model: Json, spec: ModelSpec) -> ResolvedModel:
    neighbour = [
        _companion(AssetRole.ADAPTER, f"{ADAPTER}{at}", item["path"], item.get("adapter_config"))
        for at, item in enumerate(adapters(model))
    ]
    if spec.speculative and spec.speculative.model:
        path = spec.speculative.model.removeprefix("file://")
        neighbour.append(_companion(AssetRole.DRAFT, "draft", path, None))
    config = model.get("config") or {}
    read = {key: part for key, part in config.items() if key not in UNREAD_PARTS}
    return _files(model["path"], read).model_copy(update={"companions": tuple(neighbour)})


def _companion(role: AssetRole, name: str, path: str, config: Json | None) -> Companion:
    return Companion(role=role, name=name, model=_files(path, dict(config or {})))


def _files(path: str, config: dict[str, Any]) -> ResolvedModel:
    return ResolvedModel(
        source=SOURCE,
        revision="0" * 40,
        path=path,
        staged=True,
        files=(),
        config=config,
        config_origin="config.json",
        weights=WeightSummary(family="safetensors", bytes=GIB),
    )


def _profile(model: Json, spec: ModelSpec, resolved: ResolvedModel) -> ModelProfile:
    """As derived from its configuration, but for what the case itself says."""
    profile = derive_profile(spec, resolved)
    categories = tuple(model.get("categories") or ())
    modes = [MODES[name] for name in categories if name in MODES]
    answer: dict[str, Any] = {
        "categories": categories,
        "mode": modes[0] if modes else Mode.COMPLETION,
    }
    if model.get("config") is None and profile.context_origin != Origin.USER:
        longest = model.get("derived_max_model_len")
        origin = Origin.DERIVED if longest else Origin.DEFAULT
        answer |= {"context": longest or profile.context, "context_origin": origin}
    return profile.model_copy(update=answer)


def _seats(given: Json, spec: ModelSpec, profile: ModelProfile) -> tuple[Seat, ...]:
    """The case's placement; the ports that it lists are those of the host that it is about."""
    placement, kind = given["placement"], accelerator_type(given)
    members = [placement["leader"]]
    members += (placement.get("followers") or ()) if placement["role"] != "single" else ()
    counts = [len(seat.get("accelerators") or ()) for seat in members]
    args = arguments_of(spec)
    # Of the sizes GPUStack looks at these three; the others leave the split to the hosts.
    stated = stated_parallelism(args) if args.states(*SPLITTING) else None
    vllm = ENGINES[EngineName.VLLM]
    natively = vllm.joined_by(spec) != Distributed.RAY
    split = split_over_hosts(counts, natively=natively)
    if stated:
        split = (stated.tensor, stated.pipeline)
    tokens = memory_request(spec, profile).capped_context
    return tuple(
        Seat(
            replica=0,
            role=Role.FOLLOWER if at else Role.LEADER,
            position=at,
            host=f"host-{at}",
            runtime=RuntimeName.DOCKER,
            accelerator_type=kind,
            accelerators=_indexes(given, at),
            accelerator_bytes=_claims(given, at),
            ram_bytes=vllm.ram_on_accelerators(spec, kind, sum(_claims(given, at))),
            port=(given.get("ports") or [0])[0],
            links=_links(given, spec) if len(members) > 1 else None,
            utilization=0.9,
            tokens=tokens,
            tensor=split[0],
            pipeline=split[1],
            reason="",
        )
        for at in range(len(members))
    )


def _links(given: Json, spec: ModelSpec) -> Links:
    ports = [*(given.get("ports") or ()), 0, 0, 0, 0]
    last = (given.get("ports") or [0])[-1]
    if ENGINES[EngineName.VLLM].joined_by(spec) == Distributed.RAY:
        return Links(rpc=ports[1], own=last, ray=ray_range(given))
    return Links(rpc=ports[1], master=ports[2], own=ports[3], joining=last)


def accelerator_type(given: Json) -> str:
    """Of the accelerators that were chosen, else of those that are there."""
    own, there = position_of(given["placement"]), given["host"].get("accelerators") or ()
    member = _members(given)[own]
    kind = given["placement"].get("accelerator_type")
    chosen = [i for i in there if i["index"] in (member.get("accelerators") or ())]
    types = [i["type"] for i in chosen if kind in (None, i["type"])] or [i["type"] for i in there]
    return (types[0] if types else kind) or "cuda"


def _require_one_type(given: Json) -> None:
    """A seat has accelerators of one type: the step `place` refuses others (`MIXED_TYPES`)."""
    placement = given["placement"]
    chosen = _members(given)[position_of(placement)].get("accelerators") or ()
    there = given["host"].get("accelerators") or ()
    first = {item["index"]: item["type"] for item in reversed(there)}
    types = {kind for index, kind in first.items() if index in chosen}
    if len(types) > 1 and placement.get("accelerator_type") is None:
        raise Failure(Cause.NO_FIT, "the selected accelerators are of several types")


def _members(given: Json) -> list[Json]:
    placement = given["placement"]
    return [placement["leader"], *(placement.get("followers") or ())]


def _indexes(given: Json, at: int) -> tuple[int, ...]:
    """Ascending, as a seat has them; what the host of the case does not have is not its own."""
    wanted = sorted(_members(given)[at].get("accelerators") or ())
    if at != position_of(given["placement"]):
        return tuple(wanted)
    kind = accelerator_type(given)
    there = {i["index"] for i in given["host"].get("accelerators") or () if i["type"] == kind}
    return tuple(index for index in wanted if index in there)


def _claims(given: Json, at: int) -> tuple[int, ...]:
    claimed = _members(given)[at].get("claimed_bytes") or {}
    return tuple(claimed.get(str(index), 0) for index in _indexes(given, at))


def _hosts(given: Json) -> tuple[HostSnapshot, ...]:
    own = position_of(given["placement"])
    return tuple(
        _own_host(given, at) if at == own else _other_host(given, at)
        for at in range(len(_members(given)))
    )


def _own_host(given: Json, at: int) -> HostSnapshot:
    host = given["host"]
    return HostSnapshot(
        name=f"host-{at}",
        bind=host["ip"],
        architecture=host["cpu_arch"],
        interface=host.get("ifname") or "",
        runtimes=(RuntimeName.DOCKER,),
        accelerators=tuple(
            Accelerator(
                type=item["type"],
                index=item["index"],
                memory_total=80 * GIB,
                memory_free=80 * GIB,
                family=item.get("arch_family") or "",
                runtime_version=item.get("runtime_version") or "",
            )
            for item in host.get("accelerators") or ()
        ),
        engines={"vllm": configured_versions(given.get("engine") or {})},
    )


def _other_host(given: Json, at: int) -> HostSnapshot:
    """Of the same make as the case's own."""
    kind = accelerator_type(given)
    there = [i for i in given["host"].get("accelerators") or () if i["type"] == kind]
    family = (there[0].get("arch_family") if there else None) or ""
    runtime = (there[0].get("runtime_version") if there else None) or ""
    return HostSnapshot(
        name=f"host-{at}",
        bind=_members(given)[at]["ip"],
        runtimes=(RuntimeName.DOCKER,),
        accelerators=tuple(
            Accelerator(
                type=kind,
                index=index,
                memory_total=80 * GIB,
                memory_free=80 * GIB,
                family=family,
                runtime_version=runtime,
            )
            for index in _indexes(given, at)
        ),
        engines={"vllm": configured_versions(given.get("engine") or {})},
    )


def configured_versions(engine: Mapping[str, Any]) -> EngineVersions:
    """What a case configures; of a version that is the catalogue's own, nothing counts.

    Not validated: a fleet file may not write everything that a case does.
    """
    listed = engine.get("source") in (None, "built_in")
    return EngineVersions.model_construct(
        default_version=engine.get("default_version") or None,
        versions={
            name: _version(entry, engine.get("default_entrypoint") or "", listed)
            for name, entry in (engine.get("versions") or {}).items()
        },
    )


def _version(entry: Json, entrypoint: str, listed: bool) -> EngineVersion:
    frameworks = entry.get("built_in_frameworks")
    return EngineVersion.model_construct(
        image=None if listed and frameworks else entry.get("image") or None,
        entrypoint=entry.get("entrypoint") or entrypoint,
        run_command="" if frameworks is not None else entry.get("run_command") or "",
    )
