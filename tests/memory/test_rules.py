import json
from dataclasses import replace
from pathlib import Path

import pytest

from moorage.common.refusal import Reason, Refusal
from moorage.memory.dtypes import pools
from moorage.memory.facts import Facts
from moorage.memory.kv import KVKind, KVSpec, LayerCache, group_layers
from moorage.memory.layers import Mixer, layer_mixers, stage_ranges
from moorage.memory.need import MemoryPrediction
from moorage.memory.options import MemorySettings
from moorage.memory.sharding import Split, parse_name, split_of
from moorage.models.rope import RopeRule
from moorage.models.source import TensorHeader
from tests.memory.prediction import predict_memory

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 100,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
TENSORS = {
    "model.embed_tokens.weight": TensorHeader(dtype="BF16", shape=(100, 64)),
    "lm_head.weight": TensorHeader(dtype="BF16", shape=(100, 64)),
    "model.layers.0.self_attn.k_proj.weight": TensorHeader(dtype="BF16", shape=(16, 64)),
    "model.layers.1.self_attn.o_proj.weight": TensorHeader(dtype="BF16", shape=(64, 64)),
    "model.norm.weight": TensorHeader(dtype="F32", shape=(64,)),
}


def predict(config: dict[str, object] | None = None, **settings: object) -> MemoryPrediction:
    got = predict_memory({**LLAMA, **(config or {})}, TENSORS, MemorySettings(**settings))
    assert isinstance(got, MemoryPrediction), got
    return got


def refuse(config: dict[str, object] | None = None, **settings: object) -> Refusal:
    got = predict_memory({**LLAMA, **(config or {})}, TENSORS, MemorySettings(**settings))
    assert isinstance(got, Refusal)
    return got


MAMBA = {
    "architectures": ["MambaForCausalLM"],
    "model_type": "mamba",
    "intermediate_size": 128,
    "state_size": 16,
    "conv_kernel": 4,
}


@pytest.mark.parametrize(
    ("layers", "stages", "counts"),
    [(80, 2, [40, 40]), (80, 3, [27, 27, 26]), (61, 2, [31, 30]), (9, 4, [2, 2, 3, 2])],
)
def test_remaining_layers_go_to_the_stages_before_the_last(
    layers: int, stages: int, counts: list[int]
) -> None:
    facts = Facts({**LLAMA, "num_hidden_layers": layers})
    ranges = stage_ranges(facts, MemorySettings(pipeline_parallel_size=stages))
    assert [len(stage) for stage in ranges] == counts


def test_layers_go_to_the_stages_that_the_user_states() -> None:
    stated = predict({"num_hidden_layers": 4}, pipeline_parallel_size=2, layer_partition=(1, 3))
    assert [stage.layers for stage in stated.stages] == [1, 3]


@pytest.mark.parametrize("partition", [(2, 1), (4,), (1, 1, 2), (5, -1)])
def test_layers_that_are_stated_for_other_stages_are_refused(partition: tuple[int, ...]) -> None:
    stages = {"pipeline_parallel_size": 2, "layer_partition": partition}
    found = refuse({"num_hidden_layers": 4}, **stages)
    assert (found.reason, "VLLM_PP_LAYER_PARTITION" in found.note) == (Reason.REJECTED, True)


@pytest.mark.parametrize(
    ("kind", "window", "tokens", "blocks"),
    [
        (KVKind.FULL, None, 1000, 63),
        (KVKind.SLIDING, 128, 1000, 16),
        (KVKind.SLIDING, 128, 100, 8),
        (KVKind.CHUNKED, 128, 1000, 15),
    ],
)
def test_a_request_takes_its_window_and_what_is_in_flight(
    kind: KVKind, window: int | None, tokens: int, blocks: int
) -> None:
    spec = KVSpec(kind=kind, block_size=16, page_bytes=1, window=window)
    assert spec.blocks_for(tokens, in_flight=100) == blocks


@pytest.mark.parametrize(
    ("sliding", "full", "sizes"),
    [(52, 10, [9, 9, 9, 9, 8, 8, 10]), (12, 13, [12, 13]), (3, 1, [1, 1, 1, 1])],
)
def test_layers_are_split_into_groups_of_one_size(
    sliding: int, full: int, sizes: list[int]
) -> None:
    local = KVSpec(kind=KVKind.SLIDING, block_size=16, page_bytes=8, window=4)
    whole = KVSpec(kind=KVKind.FULL, block_size=16, page_bytes=8)
    caches = [LayerCache(layer=i, spec=local) for i in range(sliding)]
    caches += [LayerCache(layer=sliding + i, spec=whole) for i in range(full)]
    assert [len(group) for group in group_layers(caches, hybrid=True)] == sizes
    assert len(group_layers(caches, hybrid=False)) == 1


def test_pages_are_unified_by_larger_blocks_or_by_padding() -> None:
    big = LayerCache(layer=0, spec=KVSpec(kind=KVKind.FULL, block_size=16, page_bytes=24))
    half = KVSpec(kind=KVKind.SLIDING, block_size=16, page_bytes=12, window=4)
    odd = replace(half, page_bytes=10, window=5)
    groups = group_layers(
        [big, LayerCache(layer=1, spec=half), LayerCache(layer=2, spec=odd)], hybrid=True
    )
    assert [(g[0].spec.block_size, sum(m.spec.page_bytes for m in g)) for g in groups] == [
        (16, 24),
        (32, 24),
        (16, 24),
    ]


@pytest.mark.parametrize(
    ("name", "split", "expert"),
    [
        ("model.layers.3.self_attn.k_proj.weight", Split.KV, False),
        ("model.layers.3.mlp.experts.7.down_proj.weight", Split.ROW, True),
        ("model.layers.3.mlp.experts.gate_up_proj_bias", Split.COLUMN, True),
        ("model.layers.3.mlp.gate.weight", Split.WHOLE, False),
        ("model.layers.3.input_layernorm.weight", Split.WHOLE, False),
        ("encoder.layer.1.intermediate.dense.bias", Split.COLUMN, False),
        ("h.0.attn.bias", Split.SKIPPED, False),
        ("vision_model.positional_embedding_vlm", Split.WHOLE, False),
        ("vision_tower.patch_conv.weight", Split.WHOLE, False),
        ("multi_modal_projector.patch_merger.merging_layer.weight", Split.WHOLE, False),
        ("model.embed_vision.embedding_projection.weight", Split.WHOLE, False),
        ("vision_tower.encoder.blocks.0.wqkv.weight", Split.COLUMN, False),
        ("vision_tower.encoder.blocks.0.mlp.fc0.weight", Split.COLUMN, False),
        ("vision_tower.patch_embed.pos_emb.weight", Split.WHOLE, False),
        ("mm_projector.proj.0.weight", Split.WHOLE, False),
        ("vision_model.encoder.layers.0.ls1", Split.WHOLE, False),
        ("mlp1.3.weight", Split.WHOLE, False),
        ("backbone.layers.1.mixer.fc1_latent_proj.weight", Split.WHOLE, False),
        ("model.layers.0.self_attn.rotary_emb.inv_freq", Split.SKIPPED, False),
        ("talker.model.layers.0.self_attn.q_proj.weight", Split.SKIPPED, False),
        ("token2wav.code2wav_dit_model.norm_out.linear.weight", Split.SKIPPED, False),
        ("code2wav.code_embedding.weight", Split.SKIPPED, False),
        ("model.mystery.weight", None, False),
    ],
)
def test_a_name_tells_how_a_tensor_is_split(name: str, split: Split | None, expert: bool) -> None:
    parts = parse_name(name)
    assert (split_of(parts, "llama"), parts.expert) == (split, expert)


@pytest.mark.parametrize(
    ("config", "mixers"),
    [
        ({}, [Mixer.FULL, Mixer.FULL]),
        ({"sliding_window": 16}, [Mixer.SLIDING, Mixer.SLIDING]),
        ({"model_type": "gemma2"}, [Mixer.SLIDING, Mixer.FULL]),
        ({"model_type": "qwen2", "sliding_window": 16}, [Mixer.FULL, Mixer.FULL]),
        ({"model_type": "llama4_text", "no_rope_layers": [1, 0]}, [Mixer.CHUNKED, Mixer.FULL]),
        (
            {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8},
            [Mixer.SLIDING, Mixer.FULL],
        ),
    ],
)
def test_the_configuration_tells_the_kind_of_each_layer(
    config: dict[str, object], mixers: list[Mixer]
) -> None:
    assert layer_mixers(Facts({**LLAMA, **config})) == [(mixer,) for mixer in mixers]


def test_the_vocabulary_is_padded_and_norms_are_cast() -> None:
    embeddings = 2 * 128 * 64
    assert predict().weight_bytes_per_rank == 2 * (embeddings + 16 * 64 + 64 * 64 + 64)


def test_each_rank_keeps_at_least_one_key_value_head() -> None:
    embeddings = 2 * 128 * 64 // 8
    got = predict(tensor_parallel_size=8)
    assert got.weight_bytes_per_rank == 2 * (embeddings + 16 * 64 // 2 + 64 * 64 // 8 + 64)
    assert got.bytes_per_block == 2 * 16 * 2 * 8 * 2


def test_an_fp8_cache_is_half_as_large() -> None:
    assert predict(kv_cache_dtype="fp8").bytes_per_block * 2 == predict().bytes_per_block


def test_one_block_is_held_back() -> None:
    block = predict().bytes_per_block
    exact = predict(kv_pool_bytes=16 * block)
    assert (exact.num_blocks, exact.full_request_fits, exact.max_fit_len) == (16, False, 240)
    assert predict(kv_pool_bytes=17 * block).full_request_fits


@pytest.mark.parametrize(
    ("config", "settings", "reason"),
    [
        ({}, {"tensor_parallel_size": 3}, "attention heads (8) must be divisible"),
        ({}, {"max_model_len": 257}, "greater than the derived"),
        ({}, {"enable_expert_parallel": True}, "experts"),
        ({"architectures": ["BertModel"]}, {"pipeline_parallel_size": 2}, "Pipeline"),
        ({"architectures": ["BambaForCausalLM"]}, {}, "until v0.23.0"),
    ],
)
def test_what_vllm_refuses_is_refused(
    config: dict[str, object], settings: dict[str, object], reason: str
) -> None:
    got = refuse(config, **settings)
    assert got.reason is Reason.REJECTED
    assert reason in got.note


BNB = {"quantization_config": {"quant_method": "bitsandbytes"}}
ORDERED = {"quantization_config": {"quant_method": "gptq", "group_size": 128, "desc_act": True}}
FBGEMM = {"quantization_config": {"quant_method": "fbgemm_fp8"}}


@pytest.mark.parametrize(
    ("config", "version", "certain"),
    [
        ({"architectures": ["BambaForCausalLM"]}, "0.23.1", False),
        ({"architectures": ["BambaForCausalLM"]}, "0.24.0", True),
        ({"architectures": ["BartModel"]}, "0.10.2", False),
        ({"architectures": ["BartModel"]}, "0.11.0", True),
        (BNB, "0.27.1", False),
        (BNB, "0.28.0", True),
        (BNB, "nightly", True),
        (ORDERED, "0.12.0", False),
        (ORDERED, "0.32.0", True),
        (FBGEMM, "0.12.0", False),
        (FBGEMM, "0.32.0", True),
    ],
)
def test_only_the_versions_that_lack_a_model_surely_refuse_it(
    config: dict[str, object], version: str, certain: bool
) -> None:
    kinds = {True: Reason.REJECTED, False: Reason.UNKNOWN}
    assert refuse(config, versions=(version,)).reason is kinds[certain]
    for versions in ((version, ""), ()):
        assert refuse(config, versions=versions).reason is Reason.UNKNOWN
    assert refuse(config, versions=(version,), extended=True).reason is Reason.UNKNOWN


@pytest.mark.parametrize(("extended", "reason"), [(False, "REJECTED"), (True, "UNKNOWN")])
def test_what_no_version_has_only_the_users_own_may_have(extended: bool, reason: str) -> None:
    config: dict[str, object] = {"architectures": ["T5ForConditionalGeneration"]}
    assert refuse(config, versions=("0.20.0",), extended=extended).reason is Reason[reason]


@pytest.mark.parametrize(
    ("rope", "rule", "tokens"),
    [
        ({"type": "linear", "factor": 2}, RopeRule.HELD, 512),
        ({"type": "mrope", "factor": 2}, RopeRule.HELD, 512),
        ({"type": "yarn", "factor": 4}, RopeRule.HELD, 256),
        ({"type": "yarn", "factor": 4}, RopeRule.MULTIPLIED, 1024),
        ({"type": "llama3", "factor": 4}, RopeRule.MULTIPLIED, 256),
    ],
)
def test_rope_scaling_stretches_what_may_be_asked_for(
    rope: dict[str, object], rule: RopeRule, tokens: int
) -> None:
    config: dict[str, object] = {"rope_scaling": rope}
    assert predict(config, rope=rule, max_model_len=tokens).max_fit_len == tokens
    got = refuse(config, rope=rule, max_model_len=tokens + 1)
    assert f"the derived max_model_len ({tokens})" in got.note


@pytest.mark.parametrize(
    ("leaf", "dtype", "shape", "config"),
    [
        ("scales", "F16", (3, 64), {}),
        ("weight_scale", "BF16", (64, 3), {}),
        ("weight", "F8_E4M3", (64, 96), {"quantization_config": {"weight_block_size": [32, 32]}}),
    ],
)
def test_quantisation_groups_are_not_cut(
    leaf: str, dtype: str, shape: tuple[int, ...], config: dict[str, object]
) -> None:
    header = TensorHeader(dtype=dtype, shape=shape)
    tensors = {**TENSORS, f"model.layers.0.mlp.down_proj.{leaf}": header}
    got = predict_memory({**LLAMA, **config}, tensors, MemorySettings(tensor_parallel_size=2))
    assert isinstance(got, Refusal)
    assert got.reason is Reason.REJECTED


@pytest.mark.parametrize(
    ("architecture", "runner", "expected"),
    [
        ("LlamaForCausalLM", "auto", False),
        ("LlamaForCausalLM", "pooling", True),
        ("LlamaForSequenceClassification", "auto", True),
        ("LlamaModel", "auto", False),
        ("Qwen2Model", "pooling", True),
        ("Qwen3Model", "auto", True),
        ("GPT2LMHeadModel", "auto", False),
        ("InternVLChatModel", "auto", False),
        ("BertModel", "auto", True),
        ("HF_ColBERT", "auto", True),
    ],
)
def test_the_class_behind_a_name_decides_whether_an_engine_pools(
    architecture: str, runner: str, expected: bool
) -> None:
    assert pools(Facts({**LLAMA, "architectures": [architecture]}), runner) is expected


@pytest.mark.parametrize(
    ("config", "runner", "prefixes"),
    [
        ({}, "auto", True),
        ({"architectures": ["BertModel"]}, "auto", False),
        (MAMBA, "auto", False),
        (MAMBA, "pooling", True),
    ],
)
def test_prefixes_are_cached_where_attention_looks_back(
    config: dict[str, object], runner: str, prefixes: bool
) -> None:
    got = predict_memory({**LLAMA, **config}, TENSORS, MemorySettings(runner=runner))
    assert isinstance(got, MemoryPrediction)
    assert got.enable_prefix_caching is prefixes


HYBRID = {
    **{"model_type": "lfm2", "layer_types": ["conv", "full_attention"], "conv_L_cache": 3},
    "architectures": ["Lfm2ForCausalLM"],
}


@pytest.mark.parametrize(
    ("config", "versions", "prefixes"),
    [
        (HYBRID, ("0.32.0",), True),
        (HYBRID, ("0.26.0", "0.25.1"), False),
        (HYBRID, ("0.26.0", "0.32.0"), True),
        (HYBRID, ("",), True),
        ({}, ("0.26.0",), True),
    ],
)
def test_older_versions_cache_prefixes_of_recurrent_states_only_if_they_are_told_to(
    config: dict[str, object], versions: tuple[str, ...], prefixes: bool
) -> None:
    assert predict(config, versions=versions).enable_prefix_caching is prefixes
    assert predict(config, versions=versions, enable_prefix_caching=True).enable_prefix_caching


def test_what_no_rule_covers_is_unknown_and_never_nothing() -> None:
    assert refuse({"model_type": "deepseek_v4"}).reason is Reason.UNKNOWN
    realtime = refuse({"architectures": ["VoxtralRealtimeGeneration"]})
    assert (realtime.reason, "its encoder keeps" in realtime.note) == (Reason.UNKNOWN, True)
    assert refuse({"num_hidden_layers": None}).reason is Reason.UNKNOWN
    got = predict_memory(LLAMA, {}, MemorySettings())
    assert isinstance(got, Refusal)
    assert got.reason is Reason.UNKNOWN


@pytest.mark.parametrize("prefix", [True, False])
@pytest.mark.parametrize("tp", [1, 2])
@pytest.mark.parametrize(("stated", "size"), [(None, 16), (32, 32)])
def test_states_alone_have_the_block_that_attention_would_have(
    stated: int | None, size: int, tp: int, prefix: bool
) -> None:
    folder = Path(__file__).parents[1] / "conformance" / "data" / "memory-oracle" / "mamba2-small"
    config = json.loads((folder / "config.json").read_text())
    headers = json.loads((folder / "tensors.json").read_text())
    tensors = {name: TensorHeader(**header) for name, header in headers.items()}
    settings = MemorySettings(
        tensor_parallel_size=tp, block_size=stated, enable_prefix_caching=prefix
    )
    got = predict_memory(config, tensors, settings)
    assert isinstance(got, MemoryPrediction)
    assert got.block_size == size
