"""Placement cases at random, in the schema of `conformance/placement.json`."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from moorage.common.units import GIB

WORKERS = ("a", "b", "c", "d")
SIZES = (24 * GIB, 24 * GIB - 1, 80 * GIB, 85899345920 - 7)


def mostly(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from([usual] * 3 + list(others))


gpus = st.lists(
    st.tuples(mostly("cuda", "rocm", "cann"), st.sampled_from(SIZES)), max_size=5
) | st.builds(
    lambda number, size: [("cuda", size)] * number,
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from(SIZES),
)


@st.composite
def workers(draw: st.DrawFn, name: str) -> dict[str, Any]:
    total = draw(st.sampled_from([0, 16, 64, 512, 2000])) * GIB
    return {
        "name": name,
        "address": draw(mostly("10.0.0.1", "", None, "127.0.0.1", "worker")),
        "labels": draw(mostly({}, {"zone": "x"}, None)),
        "ram": draw(mostly({"total": total, "reserved": draw(mostly(0, 2 * GIB, None))}, None)),
        "vram_reserved_per_gpu": draw(mostly(0, GIB, None)),
        "gpus": [
            {"index": at, "type": kind, "vendor": "v", "name": kind, "memory_total": size}
            for at, (kind, size) in enumerate(draw(gpus))
        ],
    }


models = st.fixed_dictionaries(
    {
        "architectures": mostly(["LlamaForCausalLM"], [], None, ["Qwen3ForCausalLM"]),
        "categories": mostly(
            ["llm"], [], None, ["embedding"], ["speech_to_text"], ["text_to_speech"], ["image"]
        ),
        "attention_heads": mostly(32, None, 28, 25),
        "vision_heads": mostly(None, 16, 6),
        "vocab_size": mostly(128256, None, 151669),
        "weight_bytes": st.sampled_from([0, None, *(n * GIB for n in (1, 8, 17, 40, 120, 700))]),
        "lora_bytes": mostly(0, None, GIB),
        "vram_claim_override_bytes": mostly(None, 30 * GIB, 64 * GIB + 1, 1200 * GIB),
    }
)


def family(entry: str | None) -> str:
    """An option in any writing."""
    name = (entry or "").lstrip("-").partition("=")[0].partition(" ")[0]
    return {"tp": "tensor-parallel-size", "pp": "pipeline-parallel-size"}.get(name, name)


parameters = st.lists(
    st.sampled_from(
        [
            *("--tensor-parallel-size=2", "-tp 4", "--tensor-parallel-size=3", "-tp=0"),
            *("--pipeline-parallel-size 2", "-pp=-1", "--data-parallel-size=2"),
            *("--data-parallel-size=3", "--data-parallel-size-local=2", "--max-model-len 4096"),
            *("--gpu-memory-utilization=0.5", "--gpu-memory-utilization 0.95", "--omni"),
            *("--data-parallel-hybrid-lb", "--language-model-only", "--port 9000", "", None),
            "--distributed-executor-backend=mp",
        ]
    ),
    max_size=2,
    # Of one option in two writings vLLM takes the last, and GPUStack the first.
    unique_by=family,
)
caches = st.none() | st.fixed_dictionaries(
    {"enabled": mostly(True, False)},
    optional={
        "ram_size_gib": mostly(None, 0, 8, 100, 1000),
        "ram_ratio": mostly(1.2, None, 0, 0.1, 8.0),
    },
)
manual = st.lists(
    st.tuples(st.sampled_from([*WORKERS, "gone"]), mostly("cuda", "rocm"), st.integers(0, 3)),
    min_size=1,
    max_size=5,
    unique=True,
)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    named = [
        {"worker": worker, "type": kind, "index": index}
        for worker, kind, index in draw(st.just([]) | manual)
    ]
    return {
        "backend_version": draw(mostly(None, "", "0.11.0", "v0.18.1-custom", "nightly")),
        "backend_parameters": draw(mostly([], None, draw(parameters))),
        "manual_gpus": named or draw(mostly([], None)),
        "gpus_per_replica": draw(mostly(len(named) or None, None, 0, 1, 2, 9)),
        "replicas": draw(mostly(1, None, 2, 3)),
        "distributed_allowed": draw(mostly(True, False, None)),
        "extended_kv_cache": draw(caches),
        "strategy": draw(st.sampled_from(["spread", "binpack", None])),
    }


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    fleet = [draw(workers(name)) for name in WORKERS[: draw(st.integers(1, 4))]]
    running = st.builds(
        lambda worker, share, ram, same: {
            "worker": worker["name"],
            "same_model": same,
            "vram_by_gpu": {
                str(gpu["index"]): int(gpu["memory_total"] * share) for gpu in worker["gpus"][:2]
            }
            if share
            else None,
            "ram": ram,
        },
        st.sampled_from(fleet),
        st.sampled_from([0, 0.05, 0.1, 0.9]),
        st.sampled_from([0, None, 4 * GIB]),
        st.booleans(),
    )
    return {
        "id": "random",
        "fleet": fleet,
        "running": draw(st.none() | st.lists(running, max_size=3)),
        "model": draw(models),
        "request": draw(requests()),
    }
