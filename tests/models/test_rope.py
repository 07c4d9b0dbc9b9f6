from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.adapters.files.pretrained import read_config
from moorage.memory.facts import Facts
from moorage.models.config import apply_overrides, context_length
from moorage.models.rope import HELD_BY, RopeRule, rope_rule
from tests.builders import a_spec

Rope = dict[str, Any]

LENGTH = 131072
LAYERS = ["full_attention", "sliding_attention"]
MODEL: Rope = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "of-the-future",
    "max_position_embeddings": LENGTH,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 2,
}

LINEAR: Rope = {"rope_type": "linear", "factor": 4.0}
YARN: Rope = {"rope_type": "yarn", "factor": 4.0}
WHOLE_YARN: Rope = {**YARN, "original_max_position_embeddings": LENGTH // 4}
LLAMA3: Rope = {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}
LONG: Rope = {"factor": 4.0, "original_max_position_embeddings": 32768}
MROPE: Rope = {"type": "mrope", "mrope_section": [16, 24, 24]}
DEFAULT: Rope = {"rope_type": "default"}


def nested(full: Rope | None, sliding: Rope | None = DEFAULT) -> Rope:
    return {"full_attention": full, "sliding_attention": sliding}


FLAT: list[tuple[Any, float, float]] = [
    (None, 1, 1),
    ({}, 1, 1),
    (7, 1, 1),
    (DEFAULT, 1, 1),
    ({"rope_theta": 1e6}, 1, 1),
    ({**DEFAULT, "factor": 4.0}, 4, 4),
    ({"factor": 4.0}, 4, 4),
    (LINEAR, 4, 4),
    ({**LINEAR, "rope_theta": 1e6}, 4, 4),
    ({"type": "linear", "factor": 4}, 4, 4),
    ({"rope_type": "dynamic", "factor": 4.0}, 4, 4),
    ({"rope_type": "linear"}, 1, 1),
    ({"rope_type": "linear", "factor": None}, 1, 1),
    ({"rope_type": "linear", "factor": "4.0"}, 1, 1),
    ({"rope_type": "linear", "factor": True}, 1, 1),
    ({"rope_type": "linear", "factor": -4}, 1, 1),
    ({"rope_type": "linear", "factor": float("inf")}, 1, 1),
    ({"rope_type": "linear", "factor": 10**400}, 1, 1),
    ({"rope_type": "linear", "factor": 0.5}, 0.5, 0.5),
    (YARN, 1, 4),
    (WHOLE_YARN, 1, 1),
    ({"type": "yarn", **LONG}, 1, 1),
    ({**YARN, "original_max_position_embeddings": None}, 1, 4),
    ({**YARN, "original_max_position_embeddings": "32768"}, 1, 4),
    ({**WHOLE_YARN, "factor": 2.0}, 1, 0.5),
    ({"type": "deepseek_yarn", "factor": 4.0}, 1, 4),
    (LLAMA3, 1, 1),
    ({"rope_type": "longrope", **LONG}, 1, 1),
    ({"type": "su", **LONG}, 1, 1),
    (MROPE, 1, 1),
    ({**MROPE, "factor": 4.0}, 4, 4),
]
"""Settings, and how often the configured length: in vLLM from 0.30, and before."""

BY_LAYER: list[tuple[Rope, float, float]] = [
    (nested(LINEAR), 4, 4),
    (dict(reversed(nested(LINEAR).items())), 4, 4),
    (nested({"factor": 4.0}), 4, 4),
    (nested(LINEAR, None), 4, 4),
    (nested(LINEAR, {}), 4, 4),
    ({"full_attention": LINEAR}, 4, 4),
    (nested(LINEAR, {**LINEAR, "factor": 2.0}), 2, 2),
    (nested(LINEAR, {**LINEAR, "factor": None}), 1, 1),
    (nested(YARN), 1, 1),
    (nested(YARN, YARN), 1, 1),
    (nested(YARN, LINEAR), 4, 4),
    (nested(WHOLE_YARN), 1, 1),
    (nested({**WHOLE_YARN, "factor": 2.0}), 1, 0.5),
    (nested(LLAMA3), 1, 1),
    (nested({"rope_type": "longrope", **LONG}), 1, 1),
    (nested(DEFAULT), 1, 1),
    ({**nested(LINEAR), "rope_theta": 1e6}, 1, 1),
    ({**nested(LINEAR), "rope_type": "default"}, 1, 1),
    ({**nested(LINEAR), "rope_type": "dynamic", "factor": 2.0}, 2, 2),
    ({"main": LINEAR, "compress": LINEAR}, 1, 1),
]


@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize(("rope", "held", "multiplied"), FLAT + BY_LAYER, ids=str)
def test_rope_settings_stretch_a_context_as_the_engine_does(
    key: str, rope: Any, held: float, multiplied: float
) -> None:
    text = {**MODEL, key: rope, "layer_types": LAYERS, "rope_theta": 5e5}
    for config in (text, {"model_type": "llava", "text_config": text}):
        assert context_length(config, rule=RopeRule.HELD) == held * LENGTH
        assert context_length(config, rule=RopeRule.MULTIPLIED) == multiplied * LENGTH


@pytest.mark.parametrize(
    ("engine", "rule"),
    [
        ({}, "held"),
        ({"name": "vllm", "version": "0.29.0"}, "multiplied"),
        ({"name": "vllm", "image": "vllm/vllm-openai:v0.29.0"}, "multiplied"),
        ({"name": "vllm", "image": "own.acme/vllm:v0.29.0"}, "held"),
        ({"name": "vllm", "version": "0.30.0"}, "held"),
        ({"name": "triton", "version": "26.08"}, "multiplied"),
        ({"name": "triton", "version": "99.01"}, "held"),
        ({"name": "sglang", "version": "0.5.23"}, "held"),
        ({"name": "transformers", "version": "5.0.0"}, "held"),
    ],
)
def test_the_version_of_vllm_decides_whatever_numbers_other_engines_have(
    engine: dict[str, Any], rule: str
) -> None:
    assert rope_rule(a_spec(engine=engine)) == rule


@pytest.mark.parametrize(
    "listed",
    [
        {},
        {"layer_types": None},
        {"layer_types": []},
        {"layer_types": ["linear_attention"]},
        {"layer_types": "full_attention"},
        {"layer_types": {"full_attention": 1}},
        {"layer_types": [["full_attention"], {"a": 1}, None]},
    ],
    ids=str,
)
@pytest.mark.parametrize("rope", [nested(LINEAR), nested(YARN), nested(WHOLE_YARN, LINEAR)])
@pytest.mark.parametrize("rule", RopeRule)
def test_settings_of_layer_types_that_no_layer_has_stretch_nothing(
    rule: RopeRule, rope: Rope, listed: Rope
) -> None:
    config = {**MODEL, "rope_parameters": rope, **listed}
    assert context_length(config, rule=rule) == LENGTH
    assert Facts(config, rule).longest == LENGTH


def test_layer_types_of_the_whole_do_not_count_for_its_language_model() -> None:
    text = {**MODEL, "rope_parameters": nested(LINEAR)}
    config = {"model_type": "llava", "layer_types": LAYERS, "text_config": text}
    assert context_length(config) == LENGTH


@pytest.mark.parametrize("of", ["whole", "text"])
def test_the_length_of_gemma3_is_the_scaled_one(of: str) -> None:
    text = {**MODEL, "rope_parameters": nested(LINEAR), "layer_types": LAYERS}
    kinds = {"whole": ("gemma3", ""), "text": ("shieldgemma", "gemma3_text")}[of]
    config = {"model_type": kinds[0], "text_config": {**text, "model_type": kinds[1]}}
    assert context_length(config) == LENGTH


def test_a_rope_that_is_overridden_under_its_other_name_is_replaced() -> None:
    config = {**MODEL, "rope_scaling": LINEAR}
    assert context_length(apply_overrides(config, {"rope_parameters": DEFAULT})) == LENGTH


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gpt_oss", "olmo3", "of-the-future"])
@pytest.mark.parametrize("listed", [{}, {"layer_types": LAYERS}], ids=["", "listed"])
def test_a_context_is_the_one_of_what_transformers_reads(
    kind: str, listed: Rope, tmp_path: Path
) -> None:
    for rope in (nested(LINEAR), nested(LINEAR, {**LINEAR, "factor": 2.0}), nested(WHOLE_YARN)):
        config = {**MODEL, "model_type": kind, "rope_parameters": rope, **listed}
        (tmp_path / "config.json").write_text(json.dumps(config))
        read, _ = read_config(tmp_path, trust_remote_code=False)
        assert context_length(read, rule=RopeRule.HELD) == standardised(read)


def standardised(config: Rope) -> int:
    """What vLLM derives of what transformers left behind; it wants no key but layer types."""
    rope, factor = config["rope_parameters"], 1.0
    known = "layer_types" in config and config["layer_types"] and "rope_type" not in rope
    for part in rope.values() if known else [rope]:
        if part.get("rope_type", "default") not in HELD_BY[RopeRule.HELD]:
            factor = part.get("factor", factor)
    return int(LENGTH * factor)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [*LAYERS, "factor", "type", "rope_type", "original_max_position_embeddings"]
            ),
            inner | st.sampled_from(["yarn", "linear", "full_attention"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON_VALUES, JSON_VALUES, st.sampled_from(RopeRule))
def test_any_rope_settings_give_a_length(rope: object, listed: object, rule: RopeRule) -> None:
    config = {**MODEL, "rope_parameters": rope, "layer_types": listed}
    length = context_length(config, rule=rule)
    assert isinstance(length, int)
    assert length >= 0
