"""The engine settings that decide about memory."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from moorage.common.units import GIB
from moorage.common.values import Value
from moorage.models.rope import RopeRule

Count = Annotated[int, Field(ge=1)]

KVDtype = Literal[
    "auto", "bfloat16", "float16", "float32", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"
]


class MemorySettings(Value):
    """Settings of one engine, named after vLLM's flags.

    Attributes:
        tensor_parallel_size: Ranks that share each layer.
        pipeline_parallel_size: Stages that share the layers.
        enable_expert_parallel: Whether whole experts are spread over the ranks.
        max_model_len: Longest request in tokens; None = the model's own.
        max_num_batched_tokens: Tokens of one scheduler step.
        kv_cache_dtype: Element type of the KV cache; `auto` = the checkpoint's, else the model's.
        hybrid_kv_cache_manager: False = `--disable-hybrid-kv-cache-manager`.
        enable_prefix_caching: None = what vLLM chooses for the model.
        mamba_ssm_cache_dtype: Element type of the recurrent state; `auto` = the model's choice.
        block_size: Tokens of one KV block; None = 16.
        runner: Whether the engine generates or pools; `auto` = what the architecture says.
        rope: How rope scaling stretches the longest context.
        kv_pool_bytes: Bytes given to the KV cache on every rank.
    """

    tensor_parallel_size: Count = 1
    pipeline_parallel_size: Count = 1
    enable_expert_parallel: bool = False
    max_model_len: Count | None = None
    max_num_batched_tokens: Count = 8192
    kv_cache_dtype: KVDtype = "auto"
    hybrid_kv_cache_manager: bool = True
    enable_prefix_caching: bool | None = None
    mamba_ssm_cache_dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    block_size: Count | None = None
    runner: Literal["auto", "generate", "pooling"] = "auto"
    rope: RopeRule = RopeRule.HELD
    kv_pool_bytes: Annotated[int, Field(ge=0)] = 20 * GIB

    @property
    def in_flight_tokens(self) -> int:
        """Tokens scheduled but not yet settled, at most.

        Source: `config/vllm.py:max_in_flight_tokens`, async scheduling on the V2 model runner.
        """
        return (self.pipeline_parallel_size + 1) * self.max_num_batched_tokens
