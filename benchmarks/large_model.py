"""A folder of a model like DeepSeek-V3: 90,427 tensors, with headers and no data."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.hollow_model import write_sparse

CONFIG = Path(__file__).parents[1] / "tests/conformance/data/memory/deepseek-v3/config.json"
FILES = 163
LINEARS = {
    "q_a_proj": (1536, 7168),
    "q_b_proj": (24576, 1536),
    "kv_a_proj_with_mqa": (576, 7168),
    "kv_b_proj": (32768, 512),
    "o_proj": (7168, 16384),
}
"""Shapes of an attention's linear layers."""

DENSE_LAYERS, LAYERS, EXPERTS, BLOCK = 3, 61, 256, 128
HIDDEN, VOCABULARY, DENSE, EXPERT = 7168, 129_280, 18_432, 2048

Tensor = tuple[str, str, tuple[int, ...]]
"""Name, element type and shape."""


def write_large_model(folder: Path) -> None:
    """Write config.json and sparse weight files of full length."""
    folder.mkdir()
    shutil.copy(CONFIG, folder / "config.json")
    tensors = list(tensors_of_model())
    each = -(-len(tensors) // FILES)
    for number in range(FILES):
        path = folder / f"model-{number + 1:05}-of-{FILES:06}.safetensors"
        some = tensors[number * each : (number + 1) * each]
        write_sparse(path, {name: {"dtype": dtype, "shape": shape} for name, dtype, shape in some})


def tensors_of_model() -> Iterator[Tensor]:
    """All tensors of the checkpoint, without its layer for speculative decoding."""
    yield "model.embed_tokens.weight", "BF16", (VOCABULARY, HIDDEN)
    yield "lm_head.weight", "BF16", (VOCABULARY, HIDDEN)
    yield "model.norm.weight", "BF16", (HIDDEN,)
    for number in range(LAYERS):
        layer = f"model.layers.{number}"
        norms = {"input_layernorm": HIDDEN, "post_attention_layernorm": HIDDEN}
        own = {"self_attn.q_a_layernorm": 1536, "self_attn.kv_a_layernorm": 512}
        for name, width in {**norms, **own}.items():
            yield f"{layer}.{name}.weight", "BF16", (width,)
        for name, shape in LINEARS.items():
            yield from _quantized(f"{layer}.self_attn.{name}", shape)
        yield from _mlp(f"{layer}.mlp", DENSE) if number < DENSE_LAYERS else _experts(layer)


def _experts(layer: str) -> Iterator[Tensor]:
    yield f"{layer}.mlp.gate.weight", "BF16", (EXPERTS, HIDDEN)
    yield f"{layer}.mlp.gate.e_score_correction_bias", "F32", (EXPERTS,)
    yield from _mlp(f"{layer}.mlp.shared_experts", EXPERT)
    for number in range(EXPERTS):
        yield from _mlp(f"{layer}.mlp.experts.{number}", EXPERT)


def _mlp(module: str, width: int) -> Iterator[Tensor]:
    yield from _quantized(f"{module}.gate_proj", (width, HIDDEN))
    yield from _quantized(f"{module}.up_proj", (width, HIDDEN))
    yield from _quantized(f"{module}.down_proj", (HIDDEN, width))


def _quantized(module: str, shape: tuple[int, int]) -> Iterator[Tensor]:
    yield f"{module}.weight", "F8_E4M3", shape
    yield f"{module}.weight_scale_inv", "F32", (-(-shape[0] // BLOCK), -(-shape[1] // BLOCK))
