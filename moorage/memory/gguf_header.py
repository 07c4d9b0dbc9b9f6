"""What the header of a GGUF model says of its memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moorage.memory.refusal import unknown
from moorage.models.gguf_config import GGUF, GGUF_PARTS
from moorage.models.source import ResolvedModel


@dataclass(frozen=True)
class GgufHeader:
    """Facts from the header of a GGUF model.

    Attributes:
        sizes: The header's entries, keys without the prefix of the architecture.
        weights: Bytes of all tensors.
        parts: Bytes of the tensors by part of the model; empty = unknown.
        architecture: Its name in llama.cpp; empty = unknown.
    """

    sizes: Mapping[str, Any]
    weights: int
    parts: Mapping[str, int] = field(default_factory=dict)
    architecture: str = ""

    @property
    def layers(self) -> int:
        """Number of layers; 0 = unknown."""
        return self.optional("block_count")

    @property
    def key_heads(self) -> list[int]:
        """Heads of keys and values, of each layer or of all; headers may leave them out.

        Raises:
            Refusal: When the header names no heads at all.
        """
        stated = "attention.head_count_kv" in self.sizes
        return self.numbers("attention.head_count_kv" if stated else "attention.head_count")

    def number(self, key: str) -> int:
        """The largest number of an entry; raises as `numbers`."""
        return max(self.numbers(key))

    def optional(self, key: str) -> int:
        """The number of an entry; 0 = there is none."""
        value = self.sizes.get(key)
        return value if type(value) is int else 0

    def numbers(self, key: str) -> list[int]:
        """The numbers of an entry: of each layer, or one of all.

        Raises:
            Refusal: When there is no such entry with a number above 0.
        """
        value = self.sizes.get(key)
        found = [one for one in (value if isinstance(value, list) else [value]) if type(one) is int]
        if not found or max(found) < 1:
            raise unknown(f"the GGUF header has no {key}")
        return found


def header_of(model: ResolvedModel, weights: int) -> GgufHeader:
    """The header of a resolved model whose tensors take `weights` bytes."""
    sizes = model.config.get(GGUF)
    known = sizes if isinstance(sizes, Mapping) else {}
    architecture = str(model.config.get("model_type") or "")
    return GgufHeader(known, weights, model.config.get(GGUF_PARTS) or {}, architecture)
