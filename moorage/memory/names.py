"""Names of tensors in checkpoints, taken apart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

LEAVES = (
    *("weight", "bias", "qweight", "qzeros", "scales", "g_idx", "weight_scale_inv"),
    *("weight_scale", "weight_packed", "weight_zero_point", "weight_shape", "weight_g_idx"),
    *("input_scale", "k_scale", "v_scale", "input_zero_point", "weight_global_scale"),
    *("weight_scale_2", "input_global_scale", "q_scale", "output_scale", "gamma", "beta"),
)
"""Last names that belong to the module before them."""

LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|layer)\.(\d+)\.")
TOWER = re.compile(
    r"(?:^|\.)(?:visual|vision_tower|vision_model|vision_encoder|vision_embedder|vit|audio_tower"
    r"|audio_encoder|audio_model|multi_modal_projector|embed_vision|embed_audio|mm_projector"
    r"|vision_embed_tokens|connector)\."
)
"""Encoders of images and sound beside a language model, and what joins them to it."""

NUMBER = re.compile(r"\.\d+(?=\.)")
EXPERT = re.compile(r"\.experts\.(\d+)\.")
FUSED_EXPERT = re.compile(
    r"experts\.(?:mlp\.)?(gate_up_proj|down_proj|w1|w2|v1)(_bias|_blocks|_scales|_scale_inv)?$"
)
FUSED_LEAVES = {
    **{"_bias": "bias", "_blocks": "weight", "_scales": "weight_scale"},
    "_scale_inv": "weight_scale_inv",
}
EXPERT_LINEARS = ("block_sparse_moe.input_linear", "block_sparse_moe.output_linear")


@dataclass(frozen=True)
class TensorName:
    """A tensor's name, taken apart.

    Attributes:
        layer: Index of its decoder layer; None outside of them.
        module: Name of its module without numbers.
        leaf: Its own name, such as `weight`.
        expert: Whether it belongs to routed experts.
        stacked: Whether it holds all experts of a layer at once.
    """

    layer: int | None
    module: str
    leaf: str
    expert: bool
    stacked: bool

    @property
    def tower(self) -> bool:
        """Whether it belongs to an encoder of images or sound."""
        return TOWER.search(f"{self.module}.") is not None

    @property
    def last(self) -> str:
        """Last name of the module."""
        return self.module.rpartition(".")[2]

    @property
    def last_two(self) -> str:
        """Last two names of the module."""
        return ".".join(self.module.split(".")[-2:])


@lru_cache(maxsize=1 << 17)
def take_apart(name: str) -> TensorName:
    """Read the name of a tensor."""
    layer = None if TOWER.search(name) else LAYER.search(name)
    plain = NUMBER.sub("", name)
    fused = FUSED_EXPERT.search(plain)
    if fused:
        leaf = FUSED_LEAVES.get(fused[2] or "", "weight")
        return TensorName(_index(layer), plain[: fused.end(1)], leaf, expert=True, stacked=True)
    module, _, leaf = plain.rpartition(".")
    if leaf not in LEAVES:
        module, leaf = plain, ""
    stacked = module.endswith(EXPERT_LINEARS)
    return TensorName(_index(layer), module, leaf, stacked or ".experts." in name, stacked)


def expert_index(name: str) -> int | None:
    """Index of the expert that a tensor belongs to; None when it belongs to none or to all."""
    return _index(EXPERT.search(name))


def _index(match: re.Match[str] | None) -> int | None:
    return int(match[1]) if match else None
