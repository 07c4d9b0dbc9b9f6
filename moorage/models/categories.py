"""What a model is, in the words of the peer's rules, which ask for a list of categories."""

from __future__ import annotations

from collections.abc import Sequence

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
