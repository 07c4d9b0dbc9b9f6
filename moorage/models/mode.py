"""The mode in which a model is served, by the name of its architecture.

Source of the names: transformers, and the models of vLLM 0.32.
"""

from collections.abc import Mapping

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.models.config import Config, architectures
from moorage.models.rope import first_int
from moorage.models.source import ResolvedModel
from moorage.spec import Mode, ModelSpec

TRANSCRIBERS = frozenset(
    f"{name}ForConditionalGeneration"
    for name in ("CohereAsr", "FireRedASR2", "FunASR", "MossTranscribeDiarize", "Whisper")
)
"""Architectures that only transcribe speech: they have no endpoint for text requests.

Source: `supports_transcription_only` in the models of vLLM 0.32.
"""

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

POOLING = (Mode.EMBEDDING, Mode.RERANKING, Mode.CLASSIFICATION)


def derive_mode(
    spec: ModelSpec, model: ResolvedModel, config: Config, warnings: list[str]
) -> tuple[Mode, Origin]:
    """The mode and its origin; `warnings` gets further ones.

    Raises:
        Failure: `BAD_SPEC` when no request can prove that the model serves.
    """
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
    asks = spec.readiness.probe.request and spec.engine.may_be_vllm
    if asks and architecture.endswith(ONLY_POOLING):
        raise Failure(
            Cause.BAD_SPEC,
            f"readiness.probe.request: vLLM serves {architecture} only at `/pooling`, to which"
            " no request of readiness goes",
            suggestion="State `readiness.probe.request: false`, and use the gateway's `/pooling`.",
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
