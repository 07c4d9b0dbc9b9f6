"""Reading a model's configuration: architecture, mode, context length, sizes.

Sources of the rules: vLLM 0.32 (`config/model.py`) for the context length, the architecture names
of transformers for the mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.models.config_limits import require_limits
from moorage.models.profile import ModelProfile, categories_of
from moorage.models.rope import POSITIONS, ROPE_KEYS, RopeRule, rope_rule, scaled_length
from moorage.models.source import ResolvedModel
from moorage.spec import Mode, ModelSpec

Config = Mapping[str, Any]

CONTEXT_KEYS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_sequence_length",
    "max_seq_length",
    "max_target_positions",
    "seq_len",
)
CONTEXT_WHEN_UNKNOWN = 2048
EXTEND = "extend the model's rope scaling"

TEXT_CONFIG_KEYS = ("llm_config", "text_config", "thinker_config", "language_config")
PARTS = (*TEXT_CONFIG_KEYS, "vision_config", "audio_config")
"""Keys under which a configuration holds further ones."""

MODE_BY_ARCHITECTURE: tuple[tuple[str, Mode], ...] = (
    ("ForSequenceClassification", Mode.RERANKING),
    ("ForRewardModel", Mode.RERANKING),
    ("EmbeddingModel", Mode.EMBEDDING),
    ("ForMaskedLM", Mode.EMBEDDING),
    ("EncoderModel", Mode.EMBEDDING),
    ("ForCausalLM", Mode.COMPLETION),
    ("ForConditionalGeneration", Mode.COMPLETION),
    ("LMHeadModel", Mode.COMPLETION),
    ("ChatModel", Mode.COMPLETION),
    ("ChatGLMModel", Mode.COMPLETION),
    ("Model", Mode.EMBEDDING),
)
"""What the end of an architecture's name says; the first match wins."""

LABELS_WHEN_UNKNOWN = 2
"""Of a classifier whose configuration names none (transformers)."""


def derive_profile(spec: ModelSpec, model: ResolvedModel) -> ModelProfile:
    """Read everything that later steps need from a resolved model.

    Raises:
        Failure: `BAD_SPEC` when the spec asks for a longer context than the model can have, or
            overrides a field with what no model has.
    """
    # What overrides the configuration for the engine overrides it for every decision here.
    overrides = spec.engine.arguments.json_object("--hf-overrides") or {}
    require_limits(overrides, "engine.args: --hf-overrides", Cause.BAD_SPEC)
    config = apply_overrides(model.config, overrides)
    text = text_config(config)
    warnings: list[str] = []
    mode, mode_origin = _mode(spec, model, config, warnings)
    context, origin, reason = _context(spec, config, warnings)
    return ModelProfile(
        architectures=architectures(config),
        model_type=str(config.get("model_type") or ""),
        mode=mode,
        mode_origin=mode_origin,
        context=context,
        context_origin=origin,
        context_reason=reason,
        **_sizes(text),
        vision_heads=vision_heads(config),
        dtype=_dtype(config, text),
        quantization=_quantization(config, text),
        weight_bytes=model.weights.bytes,
        has_chat_template=model.has_chat_template,
        categories=categories_of(mode, architectures(config)),
        warnings=tuple(warnings),
    )


def _sizes(text: Config) -> dict[str, Any]:
    heads = _first_int(text, "num_attention_heads", "n_head", "n_heads", "num_heads")
    kv_heads = _first_int(text, "num_key_value_heads", "num_kv_heads", "multi_query_group_num")
    hidden = _first_int(text, "hidden_size", "n_embd", "d_model")
    return {
        "layers": _first_int(text, "num_hidden_layers", "n_layer", "n_layers", "num_layers"),
        "attention_heads": heads,
        "kv_heads": kv_heads or heads,
        "head_dim": _first_int(text, "head_dim") or (hidden // heads if hidden and heads else None),
        "hidden_size": hidden,
        "vocab_size": _first_int(text, "vocab_size", "padded_vocab_size"),
    }


def architectures(config: Config) -> tuple[str, ...]:
    """The architectures that a configuration names; empty when it names none."""
    named = config.get("architectures") or ()
    if isinstance(named, str):
        return (named,)
    return tuple(map(str, named)) if isinstance(named, list | tuple) else ()


def vision_heads(config: Config) -> int | None:
    """Attention heads of the vision tower, with those that pad it; None where there is none."""
    vision = config.get("vision_config")
    if not isinstance(vision, Mapping):
        return None
    heads = _first_int(vision, "num_attention_heads", "num_heads")
    dummies = _first_int(vision, "num_dummy_heads") or 0
    return heads + max(0, dummies) if heads else None


def text_config(config: Config) -> Config:
    """The part that describes the language model: nested in multimodal models, else the whole.

    A nested part counts only if it describes attention heads; vLLM decides the same way.
    """
    for key in TEXT_CONFIG_KEYS:
        part = config.get(key)
        if isinstance(part, Mapping):
            inner = part.get("text_config") if key == "thinker_config" else None
            part = inner if isinstance(inner, Mapping) else part
            if part.get("num_attention_heads"):
                return part
    return config


def apply_overrides(config: Config, overrides: Config) -> dict[str, Any]:
    """A configuration with what `--hf-overrides` replaces; parts are replaced key by key.

    Source: `_apply_dict_overrides` of vLLM 0.32, `config/model.py`.
    """
    changed = dict(config)
    for key, value in overrides.items():
        part = changed.get(key)
        if key in PARTS and isinstance(part, Mapping) and isinstance(value, Mapping):
            value = apply_overrides(part, value)
        if key in ROPE_KEYS:
            changed = {name: kept for name, kept in changed.items() if name not in ROPE_KEYS}
        changed[key] = value
    return changed


def context_length(
    config: Config, unknown: int | None = None, rule: RopeRule = RopeRule.MULTIPLIED
) -> int | None:
    """Longest context in tokens that a configuration stands for; None when it does not say.

    Args:
        config: The configuration.
        unknown: Length that is scaled where it names none; None = that is no answer.
        rule: Whose rule of rope scaling.
    """
    text = text_config(config)
    lengths = [length for key in CONTEXT_KEYS if (length := _first_int(text, key))]
    length = min(lengths, default=unknown)
    kinds = (str(part.get("model_type") or "") for part in (config, text))
    if length is None or any("gemma3" in kind for kind in kinds):
        return length  # the length of gemma3 is the scaled one
    return scaled_length(length, text, rule)


def _context(spec: ModelSpec, config: Config, warnings: list[str]) -> tuple[int, Origin, str]:
    rule = rope_rule(spec)
    longest = context_length(config, rule=rule)
    scaled = _if_multiplied(config, longest, rule)
    if spec.context != "auto":
        if longest and spec.context > longest:
            raise Failure(
                Cause.BAD_SPEC,
                f"context: {spec.context} tokens are requested, the model ends at {longest}",
                suggestion=f"Lower `context` to {longest}, or {scaled or EXTEND}.",
            )
        return spec.context, Origin.USER, "context in the spec"
    if longest:
        if scaled:
            warnings.append(f"context: {longest} tokens hold the model's yarn scaling; {scaled}")
        return longest, Origin.DERIVED, "the longest that the model's configuration stands for"
    assumed = context_length(config, CONTEXT_WHEN_UNKNOWN, rule) or CONTEXT_WHEN_UNKNOWN
    warnings.append(f"the configuration names no context length; {assumed} tokens are assumed")
    return assumed, Origin.DEFAULT, "the configuration names none"


def _if_multiplied(config: Config, longest: int | None, rule: RopeRule) -> str:
    """How to get the context of a `yarn` that is not multiplied any more; empty = it is all there.

    Model cards from before tell to write only the factor into the configuration.
    """
    longer = context_length(config)
    if rule == RopeRule.MULTIPLIED or not longest or not longer or longer <= longest:
        return ""
    if text_config(config) is not config:
        return f"state {POSITIONS} {longer} in the model's configuration"
    return f'`--hf-overrides {{"{POSITIONS}": {longer}}}` in `engine.args` serves {longer}'


def _mode(
    spec: ModelSpec, model: ResolvedModel, config: Config, warnings: list[str]
) -> tuple[Mode, Origin]:
    if spec.mode != Mode.AUTO:
        return spec.mode, Origin.USER
    if model.is_sentence_encoder:
        return Mode.EMBEDDING, Origin.DERIVED
    for name in architectures(config):
        for ending, mode in MODE_BY_ARCHITECTURE:
            if name.endswith(ending):
                many = name.endswith("ForSequenceClassification") and _labels(config) > 1
                return (Mode.CLASSIFICATION if many else mode), Origin.DERIVED
    warnings.append("the architecture does not tell what the model is for; completion is assumed")
    return Mode.COMPLETION, Origin.DEFAULT


def _labels(config: Config) -> int:
    """What a classifier tells apart; vLLM scores and ranks only with a single label.

    A classifier made of two tokens of a language model gives one score (vLLM 0.32, `adapters.py`).
    """
    if config.get("method") == "from_2_way_softmax":
        return 1
    for names in ("classifier_from_token", "id2label"):
        if isinstance(config.get(names), Mapping | list) and config[names]:
            return len(config[names])
    return _first_int(config, "num_labels") or LABELS_WHEN_UNKNOWN


def _first_int(config: Config, *keys: str) -> int | None:
    for key in keys:
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _dtype(config: Config, text: Config) -> str:
    for part in (config, text):
        value = part.get("dtype") or part.get("torch_dtype")
        if value:
            return str(value).removeprefix("torch.")
    return ""


def _quantization(config: Config, text: Config) -> str:
    for part in (config, text):
        settings = part.get("quantization_config") or part.get("compression_config")
        if isinstance(settings, Mapping):
            return str(settings.get("quant_method") or settings.get("format") or "unknown")
    return ""
