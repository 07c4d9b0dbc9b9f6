"""The engine settings that affect memory."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from moorage.common.units import GIB
from moorage.common.values import Value
from moorage.common.versions import at_least, version_key
from moorage.memory.need import DESCRIBED
from moorage.models.config import apply_overrides
from moorage.models.rope import RopeRule
from moorage.spec import MemorySpec

ALSO_READ = "0.26.0"
"""Version of vLLM, besides the one described, whose source rules about kernels and states follow.

It counts with all its patches.
"""

KVDtype = Literal[
    "auto", "bfloat16", "float16", "float32", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"
]
SsmDtype = Literal["auto", "float32", "float16", "bfloat16"]
MambaMode = Literal["auto", "none", "align", "all"]
Runner = Literal["auto", "generate", "pooling"]


class CacheOptions(Value):
    """Settings that are independent of the placement, named after vLLM's flags.

    Attributes:
        enable_expert_parallel: Whether whole experts are spread over the ranks.
        kv_cache_dtype: Element type of the KV cache; `auto` = the checkpoint's, else the model's.
        hybrid_kv_cache_manager: Whether local layers may keep less than full layers.
        enable_prefix_caching: Whether prefixes are cached; None = vLLM's choice for the model.
        mamba_ssm_cache_dtype: Element type of the recurrent state; `auto` = the model's choice.
        mamba_cache_dtype: Element type of convolutions, and of a state of type `auto`.
        mamba_cache_mode: Which states of a prefix are kept; `auto` = vLLM's choice.
        mamba_block_size: Tokens of a block of states; None = vLLM's choice.
        block_size: Tokens of one KV block; None = 16.
        decode_context_parallel_size: Tensor-parallel ranks that share the KV cache of a request.
        runner: Whether the engine generates or pools; `auto` = by the architecture.
        whole_towers: Whether each rank has the whole encoder of images, for a part of them.
        special_kernel: Whether arguments or adapters may decide about the kernel of experts.
        layer_partition: Layers of each pipeline stage; empty = vLLM's choice.
        any_length: Whether a context beyond the model's is allowed.
        extended: Whether an image or packages of the user's own may let vLLM take more models, or
            an argument what it deprecates.
        sglang: Whether the engine is SGLang, whose cache follows rules of its own.
        one_pool: Whether its window layers keep all tokens, as full ones do.
        window_ratio: Else the tokens of a window layer for each one of a full layer.
        state_ratio: Bytes that it gives recurrent states for each byte of other layers.
    """

    enable_expert_parallel: bool = False
    kv_cache_dtype: KVDtype = "auto"
    hybrid_kv_cache_manager: bool = True
    enable_prefix_caching: bool | None = None
    mamba_ssm_cache_dtype: SsmDtype = "auto"
    mamba_cache_dtype: SsmDtype = "auto"
    mamba_cache_mode: MambaMode = "auto"
    mamba_block_size: PositiveInt | None = None
    block_size: PositiveInt | None = None
    decode_context_parallel_size: PositiveInt = 1
    runner: Runner = "auto"
    whole_towers: bool = False
    special_kernel: bool = False
    layer_partition: tuple[int, ...] = ()
    any_length: bool = False
    extended: bool = False
    rope: RopeRule = RopeRule.HELD
    sglang: bool = False
    one_pool: bool = False
    window_ratio: PositiveFloat = 0.8
    state_ratio: PositiveFloat = 0.9


class MemorySettings(CacheOptions):
    """Settings of one engine, named after vLLM's flags.

    Attributes:
        max_model_len: Longest request in tokens; None = the model's own.
        versions: Like the facts of the device, as in `MemoryQuery`.
    """

    tensor_parallel_size: PositiveInt = 1
    pipeline_parallel_size: PositiveInt = 1
    data_parallel_size: PositiveInt = 1
    max_model_len: PositiveInt | None = None
    max_num_batched_tokens: PositiveInt = 8192
    versions: tuple[str, ...] = (DESCRIBED,)
    device_type: str = "cuda"
    device_name: str = ""
    kv_pool_bytes: NonNegativeInt = 20 * GIB

    @property
    def is_read(self) -> bool:
        """Whether rules hold that were read in two versions, the one described and `ALSO_READ`."""
        read = version_key(ALSO_READ)[:2]
        return bool(self.versions) and all(
            at_least(one, DESCRIBED) or version_key(one)[:2] == read for one in self.versions
        )

    def since(self, first: str) -> bool:
        """Whether all versions that may run are known, and at least `first`."""
        return bool(self.versions) and all(at_least(one, first) for one in self.versions)

    def before(self, first: str) -> bool:
        """Whether all versions that may run are known, and older than `first`."""
        known = bool(self.versions) and all(self.versions)
        return known and not any(at_least(one, first) for one in self.versions)

    def lacks(self, last: str = "") -> bool:
        """Whether vLLM surely lacks what its version `last` had at last; empty = by the rules."""
        if self.extended or not self.versions:
            return False
        newest = version_key(last)[:2]  # of any patch
        later = all(version_key(one)[:2] > newest for one in self.versions)
        return later if last else self.since(DESCRIBED)

    @property
    def expert_ranks(self) -> int:
        """Ranks among which the experts of a layer are divided.

        Source: `fused_moe/config.py:flatten_tp_across_dp_and_pcp`.
        """
        return self.tensor_parallel_size * self.data_parallel_size

    @property
    def ranks_of_expert(self) -> int:
        """Ranks that share one expert."""
        return 1 if self.enable_expert_parallel else self.expert_ranks

    @property
    def keeps_shared_experts_whole(self) -> bool:
        """Whether each rank takes all of the shared experts, for a part of the tokens.

        Source: `config/parallel.py:use_sequence_parallel_moe`.
        """
        sizes = (self.tensor_parallel_size, self.data_parallel_size)
        return self.enable_expert_parallel and min(sizes) > 1


LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Values that vLLM accepts for `--max-lora-rank` (0.32, `config/lora.py`)."""


def allowed_rank(rank: int) -> int:
    """The smallest rank accepted by vLLM that is at least `rank`; `rank` itself if none is."""
    return next((step for step in LORA_RANKS if rank <= step), rank)


class LoraOptions(Value):
    """Buffers for adapters, which vLLM allocates at start, whatever it loads later.

    Attributes:
        max_loras: Adapters in one batch.
        targets: Names of the layers that can be adapted; None = all that vLLM can adapt.
        fully_sharded: Whether both factors are spread over the ranks.
    """

    max_loras: int = 1
    max_rank: int = 16
    targets: tuple[str, ...] | None = None
    fully_sharded: bool = False


class DraftOptions(Value):
    """Speculative decoding.

    Attributes:
        method: `ngram`, `eagle3`, `mtp`, ...; empty if only a model is named.
        model: The draft model; empty = no separate model.
        tokens: Tokens proposed in each step.
    """

    method: str = ""
    model: str = ""
    tokens: int = 1

    @property
    def by_own_layers(self) -> bool:
        """Whether layers of the model itself draft: `mtp`, or its older names by model."""
        return self.method.endswith("mtp") and not self.model


class MemoryOptions(CacheOptions):
    """The settings of a spec that affect memory; None = vLLM's choice.

    Attributes:
        batched_tokens: Tokens of one scheduler step.
        max_seqs: Requests of one scheduler step.
        throughput: Whether vLLM doubles its own choice of these two (`--performance-mode`).
        chunked_prefill: Whether long prompts are cut into steps.
        dtype: Element type of the parameters; empty = the model's.
        quantization: Method of quantisation; empty = the checkpoint's.
        attention_copies: Whether fewer ranks share the attention than other layers (SGLang).
        graph_limit: Largest batch for which a graph is captured.
        graph_sizes: Number of batch sizes for which graphs are captured.
        profiles_graphs: Whether vLLM sets its estimate for graphs aside.
        unsettled_runner: Whether an argument may affect the choice of the runner.
        kv_bytes: Bytes of the KV cache on each rank; None = as many as the requests need.
        absent: Kinds of input of which no request may have any: `image`, `video`, `audio`.
        connectors: Classes that move the KV cache to or from elsewhere.
        overrides: Keys of config.json that are replaced (`--hf-overrides`).
        uncovered: Why the rules do not cover these options; empty = they do.
        stated: Sizes that the spec states instead of estimates.
    """

    batched_tokens: int | None = None
    max_seqs: int | None = None
    throughput: bool = False
    chunked_prefill: bool | None = None
    dtype: str = ""
    quantization: str = ""
    attention_copies: bool = False
    enforce_eager: bool = False
    graph_limit: int | None = None
    graph_sizes: int | None = None
    profiles_graphs: bool | None = None
    second_runner: bool | None = None
    unsettled_runner: bool = False
    kv_bytes: int | None = None
    language_model_only: bool = False
    absent: tuple[str, ...] = ()
    connectors: tuple[str, ...] = ()
    overrides: dict[str, Any] = {}
    lora: LoraOptions | None = None
    draft: DraftOptions | None = None
    uncovered: str = ""
    stated: MemorySpec = MemorySpec.defaults()

    def apply_to(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """The configuration as the engine sees it, with the overrides of the arguments."""
        changed = apply_overrides(config, self.overrides)
        if self.dtype:
            changed["torch_dtype"] = self.dtype
        return changed
