"""Sizes of the groups within SGLang's tensor-parallel ranks."""

from __future__ import annotations

import re

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Reason
from moorage.inventory.claims import Resource
from moorage.placement.explanation import Verdict
from moorage.placement.placement import Seat
from moorage.placement.propose import NoFit
from moorage.spec import EngineName
from tests.builders import a_host, a_spec, placed
from tests.engines.planning import planned
from tests.engines.sglang.shapes import IMAGE, INSTALLED, with_sizes, words


@pytest.mark.parametrize(
    ("args", "hosts", "gpus", "placement", "tensor"),
    [
        ("--attn-dp-size 4", 1, 4, {}, "4"),
        ("--ep-size 4", 1, 4, {}, "4"),
        ("--attention-data-parallel-size 2 --ep 8", 1, 8, {}, "8"),
        ("--attn-dp-size 2", 1, 8, {"accelerators": 8}, "8"),
        ("--data-parallel-size 4 --enable-dp-attention", 1, 4, {}, "4"),
        ("--data-parallel-size 2 --ep-size 2", 1, 4, {}, "2"),
        ("--pipeline-parallel-size 2 --attn-dp-size 2", 1, 4, {}, "2"),
        ("--tensor-parallel-size 16 --data-parallel-size 16 --enable-dp-attention", 2, 8, {}, "16"),
        ("--attn-dp-size 16", 2, 8, {}, "16"),
        ("--attn-dp-size 4", 2, 8, {}, "8"),
    ],
)
def test_groups_of_ranks_divide_the_tensor_parallel_size(
    args: str, hosts: int, gpus: int, placement: dict[str, int], tensor: str
) -> None:
    containers = with_sizes(args, hosts, gpus, None, **placement)

    assert len(containers) == hosts
    for line in map(words, containers):
        assert line[line.index("--tensor-parallel-size") + 1] == tensor


@pytest.mark.parametrize(
    ("args", "placement", "message"),
    [
        (
            "--tensor-parallel-size 2 --attn-dp-size 4",
            {},
            "engine.args: --attn-dp-size 4 does not divide 2 tensor-parallel ranks",
        ),
        (
            "--tensor-parallel-size 2 --data-parallel-size 4 --enable-dp-attention",
            {},
            "engine.args: --data-parallel-size 4 does not divide 2 tensor-parallel ranks",
        ),
        (
            "--ep-size 4",
            {"accelerators": 2},
            "placement.accelerators: 2 are no multiple of --ep-size 4 in engine.args",
        ),
        ("--ep-size 0", {}, "engine.args: --ep-size 0 must be positive"),
        (
            "--attn-dp-size 2 --data-parallel-size 2",
            {},
            "--data-parallel-size: SGLang runs no data-parallel copies with --attn-dp-size",
        ),
    ],
)
def test_groups_that_do_not_divide_it_are_refused(
    args: str, placement: dict[str, int], message: str
) -> None:
    with pytest.raises(Failure, match=re.escape(message)) as refused:
        with_sizes(args, 1, 8, None, **placement)

    assert refused.value.cause == Cause.BAD_SPEC
    assert refused.value.suggestion


def test_a_host_with_fewer_accelerators_than_groups_is_refused() -> None:
    with pytest.raises(NoFit, match="4 accelerators requested, 2 x"):
        with_sizes("--attn-dp-size 4", 1, 2)


DIVIDED = "--tensor-parallel-size 2 --attn-dp-size 2"


def ports_of(seat: Seat) -> set[int]:
    """The ports that a seat claims."""
    return {claim.index for claim in seat.claims if claim.resource == Resource.PORT}


@pytest.mark.parametrize(
    ("runtime", "network", "block"),
    [("process", "published", 14), ("docker", "host", 14), ("docker", "published", 0)],
)
def test_groups_of_attention_meet_at_ports_that_are_claimed(
    runtime: str, network: str, block: int
) -> None:
    engine = {"name": "sglang", "args": [DIVIDED], "runtime": runtime}
    spec = a_spec(engine={**engine, "container": {"network": network}}, replicas=2)
    host = a_host(gpus=4, programs=(INSTALLED,))

    first, second = placed(spec, host, engine=EngineName.SGLANG).seats

    assert not ports_of(first) & ports_of(second)
    for seat in (first, second):
        beside = sorted(ports_of(seat) - {seat.port})
        assert beside == [*range(beside[0], beside[0] + block)] if block else not beside


def test_such_ports_are_free_on_all_hosts_of_a_replica() -> None:
    busy = a_host("gpu-2", 4, bind="10.0.0.2", ports_in_use=(40003, 40020))
    hosts = [a_host("gpu-1", 4, bind="10.0.0.1"), busy]
    args = ["--tensor-parallel-size 4 --attn-dp-size 4"]
    wish = {"engine": {"name": "sglang", "args": args}, "placement": {"hosts": 2}}

    leader, _, second, follower = placed(
        a_spec(**wish, replicas=2), *hosts, engine=EngineName.SGLANG
    ).seats

    assert leader.links is not None
    assert second.links is not None
    assert leader.links.master == 40004
    assert second.links.master == 40021
    assert {*range(40021, 40035)} < ports_of(second) & ports_of(follower)
    assert not ports_of(leader) & ports_of(second)


def test_a_host_without_room_for_such_ports_is_refused() -> None:
    narrow = a_host(gpus=4, port_range=(40000, 40013))
    engine = {"name": "sglang", "args": [DIVIDED]}

    def verdict(**container: str) -> Verdict:
        spec = a_spec(engine={**engine, "container": container})
        return placed(spec, narrow, engine=EngineName.SGLANG).verdicts[0]

    assert verdict().refusal is None
    refused = verdict(network="host")
    assert refused.refusal == Reason.PORT
    assert "14 consecutive free ports of 40000-40013" in refused.note


@pytest.mark.parametrize("last", [40014, 40015])
def test_just_enough_ports_are_enough_over_hosts(last: int) -> None:
    hosts = [
        a_host(f"gpu-{at}", gpus=4, bind=f"10.0.0.{at}", port_range=(40000, last)) for at in (1, 2)
    ]
    args = ["--tensor-parallel-size", "8", "--attn-dp-size", "8"]
    spec = a_spec(engine={"name": "sglang", "args": args}, placement={"hosts": 2})
    assert len(placed(spec, *hosts, engine=EngineName.SGLANG).seats) == 2


def test_the_ranks_of_one_host_meet_where_the_plan_says() -> None:
    wish = {"engine": {"container": {"network": "host"}, "name": "sglang", "args": [DIVIDED]}}

    line = words(planned(wish, a_host(gpus=2), IMAGE).containers[0])

    assert line[line.index("--dist-init-addr") + 1] == "127.0.0.1:40001"
