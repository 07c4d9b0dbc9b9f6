from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.models.config import context_length
from moorage.models.profile import ModelProfile, derive_profile
from moorage.models.source import ModelFile
from moorage.spec import Mode
from tests.builders import a_model, a_spec

CONFORMANCE = json.loads((Path(__file__).parent / "data" / "context.json").read_text())
"""Answers of vLLM's own rules, as measured before 0.30."""

BEFORE = {"engine": {"version": "0.29.0"}}

Config = dict[str, Any]

LLAMA: Config = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "max_position_embeddings": 8192,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
}


def derived(config: Config, *, wish: Config | None = None, **model: Any) -> ModelProfile:
    return derive_profile(a_spec(**(wish or {})), a_model(config, **model))


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


@pytest.mark.parametrize("case", CONFORMANCE, ids=lambda case: case["id"])
def test_the_context_is_the_one_that_vllm_derives(case: Config) -> None:
    profile = derived(case["config"], wish=BEFORE)
    assert profile.context == case["derived_max_model_len"]
    assert profile.context_origin == Origin.DERIVED


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
BARE_YARN = {"rope_type": "yarn", "factor": 4.0}


@pytest.mark.parametrize(
    ("config", "length"),
    [
        ({"max_position_embeddings": 8192}, 8192),
        ({"n_positions": 1024}, 1024),
        ({"max_position_embeddings": 8192, "seq_length": 2048}, 2048),
        ({"max_position_embeddings": None, "max_seq_len": 2048}, 2048),
        ({"max_position_embeddings": 4096, "rope_scaling": None}, 4096),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 2}}, 8192),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "dynamic", "factor": 2}}, 8192),
        ({"max_position_embeddings": 32768, "rope_scaling": YARN}, 131072),
        ({"max_position_embeddings": 131072, "rope_scaling": YARN}, 131072),
        (
            {"max_position_embeddings": 131072, "rope_scaling": {"type": "llama3", "factor": 8.0}},
            131072,
        ),
        (
            {"max_position_embeddings": 131072, "rope_scaling": {"type": "longrope", "factor": 32}},
            131072,
        ),
        ({"max_position_embeddings": 4096, "rope_parameters": {"rope_type": "default"}}, 4096),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "mrope", "factor": 2}}, 8192),
        ({"max_position_embeddings": 4096, "rope_scaling": {"factor": 2.0}}, 8192),
        ({"max_position_embeddings": 8192, "seq_len": 2048, "rope_scaling": BARE_YARN}, 32768),
        ({"max_position_embeddings": 32768, "rope_parameters": YARN}, 131072),
        ({"model_type": "mystery"}, None),
    ],
    ids=str,
)
def test_rope_scaling_stretches_the_context_unless_it_is_included(
    config: Config, length: int | None
) -> None:
    assert context_length(config) == length


SHORT_YARN: Config = {**LLAMA, "max_position_embeddings": 32768, "rope_scaling": YARN}
WHOLE_YARN: Config = {**LLAMA, "max_position_embeddings": 131072, "rope_scaling": YARN}


@pytest.mark.parametrize(
    ("config", "wish", "length"),
    [
        (SHORT_YARN, {}, 32768),
        (SHORT_YARN, {"engine": {"version": "0.30.0"}}, 32768),
        (SHORT_YARN, {"engine": {"name": "transformers", "version": "0.1"}}, 32768),
        (SHORT_YARN, BEFORE, 131072),
        (SHORT_YARN, {"placement": {"policy": "baseline"}}, 131072),
        (WHOLE_YARN, {}, 131072),
        (WHOLE_YARN, BEFORE, 131072),
        ({**LLAMA, "rope_scaling": {"type": "linear", "factor": 2}}, {}, 16384),
        ({**LLAMA, "rope_scaling": {"type": "mrope", "factor": 2}}, {}, 16384),
        ({**LLAMA, "rope_scaling": {"type": "deepseek_yarn", "factor": 40}}, {}, 8192),
    ],
)
def test_yarn_multiplies_the_length_only_before_vllm_0_30(
    config: Config, wish: Config, length: int
) -> None:
    assert derived(config, wish=wish).context == length


@pytest.mark.parametrize(
    ("config", "advice"),
    [
        (SHORT_YARN, '--hf-overrides {"max_position_embeddings": 131072}'),
        (
            {"architectures": ["LlamaForCausalLM"], "text_config": SHORT_YARN},
            '--hf-overrides {"text_config": {"max_position_embeddings": 131072}}',
        ),
    ],
)
def test_a_length_that_yarn_does_not_multiply_any_more_says_how_to_get_the_rest(
    config: Config, advice: str
) -> None:
    (warning,) = derived(config).warnings
    assert advice in warning
    with pytest.raises(Failure, match="the model ends at 32768") as caught:
        derived(config, wish={"context": 131072})
    assert advice in caught.value.suggestion
    wish = {"context": 131072, "engine": {"args": [advice]}}
    assert derived(config, wish=wish).context == 131072


def test_a_part_of_the_configuration_is_overridden_key_by_key() -> None:
    override = '--hf-overrides {"text_config": {"max_position_embeddings": 4096}}'
    profile = derived({"text_config": LLAMA}, wish={"engine": {"args": [override]}})
    assert (profile.context, profile.layers) == (4096, 32)


def test_a_model_that_names_no_length_gets_a_default_and_a_warning() -> None:
    profile = derived({"architectures": ["MambaForCausalLM"]})
    assert (profile.context, profile.context_origin) == (2048, Origin.DEFAULT)
    assert any("2048" in warning for warning in profile.warnings)


def test_an_assumed_length_is_scaled_as_a_named_one() -> None:
    rope = {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}
    assert context_length(rope) is None
    assert context_length(rope, unknown=2048) == 8192


def test_a_shorter_context_is_the_users_choice() -> None:
    profile = derived(LLAMA, wish={"context": 4096})
    assert (profile.context, profile.context_origin) == (4096, Origin.USER)


def test_a_longer_context_than_the_model_has_is_refused() -> None:
    with pytest.raises(
        Failure, match="8193 tokens are requested, the model ends at 8192"
    ) as caught:
        derived(LLAMA, wish={"context": 8193})
    assert caught.value.cause is Cause.BAD_SPEC
    assert "Lower `context` to 8192" in caught.value.suggestion


@pytest.mark.parametrize(
    ("value", "engine", "allowed"),
    [("1", "vllm", True), (" True ", "auto", True), ("0", "vllm", False), ("1", "sglang", False)],
)
def test_a_longer_context_is_taken_with_a_warning_where_vllm_is_told_so(
    value: str, engine: str, allowed: bool
) -> None:
    env = {"VLLM_ALLOW_LONG_MAX_MODEL_LEN": value}
    wish: Config = {"context": 8193, "engine": {"name": engine, "env": env}}
    if not allowed:
        with pytest.raises(Failure, match="the model ends at 8192"):
            derived(LLAMA, wish=wish)
        return
    profile = derived(LLAMA, wish=wish)
    assert profile.context == 8193
    assert "beyond 8192 tokens" in profile.warnings[0]


def test_any_context_is_believed_where_the_model_names_none() -> None:
    assert (
        derived({"architectures": ["MambaForCausalLM"]}, wish={"context": 99999}).context == 99999
    )


XLM: Config = {"architectures": ["XLMRobertaModel"], "max_position_embeddings": 8194}


@pytest.mark.parametrize(
    ("engine", "mode", "longest_input", "context"),
    [
        ("vllm", "auto", 8192, 8192),
        ("auto", "auto", 8192, 8192),
        ("triton", "auto", 256, 256),
        ("vllm", "auto", 9000, 8194),
        ("vllm", "auto", None, 8194),
        ("vllm", "completion", 8192, 8194),
        ("sglang", "auto", 8192, 8194),
    ],
)
def test_an_input_that_vllm_pools_is_no_longer_than_the_models_settings_allow(
    engine: str, mode: str, longest_input: int | None, context: int
) -> None:
    wish = {"engine": {"name": engine}, "mode": mode}
    assert derived(XLM, wish=wish, longest_input=longest_input).context == context


def test_a_longer_input_than_the_models_settings_allow_is_refused() -> None:
    with pytest.raises(Failure, match="8194 tokens are requested, the model ends at 8192"):
        derived(XLM, wish={"context": 8194}, longest_input=8192)


GPT2: Config = {
    "n_layer": 12,
    "n_head": 12,
    "n_embd": 768,
    "n_positions": 1024,
    "vocab_size": 50257,
}
GEMMA: Config = {
    "text_config": {
        "num_hidden_layers": 34,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "hidden_size": 2560,
    },
    "vision_config": {"num_attention_heads": 16, "hidden_size": 1152},
}


@pytest.mark.parametrize(
    ("config", "layers", "heads", "kv_heads", "head_dim", "hidden"),
    [
        (LLAMA, 32, 32, 8, 128, 4096),
        (GPT2, 12, 12, 12, 64, 768),
        (GEMMA, 34, 8, 4, 256, 2560),
        ({"n_layers": 32, "n_heads": 32, "d_model": 4096}, 32, 32, 32, 128, 4096),
        ({}, None, None, None, None, None),
    ],
    ids=["llama", "gpt2", "multimodal", "mpt", "nothing"],
)
def test_sizes_are_read_by_any_of_their_names(
    config: Config,
    layers: int | None,
    heads: int | None,
    kv_heads: int | None,
    head_dim: int | None,
    hidden: int | None,
) -> None:
    profile = derived(config)
    assert (profile.layers, profile.attention_heads, profile.kv_heads) == (layers, heads, kv_heads)
    assert (profile.head_dim, profile.hidden_size) == (head_dim, hidden)


def test_the_cache_of_a_token_counts_keys_and_values_of_every_layer() -> None:
    assert derived(LLAMA).kv_bytes_per_token == 2 * 32 * 8 * 128 * 2
    assert derived({}).kv_bytes_per_token is None


@pytest.mark.parametrize(
    ("config", "quantization"),
    [
        ({}, ""),
        ({"quantization_config": {"quant_method": "awq", "bits": 4}}, "awq"),
        ({"text_config": {**LLAMA, "quantization_config": {"quant_method": "fp8"}}}, "fp8"),
        ({"compression_config": {"format": "pack-quantized"}}, "pack-quantized"),
        ({"quantization_config": {"bits": 4}}, "unknown"),
        ({"quantization_config": None}, ""),
    ],
    ids=str,
)
def test_the_quantization_is_named(config: Config, quantization: str) -> None:
    assert derived(config).quantization == quantization


@pytest.mark.parametrize(
    ("config", "dtype"),
    [
        ({"torch_dtype": "bfloat16"}, "bfloat16"),
        ({"dtype": "float16", "torch_dtype": "float32"}, "float16"),
        ({"dtype": "torch.bfloat16"}, "bfloat16"),
        ({"text_config": {**LLAMA}}, "bfloat16"),
        ({}, ""),
    ],
    ids=str,
)
def test_the_dtype_is_read_in_its_old_and_new_writing(config: Config, dtype: str) -> None:
    assert derived(config).dtype == dtype


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ('{"num_hidden_layers": 1000000}', "num_hidden_layers is 1000000, more than 1,000"),
        ('{"text_config": {"hidden_size": "x"}}', "text_config.hidden_size is 'x', and no number"),
        ('{"rope_scaling": {"factor": 1e300}}', "rope_scaling.factor is 1e+300, more than"),
    ],
)
def test_what_overrides_the_configuration_has_its_limits_too(overrides: str, words: str) -> None:
    wish = {"engine": {"args": ["--hf-overrides", overrides]}}
    with pytest.raises(Failure) as caught:
        derived(LLAMA, wish=wish)
    assert caught.value.cause is Cause.BAD_SPEC
    assert words in caught.value.detail


FOREIGN = "acme/new-impl--configuration.NewConfig"


@pytest.mark.parametrize(
    ("mapped", "trusts", "warned"),
    [
        ({"AutoConfig": FOREIGN, "AutoModel": "acme/new-impl--model.New"}, True, True),
        ({"AutoConfig": FOREIGN}, False, False),
        ({"AutoConfig": "configuration.NewConfig"}, True, False),
        ({"AutoTokenizer": [FOREIGN, None]}, True, True),
        ("acme/new-impl--a.B", True, False),
    ],
)
def test_code_in_another_repository_is_named(mapped: Any, *, trusts: bool, warned: bool) -> None:
    wish = {"trust_remote_code": trusts}
    warnings = derived({**LLAMA, "auto_map": mapped}, wish=wish).warnings
    assert len(warnings) == warned
    assert all("acme/new-impl," in warning for warning in warnings)


@pytest.mark.parametrize(
    ("names", "architecture", "args", "chats"),
    [
        (["tekken.json"], "MistralForCausalLM", [], True),
        (["tekken.json", "tokenizer.json"], "MistralForCausalLM", [], False),
        (["tokenizer.json"], "DeepseekV32ForCausalLM", [], True),
        (["tokenizer.json"], "LlamaForCausalLM", ["--chat-template /t.jinja"], True),
        (["tokenizer.json"], "LlamaForCausalLM", [], False),
    ],
)
def test_some_models_chat_without_a_template_of_their_own(
    names: list[str], architecture: str, args: list[str], chats: bool
) -> None:
    files = tuple(ModelFile(name=name, size=1) for name in names)
    config = {"architectures": [architecture]}
    wish = {"engine": {"args": args}}
    found = derived(config, wish=wish, files=files, has_chat_template=False)
    assert found.has_chat_template is chats


LONG_ROPE = {
    "max_position_embeddings": 131072,
    "original_max_position_embeddings": 4096,
    "rope_scaling": {"type": "longrope", "long_factor": [1.0], "short_factor": [1.0]},
}


def test_long_rope_scaling_is_used_only_where_a_longer_context_is_stated() -> None:
    profile = derived(LONG_ROPE)
    assert (profile.context, profile.context_origin) == (4096, Origin.DERIVED)
    assert any("`context: 131072` serves more" in one for one in profile.warnings)
    assert derived(LONG_ROPE, wish={"context": 131072}).context == 131072


def test_a_length_that_the_model_states_for_its_engine_wins() -> None:
    config = {"max_position_embeddings": 8192, "model_max_length": 131072}
    assert derived(config).context == 131072
