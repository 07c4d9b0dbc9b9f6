"""What the header of a GGUF model says of its memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
        count = self.sizes.get("block_count")
        return count if type(count) is int else 0


def header_of(model: ResolvedModel, weights: int) -> GgufHeader:
    """The header of a resolved model whose tensors take `weights` bytes."""
    sizes = model.config.get(GGUF)
    known = sizes if isinstance(sizes, Mapping) else {}
    architecture = str(model.config.get("model_type") or "")
    return GgufHeader(known, weights, model.config.get(GGUF_PARTS) or {}, architecture)
