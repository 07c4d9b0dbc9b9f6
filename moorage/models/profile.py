"""The facts about a model that later steps need: its mode, context and sizes.

Sources of the rules: vLLM 0.32 (`config/model.py`) for the context length, the architecture names
of transformers for the mode.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin, Value
from moorage.models.config import (
    LAYER_KEYS,
    TEXT_CONFIG_KEYS,
    Config,
    apply_overrides,
    architectures,
    context_length,
    require_limits,
    text_config,
)
from moorage.models.rope import (
    MOST,
    ORIGINAL,
    POSITIONS,
    RopeRule,
    first_int,
    rope_rule,
    rope_settings,
    rope_type,
)
from moorage.models.source import ResolvedModel
from moorage.spec import EngineName, Mode, ModelSpec

CONTEXT_WHEN_UNKNOWN = 2048

TRANSCRIBERS = frozenset(
    f"{name}ForConditionalGeneration"
    for name in ("CohereAsr", "FireRedASR2", "FunASR", "MossTranscribeDiarize", "Whisper")
)
"""Architectures that only transcribe speech: they have no endpoint for text requests.

Source: `supports_transcription_only` in the models of vLLM 0.32.
"""

CHATTERS = frozenset({"DeepseekV32ForCausalLM", "DeepseekV4ForCausalLM"})
"""Architectures whose chats engines build without a template (`config/model.py` of vLLM 0.32)."""

GENERATORS = ("MiDashengLMModel", "MossAudioModel", "Qwen2_5OmniModel", "UltravoxModel")
"""Architectures that generate text although their names end like those of encoders.

Source: `_MULTIMODAL_MODELS` of vLLM 0.32.
"""

LATE_INTERACTION = (
    *("HF_ColBERT", "ColBERTModernBertModel", "ColBERTJinaRobertaModel", "ColBERTLfm2Model"),
    *("ForRetrieval", "ColQwen3", "ColQwen3Model", "ColQwen3_5", "Qwen3VLNemotronEmbedModel"),
)
"""Architectures with a vector for each token: vLLM scores and ranks with them, and embeds nothing.

Source: `_LATE_INTERACTION_MODELS` of vLLM 0.32.
"""

ONLY_POOLING = ("ForRewardModel", "ForProcessRewardModel", "ForTokenClassification")
"""Endings of architectures with scores for each token: vLLM serves them only at `/pooling`.

Source: `_REWARD_MODELS` and `_TOKEN_CLASSIFICATION_MODELS` of vLLM 0.32.
"""

MODE_BY_ARCHITECTURE: tuple[tuple[Mode, tuple[str, ...]], ...] = (
    (Mode.TRANSCRIPTION, tuple(TRANSCRIBERS)),
    (Mode.RERANKING, ("ForSequenceClassification", *ONLY_POOLING, "ForRanking", *LATE_INTERACTION)),
    (Mode.COMPLETION, GENERATORS),
    (Mode.EMBEDDING, ("EmbeddingModel", "ForMaskedLM", "EncoderModel")),
    (Mode.COMPLETION, ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "ChatModel")),
    (Mode.COMPLETION, ("ChatGLMModel",)),
    (Mode.EMBEDDING, ("Model",)),
)
"""Mode by the ending of an architecture's name; the first match wins."""

LABELS_WHEN_UNKNOWN = 2
"""Number of labels of a classifier whose configuration names none (transformers)."""

SPEECH_TO_TEXT = "speech_to_text"

ALLOWS_LONGER = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"
"""Variable with which vLLM only warns of a context beyond the model's (`envs.py`)."""

POOLING = (Mode.EMBEDDING, Mode.RERANKING, Mode.CLASSIFICATION)

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
    mode, mode_origin = _mode(spec, model, config, warnings)
    longest_input = model.longest_input if mode in POOLING else None
    context, origin, reason = _context(spec, config, longest_input, warnings)
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


def allows_longer(spec: ModelSpec) -> bool:
    """Whether the engine takes a context beyond the model's."""
    value = spec.engine.env.get(ALLOWS_LONGER, "")
    return _may_be_vllm(spec) and value.strip().lower() in ("1", "true")


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


def _context(
    spec: ModelSpec, config: Config, longest_input: int | None, warnings: list[str]
) -> tuple[int, Origin, str]:
    rule, why = rope_rule(spec), "the longest that the model's configuration allows"
    longest = context_length(config, rule=rule)
    scaled, extend = _if_multiplied(config, longest, rule), "extend the model's rope scaling"
    if longest_input and longest_input < (longest or MOST) and _may_be_vllm(spec):
        longest, scaled, extend = longest_input, "", "raise it in the model's own settings"
        why = "the longest input that the model's sentence or tokenizer settings allow"
    any_length = longest and allows_longer(spec)
    if any_length:
        warnings.append(
            f"engine.env: with {ALLOWS_LONGER} a context beyond {longest} tokens is not refused;"
            " positions that the model does not have give no sense, or stop the engine"
        )
    if spec.context != "auto":
        if longest and spec.context > longest and not any_length:
            raise Failure(
                Cause.BAD_SPEC,
                f"context: {spec.context} tokens are requested, the model ends at {longest}",
                suggestion=f"Lower `context` to {longest}, or {scaled or extend}.",
            )
        return spec.context, Origin.USER, "context in the spec"
    if longest:
        if (short := _before_long_rope(config)) and short < longest and _may_be_vllm(spec):
            warnings.append(
                f"context: {short} tokens; `context: {longest}` serves more, but then the model"
                " answers short prompts worse, too, since its rope scaling holds for all requests"
            )
            return short, Origin.DERIVED, "the longest without the model's long rope scaling"
        if scaled:
            warnings.append(f"context: {longest} tokens hold the model's yarn scaling; {scaled}")
        return longest, Origin.DERIVED, why
    assumed = context_length(config, CONTEXT_WHEN_UNKNOWN, rule) or CONTEXT_WHEN_UNKNOWN
    warnings.append(f"the configuration names no context length; {assumed} tokens are assumed")
    return assumed, Origin.DEFAULT, "the configuration names none"


def _before_long_rope(config: Config) -> int | None:
    """The length up to which a model needs no long rope scaling; None = it has no such scaling.

    vLLM takes it for the default (`_get_and_verify_max_len`).
    """
    text = text_config(config)
    if not any(rope_type(rope) == "longrope" for rope in rope_settings(text)):
        return None
    return first_int(text, ORIGINAL)


def _may_be_vllm(spec: ModelSpec) -> bool:
    return spec.engine.stated_name in (EngineName.AUTO, EngineName.VLLM, EngineName.TRITON)


def _if_multiplied(config: Config, longest: int | None, rule: RopeRule) -> str:
    """How to get the context that a multiplied `yarn` would give; empty = it is not longer.

    Older model cards advise to write only the factor into the configuration.
    """
    longer = context_length(config)
    if rule == RopeRule.MULTIPLIED or not longest or not longer or longer <= longest:
        return ""
    text, override = text_config(config), f'{{"{POSITIONS}": {longer}}}'
    if text is not config:
        key = next((key for key in TEXT_CONFIG_KEYS if config.get(key) is text), "")
        if not key:
            return f"state {POSITIONS} {longer} in the model's configuration"
        override = f'{{"{key}": {override}}}'
    return f"`--hf-overrides {override}` in `engine.args` serves {longer}"


def _mode(
    spec: ModelSpec, model: ResolvedModel, config: Config, warnings: list[str]
) -> tuple[Mode, Origin]:
    if spec.mode != Mode.AUTO:
        return spec.mode, Origin.USER
    if model.is_sentence_encoder:
        return Mode.EMBEDDING, Origin.DERIVED
    for name in architectures(config):
        for mode, endings in MODE_BY_ARCHITECTURE:
            if name.endswith(endings):
                _require_a_request(spec, name)
                many = name.endswith("ForSequenceClassification") and _labels(config) > 1
                return (Mode.CLASSIFICATION if many else mode), Origin.DERIVED
    warnings.append("the architecture does not tell what the model is for; completion is assumed")
    return Mode.COMPLETION, Origin.DEFAULT


def _require_a_request(spec: ModelSpec, architecture: str) -> None:
    if architecture.endswith(ONLY_POOLING) and spec.readiness.probe.request and _may_be_vllm(spec):
        raise Failure(
            Cause.BAD_SPEC,
            f"readiness.probe.request: vLLM serves {architecture} only at `/pooling`, to which"
            " no request of readiness goes",
            suggestion="State `readiness.probe.request: false`, and use the gateway's `/pooling`.",
        )


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


def _labels(config: Config) -> int:
    """Number of labels of a classifier; vLLM scores and ranks only with a single label.

    A classifier made of two tokens of a language model gives one score (vLLM 0.32, `adapters.py`;
    `models/config.py` makes one of an original Qwen3 reranker).
    """
    if config.get("method") == "from_2_way_softmax" or config.get("is_original_qwen3_reranker"):
        return 1
    for names in ("classifier_from_token", "id2label"):
        if isinstance(config.get(names), Mapping | list) and config[names]:
            return len(config[names])
    return first_int(config, "num_labels") or LABELS_WHEN_UNKNOWN


def _dtype(config: Config, text: Config) -> str:
    found = (part.get("dtype") or part.get("torch_dtype") for part in (config, text))
    return str(next(filter(None, found), "")).removeprefix("torch.")


def _quantization(config: Config, text: Config) -> str:
    for part in (config, text):
        settings = part.get("quantization_config") or part.get("compression_config")
        if isinstance(settings, Mapping):
            return str(settings.get("quant_method") or settings.get("format") or "unknown")
    return ""
