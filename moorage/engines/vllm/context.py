"""The input of the launch rules: one container, under the defaults of a policy."""

from collections.abc import Sequence
from enum import StrEnum

from moorage.common.values import Origin, Value
from moorage.engines.request import LaunchRequest
from moorage.engines.seat import claimed_accelerators
from moorage.engines.vllm.companions import Adapter, adapters, draft_path
from moorage.engines.vllm.engine_caches import cache_root
from moorage.models.profile import SPEECH_TO_TEXT, TEXT_TO_SPEECH
from moorage.spec import (
    AdapterUpdatesSpec,
    EngineName,
    ExtendedCacheSpec,
    Mode,
    ModelSpec,
    Policy,
    SpeculativeSpec,
)
from moorage.spec.arguments import EngineArguments


class Executor(StrEnum):
    """What connects the hosts of a replica."""

    RAY = "ray"
    NATIVE = "mp"


class LaunchPolicy(Value):
    """The defaults of a launch on which moorage and the baseline differ."""

    executor: Executor = Executor.NATIVE
    """What connects hosts where the user does not state it. vLLM needs no Ray since 0.18, and its
    images hold none."""

    leader_rank: bool = False
    """Whether the leader gets its first rank, 0. vLLM ignores it until 0.27; later it switches
    the way of load balancing (vLLM 0.28, `arg_utils.py`)."""

    overwrites: bool = False
    """Whether derived variables override the user's. Defaults never do."""


MOORAGE = LaunchPolicy()
BASELINE = LaunchPolicy(executor=Executor.RAY, leader_rank=True, overwrites=True)
"""GPUStack's."""


FOUND_WITH_UNDERSCORE = ("--lora_modules", "--max_lora_rank")
"""Options that GPUStack finds though they are written with `_`."""


def baseline_arguments(args: EngineArguments) -> EngineArguments:
    """The user's arguments as the rules of the policy `baseline` read them.

    GPUStack takes the first of several where vLLM takes the last one, hence the reversed order. It
    does not find options that are written with `_`, except two. Only its rules ignore them: an
    option of the user is never repeated, in any spelling.
    """
    read = (
        option
        for option in reversed(args.options)
        if "_" not in option.written or option.written in FOUND_WITH_UNDERSCORE
    )
    return EngineArguments(options=tuple(read))


class Member(Value):
    """One host of a replica that spans several: its address and its accelerators."""

    address: str
    accelerators: int


class Length(Value):
    """The context to serve, in tokens, and its origin."""

    tokens: int
    origin: Origin
    reason: str


class LaunchContext(Value):
    """One container of a replica.

    Attributes:
        version: Version of the engine; empty = unknown.
        model: Directory of the model as the engine sees it.
        user_variables: Names of the variables that the user sets.
        accelerator_type: `cuda`, `rocm`, `cann`, ...; `cpu` without accelerators.
        tensor: Ranks that share a layer, on one host.
        pipeline: Stages that share the layers, on one host.
        shared: Both over all hosts, as placed; None = they follow from what the hosts give.
        executor: What connects the hosts, as placed; None = it follows from the rest.
        members: Hosts of the replica, the leader first; empty = it is on one host.
        position: Which of them this container is on.
        interface: Network interface that the hosts share.
        ports: Claimed ports: serving; data-parallel RPC, master and first of the engine's own
            (native hosts); the last one connects the hosts.
        omni: Whether it generates images or speech.
        length: Context to serve; None = the engine decides.
        claimed: Bytes of accelerator memory that are claimed on this host.
        ranks: Processes of the engine there that have an accelerator each.
        draft: Directory of the draft model, as the engine sees it; empty = there is none.
        shutdown_seconds: How long the engine may take to end after SIGTERM; 0 = no limit.
        cache_root: Directory, as the engine sees it, that outlives the container; empty = none.
    """

    version: str = ""
    name: str
    model: str
    args: EngineArguments = EngineArguments.defaults()
    user_variables: frozenset[str] = frozenset()
    accelerator_type: str
    is_310p: bool = False
    tensor: int = 1
    pipeline: int = 1
    shared: tuple[int, int] | None = None
    executor: Executor | None = None
    members: tuple[Member, ...] = ()
    position: int = 0
    address: str
    interface: str = ""
    ports: tuple[int, ...]
    omni: bool = False
    length: Length | None = None
    claimed: int = 0
    ranks: int = 1
    speculative: SpeculativeSpec | None = None
    draft: str = ""
    cache: ExtendedCacheSpec | None = None
    adapters: tuple[Adapter, ...] = ()
    updates: AdapterUpdatesSpec | None = None
    shutdown_seconds: int = 0
    cache_root: str = ""
    policy: LaunchPolicy = MOORAGE

    @property
    def spans_hosts(self) -> bool:
        """Whether the replica runs on several hosts."""
        return len(self.members) > 1

    @property
    def leads(self) -> bool:
        """Whether this container serves for its replica."""
        return self.position == 0


def context_of(request: LaunchRequest) -> LaunchContext:
    """The input of the launch rules for one seat."""
    spec, seat = request.spec, request.seat
    return LaunchContext(
        version=version_of(request),
        name=spec.name,
        model=request.engine_model_path,
        args=arguments_of(spec),
        user_variables=frozenset({*spec.engine.env, *spec.secrets}),
        accelerator_type=seat.accelerator_type,
        is_310p=is_310p([item.family for item in claimed_accelerators(request)]),
        tensor=seat.tensor if seat.accelerators else 1,
        pipeline=seat.pipeline if seat.accelerators else 1,
        shared=(seat.tensor, seat.pipeline) if request.spans_hosts else None,
        executor=_executor(request),
        members=_members(request),
        position=seat.position,
        address=request.listen_address,
        interface=request.host.interface,
        ports=_ports(request),
        omni=_is_omni(request),
        length=length_of(request),
        claimed=sum(seat.accelerator_bytes),
        ranks=len(seat.accelerators) or 1,
        speculative=spec.speculative,
        draft=draft_path(request),
        cache=spec.extended_kv_cache,
        cache_root=cache_root(request, version_of(request)),
        adapters=adapters(request),
        updates=spec.lora_updates,
        shutdown_seconds=spec.stopping.grace_seconds,
        policy=policy_of(spec),
    )


def version_of(request: LaunchRequest) -> str:
    """The version that will run: of the image, else of the installed program; empty = unknown.

    A version that only the spec states does not count. Where vLLM runs inside another engine, its
    own version is that of the arguments.
    """
    if request.arguments:
        return request.arguments.version
    if request.image is not None:
        return request.image.engine_version
    installed = None if request.in_container else request.host.program(EngineName.VLLM)
    return installed.version if installed else ""


def policy_of(spec: ModelSpec) -> LaunchPolicy:
    """The defaults of a launch: the policy that places a model also starts it."""
    return BASELINE if spec.placement.policy == Policy.BASELINE else MOORAGE


def arguments_of(spec: ModelSpec) -> EngineArguments:
    """The user's arguments, as the rules of the policy read them."""
    args = spec.engine.arguments
    return baseline_arguments(args) if spec.placement.policy == Policy.BASELINE else args


def _is_omni(request: LaunchRequest) -> bool:
    """Whether images or speech are generated, by the model's profile or the user's `--omni`."""
    profile = request.profile
    makes = profile.mode == Mode.IMAGE_GENERATION or TEXT_TO_SPEECH in profile.categories
    return makes or bool(request.spec.engine.arguments.switch("--omni"))


def is_clustered(request: LaunchRequest) -> bool:
    """Whether Ray connects the hosts of the replica."""
    links = request.seat.links
    return request.spans_hosts and links is not None and links.ray is not None


def is_310p(families: Sequence[str]) -> bool:
    """Whether all accelerators are Ascend 310P, by the names of their chips."""
    return bool(families) and all(name.lower().startswith("ascend310p") for name in families)


def _executor(request: LaunchRequest) -> Executor | None:
    if not request.spans_hosts:
        return None
    return Executor.RAY if is_clustered(request) else Executor.NATIVE


def _members(request: LaunchRequest) -> tuple[Member, ...]:
    """On CPU every host is one rank."""
    return tuple(
        Member(address=peer.address, accelerators=len(peer.seat.accelerators) or 1)
        for peer in request.peers
    )


def _ports(request: LaunchRequest) -> tuple[int, ...]:
    """As the rules expect them: ports for connecting the hosts are the leader's.

    A kind of port that the layout does not use is not claimed.
    """
    own, leads = request.seat.links, request.peers[0].seat.links if request.peers else None
    if own is None or leads is None:
        return (request.seat.port,)
    if own.ray:
        return (request.seat.port, leads.rpc, own.own)
    return (request.seat.port, leads.rpc, leads.master, own.own, leads.joining)


def length_of(request: LaunchRequest) -> Length | None:
    """The context that the placement decided, and why it is stated."""
    profile, tokens = request.profile, request.seat.tokens
    origin, whole = profile.context_origin, profile.context
    baseline = request.spec.placement.policy == Policy.BASELINE
    if origin == Origin.USER or not (baseline or (tokens and tokens < whole)):
        return Length(tokens=whole, origin=origin, reason=profile.context_reason)
    # GPUStack states no length but its cap, and none for speech-to-text.
    unstated = origin == Origin.DEFAULT or SPEECH_TO_TEXT in profile.categories
    if baseline and (unstated or not 0 < tokens < whole):
        return None
    why = "the policy allows" if baseline else "the claimed memory holds"
    reason = f"of {whole} tokens, as many as {why}"
    return Length(tokens=tokens, origin=Origin.DERIVED, reason=reason)
