from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.common.units import MIB
from moorage.engines.draining import Drained, requests_in_flight
from moorage.engines.vllm.arguments import IN_FLIGHT

METRICS = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a {b} c"} 3.0
vllm:num_requests_running{engine="1",model_name="a {b} c"} 1.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="a {b} c"} 2.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 2.0
python_gc_objects_collected_total{generation="0"} 12345.0
"""


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (METRICS, 6),
        ("vllm:num_requests_running 0.0\nvllm:num_requests_waiting 0.0 1700000000", 0),
        ("vllm:num_requests_running 2", 2),
        ("vllm:num_requests_waiting_by_reason 2", None),
        ('{"detail": "Not Found"}', None),
        ("", None),
    ],
)
def test_what_is_in_flight_is_added_up_over_ranks_and_kinds(text: str, count: int | None) -> None:
    assert requests_in_flight(text, IN_FLIGHT.metrics) == count


@pytest.mark.parametrize(
    "value", ["NaN", "+Inf", "-1", "1e999", "1e300", "many", "9" * 5000, "\u0665\u0665x", "0x10"]
)
def test_what_is_no_count_tells_nothing(value: str) -> None:
    assert requests_in_flight(f"vllm:num_requests_running {value}", IN_FLIGHT.metrics) is None
    mixed = f"vllm:num_requests_running 3\nvllm:num_requests_waiting {value}\n"
    assert requests_in_flight(mixed, IN_FLIGHT.metrics) is None


@pytest.mark.parametrize(
    "piece",
    [
        "\n",
        "x\n",
        "vllm:num_requests_running{",
        "vllm:num_requests_running{}\n",
        "} ",
        "{",
        "vllm:num_requests_running 1\n",
        'vllm:num_requests_running{a="b"} 1 \n',
    ],
)
def test_millions_of_lines_are_read_soon_and_in_little_memory(piece: str) -> None:
    text = "vllm:num_requests_running" * (piece == "{") + piece * (8 * MIB // len(piece))
    tracemalloc.start()
    began = time.monotonic()
    requests_in_flight(text, IN_FLIGHT.metrics)
    assert time.monotonic() - began < 10  # a square of it would take hours
    assert tracemalloc.get_traced_memory()[1] < 16 * MIB
    tracemalloc.stop()


@given(st.text())
def test_no_text_is_more_than_nothing_or_a_count(text: str) -> None:
    count = requests_in_flight(f"vllm:num_requests_running {text}", IN_FLIGHT.metrics)
    assert count is None or count >= 0


@pytest.mark.parametrize(
    ("drained", "told"),
    [
        (Drained(), ""),
        (Drained(seconds=30, waited=True), ""),
        (Drained(seconds=0.3, left=0), "no request was in flight"),
        (Drained(seconds=12.4, left=0, waited=True), "its last request ended after 12.4 s"),
        (Drained(seconds=30, left=1, waited=True), "1 request still in flight after 30.0 s"),
        (Drained(seconds=90, left=4, waited=True), "4 requests still in flight after 1 min 30 s"),
    ],
)
def test_how_it_ended_is_one_line(drained: Drained, told: str) -> None:
    assert drained.summary == told
