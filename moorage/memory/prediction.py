"""What the predictor says."""

from __future__ import annotations

from moorage.common.values import Value


class GroupMemory(Value):
    """Layers that share one block table.

    Attributes:
        layers: Number of layers, over all pipeline stages.
        kind: vLLM's class of the cache, such as `FullAttentionSpec`.
        block_size: Tokens of one block.
        page_bytes: Bytes of one block of one layer.
        window: Tokens that a sliding or chunked layer sees; None = all.
        blocks_per_full_request: Blocks that one request of `max_model_len` tokens takes.
    """

    layers: int
    kind: str
    block_size: int
    page_bytes: int
    window: int | None
    blocks_per_full_request: int


class StageMemory(Value):
    """One pipeline stage, on each of its ranks.

    Attributes:
        pp_rank: Number of the stage, from 0.
        layers: Decoder layers it runs.
        weight_bytes: Bytes of its parameters on one rank.
        bytes_per_block: Bytes that one block id costs here; 0 without a KV cache.
        full_request_bytes: Bytes of one request of `max_model_len` tokens.
        num_blocks_alone: Blocks that its pool holds; None without a KV cache.
    """

    pp_rank: int
    layers: int
    weight_bytes: int
    bytes_per_block: int
    full_request_bytes: int
    num_blocks_alone: int | None


class MemoryPrediction(Value):
    """Weights and KV cache of one engine; all sizes in bytes per rank, all lengths in tokens.

    Attributes:
        dtype: Element type of the parameters that are not quantised.
        max_model_len: Longest request.
        enable_prefix_caching: As vLLM resolves it.
        max_in_flight_tokens: Tokens scheduled but not yet settled, at most.
        weight_bytes_per_rank: Parameters as created, of the largest stage.
        block_size: Tokens of a block of the attention groups, or those that they would have; None
            without a cache.
        bytes_per_block: Cost of one block id, in the costliest stage.
        blocks_per_full_request: Block ids of one full request, summed over the groups.
        full_request_bytes: The product of the two above.
        num_blocks: Blocks of the pool, in the smallest stage.
        concurrency: Full requests that the pool holds at once.
        max_fit_len: Longest single request that fits, at most `max_model_len`.
        full_request_fits: Whether vLLM would start with this pool.
        groups: The KV groups.
        stages: The pipeline stages.
    """

    dtype: str
    max_model_len: int
    enable_prefix_caching: bool
    max_in_flight_tokens: int
    weight_bytes_per_rank: int
    block_size: int | None
    bytes_per_block: int
    blocks_per_full_request: int
    full_request_bytes: int
    num_blocks: int | None
    concurrency: float | None
    max_fit_len: int | None
    full_request_fits: bool
    groups: tuple[GroupMemory, ...]
    stages: tuple[StageMemory, ...]
