"""Every port that a plan hands out was claimed for it, once, and is as the engine needs it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from moorage.adapters.engines.schemas import check_early
from moorage.common.failures import Cause, Failure
from moorage.engines.labels import LABEL_REPLICA
from moorage.engines.launch import ContainerSpec, LaunchPlan
from moorage.engines.plan import plan_launch
from moorage.engines.registry import ENGINES
from moorage.engines.vllm.environment import RESERVED
from moorage.inventory.claims import Resource
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import FleetSnapshot
from moorage.placement.demand import Subject
from moorage.placement.placement import Placed, Placement, Seat
from moorage.placement.propose import propose
from moorage.placement.role import Role
from moorage.spec import ModelSpec
from tests.builders import LEDGER, a_fleet, a_host, a_model, a_profile, a_spec, an_image

PORTS = (40000, 40007)
RAY = (41000, 41030)
ARGUMENTS = (
    "",
    "-tp=2",
    "-dp=2",
    "--data-parallel-size 4",
    "--data_parallel_size=8",
    "-tp 4 -dp 2",
    "-tp 8 -dp 2",
    "-tp 2 -pp 2 -dp 4",
    "-tp 4 -pp 2",
    "-pp=2 -dp=2",
)


@st.composite
def wishes(draw: st.DrawFn) -> dict[str, Any]:
    words = draw(st.sampled_from(ARGUMENTS))
    return {
        "engine": {
            "name": "vllm",
            "args": [words] if words else [],
            "distributed": draw(st.sampled_from(["auto", "native", "ray"])),
        },
        "replicas": draw(st.integers(1, 2)),
        "port": draw(st.sampled_from(["auto", "auto", PORTS[0], PORTS[1], 50000])),
        "placement": {
            "policy": draw(st.sampled_from(["fitted", "whole", "baseline"])),
            "accelerators": "auto" if words else draw(st.sampled_from(["auto", 0, 2, 4, 8])),
            **draw(st.sampled_from([{"across_hosts": True}, *({"hosts": n} for n in range(1, 5))])),
        },
    }


@st.composite
def fleets(draw: st.DrawFn) -> FleetSnapshot:
    return a_fleet(
        *(
            a_host(
                f"h{at}",
                gpus=draw(st.sampled_from([0, 1, 2, 4, 4])),
                bind=f"10.0.0.{at}",
                interface="eth0",
                port_range=(PORTS[0], PORTS[0] + draw(st.integers(0, PORTS[1] - PORTS[0]))),
                ports_in_use=tuple(draw(st.sets(st.integers(*PORTS), max_size=3))),
                ray_range=RAY,
            )
            for at in range(1, draw(st.integers(1, 4)) + 1)
        )
    )


PAIR = a_fleet(
    *(
        a_host(f"h{at}", gpus=1, bind=f"10.0.0.{at}", interface="eth0", port_range=(40000, 40009))
        for at in (1, 2)
    )
)
CROWDED = a_fleet(
    PAIR.hosts[0], PAIR.hosts[1].model_copy(update={"ports_in_use": tuple(range(40000, 40004))})
)
"""Hosts on which a follower's first port is that of another use of the leader."""


def a_wish(port: int | str) -> dict[str, Any]:
    return {
        "engine": {"name": "vllm", "args": ["-dp=2"]},
        "port": port,
        "placement": {"hosts": 2},
    }


def handed_out(container: ContainerSpec) -> dict[str, int]:
    """The ports that an engine is given, by what they are for."""
    words = [word for flag in container.command for word in flag.tokens]
    pairs = dict(pairwise(words))
    found = {
        name: int(pairs[name])
        for name in ("--port", "--master-port", "--data-parallel-rpc-port")
        if name in pairs
    }
    names = ("VLLM_PORT", "VLLM_DP_MASTER_PORT")
    return found | {v.name: int(v.value) for v in container.environment if v.name in names}


def planned(spec: ModelSpec, fleet: FleetSnapshot) -> tuple[Placement, LaunchPlan]:
    known = a_profile()
    placement = propose(Subject(spec, known), fleet, ENGINES)
    placed = Placed(spec, a_model(), known, placement, fleet, "tiny.v1")
    image = an_image(engine_version="0.32.0")
    return placement, plan_launch(placed, image, LEDGER)


OF_THE_LEADER = ("--master-port", "--data-parallel-rpc-port", "VLLM_DP_MASTER_PORT")


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(wishes(), fleets())
@example(a_wish(50000), PAIR)
@example(a_wish("auto"), CROWDED)
def test_a_plan_hands_out_what_was_claimed_and_each_port_once(
    wish: dict[str, Any], fleet: FleetSnapshot
) -> None:
    try:
        placement, plan = planned(a_spec(**wish), fleet)
    except (ValidationError, Failure):
        return
    hosts = {seat.host for seat in placement.seats}
    for host in hosts:
        claimed = [port for seat in placement.seats if seat.host == host for port in held(seat)]
        assert len(set(claimed)) == len(claimed)
        assert not set(claimed) & set(fleet.host(host).ports_in_use)
    leads = {seat.replica: seat for seat in placement.seats if seat.role == Role.LEADER}
    seats = {(seat.replica, seat.host): seat for seat in placement.seats}
    for container in plan.containers:
        replica, ports = int(container.labels[LABEL_REPLICA]), handed_out(container)
        own, leader = seats[replica, container.host], leads[replica]
        at = {name: leader if name in OF_THE_LEADER else own for name in ports}
        assert [name for name, port in ports.items() if port not in held(at[name])] == []
        if own != leader:
            ports.pop("--port", None)  # the first of its own, where nobody serves
        # What a follower is told of the leader may be in another use on its own host.
        assert len({(at[name].host, port) for name, port in ports.items()}) == len(ports)
        kept = range(meeting := ports.get("VLLM_DP_MASTER_PORT", 0), meeting + RESERVED)
        assert ports.get("VLLM_PORT") not in kept


def held(seat: Seat) -> set[int]:
    return {claim.index for claim in seat.claims if claim.resource == Resource.PORT}


@pytest.mark.parametrize(
    ("words", "distributed", "needed"), [("", "native", 2), ("-dp 2", "native", 5), ("", "ray", 3)]
)
def test_a_range_that_is_too_narrow_for_the_hosts_of_a_replica_is_refused_at_once(
    words: str, distributed: str, needed: int, tmp_path: Path
) -> None:
    engine = {"name": "vllm", "args": [words] * bool(words), "distributed": distributed}
    spec = a_spec(engine=engine, placement={"hosts": 2})

    def fleet(*counts: int) -> Fleet:
        ranges = {f"h{at}": f"40000-{39999 + count}" for at, count in enumerate(counts)}
        hosts = [
            {"name": name, "address": f"ssh://{name}", "bind": "10.0.0.1", "ports": ports}
            for name, ports in ranges.items()
        ]
        return Fleet.model_validate({"hosts": hosts})

    for counts in ((needed, needed), (1, needed, needed)):
        check_early(spec, fleet(*counts), tmp_path)
    with pytest.raises(Failure, match=f"placement.hosts: 2 hosts need {needed} ports") as caught:
        check_early(spec, fleet(needed, needed - 1), tmp_path)
    assert caught.value.cause is Cause.BAD_SPEC
    assert "`hosts.h1.ports`" in caught.value.suggestion
