"""The mode that is derived from a configuration."""

from __future__ import annotations

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.spec import Mode
from tests.models.profiles import LLAMA, Config, derived


@pytest.mark.parametrize(
    ("architecture", "mode"),
    [
        ("LlamaForCausalLM", Mode.COMPLETION),
        ("GPT2LMHeadModel", Mode.COMPLETION),
        ("Gemma3ForConditionalGeneration", Mode.COMPLETION),
        ("T5ForConditionalGeneration", Mode.COMPLETION),
        ("InternVLChatModel", Mode.COMPLETION),
        ("ChatGLMModel", Mode.COMPLETION),
        ("Qwen2_5OmniModel", Mode.COMPLETION),
        ("UltravoxModel", Mode.COMPLETION),
        ("BertModel", Mode.EMBEDDING),
        ("XLMRobertaModel", Mode.EMBEDDING),
        ("Qwen3ForEmbeddingModel", Mode.EMBEDDING),
        ("BertForMaskedLM", Mode.EMBEDDING),
        ("T5EncoderModel", Mode.EMBEDDING),
        ("XLMRobertaForSequenceClassification", Mode.CLASSIFICATION),
        ("JinaVLForRanking", Mode.RERANKING),
        ("HF_ColBERT", Mode.RERANKING),
        ("ColBERTModernBertModel", Mode.RERANKING),
        ("ColPaliForRetrieval", Mode.RERANKING),
        ("OpsColQwen3Model", Mode.RERANKING),
        ("WhisperForConditionalGeneration", Mode.TRANSCRIPTION),
        ("CohereAsrForConditionalGeneration", Mode.TRANSCRIPTION),
        ("VoxtralForConditionalGeneration", Mode.COMPLETION),
    ],
)
def test_the_architecture_tells_the_mode(architecture: str, mode: Mode) -> None:
    profile = derived({"architectures": [architecture], "max_position_embeddings": 512})
    assert (profile.mode, profile.mode_origin) == (mode, Origin.DERIVED)
    assert profile.warnings == ()


@pytest.mark.parametrize(
    "architecture",
    ["Qwen2ForRewardModel", "Qwen2ForProcessRewardModel", "BertForTokenClassification"],
)
def test_a_model_that_vllm_serves_only_at_pooling_needs_a_probe_without_request(
    architecture: str,
) -> None:
    config = {"architectures": [architecture], "max_position_embeddings": 512}
    with pytest.raises(
        Failure, match=r"readiness\.probe\.request: .* only at `/pooling`"
    ) as caught:
        derived(config)
    assert caught.value.cause == Cause.BAD_SPEC
    profile = derived(config, wish={"readiness": {"probe": {"request": False}}})
    assert (profile.mode, profile.warnings) == (Mode.RERANKING, ())


TWO_TOKENS = {"classifier_from_token": ["no", "yes"]}


@pytest.mark.parametrize(
    ("config", "mode"),
    [
        ({"id2label": {"0": "LABEL_0"}}, Mode.RERANKING),
        ({"num_labels": 1}, Mode.RERANKING),
        ({**TWO_TOKENS, "method": "from_2_way_softmax"}, Mode.RERANKING),
        ({**TWO_TOKENS, "is_original_qwen3_reranker": True}, Mode.RERANKING),
        ({"classifier_from_token": ["yes"], "method": "no_post_processing"}, Mode.RERANKING),
        ({"classifier_from_token": ["a", "b", "c"]}, Mode.CLASSIFICATION),
        ({"id2label": {"0": "sad", "1": "glad"}}, Mode.CLASSIFICATION),
        ({"num_labels": 3, "id2label": None}, Mode.CLASSIFICATION),
        ({}, Mode.CLASSIFICATION),
    ],
)
def test_a_classifier_of_one_label_scores(config: Config, mode: Mode) -> None:
    assert derived({"architectures": ["BertForSequenceClassification"], **config}).mode == mode


def test_an_architecture_that_is_overridden_for_the_engine_tells_the_mode() -> None:
    override = '{"architectures": ["Qwen3ForSequenceClassification"], "num_labels": 1}'
    wish = {"engine": {"args": [f"--hf-overrides {override}"]}}
    assert derived(LLAMA, wish=wish).mode == Mode.RERANKING


@pytest.mark.parametrize("config", [{}, {"architectures": None}, {"architectures": ["Phi3V"]}])
def test_an_unknown_architecture_is_taken_for_completion_with_a_warning(config: Config) -> None:
    profile = derived({**config, "max_position_embeddings": 512})
    assert (profile.mode, profile.mode_origin) == (Mode.COMPLETION, Origin.DEFAULT)
    assert any("completion is assumed" in warning for warning in profile.warnings)


def test_a_sentence_encoder_embeds_whatever_its_architecture() -> None:
    assert derived(LLAMA, is_sentence_encoder=True).mode == Mode.EMBEDDING


def test_the_mode_of_the_spec_wins() -> None:
    profile = derived(LLAMA, wish={"mode": "embedding"}, is_sentence_encoder=False)
    assert (profile.mode, profile.mode_origin) == (Mode.EMBEDDING, Origin.USER)
