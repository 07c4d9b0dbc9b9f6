from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.readiness.engine_facts import (
    EngineFacts,
    Measured,
    combine_measured,
    engine_facts,
    read_measured,
)

NAME = "moorage-tiny.v1-r0-leader"
MODELS = {"data": [{"id": "tiny", "max_model_len": 4096}, {"id": "poet", "max_model_len": None}]}


def facts(
    *words: str, version: Any = None, models: Any = MODELS, measured: Measured | None = None
) -> EngineFacts:
    arguments, answer = ("vllm", "serve", "/m", *words), version or {"version": "0.32.0"}
    return engine_facts(NAME, arguments, "0.32.0", answer, models, measured)


def test_an_engine_tells_its_version_names_context_and_cache() -> None:
    found = facts("--max-model-len", "4096", measured=Measured(kv_cache_bytes=GIB, kv_tokens=32768))
    assert found == EngineFacts(
        workload=NAME,
        version="0.32.0",
        planned_version="0.32.0",
        names=("tiny", "poet"),
        context=4096,
        planned_context=4096,
        kv_cache_bytes=GIB,
        kv_tokens=32768,
    )
    assert found.surprises == ()
    assert (
        found.summary == "version 0.32.0, 4096 tokens, 1.0 GiB of KV cache, room for 32768 tokens"
    )


@pytest.mark.parametrize(
    ("words", "surprise"),
    [
        (("--max-model-len", "8192"), f"{NAME} serves 4096 tokens, 8192 were planned"),
        (("--max-model-len=8K",), f"{NAME} serves 4096 tokens, 8192 were planned"),
        (("--max-model-len", "8192", "--max-model-len", "4096"), ""),
        (("--max-model-len", "auto"), ""),
        (("--max-model-len", "-1"), ""),
        ((), ""),
    ],
)
def test_a_context_that_was_not_planned_is_told(words: tuple[str, ...], surprise: str) -> None:
    assert "".join(facts(*words).surprises) == surprise


@pytest.mark.parametrize("version", ["0.32.0+cpu", "0.32.0+cu129"])
def test_the_build_of_a_version_is_no_surprise(version: str) -> None:
    found = facts(version={"version": version})
    assert found.version == version
    assert found.surprises == ()


def test_a_version_that_was_not_planned_is_told() -> None:
    (surprise,) = facts(version={"version": "0.31.1"}).surprises
    assert surprise == f"{NAME} is version 0.31.1, not 0.32.0"


@pytest.mark.parametrize("nonsense", [None, "text", [1], {"data": "no"}, {"data": [1, {}]}, 7])
def test_answers_that_make_no_sense_are_no_facts(nonsense: Any) -> None:
    found = engine_facts(NAME, ("serve",), "", nonsense, nonsense, None)
    assert found == EngineFacts(workload=NAME)
    assert (found.summary, found.surprises) == ("", ())


DATA = Path(__file__).parent / "data"

# Lines for GPUs are not from a run: they are filled in after the format strings of vLLM 0.32's
# source, and after the wordings of older versions.
WEIGHTS = "Model loading took 14.99 GiB memory and 3.214872 seconds"
CACHE = "Available KV cache memory: 54.21 GiB"
TOKENS = (
    "GPU KV cache size: 444,080 tokens, Maximum concurrency for 131,072 tokens per request: 3.39x"
)
TRIAL = "Graph capturing finished in 1 secs, took 0.11 GiB"
CAPTURED = "Graph capturing finished in 7 secs, took 0.52 GiB"
ESTIMATED = "Estimated CUDA graph memory: 0.61 GiB total"
POOL = "CUDA graph pool memory: 0.52 GiB (actual), 0.61 GiB (estimated), difference: 0.09 GiB"
SET_ASIDE = (
    "CUDA graph memory profiling is enabled (default since v0.21.0). The current"
    " --gpu-memory-utilization=0.9200 is equivalent to --gpu-memory-utilization=0.9123 without"
)
NOT_SET_ASIDE = (
    "CUDA graph memory profiling is disabled (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0)"
)
ON_STARTUP = (
    "Free memory on device (78.32/79.19 GiB) on startup. Desired GPU memory utilization is (0.92,"
    " 72.85 GiB). "
)
SUGGESTED = (
    " Replace gpu_memory_utilization config with `--kv-cache-memory=57812342784` (53.84 GiB) to fit"
    " into requested memory, or `--kv-cache-memory=63687036928` (59.31 GiB) to fully utilize gpu"
    " memory. Current kv cache memory in use is 54.21 GiB."
)
USAGE = (
    f"{ON_STARTUP}Actual usage is 15.58 GiB for consumed memory (weights + non-torch), 2.34 GiB for"
    f" peak activation, and 0.52 GiB for CUDAGraph memory.{SUGGESTED}"
)
OLDER_USAGE = (
    f"{ON_STARTUP}Actual usage is 14.99 GiB for weight, 1.23 GiB for peak activation, 0.15 GiB for"
    f" non-torch memory, and 0.52 GiB for CUDAGraph memory.{SUGGESTED}"
)
RESERVED = (
    "Initial free memory 78.32 GiB, reserved 20.0 GiB memory for KV Cache as specified by"
    " kv_cache_memory_bytes config and skipped memory profiling."
)
OLDEST = (
    "model weights take 14.99GiB; non_torch_memory takes 0.15GiB; PyTorch activation peak memory"
    " takes 1.23GiB; the rest of the memory reserved for KV Cache is 54.83GiB."
)


def gib(number: float) -> int:
    return round(number * GIB)


def log_of(*messages: str, process: str = "EngineCore pid=24") -> str:
    """Messages as lines of vLLM's log."""
    place = "INFO 11-21 03:31:14 [gpu_worker.py:760]"
    return "".join(f"({process}) {place} {message}\n" for message in messages)


@pytest.mark.parametrize(
    ("message", "facts"),
    [
        (WEIGHTS, {"weights_bytes": gib(14.99)}),
        ("Model loading took 14.9889 GiB and 3.2 seconds", {"weights_bytes": gib(14.9889)}),
        ("Loading model weights took 14.9889 GB", {"weights_bytes": gib(14.9889)}),
        (CACHE, {"kv_cache_bytes": gib(54.21)}),
        (RESERVED, {"kv_cache_bytes": 20 * GIB}),
        (TOKENS, {"kv_tokens": 444080, "request_tokens": 131072, "concurrency": 3.39}),
        ("GPU KV cache size: 444,080 tokens", {"kv_tokens": 444080}),
        ("CPU + host KV cache size: 16 tokens, Maximum", {"kv_tokens": 16}),
        (CAPTURED, {"graph_bytes": gib(0.52)}),
        (
            USAGE,
            {
                "consumed_bytes": gib(15.58),
                "activation_bytes": gib(2.34),
                "graph_bytes": gib(0.52),
                "kv_cache_bytes": gib(54.21),
            },
        ),
        (
            OLDER_USAGE,
            {
                "weights_bytes": gib(14.99),
                "activation_bytes": gib(1.23),
                "non_torch_bytes": gib(0.15),
                "graph_bytes": gib(0.52),
                "kv_cache_bytes": gib(54.21),
            },
        ),
        (
            OLDEST,
            {
                "weights_bytes": gib(14.99),
                "activation_bytes": gib(1.23),
                "non_torch_bytes": gib(0.15),
                "kv_cache_bytes": gib(54.83),
            },
        ),
    ],
)
def test_what_a_line_tells(message: str, facts: dict[str, Any]) -> None:
    assert read_measured(log_of(message)) == Measured(**facts)


@pytest.mark.parametrize(
    ("file", "facts"),
    [
        ("vllm-0.32.0-cpu.log", {"kv_cache_bytes": GIB, "kv_tokens": 2097152, "concurrency": 2048}),
        (
            "vllm-0.32.0-cpu-auto.log",
            {
                "kv_cache_bytes": gib(1.12),
                "kv_tokens": 2339840,
                "concurrency": 2285,
                "process_bytes": gib(0.53),
            },
        ),
    ],
)
def test_a_whole_log_of_a_start_on_cpu(file: str, facts: dict[str, Any]) -> None:
    log = (DATA / file).read_text()
    assert read_measured(log) == Measured(request_tokens=1024, **facts)


@pytest.mark.parametrize(
    ("prefix", "colour"),
    [
        ("", ""),
        ("(EngineCore pid=24) ", ""),
        ("(Worker_TP0_EP0 pid=1159) ", ""),
        ("2026-11-21T03:31:14Z my prefix (VllmWorker rank=0 pid=40) ", ""),
        ("\x1b[0;36m(EngineCore pid=24)\x1b[0;0m ", "\x1b[32m"),
    ],
)
def test_whatever_stands_before_a_message(prefix: str, colour: str) -> None:
    line = f"{prefix}{colour}INFO\x1b[0m \x1b[90m11-21\x1b[0m [gpu_worker.py:1] {WEIGHTS}"
    assert read_measured(line) == Measured(weights_bytes=gib(14.99))


@pytest.mark.parametrize("estimate", [(ESTIMATED,), (POOL,), (ESTIMATED, POOL)])
def test_what_is_set_aside_for_graphs_is_no_activation(estimate: tuple[str, ...]) -> None:
    measured = read_measured(log_of(*estimate, SET_ASIDE, CAPTURED, USAGE))
    assert measured
    assert measured.activation_bytes == pytest.approx(gib(2.34 - 0.61), abs=1)
    assert (measured.graph_bytes, measured.graph_reserve_bytes) == (gib(0.52), gib(0.61))


@pytest.mark.parametrize("aside", [(NOT_SET_ASIDE,), ()])
def test_an_estimate_that_is_not_applied_takes_nothing(aside: tuple[str, ...]) -> None:
    measured = read_measured(log_of(ESTIMATED, *aside, USAGE))
    assert measured
    assert (measured.activation_bytes, measured.graph_reserve_bytes) == (gib(2.34), None)


def test_a_trial_capture_does_not_count() -> None:
    larger = TRIAL.replace("0.11", "0.99")
    assert read_measured(log_of(larger, CAPTURED)) == Measured(graph_bytes=gib(0.52))


def test_of_several_workers_the_neediest_counts_and_the_smallest_cache() -> None:
    first = log_of(WEIGHTS, CACHE, TOKENS, process="Worker_TP0 pid=40")
    second = log_of(
        WEIGHTS.replace("14.99", "15.2"),
        CACHE.replace("54.21", "50.0"),
        process="Worker_TP1 pid=41",
    )
    measured = read_measured(first + second)
    assert measured
    assert (measured.weights_bytes, measured.kv_cache_bytes) == (gib(15.2), 50 * GIB)
    assert measured.kv_tokens == 444080


@pytest.mark.parametrize(
    "log",
    [
        "",
        "Started server process [1]",
        log_of("Loading weights took 0.01 seconds"),
        log_of("Graph capturing finished in 7 secs, took -0.52 GiB"),
        log_of("Checkpoint size: 15.0 GiB. Available RAM: 21.29 GiB."),
    ],
)
def test_a_log_that_says_nothing(log: str) -> None:
    assert read_measured(log) is None


def test_ranks_are_combined_field_by_field() -> None:
    one = Measured(weights_bytes=2, kv_tokens=5)
    other = Measured(weights_bytes=3, kv_tokens=4, activation_bytes=1)
    assert combine_measured([one, other]) == Measured(
        weights_bytes=3, kv_tokens=4, activation_bytes=1
    )
    assert combine_measured([]) is None
