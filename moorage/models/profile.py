"""The facts about a model that later steps need: its mode, context and sizes."""

from collections.abc import Iterator, Mapping
from typing import Any

from moorage.common.failures import Cause
from moorage.common.values import Origin, Value
from moorage.models.config import (
    LAYER_KEYS,
    Config,
    apply_overrides,
    architectures,
    require_limits,
    text_config,
)
from moorage.models.context import derive_context
from moorage.models.mode import POOLING, derive_mode
from moorage.models.rope import first_int
from moorage.models.source import ResolvedModel
from moorage.spec import Mode, ModelSpec

CHATTERS = frozenset({"DeepseekV32ForCausalLM", "DeepseekV4ForCausalLM"})
"""Architectures whose chats engines build without a template (`config/model.py` of vLLM 0.32)."""

SPEECH_TO_TEXT = "speech_to_text"

BY_MODE = {
    Mode.EMBEDDING: "embedding",
    Mode.RERANKING: "reranker",
    Mode.CLASSIFICATION: "reranker",
    Mode.TRANSCRIPTION: SPEECH_TO_TEXT,
    Mode.IMAGE_GENERATION: "image",
}


class ModelProfile(Value):
    """The result of step `derive`.

    Attributes:
        context_origin: `user`, `derived` (from the configuration) or `default` (not configured).
        layers: Number of hidden layers; None = unknown, as for all the counts below.
        vision_heads: Attention heads of the vision tower; None = no tower.
        encoder_tokens: Tokens that each request keeps of an encoder, as of a Whisper; None = no
            encoder.
        dtype: Configured dtype of the weights, such as `bfloat16`; empty = unknown.
        quantization: Quantization method, such as `fp8`, `awq`; empty = none.
        format: Format of the weights, such as `safetensors` or `gguf`; empty = not recorded.
        categories: Kinds of model in the names of GPUStack's rules, such as `llm`; empty = unknown.
    """

    architectures: tuple[str, ...]
    model_type: str
    mode: Mode
    mode_origin: Origin
    context: int
    context_origin: Origin
    context_reason: str
    layers: int | None
    attention_heads: int | None
    kv_heads: int | None
    vision_heads: int | None = None
    head_dim: int | None
    hidden_size: int | None
    vocab_size: int | None
    encoder_tokens: int | None = None
    dtype: str
    quantization: str
    format: str = ""
    weight_bytes: int
    has_chat_template: bool
    categories: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def kv_bytes_per_token(self) -> int | None:
        """Bytes of key/value cache for one token with full attention, in two-byte elements."""
        if not (self.layers and self.kv_heads and self.head_dim):
            return None
        return 2 * self.layers * self.kv_heads * self.head_dim * 2


def derive_profile(spec: ModelSpec, model: ResolvedModel) -> ModelProfile:
    """Derive the facts that later steps need from a resolved model.

    Raises:
        Failure: `BAD_SPEC` when the spec requests a longer context than the model supports, or
            overrides a field with a value beyond its limits, or when no request can prove that the
            model serves.
    """
    # The engine's configuration overrides also apply to every decision here.
    overrides = spec.engine.arguments.json_object("--hf-overrides") or {}
    require_limits(overrides, "engine.args: --hf-overrides", Cause.BAD_SPEC)
    config = apply_overrides(model.config, overrides)
    text = text_config(config)
    warnings = [*_foreign_code(spec, config)]
    mode, mode_origin = derive_mode(spec, model, config, warnings)
    longest_input = model.longest_input if mode in POOLING else None
    context, origin, reason = derive_context(spec, config, longest_input, warnings)
    return ModelProfile(
        architectures=architectures(config),
        model_type=str(config.get("model_type") or ""),
        mode=mode,
        mode_origin=mode_origin,
        context=context,
        context_origin=origin,
        context_reason=reason,
        **_sizes(text),
        vision_heads=_vision_heads(config),
        dtype=_dtype(config, text),
        quantization=_quantization(config, text),
        format=model.weights.family,
        weight_bytes=model.weights.bytes,
        has_chat_template=_has_chat_template(spec, model, config),
        categories=(BY_MODE.get(mode, "llm"),),
        warnings=tuple(warnings),
    )


def _sizes(text: Config) -> dict[str, Any]:
    heads = first_int(text, "num_attention_heads", "n_head", "n_heads", "num_heads")
    kv_heads = first_int(text, "num_key_value_heads", "num_kv_heads", "multi_query_group_num")
    hidden = first_int(text, "hidden_size", "n_embd", "d_model")
    encodes = text.get("is_encoder_decoder")
    return {
        "layers": first_int(text, *LAYER_KEYS),
        "attention_heads": heads,
        "kv_heads": kv_heads or heads,
        "head_dim": first_int(text, "head_dim") or (hidden // heads if hidden and heads else None),
        "hidden_size": hidden,
        "vocab_size": first_int(text, "vocab_size", "padded_vocab_size"),
        "encoder_tokens": first_int(text, "max_source_positions") if encodes else None,
    }


def _vision_heads(config: Config) -> int | None:
    """Attention heads of the vision tower, including its padding heads; None = no tower."""
    vision = config.get("vision_config")
    if not isinstance(vision, Mapping):
        return None
    heads = first_int(vision, "num_attention_heads", "num_heads")
    return heads + (first_int(vision, "num_dummy_heads") or 0) if heads else None


def _has_chat_template(spec: ModelSpec, model: ResolvedModel, config: Config) -> bool:
    """Whether engines can build a chat: from a template, or as they know for the model."""
    is_known = model.has_only_tekken or not CHATTERS.isdisjoint(architectures(config))
    stated = spec.engine.arguments.states("--chat-template")
    return model.has_chat_template or is_known or stated


def _foreign_code(spec: ModelSpec, config: Config) -> Iterator[str]:
    """A warning for each other repository that holds the model's own code.

    transformers fetches such code also for a model in a directory, and engines run offline.
    """
    mapped = config.get("auto_map")
    values = mapped.values() if spec.trust_remote_code and isinstance(mapped, Mapping) else ()
    names = (name for value in values for name in (value if isinstance(value, list) else [value]))
    parts = {name.rpartition("--")[0] for name in names if isinstance(name, str)}
    for repository in sorted(parts - {""}):
        yield (
            f"the model's code lies in {repository}, and the engine runs offline: serve a copy of"
            f" the model (`file://`) that holds this code, without `{repository}--` in `auto_map`"
            " of its config.json"
        )


def _dtype(config: Config, text: Config) -> str:
    found = (part.get("dtype") or part.get("torch_dtype") for part in (config, text))
    return str(next(filter(None, found), "")).removeprefix("torch.")


def _quantization(config: Config, text: Config) -> str:
    for part in (config, text):
        settings = part.get("quantization_config") or part.get("compression_config")
        if isinstance(settings, Mapping):
            return str(settings.get("quant_method") or settings.get("format") or "unknown")
    return ""
