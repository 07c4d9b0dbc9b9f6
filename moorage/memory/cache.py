"""The KV cache that holds a number of full requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.common.values import Value
from moorage.memory.options import MemoryOptions
from moorage.memory.predict import predict_memory
from moorage.memory.prediction import MemoryPrediction
from moorage.memory.refusal import rejected
from moorage.memory.weighing import numbers
from moorage.models.tensors import TensorHeader

STAND_IN = {"model.norm.weight": TensorHeader(dtype="BF16", shape=(1,))}
"""Headers for the exact rules where the weights are known already: the cache does not depend on
them, and to weigh a large model again takes a second."""


class Pool(Value):
    """The KV cache of an engine.

    Attributes:
        found: What the exact rules say.
        blocks: Blocks that the pool must have.
        stages: Bytes of the pool on one rank of each pipeline stage.
        formula: Where the number of blocks comes from; empty = the size was given.
    """

    found: MemoryPrediction
    blocks: int
    stages: tuple[int, ...]
    formula: str

    def reason(self, stage: int) -> str:
        """The size of one stage's pool, in numbers."""
        each = self.found.stages[stage].bytes_per_block
        if not each:
            return "it keeps none"
        return f"{self.formula} blocks x {each} B" if self.formula else "--kv-cache-memory-bytes"


def pool_for(
    config: Mapping[str, Any],
    options: MemoryOptions,
    *,
    tensor: int,
    pipeline: int,
    tokens: int,
    batched: int,
    concurrency: int,
    block: int | None = None,
) -> Pool:
    """The smallest KV cache for a number of requests at once.

    vLLM holds one block back and does not start where a full request takes more than the others
    (`v1/core/kv_cache_utils.py`).

    Args:
        config: Configuration as the engine sees it.
        options: What the spec says.
        tensor: Tensor-parallel ranks.
        pipeline: Pipeline stages.
        tokens: Longest request.
        batched: Tokens of one scheduler step.
        concurrency: Requests of that length at once.
        block: Tokens of a block, where the options leave it open.

    Raises:
        Refused: When the rules do not cover the model, or vLLM refuses the settings, a cache whose
            size is given and too small among them.
    """
    settings = options.settings(tensor, pipeline, tokens, batched, block)
    found = numbers(predict_memory(config, STAND_IN, settings))
    request = found.blocks_per_full_request
    if options.kv_bytes is not None and found.bytes_per_block:
        return _given(found, options.kv_bytes)
    blocks = concurrency * request + 1
    return Pool(
        found=found,
        blocks=blocks,
        stages=tuple(blocks * stage.bytes_per_block for stage in found.stages),
        formula=f"({concurrency} x {request} + 1)",
    )


def _given(found: MemoryPrediction, size: int) -> Pool:
    blocks = size // found.bytes_per_block
    if found.blocks_per_full_request >= blocks:
        raise rejected(
            f"the KV cache of {size} B has {blocks} blocks, one of them held back; a request of "
            f"{found.max_model_len} tokens takes {found.blocks_per_full_request}"
        )
    stages = tuple(size if stage.bytes_per_block else 0 for stage in found.stages)
    return Pool(found=found, blocks=blocks, stages=stages, formula="")
