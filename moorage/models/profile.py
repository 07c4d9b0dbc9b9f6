"""A model as the later steps need to know it."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.common.values import Origin, Value
from moorage.spec import Mode

TRANSCRIBERS = frozenset(
    f"{name}ForConditionalGeneration"
    for name in ("CohereAsr", "FireRedASR2", "FunASR", "MossTranscribeDiarize", "Whisper")
)
"""Architectures that turn speech into text and answer nothing else: no path for text is there.

Source: `supports_transcription_only` in the models of vLLM 0.32.
"""

LLM, EMBEDDING, RERANKER, IMAGE = "llm", "embedding", "reranker", "image"
SPEECH_TO_TEXT, TEXT_TO_SPEECH = "speech_to_text", "text_to_speech"

BY_MODE = {
    Mode.EMBEDDING: EMBEDDING,
    Mode.RERANKING: RERANKER,
    Mode.CLASSIFICATION: RERANKER,
    Mode.IMAGE_GENERATION: IMAGE,
}


def categories_of(mode: Mode, architectures: Sequence[str]) -> tuple[str, ...]:
    """The categories of a model that is served in a mode."""
    if mode == Mode.COMPLETION and TRANSCRIBERS & set(architectures):
        return (SPEECH_TO_TEXT,)
    return (BY_MODE.get(mode, LLM),)


class ModelProfile(Value):
    """What step `derive` makes.

    Attributes:
        architectures: As in config.json, such as `("LlamaForCausalLM",)`.
        model_type: As in config.json, such as `llama`.
        mode: What the model is served for, and where that comes from.
        mode_origin: `user` or `derived`.
        context: Longest context in tokens.
        context_origin: `user`, `derived` (from the configuration) or `default` (nothing there).
        context_reason: One line of why.
        layers: Number of hidden layers; None = unknown, as for all the counts below.
        attention_heads: Number of attention heads.
        kv_heads: Number of key/value heads.
        vision_heads: Number of attention heads of the vision tower; None = there is none.
        head_dim: Size of one head.
        hidden_size: Size of the hidden state.
        vocab_size: Number of tokens in the vocabulary.
        dtype: Dtype of the weights as configured, such as `bfloat16`; empty = unknown.
        quantization: Quantization method, such as `fp8`, `awq`; empty = none.
        weight_bytes: Bytes of the weights as stored.
        has_chat_template: Whether conversations can be formatted.
        categories: What it is in the words of the peer's rules, such as `llm`; empty = unknown.
        warnings: What a person should know.
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
    dtype: str
    quantization: str
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
