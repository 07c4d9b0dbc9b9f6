"""The sizes and the other facts that are derived from a configuration."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.models.source import ModelFile
from tests.models.profiles import LLAMA, Config, derived


def test_a_part_of_the_configuration_is_overridden_key_by_key() -> None:
    override = '--hf-overrides {"text_config": {"max_position_embeddings": 4096}}'
    profile = derived({"text_config": LLAMA}, wish={"engine": {"args": [override]}})
    assert (profile.context, profile.layers) == (4096, 32)


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
