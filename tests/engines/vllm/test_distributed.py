from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.vllm.distributed import distributed_flags, parallel_flags, wanted_executor
from moorage.engines.vllm.environment import variables
from moorage.placement.placement import Links
from moorage.spec import Distributed
from tests.builders import a_model, a_spec
from tests.engines.vllm.requests import LINKS, RAY, a_request, line

BASELINE: dict[str, Any] = {"placement": {"policy": "baseline"}}
ON_RAY: dict[str, Any] = {"seat": {"links": RAY}}
RAY_RANKS = (
    "--distributed-executor-backend ray --data-parallel-backend ray --data-parallel-rpc-port 40001"
)
MP, DP = "--distributed-executor-backend mp ", "--data-parallel-address 10.0.0.1 "
NODES = "--master-addr 10.0.0.1 --master-port 40002"


@pytest.mark.parametrize(
    ("policy", "engine", "joined_by"),
    [
        ("fitted", {}, "native"),
        ("fitted", {"distributed": "ray"}, "ray"),
        ("fitted", {"version": "0.10.2"}, "ray"),
        ("fitted", {"image": "vllm/vllm-openai:v0.10.2"}, "ray"),
        ("fitted", {"image": "vllm/vllm-openai:v0.31.0"}, "native"),
        ("fitted", {"args": ["--distributed-executor-backend", "ray"]}, "ray"),
        ("fitted", {"args": ["--distributed-executor-backend=external_launcher"]}, "ray"),
        ("baseline", {}, "ray"),
        ("baseline", {"version": "0.19.0-custom"}, "native"),
        ("baseline", {"version": "0.17.0-custom"}, "ray"),
        ("baseline", {"args": ["--distributed-executor-backend=mp"]}, "native"),
        ("baseline", {"args": ["--distributed_executor_backend=mp"]}, "ray"),
    ],
)
def test_hosts_are_joined_as_the_user_says_else_by_policy(
    policy: str, engine: dict[str, Any], joined_by: str
) -> None:
    spec = a_spec(engine={"name": "vllm", **engine}, placement={"policy": policy})
    assert wanted_executor(spec) == Distributed(joined_by)


@pytest.mark.parametrize(
    ("changes", "words", "flags"),
    [
        ({"counts": (4,)}, [], ""),
        (ON_RAY, [], "--distributed-executor-backend ray"),
        (
            ON_RAY,
            ["-tp=2", "-dp=4"],
            f"{RAY_RANKS} --data-parallel-size-local 2",
        ),
        (ON_RAY, ["-tp=2", "-dp=4", "-dpl=2"], RAY_RANKS),
        ({**BASELINE, **ON_RAY}, ["-tp=4", "-dp=2"], RAY_RANKS),
        ({**ON_RAY, "counts": (4, 4, 4, 4)}, ["-tp=4", "-pp=2", "-dp=2"], RAY_RANKS),
        ({}, ["-dp=2"], f"{MP}{DP}--data-parallel-rpc-port 40001"),
        (
            {"position": 1},
            ["-dp=2"],
            f"{MP}--data-parallel-start-rank 1 {DP}--data-parallel-rpc-port 40001 --headless",
        ),
        (
            {"position": 1},
            ["-dp=2", "--data-parallel-hybrid-lb"],
            f"{MP}--data-parallel-start-rank 1 {DP}--data-parallel-rpc-port 40001",
        ),
        (
            {"version": "0.27.1", **BASELINE},
            ["-dp=2"],
            f"{MP}--data-parallel-start-rank 0 {DP}--data-parallel-rpc-port 40001",
        ),
        ({"version": "0.28.0", **BASELINE}, ["-dp=2"], f"{MP}{DP}--data-parallel-rpc-port 40001"),
        ({"version": "", **BASELINE}, ["-dp=2"], f"{MP}{DP}--data-parallel-rpc-port 40001"),
        ({}, ["-tp=8"], f"{MP}--nnodes 2 --node-rank 0 {NODES}"),
        ({"position": 1}, ["-tp=8"], f"{MP}--nnodes 2 --node-rank 1 {NODES} --headless"),
        (
            {"counts": (4, 4, 4, 4), "position": 2},
            ["-tp=8"],
            f"{MP}--nnodes 4 --node-rank 2 {NODES} {DP}--data-parallel-rpc-port 40001 --headless",
        ),
    ],
)
def test_every_host_is_told_how_to_find_the_others(
    changes: dict[str, Any], words: list[str], flags: str
) -> None:
    request = a_request(*words, **{"counts": (4, 4), **changes})
    assert line(distributed_flags(request)) == flags


@pytest.mark.parametrize(
    ("counts", "words", "reason"),
    [
        ((8, 8), ["-tp=8", "-dp=3"], "data parallel size 3 is requested, the hosts take 2"),
        ((8, 4), ["-tp=16"], "hosts, which then have to be equal"),
        ((8, 8), ["-tp=12"], "does not fill hosts of 8"),
        ((8, 8), ["-tp=8", "-pp=0"], "is not positive"),
        ((8, 8), ["-tp=many"], "is not a number"),
    ],
)
def test_sizes_that_do_not_go_with_the_hosts_are_refused(
    counts: tuple[int, ...], words: list[str], reason: str
) -> None:
    with pytest.raises(Failure, match=reason) as caught:
        distributed_flags(a_request(*words, counts=counts))
    assert caught.value.cause is Cause.BAD_SPEC


def test_ranks_that_span_hosts_need_experts() -> None:
    request = a_request("-tp=8", "-dp=2", counts=(4, 4, 4, 4))
    dense, mixture = (
        request.model_copy(update={"model": a_model({"architectures": ["Tiny"], **config})})
        for config in ({"num_experts": 0}, {"num_experts": 8})
    )
    with pytest.raises(Failure, match="without experts cannot have 2") as caught:
        distributed_flags(dense)
    assert caught.value.cause is Cause.BAD_SPEC
    assert "`replicas: 2`" in caught.value.suggestion
    assert distributed_flags(mixture) == distributed_flags(request)


@pytest.mark.parametrize(
    ("words", "counts", "links", "lacks"),
    [
        (["-tp=4", "-dp=2"], (4, 4), LINKS.model_copy(update={"rpc": 0}), "data-parallel RPC"),
        (["-tp=8"], (4, 4), LINKS.model_copy(update={"master": 0}), "master"),
        (["-tp=8", "-dp=2"], (4, 4, 4, 4), Links(rpc=40001, master=40002), "meeting of the"),
        ([], (4, 4), RAY.model_copy(update={"own": 0}), "the engine's own"),
        (["-dp=2"], (4, 4), RAY.model_copy(update={"rpc": 0}), "data-parallel RPC"),
    ],
)
def test_a_shape_that_needs_a_port_that_nobody_claimed_is_refused(
    words: list[str], counts: tuple[int, ...], links: Links, lacks: str
) -> None:
    request = a_request(*words, counts=counts, seat={"links": links})
    with pytest.raises(Failure, match=f"not claimed: {lacks}") as caught:
        (distributed_flags(request), variables(request))
    assert caught.value.cause is Cause.BAD_SPEC


@pytest.mark.parametrize(
    ("changes", "words", "flags"),
    [
        ({}, [], ""),
        ({"seat": {"tensor": 4}}, [], "--tensor-parallel-size 4"),
        (
            {"seat": {"tensor": 2, "pipeline": 2}},
            [],
            "--tensor-parallel-size 2 --pipeline-parallel-size 2",
        ),
        ({"seat": {"tensor": 4}}, ["--tensor-parallel-size=2"], ""),
        ({"seat": {"tensor": 4}}, ["--tensor_parallel_size 2"], ""),
        ({"seat": {"tensor": 4}}, ["-pp=2"], ""),
        ({"seat": {"tensor": 4}}, ["-dp=2"], ""),
        ({"seat": {"tensor": 4}}, ["--data-parallel-size-local=2"], "--tensor-parallel-size 4"),
        (
            {"counts": (4, 2), "seat": {"links": RAY, "pipeline": 6}},
            [],
            "--tensor-parallel-size 1 --pipeline-parallel-size 6",
        ),
        ({"counts": (4, 4), **ON_RAY}, ["-dp=2"], ""),
        (
            {"counts": (4, 4), "seat": {"tensor": 4}, "position": 1},
            [],
            "--tensor-parallel-size 4 --data-parallel-size 2 --data-parallel-size-local 1",
        ),
        ({"counts": (4, 4)}, ["--tensor-parallel-size=8"], ""),
        (
            {"counts": (4, 4, 4, 4)},
            ["-tp=4", "-pp=2"],
            "--data-parallel-size 2 --data-parallel-size-local 1",
        ),
        (
            {"counts": (2, 4), "position": 1},
            ["-dp=3"],
            "--tensor-parallel-size 2 --data-parallel-size-local 2",
        ),
    ],
)
def test_sizes_follow_from_the_placement_unless_the_user_states_one(
    changes: dict[str, Any], words: list[str], flags: str
) -> None:
    assert line(parallel_flags(a_request(*words, **changes))) == flags
