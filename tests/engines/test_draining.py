from __future__ import annotations

import pytest

from moorage.engines.draining import Drained, requests_in_flight
from moorage.engines.vllm.shutdown import IN_FLIGHT

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
    assert drained.told == told
