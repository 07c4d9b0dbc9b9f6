"""The engine settings that decide about memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from moorage.common.units import GIB
from moorage.common.values import Value
from moorage.models.config import apply_overrides
from moorage.models.rope import RopeRule
from moorage.spec import MemorySpec

Count = Annotated[int, Field(ge=1)]

KVDtype = Literal[
    "auto", "bfloat16", "float16", "float32", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"
]


SsmDtype = Literal["auto", "float32", "float16", "bfloat16"]
Runner = Literal["auto", "generate", "pooling"]


class CacheOptions(Value):
    """Settings that do not depend on the placement, named after vLLM's flags.

    Attributes:
        enable_expert_parallel: Whether whole experts are spread over the ranks.
        kv_cache_dtype: Element type of the KV cache; `auto` = the checkpoint's, else the model's.
        hybrid_kv_cache_manager: Whether local layers may keep less than full ones.
        enable_prefix_caching: None = what vLLM chooses for the model.
        mamba_ssm_cache_dtype: Element type of the recurrent state; `auto` = the model's choice.
        block_size: Tokens of one KV block; None = 16.
        runner: Whether the engine generates or pools; `auto` = what the architecture says.
        rope: How rope scaling stretches the longest context.
    """

    enable_expert_parallel: bool = False
    kv_cache_dtype: KVDtype = "auto"
    hybrid_kv_cache_manager: bool = True
    enable_prefix_caching: bool | None = None
    mamba_ssm_cache_dtype: SsmDtype = "auto"
    block_size: Count | None = None
    runner: Runner = "auto"
    rope: RopeRule = RopeRule.HELD


class MemorySettings(CacheOptions):
    """Settings of one engine, named after vLLM's flags.

    Attributes:
        tensor_parallel_size: Ranks that share each layer.
        pipeline_parallel_size: Stages that share the layers.
        max_model_len: Longest request in tokens; None = the model's own.
        max_num_batched_tokens: Tokens of one scheduler step.
        kv_pool_bytes: Bytes given to the KV cache on every rank.
    """

    tensor_parallel_size: Count = 1
    pipeline_parallel_size: Count = 1
    max_model_len: Count | None = None
    max_num_batched_tokens: Count = 8192
    kv_pool_bytes: Annotated[int, Field(ge=0)] = 20 * GIB

    @property
    def in_flight_tokens(self) -> int:
        """Tokens scheduled but not yet settled, at most.

        Source: `config/vllm.py:max_in_flight_tokens`, async scheduling on the V2 model runner.
        """
        return (self.pipeline_parallel_size + 1) * self.max_num_batched_tokens


LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Values that vLLM takes for `--max-lora-rank` (0.32, `config/lora.py`)."""


def allowed_rank(rank: int) -> int:
    """The smallest rank that vLLM takes and that holds another; beyond them all, that one."""
    return next((step for step in LORA_RANKS if rank <= step), rank)


class LoraOptions(Value):
    """Buffers for adapters, which vLLM makes at start, whatever is loaded later.

    Attributes:
        max_loras: Adapters in one batch.
        max_rank: Largest rank of an adapter.
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
        method: `ngram`, `eagle3`, `mtp`, ...; empty when only a model is named.
        model: The draft model; empty = none of its own.
        tokens: Tokens proposed in each step.
    """

    method: str = ""
    model: str = ""
    tokens: int = 1


class MemoryOptions(CacheOptions):
    """What a spec says that decides about memory; None = vLLM's choice.

    Attributes:
        batched_tokens: Tokens of one scheduler step.
        max_seqs: Requests of one scheduler step.
        throughput: Whether vLLM's own choice of both is doubled (`--performance-mode`).
        chunked_prefill: Whether long prompts are cut into steps.
        dtype: Element type of the parameters; empty = the model's.
        enforce_eager: Whether no CUDA graphs are captured.
        graph_limit: Largest batch for which a graph is captured.
        graph_sizes: Number of graphs.
        kv_bytes: Bytes of the KV cache on each rank; None = as many as the requests need.
        language_model_only: Whether the parts for pictures and sound are left out.
        overrides: Keys of config.json that are replaced (`--hf-overrides`).
        lora: Adapters; None = none.
        draft: Speculative decoding; None = none.
        uncovered: Why these options are not covered by the rules; empty = they are.
        stated: What the spec states instead of an estimate.
    """

    batched_tokens: int | None = None
    max_seqs: int | None = None
    throughput: bool = False
    chunked_prefill: bool | None = None
    dtype: str = ""
    enforce_eager: bool = False
    graph_limit: int | None = None
    graph_sizes: int | None = None
    kv_bytes: int | None = None
    language_model_only: bool = False
    overrides: dict[str, Any] = {}
    lora: LoraOptions | None = None
    draft: DraftOptions | None = None
    uncovered: str = ""
    stated: MemorySpec = MemorySpec()

    def apply_to(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """A configuration as the engine sees it, with what the arguments replace."""
        changed = apply_overrides(config, self.overrides)
        if self.dtype:
            changed["torch_dtype"] = self.dtype
        return changed
