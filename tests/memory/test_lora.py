from __future__ import annotations

import pytest

from moorage.common.units import GIB
from moorage.memory.demand import MemoryModel
from moorage.memory.options import LoraOptions, MemoryOptions
from moorage.models.source import TensorHeaders
from tests.memory.models import gib, known, needed, refusal, with_options

LINEAR = ("qkv_proj", "o_proj", "gate_up_proj", "down_proj")


def buffers(
    name: str = "llama-3.1-8b", tensor: int = 1, pipeline: int = 1, **lora: object
) -> float:
    model = with_options(name, lora=LoraOptions.model_validate(lora))
    return gib(needed(model, tensor=tensor, pipeline=pipeline), "lora")


@pytest.mark.parametrize(("loras", "rank", "size"), [(1, 16, 0.078), (4, 64, 1.25), (8, 256, 10)])
def test_buffers_grow_with_adapters_and_rank_whatever_is_loaded(
    loras: int, rank: int, size: float
) -> None:
    assert buffers(max_loras=loras, max_rank=rank, targets=LINEAR) == pytest.approx(size, abs=0.001)


def test_embedding_and_head_are_adapted_too_where_the_architecture_allows_it() -> None:
    linear, whole = buffers(targets=LINEAR), buffers()
    vocabulary, hidden = 128_256, 4096
    assert whole - linear == pytest.approx(2 * 16 * 2 * (vocabulary + hidden) / GIB)
    assert buffers("mistral-7b-v0.1") == buffers("mistral-7b-v0.1", targets=LINEAR)


def test_only_the_named_layers_count() -> None:
    # Of 32 layers: 4096 inputs and 4096 outputs.
    assert buffers(targets=("q_proj",)) == 32 * 16 * 2 * (4096 + 4096) / GIB


def test_one_factor_is_whole_on_every_rank_unless_both_are_sharded() -> None:
    width = {"q_proj": (4096 + 512), "k_proj": (4096 + 128), "down_proj": (1792 + 4096)}
    for name, elements in width.items():
        assert buffers(tensor=8, targets=(name,)) == 32 * 16 * 2 * elements / GIB
    both = buffers(tensor=8, targets=("q_proj",), fully_sharded=True)
    assert both == 32 * 16 * 2 * (512 + 512) / GIB


def test_a_stage_has_the_buffers_of_its_layers() -> None:
    assert buffers(pipeline=2, targets=LINEAR) == pytest.approx(buffers(targets=LINEAR) / 2)


def test_every_expert_has_its_own_buffers() -> None:
    # 48 layers of 128 experts, each 2048 wide inside 768.
    assert (
        buffers("qwen3-30b-a3b", targets=("experts",)) == 48 * 128 * 3 * 16 * 2 * (2048 + 768) / GIB
    )
    # Stacked: 24 layers of 32 experts, gate and up with a factor each for their common input.
    stacked = buffers("gpt-oss-20b-bf16", targets=("experts",))
    term = needed(with_options("gpt-oss-20b-bf16", lora={})).term("lora")
    assert term
    assert not term.exact
    assert stacked == 24 * 32 * 16 * 2 * (2 * 2880 + 5760 + 2880 + 2880) / GIB


@pytest.mark.parametrize(
    ("method", "leaf", "shape"),
    [
        ("gptq", "qweight", (512, 2048)),
        ("awq", "qweight", (4096, 256)),
        ("compressed-tensors", "weight_packed", (2048, 512)),
    ],
)
def test_packed_weights_have_the_sides_of_what_they_pack(
    method: str, leaf: str, shape: tuple[int, int]
) -> None:
    config = {
        **known("llama-3.1-8b")[0],
        "quantization_config": {"quant_method": method, "bits": 4},
    }
    names = (f"model.layers.{layer}.self_attn.q_proj.{leaf}" for layer in range(32))
    headers = TensorHeaders((name, "I32", shape) for name in names)
    options = MemoryOptions(lora=LoraOptions(targets=("q_proj",)))
    found = needed(MemoryModel(config, headers, options))
    assert gib(found, "lora") == 32 * 16 * 2 * (4096 + 2048) / GIB


def test_the_packing_of_a_multimodal_model_is_read_where_its_language_model_is_described() -> None:
    text = {**known("llama-3.1-8b")[0], "quantization_config": {"quant_method": "gptq", "bits": 4}}
    config = {
        "architectures": ["LlavaForConditionalGeneration"],
        **{"model_type": "llava", "text_config": text, "torch_dtype": "bfloat16"},
    }
    names = (f"model.layers.{layer}.self_attn.q_proj.qweight" for layer in range(32))
    headers = TensorHeaders((name, "I32", (512, 2048)) for name in names)
    options = MemoryOptions(lora=LoraOptions(targets=("q_proj",)))
    found = needed(MemoryModel(config, headers, options))
    assert gib(found, "lora") == 32 * 16 * 2 * (4096 + 2048) / GIB


def test_the_buffers_of_a_dense_model_are_exact_to_the_byte() -> None:
    """278,528 B is what vLLM 0.32 allocated for this model, two adapters and rank 16."""
    shapes = {
        **{"q_proj": (128, 64), "k_proj": (64, 64), "v_proj": (64, 64), "o_proj": (64, 128)},
        **{"gate_proj": (256, 64), "up_proj": (256, 64), "down_proj": (64, 256)},
    }
    config = {
        **{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512},
        **{"hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 2, "head_dim": 32},
        **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 2048},
        "tie_word_embeddings": False,
    }
    headers = TensorHeaders(
        (f"model.layers.{layer}.{name}.weight", "F32", shape)
        for layer in range(2)
        for name, shape in shapes.items()
    )
    options = MemoryOptions(lora=LoraOptions(max_loras=2, max_rank=16))
    term = needed(MemoryModel(config, headers, options), tokens=2048).term("lora")
    assert term
    assert (term.bytes, term.exact) == (278_528, True)


def test_without_shapes_nothing_is_guessed() -> None:
    model = MemoryModel(
        known("llama-3.1-8b")[0], TensorHeaders(), MemoryOptions(lora=LoraOptions())
    )
    assert refusal(model)
