"""Model files made by hand, so that tests know every byte."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from typing import Any

from scripts.make_demo_gguf import Value, header

WIDTHS = {"BF16": 2, "F16": 2, "F32": 4, "F8_E4M3": 1, "U8": 1}

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "max_position_embeddings": 2048,
}


def safetensors(
    tensors: Mapping[str, tuple[str, list[int]]], metadata: Mapping[str, str] | None = None
) -> bytes:
    """A whole safetensors file with a recognisable pattern as its data."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    offset = 0
    for name, (dtype, shape) in tensors.items():
        size = prod(shape) * WIDTHS[dtype]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    return with_header(json.dumps(header).encode(), pattern(offset))


def with_header(header: bytes, data: bytes = b"") -> bytes:
    """Bytes laid out as a safetensors file, whatever the header says."""
    return len(header).to_bytes(8, "little") + header + data


def gguf(
    tensors: Mapping[str, tuple[int, list[int]]],
    size: int,
    words: int = 3,
    more: Mapping[str, str] | None = None,
) -> bytes:
    """A GGUF file: tensors by type number and shape, a vocabulary, and so many bytes of data.

    `more` are further texts of its metadata.
    """
    metadata: dict[str, Value] = {
        "general.architecture": "llama",
        **(more or {}),
        "layers": 2,
        "words": ["word"] * words,
        "scores": [0.0] * words,
    }
    placed = {name: (kind, shape, 0) for name, (kind, shape) in tensors.items()}
    return header(metadata, placed) + pattern(size)


def pattern(size: int) -> bytes:
    """Bytes that differ from place to place, so that a wrong offset is noticed."""
    return bytes(range(251)) * (size // 251) + bytes(range(size % 251))


def model(**more: bytes) -> dict[str, bytes]:
    """A model of two shards with their index, and what a repository has besides."""
    first = safetensors({"embed": ("BF16", [500, 64])})
    second = safetensors({"head": ("BF16", [700, 64]), "norm": ("F32", [64])})
    shards = {"model-1-of-2.safetensors": first, "model-2-of-2.safetensors": second}
    weight_map = {"embed": "model-1-of-2.safetensors", "head": "model-2-of-2.safetensors"}
    return {
        "config.json": json.dumps(CONFIG).encode(),
        "tokenizer_config.json": json.dumps({"chat_template": "{{ messages }}"}).encode(),
        "model.safetensors.index.json": json.dumps({"weight_map": weight_map}).encode(),
        **shards,
        "pytorch_model.bin": b"the same again",
        ".gitattributes": b"*.safetensors filter=lfs",
        **more,
    }


WEIGHT_BYTES = 500 * 64 * 2 + 700 * 64 * 2 + 64 * 4
"""Bytes of the tensors of `model()`."""
