"""Row D8: what a spec sets for one engine, typed, as arguments of that engine."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
from pydantic import ValidationError

from moorage.common.values import RECORDED
from moorage.spec import EngineName, ModelSpec
from moorage.spec.engine import EngineSpec


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ({"name": "vllm", "vllm": {"gpu_memory_utilization": 0.5}}, "--gpu-memory-utilization 0.5"),
        ({"name": "vllm", "vllm": {"gpu_memory_utilization": 1}}, "--gpu-memory-utilization 1"),
        (
            {"name": "vllm", "vllm": {"hf_overrides": {"num_labels": 2, "a": {"b": [None]}}}},
            '--hf-overrides {"a":{"b":[null]},"num_labels":2}',
        ),
        ({"name": "vllm", "vllm": {"hf_overrides": {}}}, ""),
        ({"name": "llama.cpp", "llama_cpp": {"reasoning_budget": -1}}, "--reasoning-budget -1"),
        ({"name": "llama.cpp", "llama_cpp": {"reasoning_budget": 0}}, "--reasoning-budget 0"),
        (
            {
                "name": "llama.cpp",
                "llama_cpp": {"reasoning_budget": 2048},
                "args": ["--temp 0.5", "--reasoning-budget 0"],
            },
            "--reasoning-budget 2048 --temp 0.5 --reasoning-budget 0",
        ),
    ],
)
def test_settings_are_arguments_that_args_win_over(engine: dict[str, Any], words: str) -> None:
    assert " ".join(EngineSpec.model_validate(engine).arguments.words) == words


@pytest.mark.parametrize(
    ("engine", "why"),
    [
        ({"name": "vllm", "vllm": {"gpu_memory_utilization": 0}}, "above 0"),
        ({"name": "vllm", "vllm": {"gpu_memory_utilization": 1.5}}, "less than or equal to 1"),
        ({"name": "vllm", "shm": 10}, "such as 10GiB; without a unit it counts bytes"),
        ({"name": "vllm", "shm": 0}, "at least 1MiB"),
        ({"name": "llama.cpp", "llama_cpp": {"reasoning_budget": -2}}, "equal to -1"),
        ({"name": "llama.cpp", "vllm": {"gpu_memory_utilization": 0.5}}, "settings of vllm"),
        ({"llama_cpp": {"reasoning_budget": 1}}, "set `name: llama.cpp`"),
        ({"name": "vllm", "triton": {"metrics": False}}, "settings of triton"),
        ({"name": "triton", "triton": {"server_args": ["--http-port=1"]}}, "moorage decides"),
        ({"name": "triton", "triton": {"server_args": ["--allow-grpc=true"]}}, "moorage decides"),
    ],
)
def test_what_is_out_of_range_or_of_another_engine_is_refused(
    engine: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValidationError, match=why):
        EngineSpec.model_validate(engine)


@pytest.mark.parametrize(
    ("word", "owned"),
    [
        ("--model-control=explicit", "--model-control-mode"),
        ("--allow-gr=true", "--allow-grpc"),
        ("--http-restricted=inference:a=b", "--http-restricted-api"),
        ("--model-repo", "--model-repository"),
        ("--enable-kserve", "--enable-kserve-frontends"),
        ("--backend-dir=/models/tiny", "--backend-directory"),
        ("--allow-sagemaker=true", "--allow-sagemaker"),
        ("--", "--allow-grpc"),
        ("--log-verbose=1", ""),
        ("--backend-config=python,grpc-timeout-milliseconds=1", ""),
        ("--host-policy=gpu_0,numa-node=0", ""),
        ("--openai-restricted-api=inference key x", ""),
    ],
)
def test_no_spelling_of_an_argument_gets_around_what_moorage_decides(word: str, owned: str) -> None:
    engine = {"name": "triton", "triton": {"server_args": [word]}}
    ends = (
        pytest.raises(ValidationError, match=rf"decides about {owned}\b")
        if owned
        else nullcontext()
    )
    with ends:
        EngineSpec.model_validate(engine)


BAD_KEYS = (
    *("", "1", "1a", "--x", "-v", "k s", 'k"i', "k;rm -rf /", "k`w`", "k$HOME", "k|c", "k&m"),
    *(
        "k\ni",
        "k\ri",
        "k$(w)",
        "k{e}",
        "k[0]",
        "model.type",
        "model:type",
        "model/type",
        "键",
        "😀",
    ),
)


@pytest.mark.parametrize("key", BAD_KEYS)
@pytest.mark.parametrize("depth", ["top", "nested", "in a list"])
def test_a_key_that_could_smuggle_something_is_refused_at_every_depth(key: str, depth: str) -> None:
    overrides: dict[str, Any] = {key: 1}
    if depth == "nested":
        overrides = {"outer": overrides}
    elif depth == "in a list":
        overrides = {"outer": [{"fine": 1}, overrides]}
    with pytest.raises(ValidationError, match=r"no key of a configuration|control characters"):
        EngineSpec(name=EngineName.VLLM, vllm={"hf_overrides": overrides})


@pytest.mark.parametrize("key", ["a", "_", "A", "a1", "_1", "___", "AbCdEf", "model_type"])
def test_a_plain_key_is_taken(key: str) -> None:
    spec = EngineSpec.model_validate({"name": "vllm", "vllm": {"hf_overrides": {key: True}}})
    assert spec.arguments.json_object("--hf-overrides") == {key: True}


@pytest.mark.parametrize(
    "engine",
    [
        {"name": "vllm", "shm": 0},
        {"name": "vllm", "packages": ["a"], "container": {"user": 1000}},
        {"name": "vllm", "vllm": {"gpu_memory_utilization": 0}},
        {"name": "triton", "triton": {"server_args": ["--allow-vertex-ai=false"]}},
    ],
)
def test_a_record_with_what_was_accepted_once_stays_readable(engine: dict[str, object]) -> None:
    spec = {"name": "tiny", "source": "hf://org/tiny", "engine": engine}
    assert ModelSpec.model_validate(spec, context=RECORDED).engine.name == engine["name"]
    with pytest.raises(ValidationError):
        ModelSpec.model_validate(spec)
