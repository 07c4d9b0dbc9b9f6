"""The longest context: of a configuration, with its rope scaling, and of a spec."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.models.config import context_length
from tests.models.profiles import LLAMA, Config, derived

CONFORMANCE = json.loads((Path(__file__).parent / "data" / "context.json").read_text())
"""Answers of vLLM's own rules, as measured before 0.30."""

BEFORE = {"engine": {"version": "0.29.0"}}


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
