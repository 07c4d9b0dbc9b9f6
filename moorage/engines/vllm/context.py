"""The input of the launch rules: one container, under the defaults of a policy."""

from __future__ import annotations

from enum import StrEnum

from moorage.common.values import Origin, Value
from moorage.engines.vllm.companions import Adapter
from moorage.engines.vllm.offload import ExtendedCache
from moorage.spec import AdapterUpdatesSpec, SpeculativeSpec
from moorage.spec.arguments import EngineArguments


class Executor(StrEnum):
    """What connects the hosts of a replica."""

    RAY = "ray"
    NATIVE = "mp"


class LaunchPolicy(Value):
    """The defaults of a launch on which moorage and the baseline differ.

    Attributes:
        executor: What connects hosts where the user does not state it. vLLM needs no Ray since
            0.18, and its images hold none.
        longest: Longer contexts are cut to it where the user states none; 0 = never.
        leader_rank: Whether the leader gets its first rank, 0. vLLM ignores it until
            0.27; later it switches the way of load balancing (vLLM 0.28, `arg_utils.py`).
        overwrites: Whether derived variables override the user's. Defaults never do.
    """

    executor: Executor = Executor.NATIVE
    longest: int = 0
    leader_rank: bool = False
    overwrites: bool = False


MOORAGE = LaunchPolicy()
BASELINE = LaunchPolicy(
    executor=Executor.RAY,
    longest=8192,
    leader_rank=True,
    overwrites=True,
)
"""GPUStack's: Ray, 8192 tokens."""


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
        name: Name under which the model is served.
        model: Its directory as the engine sees it.
        args: The user's arguments.
        user_variables: Names of the variables that the user sets.
        accelerator_type: `cuda`, `rocm`, `cann`, ...; `cpu` without accelerators.
        is_310p: Whether all its accelerators are Ascend 310P.
        tensor: Ranks that share a layer, on one host.
        pipeline: Stages that share the layers, on one host.
        shared: Ranks that share a layer and stages that share the layers, over all hosts, as
            placed; None = they follow from what the hosts give.
        executor: What connects the hosts, as placed; None = it follows from the rest.
        members: Hosts of the replica, the leader first; empty = it is on one host.
        position: Which of them this container is on.
        address: Address on which it listens.
        interface: Network interface that the hosts share.
        ports: Claimed ports: serving; data-parallel RPC, master and first of the engine's own
            (native hosts); the last one connects the hosts.
        omni: Whether it generates images or speech.
        length: Context to serve; None = the engine decides.
        claimed: Bytes of accelerator memory that are claimed on this host.
        ranks: Processes of the engine there that have an accelerator each.
        speculative: Speculative decoding, if any.
        draft: Directory of the draft model, as the engine sees it; empty = there is none.
        cache: Extended KV cache, if any.
        adapters: LoRA adapters that are loaded at the start.
        updates: Room for adapters that are loaded while it serves; None = none are.
        shutdown_seconds: How long the engine may take to end after SIGTERM; 0 = no limit.
        cache_root: Directory, as the engine sees it, that outlives the container; empty = none.
        policy: The defaults.
    """

    version: str = ""
    name: str
    model: str
    args: EngineArguments = EngineArguments()
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
    cache: ExtendedCache | None = None
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
