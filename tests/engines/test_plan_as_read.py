"""Plans of models as their configuration and tensors say, under the rules of memory."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.engines.launch import LaunchPlan
from moorage.models.source import ModelFile, ResolvedModel, TensorHeaders, WeightSummary
from moorage.placement.propose import NoFit
from tests.builders import a_host, a_model, an_accelerator
from tests.engines.planning import flag, placed_as_read, planned_as_read
from tests.memory.models import known


def a_known_model(name: str) -> ResolvedModel:
    config, headers = known(name)
    return a_model(config, headers=headers)


def value(plan: LaunchPlan, name: str) -> str:
    return flag(plan, name).tokens[1]


HYBRID = "qwen3-next-80b-a3b"


def hybrid(*args: str, gpus: int = 4, **wish: Any) -> LaunchPlan:
    engine = {"name": "vllm", "args": list(args)}
    return planned_as_read(a_known_model(HYBRID), a_host(gpus=gpus), engine=engine, **wish)


WHOLE = {"policy": "whole"}


@pytest.mark.parametrize(
    ("args", "wish", "seqs"),
    [
        ((), {}, 68),
        (("--enforce-eager",), {}, 1024),
        (("--max-num-seqs 300",), {}, 300),
        (("--kv-cache-memory-bytes 10G",), {}, 1024),
        (("--kv-cache-memory-bytes 1G",), {}, 160),
        ((), {"placement": WHOLE}, 403),
        (("--gpu-memory-utilization 0.97",), {}, 202),
    ],
)
def test_a_step_has_no_more_requests_than_the_cache_has_recurrent_states(
    args: tuple[str, ...], wish: dict[str, Any], seqs: int
) -> None:
    """A request of 32,768 tokens takes 67 blocks."""
    assert value(hybrid(*args, context=32_768, **wish), "--max-num-seqs") == str(seqs)


def test_a_cache_for_fewer_recurrent_states_than_stated_is_refused() -> None:
    with pytest.raises(NoFit, match=r"max_num_seqs \(2000\) exceeds available Mamba cache blocks"):
        hybrid("--kv-cache-memory-bytes 1G", "--max-num-seqs 2000", context=32_768)


@pytest.mark.parametrize(
    ("there", "args", "mode"),
    [
        ("tekken.json", "", ["mistral"]),
        ("tekken.json tokenizer.json", "", []),
        ("tokenizer.json", "", []),
        ("tekken.json", "--tokenizer /tok", []),
        ("tekken.json", "--tokenizer-mode hf", ["hf"]),
    ],
)
def test_mistrals_tokenizer_is_named_where_there_is_no_other(
    there: str, args: str, mode: list[str]
) -> None:
    files = tuple(ModelFile(name=name, size=1) for name in ("config.json", *there.split()))
    model = a_known_model("mistral-7b-v0.3").model_copy(update={"files": files})
    plan = planned_as_read(model, a_host(), engine={"name": "vllm", "args": args.split("  ")})
    (container,) = plan.containers
    words = [word for flag in container.command for word in flag.tokens]
    assert [words[at + 1] for at, word in enumerate(words) if word == "--tokenizer-mode"] == mode


def in_blocks(name: str) -> ResolvedModel:
    """A model whose linear layers are fp8 in blocks of 128 x 128."""
    config, headers = known(name)
    block = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    whole = ("embed", "lm_head", "norm", "mlp.gate.")
    found: list[tuple[str, str, tuple[int, ...]]] = []
    for key in headers:
        shape = headers[key].shape
        if len(shape) != 2 or any(part in key for part in whole):
            found.append((key, headers[key].dtype, shape))
            continue
        scales = tuple(-(-size // 128) for size in shape)
        found += [(key, "F8_E4M3", shape), (f"{key}_scale_inv", "F32", scales)]
    return a_model({**config, "quantization_config": block}, headers=TensorHeaders(found))


def spread_over_four(name: str, version: str | None = None, *args: str) -> LaunchPlan:
    """A quarter of an expert is 192 wide, in blocks of 128."""
    host = a_host(accelerators=tuple(an_accelerator(index, 24) for index in range(4)))
    engine = {"name": name, "version": version, "args": list(args)}
    model = in_blocks("qwen3-30b-a3b")
    return planned_as_read(model, host, engine=engine, placement={"accelerators": 4})


@pytest.mark.parametrize(
    ("name", "version", "args"),
    [
        ("vllm", "0.32.0", ()),
        ("vllm", "0.31.0", ("--enable-expert-parallel",)),
        ("sglang", None, ("--ep-size 4",)),
    ],
)
def test_blocks_of_experts_are_divided_by_an_engine_that_can_or_kept_whole(
    name: str, version: str | None, args: tuple[str, ...]
) -> None:
    assert value(spread_over_four(name, version, *args), "--tensor-parallel-size") == "4"


@pytest.mark.parametrize(("name", "version"), [("vllm", "0.31.0"), ("sglang", None)])
def test_what_cuts_blocks_of_experts_is_refused_where_a_version_cannot(
    name: str, version: str | None
) -> None:
    with pytest.raises(NoFit, match="192 on each rank cuts quantisation blocks of 128"):
        spread_over_four(name, version)


WHISPER: dict[str, Any] = {
    **{"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper"},
    **{"is_encoder_decoder": True, "d_model": 1280, "num_mel_bins": 128, "torch_dtype": "float16"},
    **{"decoder_layers": 32, "decoder_attention_heads": 20, "decoder_ffn_dim": 5120},
    **{"encoder_layers": 32, "encoder_attention_heads": 20, "encoder_ffn_dim": 5120},
    **{"max_source_positions": 1500, "max_target_positions": 448, "vocab_size": 51866},
}


@pytest.mark.parametrize(
    ("wish", "formula"),
    [
        # 28 blocks of text; 94 of the encoder, where vLLM's check counts a step of 2048 tokens.
        ({}, "(156 + 16 x 122 + 1)"),
        ({"concurrency": 1}, "(1 x 156 + 1)"),
    ],
)
def test_a_whisper_fits_with_the_tokens_that_its_encoder_gives(
    wish: dict[str, Any], formula: str
) -> None:
    model = a_model(WHISPER, weights=WeightSummary(family="safetensors", bytes=3_087_130_976))
    host = a_host(accelerators=(an_accelerator(0, 22, name="NVIDIA L4"),))
    engine = {"name": "vllm"}
    (seat,) = placed_as_read(model, host, engine=engine, **wish).placement.seats
    assert seat.need
    assert (term := seat.need.term("kv_cache"))
    assert term.reason.startswith(formula)


GEMMA4_TEXT: dict[str, Any] = {
    **{"model_type": "gemma4_text", "use_bidirectional_attention": "vision"},
    **{"hidden_size": 2816, "intermediate_size": 8448, "num_hidden_layers": 30},
    **{"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256},
    **{"vocab_size": 262144, "max_position_embeddings": 131072, "sliding_window": 1024},
    "layer_types": ([*["sliding_attention"] * 5, "full_attention"]) * 5,
}


def gemma4(*args: str, attention: str | None = "vision", **wish: Any) -> LaunchPlan:
    config = {
        **{"architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4"},
        "text_config": {**GEMMA4_TEXT, "use_bidirectional_attention": attention},
        "vision_config": {"model_type": "gemma4_vision", "num_attention_heads": 16},
    }
    model = a_model(config, weights=WeightSummary(family="safetensors", bytes=18 * GIB))
    host = a_host(accelerators=(an_accelerator(0, 45, name="NVIDIA L40S"),))
    return planned_as_read(model, host, engine={"name": "vllm", "args": list(args)}, **wish)


@pytest.mark.parametrize(
    ("attention", "args", "step"),
    [
        ("vision", (), 2496),
        ("vision", ("--max-num-batched-tokens 4096",), 4096),
        ("vision", ("--language-model-only",), 2048),
        (None, (), 2048),
    ],
)
def test_a_step_holds_a_whole_video_of_a_model_that_sees_it_at_once(
    attention: str | None, args: tuple[str, ...], step: int
) -> None:
    plan = gemma4(*args, attention=attention)
    assert value(plan, "--max-num-batched-tokens") == str(step)


@pytest.mark.parametrize(
    ("args", "wish", "warns"),
    [
        ((), {}, True),
        (("--language-model-only",), {}, False),
        (("--gpu-memory-utilization 0.9",), {}, False),
        ((), {"placement": WHOLE}, False),
        ((), {"memory": {"activation": "2GiB"}}, False),
    ],
)
def test_a_claim_without_room_for_pictures_says_so(
    args: tuple[str, ...], wish: dict[str, Any], warns: bool
) -> None:
    found = gemma4(*args, **wish).warnings
    assert any("while it reads a picture" in warning for warning in found) is warns
