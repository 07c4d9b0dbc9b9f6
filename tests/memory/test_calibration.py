from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.common.units import GIB
from moorage.memory.calibration import (
    ROUNDING,
    CalibrationKey,
    calibration_key,
    corrected,
    key_of_command,
)
from moorage.readiness.engine_facts import Measured
from moorage.spec import EngineName, Mode
from tests.builders import a_key, a_profile

PREDICTED = {
    "weights": 8 * GIB,
    "buffers": GIB // 4,
    "redundancy": GIB // 4,
    "activation": 2 * GIB,
    "cuda_graphs": GIB,
    "kv_cache": 40 * GIB,
    "context": GIB // 2,
}

LOADED = PREDICTED["weights"] + PREDICTED["buffers"]

SIZES = st.integers(0, 200 * GIB)


@pytest.mark.parametrize(
    ("measured", "changed"),
    [
        (Measured(), {}),
        (Measured(kv_cache_bytes=GIB, process_bytes=GIB), {}),
        (Measured(weights_bytes=9 * GIB), {"weights": 8 * GIB + 3 * GIB // 4}),
        (Measured(weights_bytes=9 * GIB, consumed_bytes=9 * GIB), {"weights": 17 * GIB // 2}),
        (Measured(weights_bytes=7 * GIB), {}),
        (Measured(weights_bytes=LOADED + ROUNDING), {}),
        (Measured(weights_bytes=LOADED + ROUNDING + 1), {"weights": 8 * GIB + ROUNDING + 1}),
        (Measured(activation_bytes=GIB), {"activation": GIB}),
        (Measured(activation_bytes=3 * GIB), {"activation": 3 * GIB}),
        (Measured(activation_bytes=0), {"activation": 0}),
        (Measured(graph_bytes=GIB // 4), {"cuda_graphs": GIB // 4}),
        (Measured(graph_bytes=1, graph_reserve_bytes=3 * GIB), {"cuda_graphs": 3 * GIB}),
    ],
)
def test_a_prediction_is_corrected(measured: Measured, changed: dict[str, int]) -> None:
    assert corrected(PREDICTED, measured) == {**PREDICTED, **changed}


def test_a_term_that_is_not_predicted_is_not_made_up() -> None:
    measured = Measured(weights_bytes=GIB, activation_bytes=GIB, graph_bytes=GIB)
    assert corrected({"kv_cache": GIB}, measured) == {"kv_cache": GIB}


@given(
    terms=st.fixed_dictionaries(dict.fromkeys(PREDICTED, SIZES)),
    activation=SIZES,
    graphs=SIZES,
    consumed=SIZES,
)
def test_the_next_prediction_for_the_same_settings_is_what_was_measured(
    terms: dict[str, int], activation: int, graphs: int, consumed: int
) -> None:
    measured = Measured(activation_bytes=activation, graph_bytes=graphs, consumed_bytes=consumed)
    found = corrected(terms, measured)
    assert (found["activation"], found["cuda_graphs"]) == (activation, graphs)
    staying = sum(found[name] for name in ("weights", "buffers", "redundancy"))
    assert staying >= consumed - ROUNDING
    assert found["weights"] >= terms["weights"]
    untouched = ("buffers", "redundancy", "kv_cache", "context")
    assert all(found[name] == terms[name] for name in untouched)


DEVICE = "NVIDIA H100 80GB HBM3"


def key(*arguments: str, **profile: Any) -> CalibrationKey:
    return calibration_key(
        a_profile(**profile), EngineName.VLLM, "0.32.0", "cuda", DEVICE, arguments
    )


def key_of(*command: str, accelerator: str = "A") -> CalibrationKey:
    key = calibration_key(a_profile(), EngineName.VLLM, "0.32.0", "cuda", accelerator, command)
    return key_of_command(key, command)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], {}),
        (["--max-model-len", "8192"], {}),
        (["--max-num-seqs", "64"], {"max_num_seqs": 64}),
        (["--max-num-seqs=64"], {"max_num_seqs": 64}),
        (["--max_num_seqs", "64"], {"max_num_seqs": 64}),
        (["--max-num-seqs", "8", "--max-num-seqs", "64"], {"max_num_seqs": 64}),
        (["--max-num-seqs"], {}),
        (["--max-num-seqs", "many"], {}),
        (["--max-num-batched-tokens", "8k"], {"max_num_batched_tokens": 8000}),
        (["--max-num-batched-tokens", "8K"], {"max_num_batched_tokens": 8192}),
        (["--tensor-parallel-size", "2"], {"tensor_parallel_size": 2}),
        (["-tp", "2", "-pp=4"], {"tensor_parallel_size": 2, "pipeline_parallel_size": 4}),
        (["--enforce-eager"], {"eager": True}),
        (["--port", "8000", "--gpu-memory-utilization", "0.9"], {}),
        (
            ["--max-lora-rank=64", "--enable_lora", "--port", "1"],
            {"options": "--enable-lora --max-lora-rank 64"},
        ),
        (["--cudagraph-capture-sizes", "1", "2"], {"options": "--cudagraph-capture-sizes 1 2"}),
        (["-sc.method=ngram"], {"options": "-sc.method ngram"}),
        (["--tp", "2"], {"tensor_parallel_size": 2}),
        (["-O1", "-cc.mode=none"], {"options": "-O1 -cc.mode none"}),
    ],
)
def test_the_command_line_tells_the_settings(arguments: list[str], part: dict[str, Any]) -> None:
    assert key("vllm", "serve", "/models/tiny", *arguments) == a_key(**part)


@pytest.mark.parametrize(
    "change",
    [
        {"architectures": ("MistralForCausalLM",)},
        {"layers": 80},
        {"hidden_size": 8192},
        {"vocab_size": 32000},
        {"quantization": "awq"},
        {"dtype": "float32"},
        {"mode": Mode.EMBEDDING},
    ],
)
def test_another_model_has_another_key(change: dict[str, Any]) -> None:
    assert key(**change) != key()


def test_a_model_without_a_class_goes_by_its_type() -> None:
    assert key(architectures=()).architecture == "llama"


def test_a_command_that_serves_is_known_by_its_settings() -> None:
    found = key_of("vllm", "serve", "--max-num-seqs", "8", accelerator="")
    assert found == a_key(accelerator="", max_num_seqs=8)


def test_a_script_shares_nothing_with_what_is_started_otherwise() -> None:
    found = key_of("sh", "-c", "vllm serve --max-num-seqs 8")
    assert found == a_key(accelerator="A", options="sh -c vllm serve --max-num-seqs 8")
