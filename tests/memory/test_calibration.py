from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.common.units import GIB
from moorage.memory.calibration import (
    ROUNDING,
    CalibrationKey,
    Residual,
    apply,
    calibration_key,
    key_of_command,
    residual,
)
from moorage.readiness.engine_facts import Measured
from moorage.spec import EngineName, Mode
from tests.builders import a_key, a_measurement, a_profile

PREDICTED = {
    "weights": 8 * GIB,
    "buffers": GIB // 4,
    "redundancy": GIB // 4,
    "activation": 2 * GIB,
    "cuda_graphs": GIB,
    "kv_cache": 40 * GIB,
    "context": GIB // 2,
}

SIZES = st.integers(0, 200 * GIB)


@pytest.mark.parametrize(
    ("measured", "off"),
    [
        (Measured(), Residual()),
        (Measured(weights_bytes=9 * GIB), Residual(weights=3 * GIB // 4)),
        (Measured(weights_bytes=9 * GIB, consumed_bytes=9 * GIB), Residual(weights=GIB // 2)),
        (Measured(activation_bytes=GIB), Residual(activation=-GIB)),
        (Measured(graph_bytes=GIB // 4), Residual(graphs=-3 * GIB // 4)),
        (Measured(graph_bytes=GIB // 4, graph_reserve_bytes=3 * GIB), Residual(graphs=2 * GIB)),
        (Measured(kv_cache_bytes=GIB, process_bytes=GIB), Residual()),
    ],
)
def test_a_residual_is_measured_minus_predicted(measured: Measured, off: Residual) -> None:
    assert residual(PREDICTED, measured) == off


def test_what_was_not_predicted_has_no_residual() -> None:
    measured = Measured(weights_bytes=GIB, activation_bytes=GIB, graph_bytes=GIB)
    assert residual({"kv_cache": GIB}, measured) == Residual()


@pytest.mark.parametrize(
    ("off", "changed"),
    [
        (Residual(), {}),
        (Residual(activation=-GIB), {"activation": GIB}),
        (Residual(activation=GIB), {"activation": 3 * GIB}),
        (Residual(activation=-3 * GIB), {"activation": 0}),
        (Residual(graphs=-GIB // 2), {"cuda_graphs": GIB // 2}),
        (Residual(weights=GIB), {"weights": 9 * GIB}),
        (Residual(weights=-GIB), {}),
        (Residual(weights=ROUNDING), {}),
        (Residual(weights=ROUNDING + 1), {"weights": 8 * GIB + ROUNDING + 1}),
    ],
)
def test_a_prediction_is_corrected(off: Residual, changed: dict[str, int]) -> None:
    assert apply(PREDICTED, off) == {**PREDICTED, **changed}


def test_a_term_that_is_not_predicted_is_not_made_up() -> None:
    assert apply({"kv_cache": GIB}, Residual(weights=GIB, activation=GIB, graphs=GIB)) == {
        "kv_cache": GIB
    }


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
    corrected = apply(terms, residual(terms, measured))
    assert (corrected["activation"], corrected["cuda_graphs"]) == (activation, graphs)
    staying = sum(corrected[name] for name in ("weights", "buffers", "redundancy"))
    assert staying >= consumed - ROUNDING
    assert corrected["weights"] >= terms["weights"]
    untouched = ("buffers", "redundancy", "kv_cache", "context")
    assert all(corrected[name] == terms[name] for name in untouched)


@pytest.mark.parametrize("kept", [{"activation": 2 * GIB}, {}])
def test_what_was_learned_is_not_forgotten_when_the_last_prediction_was_right(
    kept: dict[str, int],
) -> None:
    terms = {"activation": 3 * GIB}
    off = residual(terms, a_measurement(predicted=kept).measured)
    assert off == Residual(activation=-GIB)
    assert apply(terms, off) == {"activation": 2 * GIB}


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
