"""The input of the launch rules: one container, under the defaults of a policy."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from moorage.common.values import Origin, Value
from moorage.engines.vllm.companions import Adapter
from moorage.engines.vllm.offload import ExtendedCache
from moorage.engines.vllm.speculative import Speculative
from moorage.spec import AdapterUpdatesSpec
from moorage.spec.arguments import is_option


class Executor(StrEnum):
    """What joins the hosts of a replica."""

    RAY = "ray"
    NATIVE = "mp"


class LaunchPolicy(Value):
    """Whose defaults a launch follows.

    Attributes:
        executor: What joins hosts where the user does not say. vLLM needs no Ray since 0.18, and
            its images hold none.
        longest: Contexts beyond it are cut to it where the user states none; 0 = never.
        leader_rank: Whether the leader is told that its first rank is 0. vLLM ignores it until
            0.27; later it switches the way of load balancing (vLLM 0.28, `arg_utils.py`).
        overwrites: Whether what is derived wins over a variable of the user. A default never does.
    """

    executor: Executor = Executor.NATIVE
    longest: int = 0
    leader_rank: bool = False
    overwrites: bool = False


OURS = LaunchPolicy()
BASELINE = LaunchPolicy(
    executor=Executor.RAY,
    longest=8192,
    leader_rank=True,
    overwrites=True,
)
"""GPUStack's: Ray, 8192 tokens."""


FOUND_ANYWAY = ("--lora_modules", "--max_lora_rank")
"""Written with `_`, and looked for by GPUStack."""


def peer_words(words: Sequence[str]) -> tuple[str, ...]:
    """Words in an order, and of a choice, that make our questions give GPUStack's answers.

    GPUStack takes the first of several where ours and vLLM take the last one, hence the order. An
    option that is written with `_` it does not find. Only the rules go without it: what the user
    wrote in any way is not repeated.
    """
    options: list[list[str]] = []
    for word in words:
        if is_option(word):
            options.append([])
        if options:
            options[-1].append(word)
    return tuple(word for option in reversed(options) if _is_found(option[0]) for word in option)


def _is_found(word: str) -> bool:
    name = word.partition("=")[0]
    return "_" not in name or name in FOUND_ANYWAY


class Member(Value):
    """One host of a replica that spans several: how it is reached, and what it gives."""

    address: str
    accelerators: int


class Length(Value):
    """The context to serve, in tokens, and where it comes from."""

    tokens: int
    origin: Origin
    reason: str


class LaunchContext(Value):
    """One container of a replica.

    Attributes:
        version: Version of the engine; empty = unknown.
        name: Name under which the model is served.
        model: Its directory as the engine sees it.
        words: The user's arguments, split.
        given: Names of the variables that the user sets.
        accelerator_type: `cuda`, `rocm`, `cann`, ...; `cpu` without accelerators.
        is_310p: Whether all its accelerators are Ascend 310P.
        tensor: Ranks that share a layer, on one host.
        pipeline: Stages that share the layers, on one host.
        shared: Ranks that share a layer and stages that share the layers, over all hosts, as
            placed; None = they follow from what the hosts give.
        executor: What joins the hosts, as placed; None = it follows from the rest.
        members: Hosts of the replica, the leader first; empty = it is on one host.
        position: Which of them this container is on.
        address: Address on which it listens.
        interface: Network interface that the hosts share.
        ports: Claimed ports: serving; data-parallel RPC, master and first of the engine's own
            (native hosts); the last one joins the hosts.
        omni: Whether it makes images or speech.
        length: Context to serve; None = the engine decides.
        claimed: Bytes of accelerator memory that are claimed on this host.
        ranks: Processes of the engine there that have an accelerator each.
        speculative: Speculative decoding, if any.
        cache: Extended KV cache, if any.
        adapters: LoRA adapters that are loaded at the start.
        updates: Room for adapters that are loaded while it serves; None = none are.
        shutdown_seconds: How long the engine may take to end after SIGTERM; 0 = as it likes.
        cache_root: Directory, as the engine sees it, that outlives the container; empty = none.
        policy: Whose defaults.
    """

    version: str = ""
    name: str
    model: str
    words: tuple[str, ...] = ()
    given: frozenset[str] = frozenset()
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
    speculative: Speculative | None = None
    cache: ExtendedCache | None = None
    adapters: tuple[Adapter, ...] = ()
    updates: AdapterUpdatesSpec | None = None
    shutdown_seconds: int = 0
    cache_root: str = ""
    policy: LaunchPolicy = OURS

    @property
    def spans_hosts(self) -> bool:
        """Whether the replica runs on several hosts together."""
        return len(self.members) > 1

    @property
    def leads(self) -> bool:
        """Whether this container serves for its replica."""
        return self.position == 0
