from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import pytest

from moorage.common.refusal import Reason, Refusal
from moorage.memory.facts import Facts
from moorage.memory.mxfp4 import doubt_of_padding
from moorage.memory.options import MemorySettings
from moorage.memory.parameters import Kind, created_dtype, created_with, expert_factor
from moorage.memory.sharding import parse_name
from moorage.memory.weights import Tensors, attention_copies, stage_weights, stages_of
from moorage.models.source import TensorHeader

BASE = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 768,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "num_local_experts": 4,
    "tie_word_embeddings": False,
}
STAGES = [range(1), range(1, 2)]
LAYER = "model.layers.0."
EXPERT = LAYER + "mlp.experts.0."


Shapes = Mapping[str, tuple[str, tuple[int, ...]]]


def facts(config: Mapping[str, object] = MappingProxyType({})) -> Facts:
    return Facts({**BASE, **config})


def weigh(tensors: Shapes, config: Mapping[str, object] = MappingProxyType({}), tp: int = 1) -> int:
    headers = {
        name: TensorHeader(dtype=dtype, shape=shape) for name, (dtype, shape) in tensors.items()
    }
    settings = MemorySettings(tensor_parallel_size=tp)
    return stage_weights(facts(config), Tensors(headers), settings, "bfloat16", [range(2)])[0]


@pytest.mark.parametrize(
    ("name", "config", "dtype"),
    [
        (LAYER + "mlp.gate.weight", {}, "bfloat16"),
        (LAYER + "mlp.gate.weight", {"model_type": "glm4_moe"}, "F32"),
        (LAYER + "mlp.gate.weight", {"model_type": "bailing_moe"}, "bfloat16"),
        (LAYER + "mlp.gate.weight", {"model_type": "bailing_moe", "router_dtype": "fp32"}, "F32"),
        (LAYER + "mlp.gate.e_score_correction_bias", {}, "F32"),
        ("score.weight", {}, "bfloat16"),
        ("score.weight", {"architectures": ["Qwen3ForSequenceClassification"]}, "F32"),
        ("bert.pooler.dense.weight", {"architectures": ["BertForSequenceClassification"]}, "F32"),
    ],
)
def test_routers_and_classifier_heads_may_be_wider_than_the_model(
    name: str, config: dict[str, object], dtype: str
) -> None:
    kind = Kind(parse_name(name), TensorHeader(dtype="BF16", shape=(4, 256)))
    assert created_dtype(facts(config), kind, "bfloat16", packed=False) == dtype


def test_an_encoder_for_embeddings_leaves_its_pooler_in_the_checkpoint() -> None:
    pooler = {"pooler.dense.weight": ("F32", (256, 256))}
    assert weigh(pooler, {"architectures": ["BertModel"]}) == 0
    classifier = {"architectures": ["BertForSequenceClassification"]}
    assert weigh(pooler, classifier) == 256 * 256 * 4


@pytest.mark.parametrize(
    ("architecture", "head"), [("Qwen2Model", 256 * 64), ("Qwen2ForCausalLM", 0)]
)
def test_a_bare_model_run_for_generating_gets_a_head(architecture: str, head: int) -> None:
    embedding = {"embed_tokens.weight": ("BF16", (256, 64))}
    assert weigh(embedding, {"architectures": [architecture]}) == 2 * (256 * 64 + head)


@pytest.mark.parametrize(
    ("architecture", "heads"),
    [("JambaForCausalLM", 1), ("JambaForSequenceClassification", 1), ("LlamaForCausalLM", 0)],
)
def test_some_classes_make_a_head_beside_an_embedding_that_is_tied(
    architecture: str, heads: int
) -> None:
    embedding = {"embed_tokens.weight": ("BF16", (256, 64))}
    config = {"architectures": [architecture], "tie_word_embeddings": True}
    assert weigh(embedding, config) == (1 + heads) * 2 * 256 * 64


def test_a_classifier_without_a_head_has_its_embedding_on_the_first_stage() -> None:
    tensors = {"embed_tokens.weight": TensorHeader(dtype="BF16", shape=(256, 64))}
    silent = {"architectures": ["LlamaForSequenceClassification"], "tie_word_embeddings": None}
    weights = stage_weights(facts(silent), Tensors(tensors), MemorySettings(), "bfloat16", STAGES)
    assert weights == (2 * 256 * 64, 0)


GEMMA4 = {
    "architectures": ["Gemma4ForCausalLM"],
    "model_type": "gemma4_text",
    "attention_k_eq_v": True,
    "num_global_key_value_heads": 2,
    "layer_types": ["full_attention", "sliding_attention"],
    "sliding_window": 16,
}


@pytest.mark.parametrize(
    ("layer", "tp", "share"), [(0, 1, 2), (0, 2, 1), (0, 4, 1), (1, 1, 1), (1, 4, 1 / 4)]
)
def test_keys_that_stand_for_values_make_both_and_are_split_by_the_heads_of_their_layer(
    layer: int, tp: int, share: float
) -> None:
    keys = {f"model.layers.{layer}.self_attn.k_proj.weight": ("BF16", (128, 256))}
    assert weigh(keys, GEMMA4, tp) == share * 2 * 128 * 256


@pytest.mark.parametrize(
    ("config", "heads"),
    [
        ({"tie_word_embeddings": True}, 0),
        ({"tie_word_embeddings": False}, 1),
        ({"tie_word_embeddings": None}, 1),
        ({"tie_word_embeddings": None, "model_type": "falcon"}, 0),
        ({"tie_word_embeddings": True, "text_config": {"tie_word_embeddings": False}}, 0),
    ],
)
def test_a_copy_of_the_embedding_in_the_checkpoint_is_no_head(
    config: Mapping[str, object], heads: int
) -> None:
    if "text_config" in config:
        config = {**config, "text_config": {**BASE, "tie_word_embeddings": False}}
    assert weigh({"lm_head.weight": ("BF16", (256, 64))}, config) == heads * 2 * 256 * 64


def test_a_pooling_engine_has_no_head() -> None:
    tensors = {"lm_head.weight": TensorHeader(dtype="BF16", shape=(256, 64))}
    settings = MemorySettings(runner="pooling")
    assert stage_weights(facts(), Tensors(tensors), settings, "bfloat16", [range(2)]) == (0,)


@pytest.mark.parametrize(
    ("tp", "ep", "times"),
    [(1, False, 1), (2, False, 1), (4, False, 4), (8, False, 16), (8, True, 1)],
)
def test_blocks_that_a_rank_would_cut_become_smaller_in_experts(
    tp: int, ep: bool, times: int
) -> None:
    config = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
    scale = TensorHeader(dtype="F32", shape=(6, 2))
    kind = Kind(parse_name(EXPERT + "gate_proj.weight_scale_inv"), scale)
    settings = MemorySettings(tensor_parallel_size=tp, enable_expert_parallel=ep)
    assert expert_factor(facts(config), kind, settings) == times


def test_a_block_below_the_smallest_is_refused() -> None:
    config = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
    scale = {EXPERT + "gate_proj.weight_scale_inv": ("F32", (6, 2))}
    with pytest.raises(Refusal) as refused:
        weigh(scale, config, tp=16)
    assert refused.value.reason is Reason.REJECTED


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("self_attn.q_b_proj", False),
        ("linear_attn.in_proj_ba", False),
        ("mlp.gate_proj", True),
        ("self_attn.o_proj", False),
    ],
)
def test_only_merged_layers_may_cut_an_fp8_block(name: str, fits: bool) -> None:
    config = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
    tensors = {f"{LAYER}{name}.weight": ("F8_E4M3", (128, 128))}
    if fits:
        assert weigh(tensors, config, tp=2) == 128 * 64
    else:
        with pytest.raises(Refusal, match="block of 128"):
            weigh(tensors, config, tp=2)


@pytest.mark.parametrize(
    ("leaf", "dtype", "changes", "copied"),
    [
        ("weight", "F8_E4M3", {}, True),
        ("weight_packed", "I32", {}, True),
        ("weight", "BF16", {}, False),
        ("weight_scale_inv", "F32", {}, False),
        ("weight", "F8_E4M3", {"model_type": "llama"}, False),
    ],
)
def test_mla_keeps_quantised_weights_once_more_in_16_bits(
    leaf: str, dtype: str, changes: dict[str, object], copied: bool
) -> None:
    mla = {"kv_lora_rank": 32, "qk_nope_head_dim": 16, "v_head_dim": 24}
    config = facts({"model_type": "deepseek_v3", **mla, **changes})
    headers = {
        f"model.layers.{layer}.self_attn.kv_b_proj.{leaf}": TensorHeader(
            dtype=dtype, shape=(8 * 40, 32)
        )
        for layer in range(2)
    }
    settings = MemorySettings(tensor_parallel_size=2)
    found = attention_copies(config, Tensors(headers), settings, "bfloat16", STAGES)
    assert found == (copied * 2 * 4 * 40 * 32,) * 2


def test_gptq_gives_each_expert_a_bias_and_no_group_index() -> None:
    config = {"quantization_config": {"quant_method": "gptq", "group_size": 128}}
    tensors = {
        EXPERT + "down_proj.qweight": ("I32", (96, 256)),
        EXPERT + "down_proj.g_idx": ("I32", (768,)),
    }
    assert weigh(tensors, config) == 4 * 96 * 256 + 2 * 256
    kind = Kind(
        parse_name(LAYER + "mlp.down_proj.qweight"), TensorHeader(dtype="I32", shape=(96, 256))
    )
    assert created_with(facts(config), kind) == [kind]


def test_gptq_with_activation_order_is_refused() -> None:
    settings = {"quant_method": "gptq", "group_size": 128, "desc_act": True}
    with pytest.raises(Refusal, match="desc_act"):
        weigh({"a.weight": ("BF16", (2,))}, {"quantization_config": settings})


GPT_OSS = {
    **{"model_type": "gpt_oss", "quantization_config": {"quant_method": "mxfp4"}},
    **{"hidden_size": 2880, "intermediate_size": 2880},
}
H100 = {"device_name": "NVIDIA H100 80GB HBM3"}
A100 = {"device_name": "NVIDIA A100-SXM4-80GB"}
B200 = {"device_name": "NVIDIA B200"}
OLDER = {"versions": ("0.26.0",)}
EIGHT = {"tensor_parallel_size": 8}
SIDES = {"gate_up_proj": (5760, 2880), "down_proj": (2880, 2880)}


@pytest.mark.parametrize(
    ("settings", "sides"),
    [
        # Rows and columns of the gate and of the way down, on one rank.
        (H100, ((5760, 2880), (2880, 2880))),
        (H100 | EIGHT, ((768, 2880), (2880, 384))),
        (A100, ((5888, 3072), (3072, 2944))),
        ({"device_name": "NVIDIA L40S"}, ((5888, 3072), (3072, 2944))),
        ({"device_name": "NVIDIA GeForce RTX 4090"} | EIGHT, ((768, 3072), (3072, 384))),
        (B200 | OLDER, ((6144, 3072), (3072, 3072))),
        (B200, ((5888, 3072), (3072, 2944))),
        (A100 | {"versions": ("0.29.0",)}, ((5888, 3072), (3072, 2944))),
        (A100 | {"versions": ("0.25.0",)}, ((5888, 3072), (3072, 2944))),
        (H100 | {"versions": ("",)}, ((5888, 3072), (3072, 2944))),
        (H100 | {"versions": (), "sglang": True}, ((5760, 2880), (2880, 2880))),
        (B200 | {"versions": ("0.29.0",)}, ((6144, 3072), (3072, 3072))),
        ({"device_type": "cpu"} | EIGHT, ((768, 2880), (2880, 384))),
        ({}, ((6144, 3072), (3072, 3072))),
    ],
)
def test_an_mxfp4_expert_is_padded_as_the_kernel_of_the_accelerator_needs_it(
    settings: dict[str, Any], sides: tuple[tuple[int, int], ...]
) -> None:
    given = MemorySettings(**settings)
    for (module, (rows, columns)), (more, wider) in zip(SIDES.items(), sides, strict=True):
        name = parse_name(f"{LAYER}mlp.experts.{module}_blocks")
        kind = Kind(name, TensorHeader(dtype="U8", shape=(4, rows, columns // 32, 16)))
        factor = expert_factor(facts(GPT_OSS), kind, given)
        assert factor == Fraction(more * wider * given.tensor_parallel_size, rows * columns)


@pytest.mark.parametrize(
    ("settings", "module", "leaf", "factor"),
    [
        # Scales on Hopper lie in tiles of 256 rows and 4 columns.
        (H100, "gate_up_proj", "scales", Fraction(5888 * 92, 5760 * 90)),
        (H100, "down_proj", "scales", Fraction(3072 * 92, 2880 * 90)),
        (H100, "down_proj", "bias", Fraction(2)),  # in float32
        (A100, "gate_up_proj", "scales", Fraction(5888 * 96, 5760 * 90)),
        (A100, "gate_up_proj", "bias", Fraction(2944, 2880)),
        (A100 | EIGHT, "down_proj", "bias", Fraction(3072, 2880)),
        # TRT-LLM takes them in float32.
        (B200, "down_proj", "bias", Fraction(2 * 3072, 2880)),
    ],
)
def test_scales_and_biases_of_an_mxfp4_expert_are_padded_too(
    settings: dict[str, Any], module: str, leaf: str, factor: Fraction
) -> None:
    kind = Kind(
        parse_name(f"{LAYER}mlp.experts.{module}_{leaf}"), TensorHeader(dtype="U8", shape=(4, 2, 2))
    )
    assert expert_factor(facts(GPT_OSS), kind, MemorySettings(**settings)) == factor


@pytest.mark.parametrize(
    ("settings", "config", "known"),
    [
        (H100, {}, True),
        (H100 | OLDER, {}, True),
        ({"device_name": "NVIDIA RTX A6000"}, {}, True),
        ({"device_name": "NVIDIA RTX 6000 Ada Generation"}, {}, True),
        ({"device_name": "NVIDIA GB300"}, {}, True),
        ({"device_type": "cpu"}, {}, True),
        (H100 | {"versions": ("0.25.0",)}, {}, False),
        (H100 | {"versions": ("0.29.0",)}, {}, False),
        (H100 | {"versions": ("0.26.0", "0.32.0")}, {}, True),
        (B200 | {"versions": ("0.26.0", "0.32.0")}, {}, False),
        (H100 | {"versions": ("",)}, {}, False),
        (H100 | {"special_kernel": True}, {}, False),
        (H100 | {"data_parallel_size": 2}, {}, False),
        (H100, {"model_type": "of-the-future"}, False),
        (H100, {"model_type": "of-the-future", "quantization_config": {}}, True),
        ({"device_name": "Tesla T4"}, {}, False),
        ({"device_type": "rocm", "device_name": "AMD Instinct MI300X"}, {}, False),
        ({}, {}, False),
    ],
)
def test_the_padding_is_known_where_the_accelerator_alone_decides(
    settings: dict[str, Any], config: dict[str, Any], known: bool
) -> None:
    found = doubt_of_padding(facts(GPT_OSS | config), MemorySettings(**settings))
    assert bool(found) is not known


@pytest.mark.parametrize(
    ("name", "stages"),
    [
        (LAYER + "mlp.up_proj.weight", [0]),
        ("model.embed_tokens.weight", [0]),
        ("model.embedding_norm.weight", [1]),
        ("lm_head.weight", [1]),
        ("visual.blocks.1.mlp.up_proj.weight", [0, 1]),
        ("mlp1.1.weight", [0, 1]),
    ],
)
def test_a_tensor_lies_on_the_stages_that_use_it(name: str, stages: list[int]) -> None:
    assert list(stages_of(facts(), parse_name(name), False, STAGES)) == stages


def test_blocks_of_a_tower_are_no_decoder_layers() -> None:
    tensors = {"visual.blocks.31.mlp.up_proj.weight": ("BF16", (64, 64))}
    assert weigh(tensors, tp=2) == 64 * 32 * 2


def test_layers_and_experts_that_the_model_does_not_have_are_left_out() -> None:
    tensors = {
        "model.layers.2.mlp.up_proj.weight": ("BF16", (64, 64)),
        LAYER + "mlp.experts.4.up_proj.weight": ("BF16", (64, 64)),
        "mtp.fc.weight": ("BF16", (64, 64)),
        "model.mtp_layers.0.mlp.up_proj.weight": ("BF16", (64, 64)),
        "model.mtp_emb_norm.0.weight": ("BF16", (64,)),
        "talker.model.layers.0.mlp.up_proj.weight": ("BF16", (64, 64)),
    }
    assert weigh(tensors) == 0


@pytest.mark.parametrize(
    ("name", "shape", "size"),
    [
        (LAYER + "self_attn.k_scale", (1,), 4),
        (LAYER + "self_attn.v_scale", (4,), 16),
        (LAYER + "self_attn.k_zero_point", (1,), 2),
        (LAYER + "self_attn.q_proj.activation_scale", (), 4),
        ("layers.0.attention.wq.qscale_act", (), 4),
        ("layers.0.attention.wo.qscale_weight", (1,), 4),
        (LAYER + "self_attn.mystery", (1,), 2),
        ("lm_head.input_scale", (1,), 4),
    ],
)
def test_a_scale_for_a_whole_tensor_is_on_every_rank(
    name: str, shape: tuple[int, ...], size: int
) -> None:
    assert weigh({name: ("BF16", shape)}, tp=2) == size


def test_a_part_of_an_encoder_without_a_rule_is_whole_on_every_rank() -> None:
    assert weigh({"vision_tower.mystery.weight": ("BF16", (64, 64))}, tp=2) == 2 * 64 * 64
    with pytest.raises(Refusal, match="mystery"):
        weigh({"model.mystery.weight": ("BF16", (64, 64))}, tp=2)
