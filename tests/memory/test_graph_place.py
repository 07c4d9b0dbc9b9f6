"""Whether CUDA graphs count within vLLM's share or on top of it, by version and model."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.memory.demand import MemoryModel
from moorage.memory.need import Need
from moorage.memory.options import MemoryOptions
from moorage.memory.stated_options import memory_options
from moorage.models.source import TensorHeaders, WeightSummary
from tests.builders import a_spec
from tests.memory.models import known, needed, plain, with_options

DENSE, EXPERTS = "mistral-7b-v0.1", "qwen3-30b-a3b"
INSIDE, OUTSIDE = {"cuda_graphs": True}, {"cuda_graphs": False}
EITHER = {"cuda_graphs": False, "graph_reserve": True}


def places(need: Need) -> dict[str, bool]:
    """Whether the terms of the graphs are inside."""
    names = ("cuda_graphs", "graph_reserve")
    return {term.name: term.inside for term in need.terms if term.name in names}


@pytest.mark.parametrize(
    ("name", "versions", "expected"),
    [
        (DENSE, "0.17.1", OUTSIDE),
        (DENSE, "0.19.1", OUTSIDE),
        (DENSE, "0.20.0", INSIDE),
        (DENSE, "0.22.1", INSIDE),  # on the first runner until 0.23
        (DENSE, "0.23.0", OUTSIDE),
        (DENSE, "0.28.0", OUTSIDE),
        (DENSE, "0.29.0rc1", OUTSIDE),
        (DENSE, "0.29.0", INSIDE),
        (DENSE, "v0.32.0", INSIDE),
        (DENSE, "nightly", INSIDE),
        (DENSE, "", EITHER),
        (DENSE, "0.30.0 0.32.0", INSIDE),
        (DENSE, "0.26.0 0.32.0", EITHER),
        ("qwen3-0.6b", "0.22.0", OUTSIDE),
        ("gemma-3-27b-text", "0.24.0", INSIDE),
        ("gemma-3-27b-text", "0.25.0", OUTSIDE),
        (EXPERTS, "0.26.0", INSIDE),
        ("qwen3-next-80b-a3b", "0.28.0", INSIDE),  # experts, and recurrent states
    ],
)
def test_the_place_follows_from_version_and_runner(
    name: str, versions: str, expected: dict[str, bool]
) -> None:
    named = tuple(versions.split(" "))
    assert places(needed(plain(name), versions=named)) == expected


@pytest.mark.parametrize(("version", "expected"), [("0.23.0", INSIDE), ("0.24.0", OUTSIDE)])
def test_quantised_weights_stayed_longer_on_the_first_runner(
    version: str, expected: dict[str, bool]
) -> None:
    config = known(DENSE)[0] | {"quantization_config": {"quant_method": "fp8"}}
    files = WeightSummary(family="safetensors", bytes=8 * GIB)
    model = MemoryModel(config, TensorHeaders(), MemoryOptions(), files=files)
    assert places(needed(model, versions=(version,))) == expected


@pytest.mark.parametrize(
    ("options", "use", "expected"),
    [
        ({"enforce_eager": True}, {"versions": ("",)}, INSIDE),
        ({"kv_bytes": 8 * GIB}, {"versions": ("0.26.0",)}, INSIDE),
        ({"runner": "pooling"}, {"versions": ("0.26.0",)}, INSIDE),
        ({"unsettled_runner": True}, {"versions": ("0.26.0",)}, EITHER),
        ({"unsettled_runner": True}, {"versions": ("0.29.0",)}, INSIDE),
        ({"second_runner": False}, {"versions": ("0.26.0",)}, INSIDE),
        ({"second_runner": True}, {"versions": ("0.20.0",)}, OUTSIDE),
        ({"profiles_graphs": False}, {"versions": ("0.32.0",)}, OUTSIDE),
        ({"profiles_graphs": True}, {"versions": ("0.19.0",)}, EITHER),
        ({}, {"versions": ()}, INSIDE),  # another engine
        ({}, {"versions": ("0.22.0",), "device_type": "rocm"}, OUTSIDE),
        ({"second_runner": False}, {"versions": ("0.26.0",), "device_type": "rocm"}, INSIDE),
        ({}, {"versions": ("0.32.0",), "device_type": "xpu"}, EITHER),
    ],
    ids=str,
)
def test_options_and_the_type_of_accelerator_decide_too(
    options: dict[str, Any], use: dict[str, Any], expected: dict[str, bool]
) -> None:
    assert places(needed(with_options(DENSE, **options), **use)) == expected


def test_the_place_changes_the_share_and_not_the_sum() -> None:
    inside, outside = (needed(plain(DENSE), versions=(one,)) for one in ("0.32.0", "0.26.0"))
    graphs = inside.term("cuda_graphs")
    assert graphs
    assert (outside.inside, outside.outside) == (
        inside.inside - graphs.bytes,
        inside.outside + graphs.bytes,
    )


def test_what_may_be_in_either_place_is_counted_in_both() -> None:
    known, unknown = (needed(plain(DENSE), versions=(one,)) for one in ("0.32.0", ""))
    graphs = unknown.term("cuda_graphs")
    assert graphs
    assert unknown.inside == known.inside
    assert unknown.outside == known.outside + graphs.bytes
    assert "unknown version may set nothing aside" in graphs.reason


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ({}, (None, None, False)),
        ({"env": {"VLLM_USE_V2_MODEL_RUNNER": "1"}}, (None, True, False)),
        ({"env": {"VLLM_USE_V2_MODEL_RUNNER": "0"}}, (None, False, False)),
        ({"env": {"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": "0"}}, (False, None, False)),
        ({"env": {"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": "1"}}, (True, None, False)),
        ({"args": ["--enable-prompt-embeds"]}, (None, None, True)),
        ({"args": ["--compilation-config.mode=2"]}, (None, None, True)),
    ],
    ids=str,
)
def test_the_spec_may_choose_the_runner_and_turn_the_estimate_off(
    engine: dict[str, Any], expected: tuple[bool | None, bool | None, bool]
) -> None:
    found = memory_options(a_spec(engine=engine))
    assert (found.profiles_graphs, found.second_runner, found.unsettled_runner) == expected
