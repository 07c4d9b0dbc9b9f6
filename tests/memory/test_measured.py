"""Predictions held against real starts on an H100, recorded by `benchmarks.gpu_memory`."""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.memory.need import MemoryQuery, Need
from moorage.readiness.engine_facts import Measured, read_measured
from tests.memory.models import gib, with_options

RECORDED = json.loads((Path(__file__).parent / "data/h100-vllm-0.26.0.json").read_text())

Start = dict[str, Any]


@pytest.fixture(params=RECORDED["starts"], ids=lambda start: f"{start['model']}-{start['tokens']}")
def start(request: pytest.FixtureRequest) -> Start:
    found: Start = request.param
    return found


def needed_of(start: Start) -> Need:
    _, version = RECORDED["engine"].split()
    query = MemoryQuery(
        total=RECORDED["memory_total"],
        tokens=start["tokens"],
        device_name=RECORDED["accelerator"],
        versions=(version,),
        concurrency=start["concurrency"],
    )
    need = with_options(start["model"], **start["options"]).need(query)
    assert isinstance(need, Need), need
    return need


def measured_of(start: Start) -> Measured:
    found = read_measured("\n".join(start["log"]))
    assert found is not None
    return found


def test_weights_and_tables_are_what_loading_took(start: Start) -> None:
    need, measured = needed_of(start), measured_of(start)
    assert measured.weights_bytes is not None
    loaded = gib(need, "weights") + gib(need, "buffers")
    # With an FP8 cache each layer has scales besides.
    assert measured.weights_bytes / GIB == pytest.approx(loaded, abs=0.06)


def test_a_block_of_the_cache_costs_what_was_predicted(start: Start) -> None:
    cache, measured = needed_of(start).cache, measured_of(start)
    assert cache is not None
    assert measured.kv_cache_bytes is not None
    blocks = measured.kv_cache_bytes // cache.bytes_per_block - 1  # vLLM holds one back
    expected = blocks / cache.blocks_per_full_request
    assert measured.concurrency == pytest.approx(expected, abs=0.01)
    assert expected >= start["concurrency"]


def test_no_estimate_of_graphs_is_below_what_they_took(start: Start) -> None:
    taken = measured_of(start).graph_bytes or 0
    assert gib(needed_of(start), "cuda_graphs") >= taken / GIB


def test_a_process_takes_no_more_than_its_share_and_what_lies_outside(start: Start) -> None:
    need, total = needed_of(start), RECORDED["memory_total"]
    share = ceil(total * start["utilization"])
    assert 0 <= (share + need.outside - start["process_bytes"]) / GIB < 0.7


def test_a_process_with_the_predicted_share_takes_no_more_than_the_claim(start: Start) -> None:
    """The cache takes what the share leaves: with another share the process differs by as much."""
    need, total = needed_of(start), RECORDED["memory_total"]
    shares = (need.utilization(total), start["utilization"])
    predicted, recorded = (ceil(total * share) for share in shares)
    assert start["process_bytes"] - recorded + predicted <= need.claim(total)
