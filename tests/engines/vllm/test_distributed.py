from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.vllm.context import BASELINE, MOORAGE, Executor, LaunchPolicy
from moorage.engines.vllm.distributed import distributed_flags, executor_of, parallel_flags
from tests.engines.vllm.contexts import a_context, hosts, line

RAY = {"policy": BASELINE}
MP, DP = "--distributed-executor-backend mp ", "--data-parallel-address 10.0.0.1 "
NODES = "--master-addr 10.0.0.1 --master-port 40002"


@pytest.mark.parametrize(
    ("changes", "words", "executor"),
    [
        ({}, [], Executor.NATIVE),
        (RAY, [], Executor.RAY),
        ({"version": "0.19.0-custom", **RAY}, [], Executor.NATIVE),
        ({"version": "0.17.0-custom", **RAY}, [], Executor.RAY),
        ({}, ["--distributed-executor-backend", "ray"], Executor.RAY),
        (RAY, ["--distributed_executor_backend=mp"], Executor.NATIVE),
        ({}, ["--distributed-executor-backend=external_launcher"], Executor.RAY),
    ],
)
def test_hosts_are_joined_as_the_user_says_else_by_policy(
    changes: dict[str, Any], words: list[str], executor: Executor
) -> None:
    assert executor_of(a_context(*words, **changes)) is executor


@pytest.mark.parametrize(
    ("changes", "words", "flags"),
    [
        ({"members": ()}, [], ""),
        (RAY, [], "--distributed-executor-backend ray"),
        (
            RAY,
            ["-dp=2"],
            "--distributed-executor-backend ray --data-parallel-backend ray"
            " --data-parallel-rpc-port 40001",
        ),
        ({}, [], f"{MP}{DP}--data-parallel-rpc-port 40001"),
        (
            {"position": 1},
            [],
            f"{MP}--data-parallel-start-rank 1 {DP}--data-parallel-rpc-port 40001 --headless",
        ),
        (
            {"position": 1},
            ["--data-parallel-hybrid-lb"],
            f"{MP}--data-parallel-start-rank 1 {DP}--data-parallel-rpc-port 40001",
        ),
        ({}, ["-tp=8"], f"{MP}--nnodes 2 --node-rank 0 {NODES}"),
        ({"position": 1}, ["-tp=8"], f"{MP}--nnodes 2 --node-rank 1 {NODES} --headless"),
        (
            {"members": hosts(4, 4, 4, 4), "position": 2},
            ["-tp=8"],
            f"{MP}--nnodes 4 --node-rank 2 {NODES} {DP}--data-parallel-rpc-port 40001 --headless",
        ),
    ],
)
def test_every_host_is_told_how_to_find_the_others(
    changes: dict[str, Any], words: list[str], flags: str
) -> None:
    context = a_context(*words, **{"members": hosts(4, 4), **changes})
    assert line(distributed_flags(context)) == flags


@pytest.mark.parametrize(("policy", "stated"), [(MOORAGE, False), (BASELINE, True)])
def test_only_the_baseline_tells_the_leader_its_rank(policy: LaunchPolicy, stated: bool) -> None:
    native = "--distributed-executor-backend=mp"
    context = a_context(native, members=hosts(4, 4), policy=policy)
    assert ("--data-parallel-start-rank 0" in line(distributed_flags(context))) is stated


@pytest.mark.parametrize(
    ("counts", "words", "reason"),
    [
        ((8, 8), ["-tp=8", "-dp=3"], "data parallel size 3 is requested, the hosts take 2"),
        ((8, 4), ["-tp=16"], "hosts, which then have to be equal"),
        ((8, 8), ["-tp=12"], "does not fill hosts of 8"),
        ((8, 8), ["-pp=0"], "is not positive"),
        ((8, 8), ["-tp=many"], "is not a number"),
    ],
)
def test_sizes_that_do_not_go_with_the_hosts_are_refused(
    counts: tuple[int, ...], words: list[str], reason: str
) -> None:
    with pytest.raises(Failure, match=reason) as caught:
        distributed_flags(a_context(*words, members=hosts(*counts)))
    assert caught.value.cause is Cause.BAD_SPEC


@pytest.mark.parametrize(
    ("changes", "words", "flags"),
    [
        ({}, [], ""),
        ({"tensor": 4}, [], "--tensor-parallel-size 4"),
        (
            {"tensor": 2, "pipeline": 2},
            [],
            "--tensor-parallel-size 2 --pipeline-parallel-size 2",
        ),
        ({"tensor": 4}, ["--tensor-parallel-size=2"], ""),
        ({"tensor": 4}, ["--tensor_parallel_size", "2"], ""),
        ({"tensor": 4}, ["-tp", "2"], ""),
        ({"tensor": 4}, ["-pp=2"], ""),
        ({"tensor": 4}, ["-dp=2"], ""),
        ({"tensor": 4}, ["--data-parallel-size-local=2"], "--tensor-parallel-size 4"),
        (
            {"members": hosts(4, 4), **RAY},
            [],
            "--tensor-parallel-size 4 --pipeline-parallel-size 2",
        ),
        (
            {"members": hosts(4, 2), **RAY},
            [],
            "--tensor-parallel-size 1 --pipeline-parallel-size 6",
        ),
        ({"members": hosts(4, 4), **RAY}, ["-dp=2"], ""),
        (
            {"members": hosts(4, 4), "position": 1},
            [],
            "--tensor-parallel-size 4 --data-parallel-size 2 --data-parallel-size-local 1",
        ),
        ({"members": hosts(4, 4)}, ["--tensor-parallel-size=8"], ""),
        (
            {"members": hosts(4, 4, 4, 4)},
            ["-tp=4", "-pp=2"],
            "--data-parallel-size 2 --data-parallel-size-local 1",
        ),
        (
            {"members": hosts(2, 4), "position": 1},
            ["-dp=3"],
            "--tensor-parallel-size 2 --data-parallel-size-local 2",
        ),
    ],
)
def test_sizes_follow_from_the_placement_unless_the_user_states_one(
    changes: dict[str, Any], words: list[str], flags: str
) -> None:
    assert line(parallel_flags(a_context(*words, **changes))) == flags
