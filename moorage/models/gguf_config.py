"""Converts the GGUF header of a model into a configuration with the keys of config.json.

Thus all later steps (mode, context, sizes) read one kind of configuration. Source of the keys:
`docs/gguf.md` of ggml; of the pooling types: `llama.h` of llama.cpp.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.models.config import Config
from moorage.models.gguf import Metadata, Scalar

GGUF = "gguf"
"""Key of the configuration that holds the header's own entries."""

ARCHITECTURE = "general.architecture"
GGUF_PARTS = "gguf_parts"
"""Key of the configuration that holds the bytes of the tensors by part of the model."""

TEMPLATE = "tokenizer.chat_template"
TOKENS = "tokenizer.ggml.tokens"
PROJECTOR = "clip"
"""Architecture of the files that turn images and audio into embeddings (`mmproj`)."""

NO_POOLING, LAST, RANK = 0, 3, 4
"""The pooling types of generative models, of the last token, and of rerankers; those between the
first and `RANK` are of embeddings."""

SUFFIXES = {NO_POOLING: "ForCausalLM", RANK: "ForSequenceClassification"}

PLAIN = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}

SIZES = {
    "max_position_embeddings": "context_length",
    "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "vocab_size": "vocab_size",
    "num_local_experts": "expert_count",
    "num_experts_per_tok": "expert_used_count",
    "moe_intermediate_size": "expert_feed_forward_length",
    "sliding_window": "attention.sliding_window",
}
"""Keys of config.json, and the keys of the header after the architecture's prefix."""

ENCODERS = ("bert", "nomic-bert", "jina-bert", "jina-bert-v2", "modern-bert", "t5encoder")


def gguf_config(
    metadata: Metadata, sizes: Mapping[str, int], parts: Mapping[str, int] | None = None
) -> Config:
    """The configuration of the model with this header.

    Args:
        metadata: Entries of the header of the first file.
        sizes: Bytes of the tensors in all files, by type.
        parts: Bytes of the tensors in all files, by part of the model.
    """
    architecture = str(metadata.get(ARCHITECTURE) or "unknown")
    prefix = f"{architecture}."
    own = {
        key.removeprefix(prefix): value
        for key, value in metadata.items()
        if key.startswith(prefix) and value not in ("", [])
    }
    words = metadata.get(TOKENS)
    found = {name: _number(own.get(key)) for name, key in SIZES.items()}
    found["vocab_size"] = found["vocab_size"] or _number(words if isinstance(words, int) else None)
    return {
        "architectures": [_architecture(architecture, own.get("pooling_type"))],
        "model_type": architecture,
        **{name: value for name, value in found.items() if value},
        **_elements(max(sizes, key=lambda kind: sizes[kind])),
        "num_labels": 1,
        GGUF: own,
        GGUF_PARTS: dict(parts or {}),
    }


def gguf_adapter_config(metadata: Metadata) -> Config:
    """The configuration of the LoRA adapter with this header.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when the file is not a LoRA adapter.
    """
    kind = metadata.get("general.type") or "model"
    if (kind, metadata.get("adapter.type")) != ("adapter", "lora"):
        raise Failure(
            Cause.SOURCE_INCOMPLETE,
            f"the GGUF header says general.type {kind!r}; only a LoRA adapter can be served",
            suggestion="llama.cpp's convert_lora_to_gguf.py makes one of an adapter of PEFT.",
        )
    return {"model_type": str(metadata.get(ARCHITECTURE) or "unknown")}


def _elements(kind: str) -> Config:
    """The dtype or quantization of most of the weights, as fields of config.json."""
    return (
        {"dtype": PLAIN[kind]} if kind in PLAIN else {"quantization_config": {"quant_method": kind}}
    )


def lacks_pooling(architectures: Iterable[str]) -> bool:
    """Whether the header of a model with these architectures names no pooling."""
    return any(name.endswith(SUFFIXES[NO_POOLING]) for name in architectures)


def has_template(metadata: Metadata) -> bool:
    """Whether the file holds a chat template; its text may be empty, being too long to keep."""
    return TEMPLATE in metadata


def _architecture(name: str, pooling: Any) -> str:
    """An architecture name in the style of transformers; its suffix tells the model's mode."""
    plain = "".join(part[:1].upper() + part[1:] for part in name.replace("_", "-").split("-"))
    if not isinstance(pooling, int):
        pooling = 1 if name in ENCODERS else NO_POOLING
    return plain + SUFFIXES.get(pooling, "Model")


def _number(value: Scalar | list[Scalar] | None) -> int:
    """The number, or the largest of a list with one for each layer; 0 = none."""
    values = value if isinstance(value, list) else [value]
    return max((one for one in values if type(one) is int), default=0)
