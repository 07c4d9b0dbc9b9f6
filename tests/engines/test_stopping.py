from __future__ import annotations

from typing import Any

import pytest

from moorage.engines.launch import LaunchPlan
from moorage.engines.stopping import Drained, ending
from moorage.engines.vllm.arguments import IN_FLIGHT
from moorage.spec import EngineName, StoppingSpec
from tests.builders import a_cpu_host, a_host, an_image
from tests.engines.planning import planned

STOPPING = StoppingSpec(drain_seconds=20, grace_seconds=40)


def of(version: str = "0.32.0", args: tuple[str, ...] = (), **wish: Any) -> LaunchPlan:
    wish = {"stopping": STOPPING, "engine": {"args": args}, **wish}
    return planned(wish, a_host(), an_image(engine_version=version))


@pytest.mark.parametrize(
    ("plan", "grace"),
    [
        (of(), 55),
        (of("0.17.1"), 40),
        (of(""), 40),
        (of(args=("--shutdown-timeout 120",)), 135),
        (of(args=("--shutdown_timeout=5",)), 40),
        (of(args=("--shutdown-timeout 0",)), 40),
    ],
)
def test_vllm_is_killed_later_than_it_would_end_by_itself(plan: LaunchPlan, grace: int) -> None:
    found = ending(STOPPING, plan)
    assert (found.grace_seconds, found.drain_seconds, found.busy) == (grace, 20, IN_FLIGHT)


def test_what_an_engine_that_tells_nothing_has_in_flight_only_gateways_know() -> None:
    plan = planned({"stopping": STOPPING}, a_cpu_host())
    assert plan.engine == EngineName.TRANSFORMERS
    found = ending(STOPPING, plan)
    assert (found.grace_seconds, found.drain_seconds, found.busy) == (40, 20, None)


def test_what_has_no_record_may_have_requests_of_gateways() -> None:
    found = ending(StoppingSpec(), None)
    assert (found.grace_seconds, found.drain_seconds, found.busy) == (30, 30, None)


@pytest.mark.parametrize(
    ("drained", "summary"),
    [
        (Drained(), ""),
        (Drained(seconds=30, waited=True), ""),
        (Drained(seconds=0.3, left=0), "no request was in flight"),
        (Drained(seconds=12.4, left=0, waited=True), "its last request ended after 12.4 s"),
        (Drained(seconds=30, left=1, waited=True), "1 request still in flight after 30.0 s"),
        (Drained(seconds=90, left=4, waited=True), "4 requests still in flight after 1 min 30 s"),
    ],
)
def test_how_it_ended_is_one_line(drained: Drained, summary: str) -> None:
    assert drained.summary == summary
