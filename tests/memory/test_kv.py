"""The KV cache: what holds for all models, and the rules that only some of them need."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.common.refusal import Reason, Refusal
from moorage.memory.facts import Facts
from moorage.memory.kv import (
    KVKind,
    KVSpec,
    LayerCache,
    blocks_per_request,
    group_layers,
    longest_fit,
)
from moorage.memory.layer_caches import layer_caches
from moorage.memory.layers import Mixer, layer_mixers
from moorage.memory.need import MemoryPrediction
from moorage.memory.options import MemorySettings
from moorage.models.source import TensorHeader
from tests.memory.prediction import predict_memory

BASE: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 128,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}
TENSORS = {"model.embed_tokens.weight": TensorHeader(dtype="BF16", shape=(128, 64))}

SPECS = st.builds(
    KVSpec,
    kind=st.sampled_from([KVKind.FULL, KVKind.SLIDING, KVKind.CHUNKED, KVKind.MAMBA, KVKind.MLA]),
    block_size=st.integers(1, 64).map(lambda n: 16 * n),
    page_bytes=st.just(1),
    window=st.integers(1, 5000),
    states=st.integers(1, 3),
)
GROUPS = st.lists(SPECS, min_size=1, max_size=5).map(lambda specs: [{spec} for spec in specs])
TOKENS = st.integers(1, 200_000)


def predict(config: dict[str, Any], **settings: Any) -> MemoryPrediction | Refusal:
    return predict_memory({**BASE, **config}, TENSORS, MemorySettings(**settings))


def caches(config: dict[str, Any], prefix: bool = True, **settings: Any) -> list[LayerCache]:
    told = {"enable_prefix_caching": True if prefix else None}
    facts, chosen = Facts({**BASE, **config}), MemorySettings(**{**told, **settings})
    return layer_caches(facts, chosen, "bfloat16", 4096, prefix)


@given(spec=SPECS, tokens=TOKENS, more=st.integers(0, 100_000), in_flight=TOKENS)
def test_more_tokens_never_need_fewer_blocks(
    spec: KVSpec, tokens: int, more: int, in_flight: int
) -> None:
    assert spec.blocks_for(tokens, in_flight) <= spec.blocks_for(tokens + more, in_flight)


@given(groups=GROUPS, blocks=st.integers(0, 20_000), longest=TOKENS, in_flight=TOKENS)
def test_the_longest_fit_fits_and_one_token_more_does_not(
    groups: list[set[KVSpec]], blocks: int, longest: int, in_flight: int
) -> None:
    fit = longest_fit(groups, blocks, longest, in_flight)
    assert fit <= longest
    assert not fit or blocks_per_request(groups, fit, in_flight) <= blocks
    assert fit == longest or blocks_per_request(groups, fit + 1, in_flight) > blocks


@given(
    heads=st.sampled_from([8, 16, 24, 64]),
    kv_heads=st.sampled_from([1, 2, 4, 8]),
    window=st.sampled_from([None, 16, 1000]),
    dtype=st.sampled_from(["auto", "fp8"]),
)
def test_bytes_per_block_do_not_grow_with_the_ranks(
    heads: int, kv_heads: int, window: int | None, dtype: str
) -> None:
    config = {
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "sliding_window": window,
    }
    costs = []
    for ranks in (1, 2, 4, 8):
        got = predict(config, tensor_parallel_size=ranks, kv_cache_dtype=dtype)
        assert isinstance(got, MemoryPrediction)
        costs.append(got.bytes_per_block)
    assert costs == sorted(costs, reverse=True)


@given(
    layers=st.lists(st.sampled_from([0, 1, 2]), min_size=1, max_size=40),
    hybrid=st.booleans(),
)
def test_each_layer_is_in_one_group_and_all_pages_of_the_pool_are_alike(
    layers: list[int], hybrid: bool
) -> None:
    kinds = [
        KVSpec(kind=KVKind.FULL, block_size=16, page_bytes=64),
        KVSpec(kind=KVKind.SLIDING, block_size=16, page_bytes=128, window=8),
        KVSpec(kind=KVKind.FULL, block_size=16, page_bytes=64, window=9),
    ]
    members = [LayerCache(layer=i, spec=kinds[kind]) for i, kind in enumerate(layers)]
    if hybrid or 0 in layers or 2 in layers or set(layers) == {1}:
        groups = group_layers(members, hybrid)
        assert sorted(m.layer for g in groups for m in g) == list(range(len(layers)))
        assert len(groups) == 1 or len({m.spec.page_bytes for g in groups for m in g}) == 1


MAMBA2 = {
    **{"model_type": "granitemoehybrid", "layer_types": ["mamba", "attention"] * 2},
    **{"mamba_expand": 2, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_n_groups": 1},
    **{"mamba_n_heads": 8, "mamba_d_head": 16},
}
SHORT = {"model_type": "lfm2", "layer_types": ["conv", "full_attention"] * 2, "conv_L_cache": 3}


OLDER: dict[str, Any] = {"versions": ("0.26.0",)}
UNREAD: dict[str, Any] = {"versions": ("0.29.0",)}
ALIGN: dict[str, Any] = {"mamba_cache_mode": "align"}


@pytest.mark.parametrize(
    ("config", "prefix", "settings", "blocks"),
    [
        (MAMBA2, True, {}, 3),
        (MAMBA2, False, {}, 1),
        (SHORT, True, {}, 2),
        (SHORT, False, {}, 1),
        # Before 0.32, a state for each block of 256 tokens, the chunk of its kernel.
        (MAMBA2, True, OLDER, 16),
        (MAMBA2, True, UNREAD, 16),
        (MAMBA2, True, {"versions": ("0.32.0", "0.26.0")}, 16),
        (MAMBA2, True, {"versions": ("",)}, 16),
        (MAMBA2 | {"mamba_chunk_size": 512}, True, OLDER, 8),
        (MAMBA2, True, OLDER | {"mamba_block_size": 128}, 32),
        (MAMBA2, True, OLDER | {"block_size": 1024}, 4),
        (MAMBA2, True, OLDER | ALIGN, 2),
        (MAMBA2, True, UNREAD | ALIGN, 3),
        (MAMBA2, False, OLDER, 1),
        (SHORT, True, OLDER, 2),
        (MAMBA2, True, {"versions": (), "sglang": True}, 3),
    ],
)
def test_a_request_holds_its_state_and_what_prefix_caching_needs_besides(
    config: dict[str, Any], prefix: bool, settings: dict[str, Any], blocks: int
) -> None:
    spec = caches(config, prefix, **settings)[0].spec
    assert (spec.kind, spec.blocks_for(4096, in_flight=0)) == (KVKind.MAMBA, blocks)


def test_a_state_for_each_block_lies_in_pages_of_whole_chunks() -> None:
    state, attention, *_ = caches(MAMBA2, **OLDER)
    assert state.spec.block_size == attention.spec.block_size == 256
    assert state.spec.page_bytes == attention.spec.page_bytes == 256 * 2 * 2 * 8 * 2


@pytest.mark.parametrize(
    ("config", "settings", "conv", "recurrent"),
    [
        (MAMBA2, {}, 2, 2),
        (MAMBA2, {"mamba_cache_dtype": "float32"}, 4, 4),
        (MAMBA2, {"mamba_cache_dtype": "float32", "mamba_ssm_cache_dtype": "float16"}, 4, 2),
        (MAMBA2, {"mamba_ssm_cache_dtype": "float32"}, 2, 4),
    ],
)
def test_states_have_the_element_types_that_are_stated(
    config: dict[str, Any], settings: dict[str, Any], conv: int, recurrent: int
) -> None:
    alone = {"layer_types": ["mamba"] * 4}
    spec = caches(config | alone, **settings)[0].spec
    assert spec.page_bytes == (128 + 2 * 16) * 3 * conv + 8 * 16 * 16 * recurrent


def test_a_block_of_states_without_prefixes_is_refused() -> None:
    with pytest.raises(Refusal, match="--mamba-block-size can only be set with"):
        caches(MAMBA2, prefix=False, mamba_block_size=256)
    assert caches(MAMBA2, prefix=False, mamba_block_size=4096)


def test_blocks_grow_until_a_page_holds_the_state() -> None:
    state, attention, *_ = caches(MAMBA2)
    needed = (128 + 2 * 16) * 3 * 2 + 8 * 16 * 16 * 2
    assert state.spec.page_bytes == attention.spec.page_bytes >= needed
    assert attention.spec.block_size % 16 == 0
    assert attention.spec.page_bytes - 16 * 2 * 2 * 8 * 2 < needed


@pytest.mark.parametrize(
    ("config", "pages"),
    [
        (
            {
                **{"model_type": "gemma4_text", "global_head_dim": 32, "attention_k_eq_v": True},
                **{"num_global_key_value_heads": 1, "sliding_window": 8},
                "layer_types": ["sliding_attention", "full_attention"] * 2,
            },
            [16 * 2 * 2 * 8 * 2, 16 * 1 * 2 * 32 * 2],
        ),
        (
            {
                **{"model_type": "mimo_v2_flash", "v_head_dim": 4, "swa_num_key_value_heads": 4},
                **{"swa_head_dim": 8, "swa_v_head_dim": 4, "sliding_window": 8},
                "hybrid_layer_pattern": [1, 0, 1, 0],
            },
            [16 * 4 * (8 + 4) * 2, 16 * 2 * (8 + 4) * 2],
        ),
        (
            {"model_type": "deepseek_v32", "kv_lora_rank": 32, "qk_rope_head_dim": 8},
            [16 * (128 + 4), 16 * 40 * 2],
        ),
    ],
)
def test_kinds_of_layers_may_have_heads_of_their_own(
    config: dict[str, Any], pages: list[int]
) -> None:
    assert [cache.spec.page_bytes for cache in caches(config)[:2]] == pages


@pytest.mark.parametrize(
    ("config", "mixers"),
    [
        ({"model_type": "granite_swa"}, [Mixer.FULL] + [Mixer.SLIDING] * 3),
        ({"model_type": "mistral"}, [Mixer.SLIDING] * 4),
        ({"model_type": "mistral", "sliding_window": None}, [Mixer.FULL] * 4),
        ({"model_type": "laguna", "sliding_window": 8}, [Mixer.FULL] * 4),
        (
            {"model_type": "smollm3", "use_sliding_window": True, "sliding_window": 8},
            [Mixer.FULL] * 3 + [Mixer.SLIDING],
        ),
        ({"model_type": "afmoe"}, [Mixer.SLIDING] * 3 + [Mixer.FULL]),
    ],
)
def test_what_is_not_written_is_as_the_configuration_class_has_it(
    config: dict[str, Any], mixers: list[Mixer]
) -> None:
    assert layer_mixers(Facts({**BASE, **config})) == [(mixer,) for mixer in mixers]


@pytest.mark.parametrize(
    ("dtype", "device", "size"),
    [("auto", "cuda", 1152), ("fp8", "cuda", 656), ("fp8", "rocm", 576)],
)
def test_sparse_attention_packs_fp8_with_its_scales_on_nvidia(
    dtype: str, device: str, size: int
) -> None:
    ranks = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_head_dim": 128}
    found = caches(
        {"model_type": "deepseek_v32", **ranks}, kv_cache_dtype=dtype, device_type=device
    )
    assert {cache.spec.page_bytes for cache in found} == {size * 16, 132 * 16}


def test_falcon_does_not_hear_of_the_type_of_the_cache() -> None:
    stated = predict({"model_type": "falcon", "multi_query": False}, kv_cache_dtype="fp8")
    assert isinstance(stated, MemoryPrediction)
    assert stated.bytes_per_block == 4 * 16 * 2 * 2 * 8 * 2


def test_a_nested_language_model_may_leave_its_heads_to_its_class() -> None:
    text = {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34}
    facts = Facts({"architectures": ["Gemma3ForConditionalGeneration"], "text_config": text})
    assert (facts.layers, facts.heads, facts.kv_heads, facts.head_size) == (34, 8, 4, 256)


@pytest.mark.parametrize(
    ("config", "settings", "reason"),
    [
        (MAMBA2, {"hybrid_kv_cache_manager": False}, "Failed to promote"),
        ({**MAMBA2, "mamba_n_groups": 3}, {"tensor_parallel_size": 2}, "3 groups"),
        (
            {"architectures": ["BertModel"], "model_type": "bert"},
            {"max_num_batched_tokens": 1024},
            "smaller than max_model_len",
        ),
        (
            {
                **{"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 8},
                "max_window_layers": 2,
            },
            {},
            "some but all layers",
        ),
    ],
)
def test_caches_that_vllm_cannot_make_are_refused(
    config: dict[str, Any], settings: dict[str, Any], reason: str
) -> None:
    got = predict(config, **settings)
    assert isinstance(got, Refusal)
    assert (got.reason, reason in got.note) == (Reason.REJECTED, True)


def test_a_model_that_names_no_length_takes_any() -> None:
    state = {"model_type": "mamba", "architectures": ["MambaForCausalLM"], "state_size": 16}
    config = {**state, "intermediate_size": 128, "max_position_embeddings": None}
    default, stated = predict(config), predict(config, max_model_len=1_000_000)
    assert isinstance(default, MemoryPrediction)
    assert isinstance(stated, MemoryPrediction)
    assert (default.max_model_len, stated.max_model_len) == (2048, 1_000_000)
