from __future__ import annotations

from typing import Any

import pytest

from moorage.memory.calibration_key import CalibrationKey, calibration_key, key_of_command
from moorage.spec import EngineName, Mode
from tests.builders import a_key, a_profile

DEVICE = "NVIDIA H100 80GB HBM3"


def key(*arguments: str, **profile: Any) -> CalibrationKey:
    return calibration_key(
        a_profile(**profile), EngineName.VLLM, "0.32.0", "cuda", DEVICE, arguments
    )


def key_of(*command: str, accelerator: str = "A") -> CalibrationKey:
    return key_of_command(a_profile(), EngineName.VLLM, "0.32.0", "cuda", accelerator, command)


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
