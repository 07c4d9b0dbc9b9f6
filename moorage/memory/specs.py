"""What the KV cache of one layer looks like, and what one request takes of it.

Source: `v1/kv_cache_interface.py`, the method `max_memory_usage_bytes` of each class.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from moorage.memory.numbers import divide_up


class KVKind(StrEnum):
    """Kinds of KV cache, under the names of vLLM's classes."""

    FULL = "FullAttentionSpec"
    MLA = "MLAAttentionSpec"
    SLIDING = "SlidingWindowSpec"
    CHUNKED = "ChunkedLocalAttentionSpec"
    MAMBA = "MambaSpec"
    CROSS = "CrossAttentionSpec"


@dataclass(frozen=True, slots=True)
class KVSpec:
    """The cache of one layer on one rank. There is one for each layer of each prediction: light.

    Attributes:
        kind: Kind of cache.
        block_size: Tokens of one block.
        page_bytes: Bytes of one block.
        window: Tokens that a sliding or chunked layer sees; None = all.
        states: Blocks of a recurrent state (Mamba) that one request holds.
        encoder_tokens: Tokens that a cross-attention layer keeps of the encoder.
    """

    kind: KVKind
    block_size: int
    page_bytes: int
    window: int | None = None
    states: int = 0
    encoder_tokens: int = 0

    def blocks_for(self, tokens: int, in_flight: int) -> int:
        """Blocks that one request holds at most.

        Args:
            tokens: Length of the request.
            in_flight: Tokens scheduled but not yet settled; a local layer keeps them besides
                its window, because blocks are freed only when a step is settled.
        """
        window = self.window or 0
        match self.kind:
            case KVKind.MAMBA:
                return self.states
            case KVKind.CROSS:
                return divide_up(self.encoder_tokens, self.block_size)
            case KVKind.SLIDING:
                # One more: a window need not start where a block starts.
                return divide_up(min(window - 1 + in_flight, tokens), self.block_size) + 1
            case KVKind.CHUNKED:
                return divide_up(min(window + in_flight, tokens), self.block_size)
            case KVKind.FULL | KVKind.MLA:
                return divide_up(tokens, self.block_size)
